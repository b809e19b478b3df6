// MessageDeflate: what makes payloads of WebSocket messages smaller, and unpacks them (RFC 7692), each by itself:
// nothing is kept from one message to the next. An interface, so that the framing needs no library for it. One loop's,
// used on its thread; another thread makes one of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "wirecall/bytes.hpp"

namespace wirecall::framing {

class MessageDeflate {
 public:
  enum class Outcome : std::uint8_t { done, too_large, malformed };

  virtual ~MessageDeflate() = default;

  /// Another one, which shares nothing with this. Any thread.
  [[nodiscard]] virtual std::unique_ptr<MessageDeflate> make_another() const = 0;
  /// Appends to `out` what `packed` stands for, the payload of a whole message (section 7.2.2). `out` never has more
  /// than `bytes_max` bytes: what would become more is too large before it is made.
  [[nodiscard]] virtual Outcome inflate(std::string_view packed, std::size_t bytes_max, Buffer& out) = 0;
  /// Appends to `out` the payload that stands for `text` (section 7.2.1), with a window of 2^`window_bits` bytes, from
  /// 9 to 15.
  virtual void deflate(std::string_view text, int window_bits, Buffer& out) = 0;
};

}  // namespace wirecall::framing
