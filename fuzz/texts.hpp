// Shared by all fuzzers: texts in memory that exposes a wrong read, and the report of a finding. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "wirecall/bytes.hpp"

namespace fuzz {

/// A text with exactly the padding that scanners are promised: kPaddingBytes readable, the first of them zero. The
/// others are quotes, backslashes and bytes of UTF-8 sequences, so that a scanner that reads them as text finds
/// something.
class PaddedText {
 public:
  explicit PaddedText(std::string_view text)
      : bytes_(new char[text.size() + wirecall::kPaddingBytes]), size_(text.size()) {
    constexpr std::string_view kGarbage = "\"\\\xFF\xBF";
    if (size_ != 0) std::memcpy(bytes_.get(), text.data(), size_);
    bytes_[size_] = '\0';
    for (std::size_t i = 1; i < wirecall::kPaddingBytes; ++i) bytes_[size_ + i] = kGarbage[i % kGarbage.size()];
  }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t size_;
};

[[nodiscard]] inline std::string_view text_of(const std::uint8_t* data, std::size_t size) noexcept {
  return {reinterpret_cast<const char*>(data), size};
}

/// Prints the finding, in a form that can be pasted into a test, and ends the process as fuzzers expect.
[[noreturn]] inline void found(const char* what, std::string_view text) {
  std::fprintf(stderr, "%s\nin %zu bytes: \"", what, text.size());
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      std::fprintf(stderr, "\\%c", c);
    } else if (c >= 0x20 && c < 0x7F) {
      std::fputc(c, stderr);
    } else {
      std::fprintf(stderr, "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  std::fputs("\"\n", stderr);
  std::abort();
}

inline void require(bool holds, const char* what, std::string_view text) {
  if (!holds) [[unlikely]]
    found(what, text);
}

}  // namespace fuzz
