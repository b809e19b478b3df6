// Messages in CBOR: what of them is like MessagePack is tested there (transcoder_test.cpp); here are the tag in front
// of a message, names in unusual forms and of other types, indefinite lengths, and that an envelope that is read as it
// is says what it says by way of JSON, in both encodings and whatever has been done to it.
#include <gtest/gtest.h>
#include <random>
#include <string>

#include "message/message_codec.hpp"
#include "tests/codec/msgpack.hpp"
#include "tests/codec/support.hpp"
#include "tests/message/encoded.hpp"
#include "wirecall/message.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall::message {
namespace {

using packing::from_hex;
using packing::to_hex;
using testing::Exact;
using Status = Transcoder::Status;

constexpr std::string_view kTagHex = "d9 d9 f7";

std::string json_of_message(std::string_view message, Status status = Status::done) {
  CborTranscoder transcoder;
  Buffer out;
  const Exact exact{message};
  EXPECT_EQ(transcoder.to_json(exact.view(), Limits{}, out), status) << to_hex(message);
  return std::string{out.view()};
}

std::string from_hex_message(std::string_view hex) { return json_of_message(from_hex(hex)); }

enum class Way : std::uint8_t { one_pass, directly, by_json };

/// What a message is read as: its kind and members, params and result as JSON.
template <class Of>
std::string read_of(std::string_view bytes, Way way) {
  Of transcoder;
  EnvelopeMembers members;
  const Exact exact{bytes};
  Buffer text;
  IdText id;
  Received received;
  if (way == Way::one_pass) {
    if (!transcoder.read_request(exact.view(), Limits{}, id, received)) return "unusual";
  } else {
    const bool directly = way == Way::directly;
    if (transcoder.check(exact.view(), Limits{}, members) != Status::done) return "malformed";
    if (directly && !members.is_single()) return "no single message";
    if (transcoder.read(exact.view(), Limits{}, text, received, {}, directly ? members : EnvelopeMembers{}) !=
        Status::done) {
      return "not read";
    }
  }
  std::string out = "kind " + std::to_string(static_cast<int>(received.kind)) + " fault " +
                    std::to_string(static_cast<int>(received.fault));
  NativeTranscoder::restore(transcoder.encoding(), exact.view(), received);
  for (std::size_t i = 0; i < kMemberCount; ++i) {
    const auto member = static_cast<Member>(i);
    if (!received.has(member)) continue;
    out += ' ' + std::to_string(i) + '=';
    if (member == Member::method) {
      if (received.kind != MessageKind::invalid && received.kind != MessageKind::response) out += received.method();
    } else if (member == Member::params || member == Member::result) {
      out += to_hex(received[member]);
    } else {
      out += received[member];
    }
  }
  if (received.integer_count != 0) {
    std::string integers;
    for (std::size_t i = 0; i < received.integer_count; ++i)
      integers += (i == 0 ? "[" : ",") + std::to_string(received.integers[i]);
    Buffer json;
    EXPECT_EQ(transcoder.unpack(received, Limits{}, json), "");
    EXPECT_EQ(integers + "]", json.view());
  }
  return out;
}

TEST(CborTranscoder, MessagesGoThereAndBackBehindTheTag) {
  for (
      const char* json : {
          R"({"jsonrpc":"2.0","method":"sum","params":[1,2.5,"x",null,true],"id":1})",
          R"({"jsonrpc":"2.0","method":"sum","params":{"a":1,"b":{"$":{"$x":2}}},"id":"a"})",
          R"({"jsonrpc":"2.0","method":"note"})",
          R"({"jsonrpc":"2.0","result":{"$bytes":"AP8="},"id":1.5})",
          R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":null})",
          R"([{"jsonrpc":"2.0","result":1,"id":1},{"jsonrpc":"2.0","result":2,"id":2}])",
          R"({"jsonrpc":"2.0","method":"m","id":1,"timeout_ms":5,"stream":2,"hops":1,"to":"x","from":"y","other":[1]})",
          R"({})",
      }) {
    const std::string message = encoded(json);
    EXPECT_TRUE(message.starts_with(from_hex(kTagHex)));
    EXPECT_EQ(message.find(from_hex(kTagHex), 1), std::string::npos) << "an element has it too";
    EXPECT_EQ(json_of_message(message), json);
    EXPECT_EQ(json_of_message(message.substr(3)), json);
    EXPECT_EQ(encoding_of(message[0]), Encoding::cbor);
  }
  EXPECT_EQ(to_hex(encoded(R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})")),
            "d9 d9 f7 a4 67 6a 73 6f 6e 72 70 63 63 32 2e 30 66 6d 65 74 68 6f 64 68 73 75 62 74 72 61 63 74 66 70 61 "
            "72 61 6d 73 82 18 2a 17 62 69 64 01");
}

TEST(CborTranscoder, WhatIsWrittenInPartsIsWhatIsWrittenWhole) {
  CborTranscoder transcoder;
  using Place = NativeTranscoder::Place;
  const auto written = [&](const auto& write) {
    Buffer out;
    write(out);
    return to_hex(out.view());
  };
  const std::string reply = encoded(R"({"jsonrpc":"2.0","result":-7,"id":1})");
  EXPECT_EQ(written([&](Buffer& out) { transcoder.append_integer_result(out, -7, "1", Place::message); }),
            to_hex(reply));
  EXPECT_EQ(written([&](Buffer& out) { transcoder.append_integer_result(out, -7, "1", Place::element); }),
            to_hex(reply.substr(3)));
  const std::string packed = encoded(R"({"jsonrpc":"2.0","result":{"$packed":"AAECAwQFBgcICQoLDA0ODw=="},"id":"a"})");
  constexpr std::string_view kBytes{"\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17", 16};
  EXPECT_EQ(written([&](Buffer& out) { transcoder.append_packed_result(out, kBytes, "\"a\"", Place::message); }),
            to_hex(packed));
  EXPECT_EQ(written([&](Buffer& out) { transcoder.append_packed_result(out, kBytes, "\"a\"", Place::element); }),
            to_hex(packed.substr(3)));
  EXPECT_EQ(written([&](Buffer& out) { transcoder.append_error(out, Error{-5, "x"}, "\"a\"", Place::message); }),
            to_hex(encoded(R"({"jsonrpc":"2.0","error":{"code":-5,"message":"x"},"id":"a"})")));
  EXPECT_EQ(written([&](Buffer& out) {
              transcoder.begin_batch(out, 1);
              transcoder.append_integer_result(out, -7, "1", Place::element);
            }),
            to_hex(encoded(R"([{"jsonrpc":"2.0","result":-7,"id":1}])")));
  EXPECT_EQ(written([&](Buffer& out) {
              transcoder.begin_item(out, true, "7");
              transcoder.append_item_number(out, 3);
              transcoder.append_value(out, Buffer{"[1]"}.padded());
            }),
            to_hex(encoded(R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":7,"seq":3,"value":[1]}})")));
  EXPECT_EQ(written([&](Buffer& out) {
              transcoder.begin_item(out, false, "\"t\"");
              transcoder.append_value(out, Buffer{"null"}.padded());
            }),
            to_hex(encoded(R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":"t","value":null}})")));
  EXPECT_EQ(written([&](Buffer& out) { transcoder.append_event(out, "a.b", from_hex("81 01")); }),
            to_hex(encoded(R"({"jsonrpc":"2.0","method":"a.b","params":[1]})")));
}

TEST(CborTranscoder, UnusualFormsAreTheSameMessage) {
  const char* const json = R"({"jsonrpc":"2.0","method":"sum","params":[1,2],"id":"ab"})";
  // Of indefinite length, with names and strings in chunks, tags in front, and longer heads than needed.
  for (const char* message :
       {"bf 676a736f6e727063 63322e30 666d6574686f64 6373756d 66706172616d73 9f 01 02 ff 626964 626162 ff",
        "c6 bf 7f 636a736f 646e727063 ff 7f 6132 622e30 ff 666d6574686f64 7f 6373756d 60 ff 66706172616d73 82 01 02 "
        "626964 7f 6161 6162 ff ff",
        "b8 04 c6 676a736f6e727063 c6 63322e30 7806 6d6574686f64 c6 7803 73756d 7900 06 706172616d73 9b "
        "0000000000000002 "
        "1801 1b0000000000000002 7a 00000002 6964 626162"}) {
    EXPECT_EQ(from_hex_message(message), json) << message;
    EXPECT_EQ(read_of<CborTranscoder>(from_hex(message), Way::directly).substr(0, 14), "kind 0 fault 0") << message;
    CborTranscoder transcoder;
    EnvelopeMembers members;
    const std::string bytes = from_hex(message);
    ASSERT_EQ(transcoder.check(bytes, Limits{}, members), Status::done);
    EXPECT_EQ(transcoder.method_of(bytes, members), "sum");
    EXPECT_FALSE(transcoder.has_response(bytes, members));
    Buffer out;
    transcoder.append_request(out, bytes, {.id = 9, .from_json = R"("me")"});
    EXPECT_EQ(json_of_message(out.view()), R"({"jsonrpc":"2.0","method":"sum","params":[1,2],"id":9,"from":"me"})");
  }
}

TEST(CborTranscoder, NamesThatAreNoTextAndNamesGivenTwiceSpoilARequest) {
  // {"jsonrpc": "2.0", "method": "m", "id": 1, and one more}
  const auto kind = [](std::string_view more) {
    const std::string bytes =
        from_hex("a4 676a736f6e727063 63322e30 666d6574686f64 616d 626964 01 " + std::string{more});
    EXPECT_EQ(read_of<CborTranscoder>(bytes, Way::directly), read_of<CborTranscoder>(bytes, Way::by_json)) << more;
    const std::string json = json_of_message(bytes);
    Buffer text{json};
    Received received;
    EXPECT_EQ(read_message(text.padded(), Limits{}, true, received).status, ScanStatus::complete);
    EXPECT_EQ(read_of<CborTranscoder>(bytes, Way::directly).substr(0, 6),
              "kind " + std::to_string(static_cast<int>(received.kind)));
    return received.kind;
  };
  EXPECT_EQ(kind("6161 01"), MessageKind::request);
  EXPECT_EQ(kind("01 01"), MessageKind::invalid);
  EXPECT_EQ(kind("f6 01"), MessageKind::invalid);
  EXPECT_EQ(kind("4161 01"), MessageKind::invalid);
  EXPECT_EQ(kind("80 01"), MessageKind::invalid);
  EXPECT_EQ(kind("666d6574686f64 616d"), MessageKind::invalid);
  EXPECT_EQ(kind("7f 636d6574 63686f64 ff 616d"), MessageKind::invalid);
  EXPECT_EQ(kind("626964 01"), MessageKind::invalid);
  EXPECT_EQ(kind("676a736f6e727063 63322e30"), MessageKind::invalid);
}

TEST(CborTranscoder, BatchesOfAnyLengthAreReadElementByElement) {
  const std::string one = encoded(R"({"jsonrpc":"2.0","method":"m","id":1})").substr(3);
  for (const std::string& batch :
       {"\xD9\xD9\xF7\x82" + one + one, "\x9F" + one + one + "\xFF", "\x98\x02" + one + one}) {
    CborTranscoder transcoder;
    EnvelopeMembers members;
    ASSERT_EQ(transcoder.check(batch, Limits{}, members), Status::done);
    EXPECT_FALSE(members.is_single());
    EXPECT_EQ(members.batch_size(), 2U);
    const std::size_t offset = transcoder.elements_offset(batch);
    EXPECT_EQ(transcoder.element_at(batch, offset), one);
    EXPECT_EQ(transcoder.element_at(batch, offset + one.size()), one);
    EXPECT_EQ(json_of_message(batch),
              R"([{"jsonrpc":"2.0","method":"m","id":1},{"jsonrpc":"2.0","method":"m","id":1}])");
    Buffer text;
    Received received;
    EXPECT_EQ(transcoder.read_long_batch(batch, {.batch = 1}, false, text, received), Status::done);
    EXPECT_EQ(received.batch_size, 2U);
    EXPECT_EQ(text.view(), R"([{"jsonrpc":"2.0","method":"","id":1},{"jsonrpc":"2.0","method":"","id":1}])");
  }
  EXPECT_EQ(from_hex_message("9f 01 20 ff"), "[1,-1]");
  EXPECT_EQ(from_hex_message("9f ff"), "[]");
}

TEST(CborTranscoder, EveryBeginningOfAMessageIsNone) {
  const std::string message = encoded(R"({"jsonrpc":"2.0","method":"m","params":[[[1]]],"id":1})");
  for (std::size_t size = 1; size < message.size(); ++size)
    json_of_message(std::string_view{message}.substr(0, size), Status::malformed);
  json_of_message(message + '\x01', Status::malformed);
  CborTranscoder transcoder;
  EnvelopeMembers members;
  EXPECT_EQ(transcoder.check(message, {.depth = 4}, members), Status::done);
  EXPECT_EQ(transcoder.check(message, {.depth = 3}, members), Status::too_deep);
  EXPECT_EQ(transcoder.check(std::string(5'000'000, '\x81'), {}, members), Status::too_deep);
  EXPECT_EQ(transcoder.check(std::string(5'000'000, '\xC6'), {}, members), Status::too_deep);
  for (const char* lies : {"9b ffffffffffffffff ff", "bb ffffffffffffffff ff", "9b fffffffffffffffe 01"})
    EXPECT_EQ(transcoder.check(from_hex(lies), {}, members), Status::malformed) << lies;
}

TEST(CborTranscoder, ValuesWithoutAFormCostTheirOwnCall) {
  const auto error = [](const char* params) {
    CborTranscoder transcoder;
    Buffer out;
    const std::string message =
        from_hex("a4 676a736f6e727063 63322e30 666d6574686f64 616d 626964 07 66706172616d73 81" + std::string{params});
    EXPECT_EQ(transcoder.to_json(message, Limits{}, out), Status::done);
    EXPECT_EQ(out.view(), R"({"jsonrpc":"2.0","method":"m","id":7,"params":null})");
    const auto all = transcoder.take_unrepresentable();
    return all.empty() ? std::string{} : std::string{all.front().why};
  };
  EXPECT_EQ(error("c2 49 010000000000000000"), "an integer is beyond 64 bits, which CBOR does not carry here");
  EXPECT_EQ(error("f97e00"), "a number is NaN or infinite, which JSON cannot express");
  EXPECT_EQ(error("e0"), "a simple value other than false, true, null and undefined");
}

// ---- read as it is, and by way of JSON ----

template <class Of>
class EnvelopeReadDirectly : public ::testing::Test {};
using Transcoders = ::testing::Types<MsgpackTranscoder, CborTranscoder>;
TYPED_TEST_SUITE(EnvelopeReadDirectly, Transcoders);

constexpr const char* kMessages[] = {
    R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})",
    R"({"jsonrpc":"2.0","method":"subtract","params":[70000,999999999,0,1,2,3,4,5],"id":"x y"})",
    R"({"jsonrpc":"2.0","method":"subtract","params":[1000000000],"id":18446744073709551615})",
    R"({"jsonrpc":"2.0","method":"m","params":[1,2,3,4,5,6,7,8,9],"id":"a\"b"})",
    R"({"id":"a","params":{"a":[1]},"method":"m","jsonrpc":"2.0"})",
    R"({"jsonrpc":"2.0","method":"a\nb","id":-1})",
    R"({"jsonrpc":"2.0","method":"n\u00e4h","params":[]})",
    R"({"jsonrpc":"2.0","method":"m","id":null,"timeout_ms":5,"stream":2,"hops":1})",
    R"({"jsonrpc":"2.0","method":"m","id":1.5,"timeout_ms":"5"})",
    R"({"jsonrpc":"2.0","method":"m","params":null,"id":[1]})",
    R"({"jsonrpc":"2.0","method":"m","params":7,"to":"x"})",
    R"({"jsonrpc":"2.1","method":"m"})",
    R"({"jsonrpc":2,"method":7,"id":true})",
    R"({"jsonrpc":"2.0","result":{"a":[1,2]},"id":7})",
    R"({"jsonrpc":"2.0","result":null,"id":"seven"})",
    R"({"jsonrpc":"2.0","result":1})",
    R"({"jsonrpc":"2.0","result":1,"error":{"code":1,"message":""},"id":1})",
    R"({"jsonrpc":"2.0","error":{"code":1,"message":"x"},"id":1})",
    R"({"method":"m","result":1,"id":1})",
    R"({"jsonrpc":"2.0","method":"0123456789012345678901234567890123456789","id":1,"other":{"x":[]}})",
    R"({})",
};

TYPED_TEST(EnvelopeReadDirectly, SaysWhatItSaysByWayOfJson) {
  for (const char* json : kMessages) {
    const std::string message = encoded<TypeParam>(json);
    EXPECT_EQ(read_of<TypeParam>(message, Way::directly), read_of<TypeParam>(message, Way::by_json)) << json;
  }
}

TYPED_TEST(EnvelopeReadDirectly, AlsoWhatHasBeenChangedOrCut) {
  std::mt19937_64 random{20};
  std::size_t read = 0;
  std::size_t read_in_one_pass = 0;
  for (const char* json : kMessages) {
    const std::string message = encoded<TypeParam>(json);
    for (std::size_t size = 1; size < message.size(); ++size) {
      EXPECT_EQ(read_of<TypeParam>(message.substr(0, size), Way::directly), "malformed") << json << size;
      EXPECT_EQ(read_of<TypeParam>(message.substr(0, size), Way::one_pass), "unusual") << json << size;
    }
    for (int round = 0; round < 4'000; ++round) {
      std::string bytes = message;
      for (std::uint64_t changes = 1 + random() % 3; changes-- != 0;) {
        bytes[random() % bytes.size()] =
            static_cast<char>(random() % 2 == 0 ? random() : message[random() % message.size()]);
        if (random() % 4 == 0) bytes.erase(random() % bytes.size(), 1);
        if (random() % 4 == 0) bytes.insert(random() % (bytes.size() + 1), 1, static_cast<char>(random()));
        if (bytes.empty()) bytes = message;
      }
      const std::string directly = read_of<TypeParam>(bytes, Way::directly);
      if (const std::string usual = read_of<TypeParam>(bytes, Way::one_pass); usual != "unusual") {
        ++read_in_one_pass;
        ASSERT_EQ(usual, directly) << json << ' ' << to_hex(bytes);
      }
      if (directly == "malformed" || directly == "no single message") continue;
      ++read;
      ASSERT_EQ(directly, read_of<TypeParam>(bytes, Way::by_json)) << json << ' ' << to_hex(bytes);
    }
  }
  EXPECT_GT(read, 10'000U);
  EXPECT_GT(read_in_one_pass, 100U);
}

constexpr const char* kUsualRequests[] = {
    R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})",
    R"({"jsonrpc":"2.0","method":"subtract","params":[70000,999999999,0,1,2,3,4,5],"id":4294967295})",
    R"({"jsonrpc":"2.0","method":"subtract","params":[1000000000,"x",[{"a":[null,1.5]}],9],"id":0})",
    R"({"jsonrpc":"2.0","method":"m","params":[],"id":"x y"})",
    R"({"jsonrpc":"2.0","method":"m","params":{},"id":""})",
    R"({"jsonrpc":"2.0","method":"01234567890123456789012","id":"01234567890123456789012"})",
    R"({"jsonrpc":"2.0","method":""})",
    R"({"jsonrpc":"2.0","method":"note"})",
    R"({"id":7,"jsonrpc":"2.0","params":{"a":{"b":"c"}},"method":"m"})",
    R"({"params":[7],"method":"m","id":700,"jsonrpc":"2.0"})",
    R"({"method":"rpc","jsonrpc":"2.0","id":"01234567","params":[[],[]]})",
    R"({"id":"0123456","jsonrpc":"2.0","method":"m"})",
};

TYPED_TEST(EnvelopeReadDirectly, AUsualRequestIsReadInThePassThatChecksIt) {
  for (const char* json : kUsualRequests) {
    const std::string message = encoded<TypeParam>(json);
    EXPECT_EQ(read_of<TypeParam>(message, Way::one_pass), read_of<TypeParam>(message, Way::by_json)) << json;
    for (std::size_t size = 0; size < message.size(); ++size)
      EXPECT_EQ(read_of<TypeParam>(message.substr(0, size), Way::one_pass), "unusual") << json << size;
    EXPECT_EQ(read_of<TypeParam>(message + '\x01', Way::one_pass), "unusual") << json;
  }
}

TYPED_TEST(EnvelopeReadDirectly, WhatIsNotUsualIsLeftToOthers) {
  for (const char* json : {
           R"({"jsonrpc":"2.0","method":"rpc.ping","id":1})",
           R"({"jsonrpc":"2.0","method":"$/progress","params":[]})",
           R"({"jsonrpc":"2.0","method":"m","id":null})",
           R"({"jsonrpc":"2.0","method":"m","id":-1})",
           R"({"jsonrpc":"2.0","method":"m","id":1.5})",
           R"({"jsonrpc":"2.0","method":"m","id":"n\u00e4h"})",
           R"({"jsonrpc":"2.0","method":"a\"b","id":1})",
           R"({"jsonrpc":"2.0","method":7,"id":1})",
           R"({"jsonrpc":"2.0","method":"m","params":7})",
           R"({"jsonrpc":"2.0","method":"m","params":null})",
           R"({"jsonrpc":"2.0","method":"m","params":"text"})",
           R"({"jsonrpc":"2.0","method":"m","id":1,"timeout_ms":5})",
           R"({"jsonrpc":"2.0","method":"m","id":1,"other":5})",
           R"({"jsonrpc":"2.1","method":"m","id":1})",
           R"({"jsonrpc":"2.0","id":1,"params":[1]})",
           R"({"method":"m","id":1,"params":[1]})",
           R"({"jsonrpc":"2.0","result":1,"id":1})",
           R"([{"jsonrpc":"2.0","method":"m","id":1}])",
           R"({})",
       }) {
    EXPECT_EQ(read_of<TypeParam>(encoded<TypeParam>(json), Way::one_pass), "unusual") << json;
  }
}

TYPED_TEST(EnvelopeReadDirectly, AUsualRequestIsNoDeeperThanAllowed) {
  const std::string message = encoded<TypeParam>(R"({"jsonrpc":"2.0","method":"m","params":[[[]]],"id":1})");
  const std::string flat = encoded<TypeParam>(R"({"jsonrpc":"2.0","method":"m","params":[1],"id":1})");
  TypeParam transcoder;
  IdText id;
  Received received;
  EXPECT_TRUE(transcoder.read_request(message, {.depth = 4}, id, received));
  EXPECT_FALSE(transcoder.read_request(message, {.depth = 3}, id, received));
  EXPECT_TRUE(transcoder.read_request(flat, {.depth = 2}, id, received));
  EXPECT_FALSE(transcoder.read_request(flat, {.depth = 1}, id, received));
}

}  // namespace
}  // namespace wirecall::message
