// The list of encodings, and one that is added to it whose messages become JSON whole.
#include "message/message_codec.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/message/toy_codec.hpp"

namespace wirecall::message {
namespace {

using Status = Transcoder::Status;

const std::string kRequest = R"({"jsonrpc":"2.0","method":"m","params":[1],"id":7})";
const std::string kReply = R"({"jsonrpc":"2.0","result":[1,2,3,4,5,6,7,8],"id":7})";
const std::string kEvent = R"({"jsonrpc":"2.0","method":"m"})";

std::string written(ToyTranscoder& transcoder, std::string_view json, std::size_t bytes_max) {
  Buffer padded{json};
  Buffer out;
  const bool any = transcoder.from_json(padded.padded(), {.max_message_size = bytes_max}, out, nullptr);
  EXPECT_EQ(any, !out.empty());
  return any ? json_of_toy(out.view()) : std::string{};
}

std::string too_large(const Error& error, std::string_view id) {
  Buffer out;
  write_error(out, error, id);
  return std::string{out.view()};
}

TEST(MessageCodec, IsFoundByNameByMediaTypeAndByFirstByte) {
  EXPECT_EQ(add_codec(kToyCodec), kToy);  // once and no more
  EXPECT_EQ(codec_of(kToy).name, "toy");
  EXPECT_EQ(encoding_names()[static_cast<std::size_t>(kToy)], "toy");
  EXPECT_EQ(encoding_of(kToyTag), kToy);
  EXPECT_EQ(encoding_of('{'), Encoding::json);
  EXPECT_EQ(encoding_of('\x81'), Encoding::msgpack);
  EXPECT_EQ(encoding_of_type("application/x-toy"), kToy);
  EXPECT_EQ(encoding_of_type("Application/Toy ; version=1"), kToy);
  EXPECT_EQ(encoding_of_type("application/json"), Encoding::json);
  EXPECT_EQ(encoding_of_type("application/vnd.msgpack"), Encoding::msgpack);
  EXPECT_EQ(encoding_of_type("text/html"), std::nullopt);
  EXPECT_FALSE(codec_of(kToy).is_native);
  EXPECT_TRUE(codec_of(Encoding::msgpack).is_native);
}

TEST(MessageCodec, WhoSendsAMessageTellsApartWhatBeginsAlike) {
  const std::string_view array = "\x81\x01";
  EXPECT_EQ(encoding_of(array, Encoding::json), Encoding::msgpack);
  EXPECT_EQ(encoding_of(array, Encoding::msgpack), Encoding::msgpack);
  EXPECT_EQ(encoding_of(array, Encoding::cbor), Encoding::cbor);
  EXPECT_EQ(encoding_of("\xA1", Encoding::cbor), Encoding::cbor);
  EXPECT_EQ(encoding_of("\xD9\xD9\xF7\x81\x01", Encoding::msgpack), Encoding::cbor);
  EXPECT_EQ(encoding_of("[1]", Encoding::cbor), Encoding::json);
  EXPECT_EQ(encoding_of("", Encoding::cbor), Encoding::json);
  EXPECT_EQ(encoding_of("hello", Encoding::json), Encoding::json);
  EXPECT_EQ(encoding_of("hello", Encoding::protobuf), Encoding::protobuf);
  EXPECT_EQ(encoding_of("\x12\x01m", Encoding::json), Encoding::protobuf);
}

TEST(MessageCodec, AFormSaysHowAMessageIsWrittenAndSent) {
  const MessageForm json;
  EXPECT_FALSE(json.natively || json.as_text);
  EXPECT_EQ(MessageForm::text(Encoding::json), json);
  EXPECT_EQ(MessageForm::native(Encoding::json), json);
  const MessageForm native = MessageForm::native(Encoding::msgpack);
  EXPECT_TRUE(native.natively && !native.as_text);
  EXPECT_EQ(native.written(), Encoding::msgpack);
  const MessageForm text = MessageForm::text(native.sent);
  EXPECT_TRUE(text.as_text && !text.natively);
  EXPECT_EQ(text.written(), Encoding::json);
  EXPECT_EQ(text.sent, Encoding::msgpack);
}

TEST(WholeTranscoder, MessagesGoThereAndBack) {
  ToyTranscoder transcoder;
  Buffer json;
  EXPECT_EQ(transcoder.to_json(toy_of(kRequest), Limits{}, json), Status::done);
  EXPECT_EQ(json.view(), kRequest);
  EXPECT_EQ(written(transcoder, kReply, 1000), kReply);
  EXPECT_EQ(transcoder.to_json({&kToyTag, 1}, Limits{}, json), Status::malformed);
  json.clear();
  EXPECT_EQ(transcoder.to_json(toy_of(kRequest), {.max_message_size = kRequest.size() / 2 - 1}, json),
            Status::too_large);
}

TEST(WholeTranscoder, NothingIsSentThatIsTooLarge) {
  ToyTranscoder transcoder;
  const std::string reply = too_large(too_large_reply(), "7");
  const std::string request = too_large(too_large_request(), "7");
  EXPECT_EQ(written(transcoder, kReply, kReply.size()), reply);
  EXPECT_TRUE(transcoder.take_refusals().empty());
  EXPECT_EQ(written(transcoder, kRequest, kRequest.size()), "");
  EXPECT_EQ(transcoder.take_refusals(), std::vector{request});
  EXPECT_EQ(written(transcoder, kEvent, kEvent.size()), "");
  EXPECT_TRUE(transcoder.take_refusals().empty());
  const std::string batch = "[" + kReply + "," + kRequest + "," + kEvent + "," + kReply + "]";
  EXPECT_EQ(written(transcoder, batch, batch.size()), "[" + reply + "," + reply + "]");
  EXPECT_EQ(transcoder.take_refusals(), std::vector{request});
}

}  // namespace
}  // namespace wirecall::message
