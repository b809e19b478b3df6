#include "wirecall/codec.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support.hpp"

namespace wirecall {
namespace {

using testing::Text;

TEST(Codec, JsonMakesReadersAndWritersThatUnderstandEachOther) {
  const Codec& codec = json_codec();
  EXPECT_EQ(codec.name(), "json");
  Buffer text;
  const auto writer = codec.writer();
  writer->reset(text);
  writer->string("a\nb");
  const Scan scan = codec.scan(text.padded(), 1);
  EXPECT_EQ(scan.status, ScanStatus::complete);
  EXPECT_EQ(scan.offset, text.size());
  const auto reader = codec.reader();
  reader->reset(text.view());
  std::string_view out;
  EXPECT_TRUE(reader->read_string(out));
  EXPECT_EQ(out, "a\nb");
}

TEST(Codec, ALaterFailureReplacesAnEarlierOne) {
  Text text{"[1]"};
  EXPECT_FALSE(text->fail("first"));
  EXPECT_FALSE(text->failed_at("a"));
  EXPECT_FALSE(text->fail("second"));
  EXPECT_EQ(text->failure().expected, "second");
  EXPECT_EQ(text->failure().got, "[1]");
  EXPECT_TRUE(text->failure().path.empty());
  EXPECT_FALSE(text->fail_missing("third"));
  EXPECT_EQ(text->failure().got, "nothing");
}

TEST(Codec, DecodeErrorsTellThePathOutermostFirst) {
  Text text{"\"x\""};
  text->fail("integer");
  text->failed_at("inner\"name");
  text->failed_at(std::size_t{3});
  text->failed_at("b");
  const Error error = decode_error(*text);
  EXPECT_EQ(error.code(), -32602);
  EXPECT_EQ(error.message(), "Invalid params");
  EXPECT_EQ(error.data(), R"({"loc":["b",3,"inner\"name"],"expected":"integer","got":"\"x\""})");
  EXPECT_TRUE(nlohmann::json::accept(error.data()));
}

}  // namespace
}  // namespace wirecall
