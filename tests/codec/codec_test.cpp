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

/// An array of `copies` of what `write` writes.
template <class Write>
std::string array_of(const Codec& codec, std::size_t copies, const Write& write) {
  Buffer text;
  const auto writer = codec.writer();
  writer->reset(text);
  writer->begin_array(copies);
  for (std::size_t i = 0; i != copies; ++i) write(*writer);
  writer->end_array();
  return std::string{text.view()};
}

class OwnForm : public ::testing::TestWithParam<const Codec*> {
 protected:
  const Codec& codec_ = *GetParam();
  const std::unique_ptr<Reader> reader_ = codec_.reader();

  /// What the array of one packed value holds; nothing where it is something else.
  std::optional<std::string> read(std::string_view array) {
    Buffer text{array};
    std::span<const std::byte> data;
    const bool is_read = reader_->read_array_of_own_form(text.padded(), kPackedExtension, data);
    EXPECT_EQ(reader_->take_own_form(), is_read);
    EXPECT_FALSE(reader_->failed());
    if (!is_read) return std::nullopt;
    return std::string{reinterpret_cast<const char*>(data.data()), data.size()};
  }
  static auto packed(std::string_view data) {
    return [data](Writer& writer) { writer.extension(kPackedExtension, std::as_bytes(std::span{data})); };
  }
};

TEST_P(OwnForm, AloneInAnArrayIsReadWhateverItsSize) {
  for (const std::size_t size : {0, 1, 7, 8, 9, 16, 17, 23, 24, 120, 121, 122, 127, 128, 255, 256, 70'000}) {
    std::string data(size, '\0');
    for (std::size_t i = 0; i != size; ++i) data[i] = static_cast<char>(i * 7);
    EXPECT_EQ(read(array_of(codec_, 1, packed(data))), data) << size;
  }
}

TEST_P(OwnForm, AnythingElseIsLeft) {
  const std::string data(16, 'x');
  EXPECT_EQ(read(array_of(codec_, 0, packed(data))), std::nullopt);
  EXPECT_EQ(read(array_of(codec_, 2, packed(data))), std::nullopt);
  EXPECT_EQ(read(array_of(codec_, 1,
                          [](Writer& writer) {
                            writer.begin_array(1);
                            packed("12345678")(writer);
                            writer.end_array();
                          })),
            std::nullopt);
  for (const std::int8_t type : {kNpyExtension, kImageExtension, kMessageExtension}) {
    const auto other = [&](Writer& writer) { writer.extension(type, std::as_bytes(std::span{data})); };
    EXPECT_EQ(read(array_of(codec_, 1, other)), std::nullopt) << int{type};
  }
  EXPECT_EQ(read(array_of(codec_, 1, [&](Writer& writer) { writer.string(data); })), std::nullopt);
  EXPECT_EQ(read(array_of(codec_, 1, [&](Writer& writer) { writer.bytes(std::as_bytes(std::span{data})); })),
            std::nullopt);
  EXPECT_EQ(read(array_of(codec_, 1, [](Writer& writer) { writer.integer(1); })), std::nullopt);
  Buffer alone;
  const auto writer = codec_.writer();
  writer->reset(alone);
  packed(data)(*writer);
  EXPECT_EQ(read(alone.view()), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Codecs, OwnForm,
                         ::testing::Values(&json_codec(), &msgpack_codec(), &cbor_codec(), &protobuf_codec()),
                         [](const auto& codec) { return std::string{codec.param->name()}; });

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
