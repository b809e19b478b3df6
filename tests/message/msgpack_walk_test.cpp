// The walk against the scan of the codec, which takes the same by another way, and against what is remembered by hand.
#include "message/msgpack_walk.hpp"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "codec/msgpack_format.hpp"
#include "codec/msgpack_scan.hpp"
#include "tests/codec/msgpack.hpp"
#include "tests/codec/support.hpp"

namespace wirecall::message {
namespace {

using packing::from_hex;
using packing::msgpack_of;
using packing::with;
using testing::Exact;

ScanStatus scanned(std::string_view message, std::uint32_t depth_max) {
  const Scan scan = msgpack::scan(message, depth_max);
  if (scan.status == ScanStatus::too_deep) return scan.status;
  const bool whole = scan.status == ScanStatus::complete && scan.offset == message.size();
  return whole ? ScanStatus::complete : ScanStatus::malformed;
}

/// What the walk has to remember, found by the codec's own means.
std::vector<EnvelopeMember> members_of(std::string_view message) {
  std::vector<EnvelopeMember> all;
  const msgpack::Head head = msgpack::read_head(message.data());
  const char* p = message.data() + head.bytes;
  for (std::uint64_t i = 0; i < head.value; ++i) {
    const msgpack::Head name = msgpack::read_head(p);
    const std::string_view text{p + name.bytes, static_cast<std::size_t>(name.value)};
    const bool named = name.type == msgpack::Type::string;
    const char* const value = msgpack::skip_value(p);
    p = msgpack::skip_value(value);
    if (named && is_envelope_name(text))
      all.push_back({*envelope_member(text), text, {value, static_cast<std::size_t>(p - value)}});
  }
  return all;
}

void expect_as_scanned(std::string_view bytes, std::uint32_t depth_max) {
  const Exact exact{bytes};
  const std::string_view message = exact.view();
  EnvelopeMembers members;
  const ScanStatus status = walk_message(message, depth_max, members);
  ASSERT_EQ(status, scanned(message, depth_max)) << packing::to_hex(bytes) << " to " << depth_max;
  if (status != ScanStatus::complete) {
    ASSERT_FALSE(members.are_all());
    return;
  }
  ASSERT_EQ(end_of(message.data()), message.data() + message.size()) << packing::to_hex(bytes);
  if (msgpack::read_head(message.data()).type != msgpack::Type::map) {
    ASSERT_FALSE(members.are_all());
    return;
  }
  const std::vector<EnvelopeMember> wanted = members_of(message);
  ASSERT_EQ(members.are_all(), wanted.size() <= EnvelopeMembers::kMembersMax);
  if (!members.are_all()) return;
  ASSERT_EQ(members.view().size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(members.view()[i].name, wanted[i].name);
    ASSERT_EQ(members.view()[i].value.data(), wanted[i].value.data());
    ASSERT_EQ(members.view()[i].value.size(), wanted[i].value.size());
  }
}

/// Random values, each kind of head among them, and runs of small ones.
class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  std::string value(int levels) {
    const unsigned kind = pick(levels > 0 ? 16 : 11);
    switch (kind) {
      case 0: return {static_cast<char>(pick(0x80))};
      case 1: return {static_cast<char>(0xE0 + pick(32))};
      case 2: return from_hex(kOfOneByte[pick(kOfOneByte.size())]);
      case 3: return string(pick(12));
      case 4: return string(pick(70));
      case 5: return "\xC4" + std::string(1, static_cast<char>(pick(4))) + "abcd";
      case 6: return sized("\xC5", 2, pick(300)) + "x";
      case 7: return from_hex(kNumbers[pick(kNumbers.size())]);
      case 8: return from_hex(kExtensions[pick(kExtensions.size())]);
      case 9: return sized("\xD8", 0, 0) + std::string(17, 'e');
      case 10: return sized("\xDA", 2, 3) + "abc";
      default: return container(levels - 1);
    }
  }
  std::string envelope() {
    const unsigned count = pick(4) == 0 ? pick(40) : pick(12);
    std::string out = count < 16 ? std::string(1, static_cast<char>(0x80 + count)) : sized("\xDE", 2, count);
    for (unsigned i = 0; i < count; ++i) {
      const std::string name{kNames[pick(kNames.size())]};
      switch (pick(8)) {
        case 0: out += value(2); break;
        case 1: out += sized("\xD9", 1, static_cast<unsigned>(name.size())) + name; break;
        default: out += static_cast<char>(0xA0 + name.size()) + name;
      }
      out += value(4);
    }
    return out;
  }
  unsigned pick(std::size_t count) { return static_cast<unsigned>(random_() % count); }

 private:
  static constexpr std::array<std::string_view, 6> kOfOneByte{"c0", "c2", "c3", "a0", "80", "90"};
  static constexpr std::array<std::string_view, 10> kNumbers{
      "ca 3f 80 00 00", "cb 7f f8 00 00 00 00 00 00", "cc ff", "cd 01 02",
      "ce 01 02 03 04", "cf 01 02 03 04 05 06 07 08", "d0 80", "d1 80 01",
      "d2 80 00 00 01", "d3 80 00 00 00 00 00 00 01"};
  static constexpr std::array<std::string_view, 8> kExtensions{
      "d4 01 02",       "d5 01 02 03",          "d6 ff 00 00 00 01", "c7 01 05 07",
      "c8 00 01 05 07", "c9 00 00 00 01 05 07", "c6 00 00 00 01 09", "d7 ff 00 00 00 01 00 00 00 01"};
  static constexpr std::array<std::string_view, 18> kNames{
      "jsonrpc", "method", "params",     "id",          "result", "error",      "to",          "from", "hops",
      "stream",  "idle",   "timeout_ms", "traceparent", "xx",     "tracestate", "traceparenX", "",     "methoD"};

  static std::string sized(std::string_view first, int size_bytes, unsigned size) {
    std::string out{first};
    for (int i = size_bytes - 1; i >= 0; --i) out += static_cast<char>(size >> (8 * i));
    return out;
  }
  std::string string(unsigned size) {
    std::string text;
    while (text.size() < size) text += pick(6) == 0 && size - text.size() >= 2 ? "\xC3\xA4" : "a";
    return (size < 32 ? std::string(1, static_cast<char>(0xA0 + size)) : sized("\xD9", 1, size)) + text;
  }
  std::string container(int levels) {
    const bool is_map = pick(2) == 0;
    unsigned count = pick(5);
    if (pick(6) == 0) {  // a run
      count = 10 + pick(30);
      std::string out = sized(is_map ? "\xDF" : "\xDD", 4, count);
      const std::string one = pick(2) == 0 ? value(0) : std::string(1, static_cast<char>(pick(0x80)));
      for (unsigned i = 0; i < count * (is_map ? 2 : 1); ++i) out += pick(20) == 0 ? value(levels > 0 ? 1 : 0) : one;
      return out;
    }
    std::string out(1, static_cast<char>((is_map ? 0x80 : 0x90) + count));
    for (unsigned i = 0; i < count * (is_map ? 2 : 1); ++i) out += value(levels);
    return out;
  }

  std::mt19937 random_;
};

TEST(MsgpackWalk, TakesWhatTheScanTakesAndNothingElse) {
  Maker maker{20'261'125};
  for (int i = 0; i < 3000; ++i) {
    const std::string message = maker.pick(5) == 0 ? maker.value(5) : maker.envelope();
    for (const std::uint32_t depth : {1U, 2U, 3U, 4U, kDepthMax})
      ASSERT_NO_FATAL_FAILURE(expect_as_scanned(message, depth));
    ASSERT_NO_FATAL_FAILURE(expect_as_scanned(message.substr(0, maker.pick(message.size() + 1)), 64));
    ASSERT_NO_FATAL_FAILURE(expect_as_scanned(message + "\xC0", 64));
    std::string changed = message;
    for (int change = 0; change < 3 && !changed.empty(); ++change) {
      changed[maker.pick(changed.size())] = static_cast<char>(maker.pick(256));
      ASSERT_NO_FATAL_FAILURE(expect_as_scanned(changed, 1 + maker.pick(6)));
    }
  }
}

TEST(MsgpackWalk, EveryPartOfAMessageIsNone) {
  const std::string message =
      with(R"({"jsonrpc":"2.0","method":"a","params":[[],{},"äö",[1,[2]],-1,1.5,300,null]})", "x", "c4 02 01 02");
  for (std::size_t size = 0; size < message.size(); ++size)
    ASSERT_NO_FATAL_FAILURE(expect_as_scanned(std::string_view{message}.substr(0, size), 64));
  ASSERT_NO_FATAL_FAILURE(expect_as_scanned(message, 64));
}

TEST(MsgpackWalk, EachFirstByteByItself) {
  for (int first = 0; first < 256; ++first) {
    for (const std::size_t behind : {0U, 1U, 2U, 4U, 8U, 9U, 16U, 17U, 18U, 40U}) {
      for (const char fill : {'\0', '\1', 'a', '\x80', '\xC1', '\xFF'}) {
        const std::string value = std::string(1, static_cast<char>(first)) + std::string(behind, fill);
        ASSERT_NO_FATAL_FAILURE(expect_as_scanned(value, 2));
        ASSERT_NO_FATAL_FAILURE(expect_as_scanned("\x81\xA2id" + value, 2));
      }
    }
  }
}

TEST(MsgpackWalk, LevelsAreCountedFromTheEnvelopeOn) {
  const auto nested = [](int levels) {
    return "\x81\xA6params" + std::string(static_cast<std::size_t>(levels - 1), '\x91') + "\x01";
  };
  EnvelopeMembers members;
  for (const int levels : {1, 2, 3, 100, static_cast<int>(kDepthMax)}) {
    const auto depth = static_cast<std::uint32_t>(levels);
    EXPECT_EQ(walk_message(nested(levels), depth, members), ScanStatus::complete);
    EXPECT_EQ(walk_message(nested(levels + 1), depth, members), ScanStatus::too_deep);
  }
  EXPECT_EQ(walk_message("\x80", 0, members), ScanStatus::too_deep);
}

TEST(MsgpackWalk, RemembersWhereTheMembersOfAnEnvelopeAre) {
  const std::string message =
      msgpack_of(R"({"jsonrpc":"2.0","other":[1],"method":"m","params":[[1,2],{"a":[]}],"id":"x"})");
  EnvelopeMembers members;
  ASSERT_EQ(walk_message(message, 64, members), ScanStatus::complete);
  ASSERT_TRUE(members.are_all());
  EXPECT_EQ(members.view().size(), 4U);
  ASSERT_NE(members.find(Member::params), nullptr);
  EXPECT_EQ(members.find(Member::params)->value, msgpack_of(R"([[1,2],{"a":[]}])"));
  EXPECT_NE(members.find(Member::method), nullptr);
  EXPECT_EQ(members.find(Member::result), nullptr);
}

TEST(MsgpackWalk, RemembersNothingOfWhatIsNoSingleEnvelope) {
  EnvelopeMembers members;
  EXPECT_EQ(walk_message(msgpack_of(R"([{"method":"m"}])"), 64, members), ScanStatus::complete);
  EXPECT_FALSE(members.are_all());
  std::string message = "\xDE" + from_hex("00 11");
  for (int i = 0; i < 17; ++i) message += "\xA2id\x01";
  EXPECT_EQ(walk_message(message, 64, members), ScanStatus::complete);
  EXPECT_FALSE(members.are_all());
  message[2] = 16;
  message.resize(message.size() - 4);
  EXPECT_EQ(walk_message(message, 64, members), ScanStatus::complete);
  EXPECT_TRUE(members.are_all());
  EXPECT_EQ(members.view().size(), EnvelopeMembers::kMembersMax);
}

}  // namespace
}  // namespace wirecall::message
