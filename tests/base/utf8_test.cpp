// Where UTF-8 ends, in texts of exact size on the heap: what is looked at eight bytes at a time is what is looked at
// character by character.
#include "base/utf8.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>

namespace wirecall {
namespace {

/// Character by character.
std::size_t end_of_utf8(std::string_view text) {
  const char* p = text.data();
  const char* const end = p + text.size();
  while (p != end) {
    const std::size_t bytes = character_bytes(p, end);
    if (bytes == 0) break;
    p += bytes;
  }
  return static_cast<std::size_t>(p - text.data());
}

void expect_same(const std::string& text, std::size_t behind) {
  const std::size_t size = text.size();
  const std::unique_ptr<char[]> exact{new char[size + behind]};
  std::memcpy(exact.get(), text.data(), size);
  std::memset(exact.get() + size, 0xFF, behind);
  const char* const begin = exact.get();
  const std::size_t end = end_of_utf8(text);
  EXPECT_EQ(static_cast<std::size_t>(find_no_utf8(begin, begin + size) - begin), end) << text << ' ' << size;
  EXPECT_EQ(is_utf8(begin, size, begin + size + behind), end == size) << text << ' ' << size;
}

TEST(Utf8Search, EndsWhereCharacterByCharacterItEnds) {
  for (std::size_t size = 0; size < 40; ++size) {
    for (const std::size_t behind : {0, 1, 8}) {
      expect_same(std::string(size, 'a'), behind);
      for (std::size_t at = 0; at < size; ++at) {
        for (const std::string_view other :
             {"\xFF", "\x80", "\xC3", "\xC3\xA4", "\xE2\x82\xAC", "\xE2\x82", "\xF0\x9F\x98\x80"}) {
          std::string text(size, 'a');
          text.replace(at, other.size(), other);
          text.resize(size);
          expect_same(text, behind);
        }
      }
    }
  }
}

}  // namespace
}  // namespace wirecall
