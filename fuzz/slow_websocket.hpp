// RFC 6455 read slowly: all bytes at once, a frame after the other, written from the RFC alone and without a thought
// for how bytes arrive. What it finds in an input, WebSocket has to find as well, wherever that is cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

class SlowWebSocket {
 public:
  SlowWebSocket(bool server, std::size_t message_bytes_max) : server_(server), max_(message_bytes_max) {}

  /// A line for each thing that is found: "text …", "binary …", "ping …", "close …", and "broken <code>" for the last.
  std::vector<std::string> read(std::string_view input) {
    input_ = input;
    while (frame()) {
    }
    return found_;
  }

 private:
  unsigned byte(std::size_t at) const { return static_cast<unsigned char>(input_[at]); }
  bool broken(int code) {
    found_.push_back("broken " + std::to_string(code));
    return false;
  }

  // False where no further frame is looked for.
  bool frame() {
    if (input_.size() < 2) return false;
    const unsigned opcode = byte(0) & 15;
    const bool final = byte(0) >= 128;
    const bool control = opcode >= 8;
    std::uint64_t length = byte(1) % 128;
    if (byte(0) / 16 % 8 != 0 || (byte(1) >= 128) != server_) return broken(1002);
    if ((opcode > 2 && opcode < 8) || opcode > 10) return broken(1002);
    if (control && (!final || length > 125)) return broken(1002);
    if (!control && (opcode == 0) != open_) return broken(1002);
    std::size_t head = 2;
    if (length >= 126) {
      const std::size_t digits = length == 126 ? 2 : 8;
      if (input_.size() < head + digits + (server_ ? 4 : 0)) return false;
      length = 0;
      for (std::size_t i = 0; i < digits; ++i) length = length * 256 + byte(head++);
      if (length < (digits == 2 ? 126U : 65536U) || length >> 63 != 0) return broken(1002);
    }
    std::string mask(4, '\0');
    if (server_) {
      if (input_.size() < head + 4) return false;
      mask = input_.substr(head, 4);
      head += 4;
    }
    if (!control) {
      if (opcode != 0) {
        message_.clear();
        text_ = opcode == 1;
      }
      open_ = true;
      if (length > max_ || message_.size() + length > max_) return broken(1009);
    }
    std::string payload{input_.substr(head, length)};
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(payload[i] ^ mask[i % 4]);
    const bool whole = payload.size() == length;
    input_.remove_prefix(head + payload.size());
    if (control) return whole && act(opcode, payload);
    message_ += payload;
    const bool ends = whole && final;
    if (text_ && !may_be_utf8(message_, ends)) return broken(1007);
    if (!whole) return false;
    if (!final) return true;
    open_ = false;
    found_.push_back((text_ ? "text " : "binary ") + message_);
    return true;
  }

  bool act(unsigned opcode, const std::string& payload) {
    if (opcode == 9) found_.push_back("ping " + payload);
    if (opcode != 8) return true;
    if (payload.size() == 1) return broken(1002);
    if (payload.size() >= 2) {
      const int code = static_cast<unsigned char>(payload[0]) * 256 + static_cast<unsigned char>(payload[1]);
      const bool registered = code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006;
      if (!registered && (code < 3000 || code > 4999)) return broken(1002);
      if (!may_be_utf8(payload.substr(2), true)) return broken(1007);
    }
    found_.push_back("close " + payload.substr(0, 2));
    return false;
  }

  // By code points: each in its shortest form, no surrogate, none above 10FFFF; at the end of what is not `whole` one
  // may be missing bytes, whatever they will be.
  static bool may_be_utf8(std::string_view text, bool whole) {
    for (std::size_t at = 0; at < text.size();) {
      const auto first = static_cast<unsigned char>(text[at]);
      std::size_t size = 0;
      std::uint32_t low = 0;
      std::uint32_t value = 0;
      if (first < 0x80) {
        ++at;
        continue;
      }
      if (first >= 0xC0 && first < 0xE0) size = 2, low = 0x80, value = first & 31U;
      if (first >= 0xE0 && first < 0xF0) size = 3, low = 0x800, value = first & 15U;
      if (first >= 0xF0 && first < 0xF8) size = 4, low = 0x10000, value = first & 7U;
      if (size == 0) return false;
      // What it is at least and at most, with the bytes that have come.
      std::uint32_t least = value;
      std::uint32_t most = value;
      for (std::size_t i = 1; i < size; ++i) {
        const bool here = at + i < text.size();
        if (!here && whole) return false;
        const unsigned next = here ? static_cast<unsigned char>(text[at + i]) : 0x80;
        if (next < 0x80 || next > 0xBF) return false;
        least = least * 64 + (here ? next & 63U : 0);
        most = most * 64 + (here ? next & 63U : 63U);
      }
      if (most < low || least > 0x10FFFF || (least >= 0xD800 && most <= 0xDFFF)) return false;
      at += size;
    }
    return true;
  }

  std::string_view input_;
  bool server_;
  std::size_t max_;
  bool open_ = false;  // a message has begun and not ended
  bool text_ = false;
  std::string message_;
  std::vector<std::string> found_;
};

}  // namespace fuzz
