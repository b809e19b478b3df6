#include "codec/base64.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

namespace wirecall::codec {
namespace {

std::string encode(std::string_view data) {
  std::string text(base64_size(data.size()), '?');
  char* end = base64_encode(std::as_bytes(std::span{data}), text.data());
  EXPECT_EQ(end, text.data() + text.size());
  return text;
}

// The output has exactly the room that the contract asks for.
std::string decode(std::string_view text) {
  const auto output = std::make_unique<std::byte[]>(text.size() / 4 * 3);
  const std::unique_ptr<char[]> exact{new char[text.size()]};
  text.copy(exact.get(), text.size());
  const std::size_t size = base64_decode({exact.get(), text.size()}, output.get());
  if (size == kNotBase64) return "not base64";
  return {reinterpret_cast<const char*>(output.get()), size};
}

TEST(Base64, EncodesAndDecodesTheExamplesOfRfc4648) {
  const std::pair<std::string, std::string> examples[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [data, text] : examples) {
    EXPECT_EQ(encode(data), text);
    EXPECT_EQ(decode(text), data);
  }
}

TEST(Base64, RoundTripsEveryByteAtEveryPosition) {
  for (int byte = 0; byte < 256; ++byte) {
    for (std::size_t size = 1; size <= 4; ++size) {
      const std::string data(size, static_cast<char>(byte));
      EXPECT_EQ(decode(encode(data)), data);
    }
  }
}

TEST(Base64, RefusesWhatIsNotStrictlyBase64) {
  for (const std::string_view text : {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Z===", "=g==", "Zg=a", "Z=g=", "Zm9vZg=",
                                      "Zm 9v", "Zm9v\n", "Zm-_", "Zm9v!AAA", "\xFFm9v", "AA==AAAA", "AAA=AAAA"}) {
    EXPECT_EQ(decode(text), "not base64") << text;
  }
}

TEST(Base64, RefusesBitsBehindTheLastByte) {
  EXPECT_EQ(decode("Zh=="), "not base64");
  EXPECT_EQ(decode("Zm9="), "not base64");
}

}  // namespace
}  // namespace wirecall::codec
