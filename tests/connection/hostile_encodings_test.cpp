// What a peer may try in each binary encoding at a broker, over real sockets: each is answered in kind as the contract
// says, reaches nobody else, and the peers beside it are served as ever.
#include <bit>
#include <cstddef>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "message/binary_transcoder.hpp"
#include "message/protobuf_transcoder.hpp"
#include "tests/codec/msgpack.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net::hostile_encodings {
namespace {

using packing::from_hex;

constexpr std::string_view kMessageTag = "\xD9\xD9\xF7";  // of CBOR

/// One encoding, as a peer that means harm writes it.
struct Hostile {
  std::string_view name;
  std::unique_ptr<message::Transcoder> (*transcoder)();
  /// Messages that nest millions of levels.
  std::vector<std::string> (*deep)();
  /// A request with one more member.
  std::string (*with_member)(const std::string& request, std::string_view name, std::string_view json);
  /// 1.5 in the encoding, and what is put in its place: NaN.
  std::string half;
  std::string nan;
  /// A few bytes that say that gigabytes follow, or have no end.
  std::vector<std::string> overlong_lengths;
};

// ---- MessagePack and CBOR ----

template <class Transcoder>
std::unique_ptr<message::Transcoder> make() {
  return std::make_unique<Transcoder>();
}

std::string as(message::Transcoder& transcoder, std::string_view json) {
  Buffer text{json};
  Buffer out;
  EXPECT_TRUE(transcoder.from_json(text.padded(), Limits{}, out)) << json;
  return std::string{out.view()};
}

std::string msgpack_with_member(const std::string& request, std::string_view name, std::string_view json) {
  std::string more = request + packing::msgpack_of('"' + std::string{name} + '"') + packing::msgpack_of(json);
  ++more[0];
  return more;
}

std::string cbor_with_member(const std::string& request, std::string_view name, std::string_view json) {
  const auto value = to_cbor(Raw{json});
  std::string more = request + static_cast<char>(0x60 + name.size()) + std::string{name} +
                     std::string{reinterpret_cast<const char*>(value.data()), value.size()};
  ++more[kMessageTag.size()];
  return more;
}

constexpr std::size_t kMillions = 5'000'000;

std::vector<std::string> deep_msgpack() {
  const std::string arrays(kMillions, '\x91');
  return {arrays, from_hex("81 a6") + "params" + arrays, from_hex("81 a2 6964") + arrays,
          from_hex("81 a1 78") + arrays + '\xC0'};
}

Hostile msgpack() {
  return {.name = "msgpack",
          .transcoder = &make<message::MsgpackTranscoder>,
          .deep = &deep_msgpack,
          .with_member = &msgpack_with_member,
          .half = from_hex("cb 3ff8000000000000"),
          .nan = from_hex("cb 7ff8000000000000"),
          .overlong_lengths = {from_hex("df ffffffff c0"), from_hex("dd ffffffff c0"), from_hex("81 c6 ffffffff"),
                               from_hex("81 db ffffffff"), from_hex("81 a1 78 c9 ffffffff 01")}};
}

std::vector<std::string> deep_cbor() {
  const std::string tag{kMessageTag};
  const std::string arrays(kMillions, '\x81');
  return {tag + arrays,
          tag + std::string(kMillions, '\x9F'),
          tag + std::string(kMillions, '\xC6'),
          tag + from_hex("a1 66") + "params" + arrays,
          tag + from_hex("a1 62 6964") + arrays,
          tag + from_hex("bf 61 78") + arrays};
}

Hostile cbor() {
  const std::string tag{kMessageTag};
  return {.name = "cbor",
          .transcoder = &make<message::CborTranscoder>,
          .deep = &deep_cbor,
          .with_member = &cbor_with_member,
          .half = from_hex("f9 3e00"),
          .nan = from_hex("f9 7e00"),
          .overlong_lengths = {tag + from_hex("9a ffffffff"), tag + from_hex("ba ffffffff"),
                               tag + from_hex("9b 7fffffffffffffff"), tag + from_hex("a1 61 78 5a ffffffff"),
                               tag + from_hex("bf"), tag + from_hex("bf 61 78 9f"), tag + from_hex("bf 61 78 7f 61"),
                               tag + from_hex("bf 61 78 5f 5f")}};
}

// ---- Protocol Buffers ----

std::string protobuf_with_member(const std::string& request, std::string_view name, std::string_view json) {
  message::ProtobufTranscoder transcoder;
  const std::string begin = R"({"jsonrpc":"2.0",)";
  return request + as(transcoder, begin + '"' + std::string{name} + "\":" + std::string{json} + '}');
}

// Lists within lists, each behind its length: written from the end, the innermost first.
std::string nested_lists(char field_tag) {
  constexpr std::size_t kLevels = 1'000'000;
  std::string bytes(11 * kLevels, '\0');
  std::size_t at = bytes.size();
  const auto wrap = [&](char tag) {
    const std::size_t size = bytes.size() - at;
    const int last = (std::bit_width(size | 1) - 1) / 7;
    for (int byte = last; byte >= 0; --byte)
      bytes[--at] = static_cast<char>((size >> (7 * byte) & 0x7F) | (byte == last ? 0 : 0x80));
    bytes[--at] = tag;
  };
  for (std::size_t level = 0; level != kLevels; ++level) {
    wrap('\x0A');  // List.values
    wrap('\x42');  // Value.list
  }
  wrap(field_tag);
  return bytes.substr(at);
}

std::vector<std::string> deep_protobuf() {
  return {nested_lists('\x42'), nested_lists('\x3A'), nested_lists('\x1A')};  // params, id, result
}

Hostile protobuf() {
  return {.name = "protobuf",
          .transcoder = &make<message::ProtobufTranscoder>,
          .deep = &deep_protobuf,
          .with_member = &protobuf_with_member,
          .half = from_hex("29 000000000000f83f"),
          .nan = from_hex("29 000000000000f87f"),
          .overlong_lengths = {from_hex("12 ffffffff0f"), from_hex("4a ffffffff0f"), from_hex("42 ffffffffffffffff7f"),
                               from_hex("12 01 61 42 ffffffff07")}};
}

// ---- peers ----

/// A raw peer that sends messages behind a length, and shows those that come as JSON.
class FramedPeer {
 public:
  FramedPeer(const Endpoint& endpoint, const Hostile& encoding)
      : peer_(endpoint), encoding_(encoding), transcoder_(encoding.transcoder()) {}

  bool send(std::string_view message) { return peer_.send(packing::framed(message)); }
  bool say(std::string_view json) { return send(as(*transcoder_, json)); }
  std::string received() {
    std::size_t size = 0;
    for (const char c : peer_.take(4)) size = size << 8 | static_cast<unsigned char>(c);
    const std::string message = peer_.take(size);
    Buffer out;
    const auto status = transcoder_->to_json(message, Limits{}, out);
    EXPECT_EQ(status, message::Transcoder::Status::done) << encoding_.name << ": " << packing::to_hex(message);
    return std::string{out.view()};
  }
  std::string ask(std::string_view json) {
    EXPECT_TRUE(say(json));
    return received();
  }
  /// Sends `json` with NaN in place of its 1.5.
  bool say_nan(std::string_view json) {
    std::string message = as(*transcoder_, json);
    const std::size_t at = message.find(encoding_.half);
    EXPECT_NE(at, std::string::npos) << packing::to_hex(message);
    if (at != std::string::npos) message.replace(at, encoding_.half.size(), encoding_.nan);
    return send(message);
  }
  std::string with_member(std::string_view json, std::string_view name, std::string_view value) {
    return encoding_.with_member(as(*transcoder_, json), name, value);
  }

 private:
  RawPeer peer_;
  const Hostile& encoding_;
  std::unique_ptr<message::Transcoder> transcoder_;
};

std::string request_of(std::string_view method, std::string_view params, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::to_string(id) + "}";
}
std::string result_of(std::string_view result, std::string_view id) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{result} + R"(,"id":)" + std::string{id} + "}";
}
Value parsed(const std::string& text) {
  const auto value = Value::parse(text);
  EXPECT_TRUE(value) << text;
  return value ? *value : Value{};
}
std::int64_t code_of(const std::string& response) {
  const Value value = parsed(response);
  return value.find("error") != nullptr ? value.at("error").at("code").as_int() : 0;
}
std::string id_of(const std::string& request) { return parsed(request).at("id").dump(); }

class HostileEncodings : public testing::TestWithParam<Hostile (*)()> {
 protected:
  HostileEncodings() {
    EXPECT_EQ(provider.ask(request_of("rpc.register", R"({"method":"echo"})", 1)), result_of("1", "1"));
    lines.send(request_of("rpc.register", R"({"method":"lines"})", 1) + "\n");
    EXPECT_EQ(lines.line(), result_of("1", "1"));
  }
  // Whatever was sent has left the others, and the connection that sent it, as they were; nothing else has come.
  void expect_served() {
    EXPECT_EQ(hostile.ask(request_of("rpc.ping", "[]", 9)), result_of("\"pong\"", "9"));
    for (const int id : {1, 2}) {
      lines.send(request_of("echo", "[1]", id) + "\n");
      const std::string asked = provider.received();
      EXPECT_NE(asked.find(R"("method":"echo")"), std::string::npos) << asked;
      EXPECT_NE(asked.find(R"("params":[1])"), std::string::npos) << asked;
      provider.say(result_of("1", id_of(asked)));
      EXPECT_EQ(lines.line(), result_of("1", std::to_string(id)));
    }
  }

  const Hostile encoding = GetParam()();
  Broker broker;
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  FramedPeer provider{endpoint, encoding};
  RawPeer lines{endpoint};
  FramedPeer hostile{endpoint, encoding};
};

TEST_P(HostileEncodings, MessagesThatNestMillionsOfLevelsAreTooDeep) {
  for (const std::string& message : encoding.deep()) {
    ASSERT_TRUE(hostile.send(message));
    const std::string refused = hostile.received();
    EXPECT_EQ(code_of(refused), -32700) << refused;
    EXPECT_EQ(parsed(refused).at("id").dump(), "null") << refused;
    expect_served();
  }
}

TEST_P(HostileEncodings, IntegersOf64BitsAreRelayedExactly) {
  for (const std::string number :
       {"9007199254740991", "9007199254740993", "-9007199254740991", "-9007199254740993", "9223372036854775807",
        "9223372036854775808", "-9223372036854775808", "18446744073709551615", "-0.0"}) {
    for (const bool to_lines : {false, true}) {
      ASSERT_TRUE(hostile.say(request_of(to_lines ? "lines" : "echo", '[' + number + ']', 5)));
      const std::string asked = to_lines ? lines.line() : provider.received();
      EXPECT_NE(asked.find(R"("params":[)" + number + ']'), std::string::npos) << asked;
      if (to_lines) {
        lines.send(result_of(number, id_of(asked)) + "\n");
      } else {
        provider.say(result_of(number, id_of(asked)));
      }
      const std::string answer = hostile.received();
      EXPECT_TRUE(answer.find("\"result\":" + number + ',') != std::string::npos ||
                  answer.find("\"result\":" + number + '}') != std::string::npos)
          << answer;
    }
  }
  expect_served();
}

TEST_P(HostileEncodings, AMegabyteOfDigitsGoesAsFarAsTheEncodingHasNumbers) {
  const std::string digits(1U << 20U, '7');
  lines.send(request_of("echo", '[' + digits + ']', 5) + "\n");
  if (encoding.name == "protobuf") {
    const std::string asked = provider.received();
    EXPECT_NE(asked.find(R"("params":[)" + digits + ']'), std::string::npos);
    provider.say(result_of(digits, id_of(asked)));
    EXPECT_TRUE(lines.line() == result_of(digits, "5"));
  } else {
    EXPECT_EQ(code_of(lines.line()), -32602);
  }
  expect_served();
}

TEST_P(HostileEncodings, ARequestThatSaysSomethingTwiceIsInvalidAndReachesNobody) {
  struct Twice {
    std::string_view name;
    std::string_view value;
  };
  for (const auto& [name, value] : {Twice{"id", "6"}, Twice{"method", R"("lines")"}, Twice{"params", "[2]"}}) {
    for (const std::string_view method : {"echo", "lines", "rpc.ping"}) {
      ASSERT_TRUE(hostile.send(hostile.with_member(request_of(method, "[1]", 5), name, value)));
      EXPECT_EQ(code_of(hostile.received()), -32600) << name << " of " << method;
    }
  }
  expect_served();
}

TEST_P(HostileEncodings, AnAnswerThatSaysSomethingTwiceIsNone) {
  for (const std::string_view name : {"id", "result"}) {
    lines.send(request_of("echo", "[1]", 5) + "\n");
    const std::string id = id_of(provider.received());
    ASSERT_TRUE(provider.send(provider.with_member(result_of("2", id), name, name == "id" ? id : "3")));
    if (name == "id") provider.say(result_of("1", id));  // whose answer that was, nobody can tell
    EXPECT_NE(lines.line().find(name == "id" ? "\"result\":1" : "-32603"), std::string::npos) << name;
  }
  expect_served();
}

std::size_t peak_of_virtual_memory() {
  std::ifstream status{"/proc/self/status"};
  for (std::string word; status >> word;) {
    std::size_t kilobytes = 0;
    if (word == "VmPeak:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

TEST_P(HostileEncodings, AFewBytesThatPromiseGigabytesTakeNone) {
  const std::size_t before = peak_of_virtual_memory();
  ASSERT_NE(before, 0U);
  for (const std::string& message : encoding.overlong_lengths) {
    ASSERT_TRUE(hostile.send(message));
    EXPECT_EQ(code_of(hostile.received()), -32700) << packing::to_hex(message);
  }
  EXPECT_LT(peak_of_virtual_memory() - before, std::size_t{1} << 30U);
  expect_served();
}

TEST_P(HostileEncodings, NaNNeverComesToJson) {
  ASSERT_TRUE(hostile.say_nan(request_of("lines", "[1.5]", 5)));
  EXPECT_EQ(code_of(hostile.received()), -32602);
  lines.send(request_of("echo", "[1]", 6) + "\n");
  ASSERT_TRUE(provider.say_nan(result_of("1.5", id_of(provider.received()))));
  EXPECT_EQ(code_of(lines.line()), -32603);
  expect_served();
}

std::string encoding_name(const testing::TestParamInfo<Hostile (*)()>& info) { return std::string{info.param().name}; }

INSTANTIATE_TEST_SUITE_P(Each, HostileEncodings, testing::Values(&msgpack, &cbor, &protobuf), encoding_name);

}  // namespace
}  // namespace wirecall::net::hostile_encodings
