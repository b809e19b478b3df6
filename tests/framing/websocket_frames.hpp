// Frames of RFC 6455, written out by hand, for the tests of whoever reads or writes them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace wirecall::framing {

inline constexpr std::string_view kMask{"\x37\xfa\x21\x3d", 4};

inline std::string masked(std::string_view payload, std::string_view mask = kMask) {
  std::string text{payload};
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(text[i] ^ mask[i % 4]);
  return text;
}
/// `first` is the first byte: FIN, reserved bits and opcode. The length is in its shortest form.
inline std::string server_frame(int first, std::string_view payload) {
  std::string frame(1, static_cast<char>(first));
  const std::size_t bytes = payload.size();
  if (bytes <= 125) {
    frame += static_cast<char>(bytes);
  } else if (bytes <= 0xFFFF) {
    frame.append(1, 126).append(1, static_cast<char>(bytes >> 8)).append(1, static_cast<char>(bytes));
  } else {
    frame.append(1, 127);
    for (int shift = 56; shift >= 0; shift -= 8) frame += static_cast<char>(bytes >> shift);
  }
  return frame.append(payload);
}
inline std::string client_frame(int first, std::string_view payload, std::string_view mask = kMask) {
  std::string frame = server_frame(first, payload);
  frame[1] = static_cast<char>(frame[1] | 0x80);
  const std::size_t head = frame.size() - payload.size();
  return frame.substr(0, head).append(mask).append(masked(payload, mask));
}
inline constexpr int kTextFrame = 0x81;
inline constexpr int kBinaryFrame = 0x82;
inline constexpr int kCloseFrame = 0x88;
inline constexpr int kPingFrame = 0x89;
inline constexpr int kPongFrame = 0x8A;

inline std::string code(int number) { return {static_cast<char>(number >> 8), static_cast<char>(number)}; }

}  // namespace wirecall::framing
