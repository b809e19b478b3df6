// Utf8Stream: checks text that comes in pieces to be UTF-8 (RFC 3629 section 4), wherever it is cut. What cannot become
// UTF-8 any more is refused at its first such byte. A value; one thread.
#pragma once

#include <cstdint>

#include "base/utf8.hpp"

namespace wirecall::framing {

class Utf8Stream {
 public:
  /// Whether what has come up to `end` may be the beginning of UTF-8.
  [[nodiscard]] bool feed(const char* p, const char* end) noexcept {
    while (follow_ != 0 && p != end) {
      if (!step(static_cast<unsigned char>(*p++))) return false;
    }
    p = find_no_utf8(p, end);
    while (p != end) {  // the beginning of a character, or none
      if (!step(static_cast<unsigned char>(*p++))) return false;
    }
    return true;
  }
  /// No character has begun and not ended.
  [[nodiscard]] bool between_characters() const noexcept { return follow_ == 0; }
  void reset() noexcept { follow_ = 0; }

 private:
  bool step(unsigned byte) noexcept {
    if (follow_ != 0) {
      if (byte < low_ || byte > high_) return false;
      --follow_;
      low_ = 0x80;
      high_ = 0xBF;
      return true;
    }
    if (byte < 0x80) return true;
    if (byte < 0xC2 || byte > 0xF4) return false;
    follow_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    low_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    high_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    return true;
  }

  std::uint8_t follow_ = 0;  // bytes of the character that have not come
  std::uint8_t low_ = 0x80;  // the next of them is not below that
  std::uint8_t high_ = 0xBF;
};

}  // namespace wirecall::framing
