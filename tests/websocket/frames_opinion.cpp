// What our framing of WebSocket finds in bytes, for compare.py: reads lines of "<s or c> <hex of a piece>,<hex>,…" and
// answers each with a line of events: "text <hex>", "binary <hex>", "ping <hex>", "close <code>", "lost <code>".
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

#include "framing/websocket.hpp"

namespace {

using wirecall::framing::Ending;
using wirecall::framing::Find;
using wirecall::framing::Found;
using wirecall::framing::WebSocket;

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string{hex.substr(i, 2)}, nullptr, 16));
  return bytes;
}
std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    hex += digits;
  }
  return hex.empty() ? "-" : hex;
}

// Of a frame of ours, whichever end sends it.
std::string payload_of(std::string_view frame) {
  const bool masked = (frame[1] & 0x80) != 0;
  std::string payload{frame.substr(masked ? 6 : 2)};
  for (std::size_t i = 0; masked && i < payload.size(); ++i)
    payload[i] = static_cast<char>(payload[i] ^ frame[2 + i % 4]);
  return payload;
}
std::string code_of(std::string_view frame) {
  const std::string payload = payload_of(frame);
  if (payload.size() < 2) return "1005";
  return std::to_string(static_cast<unsigned char>(payload[0]) * 256 + static_cast<unsigned char>(payload[1]));
}

std::string events_of(bool server, std::string_view pieces) {
  wirecall::Limits limits;
  limits.max_message_size = 100'000;
  WebSocket framing{server ? WebSocket::Role::server : WebSocket::Role::client, limits};
  std::string events;
  std::string kept;
  const auto add = [&events](std::string_view kind, std::string_view what) {
    events.append(events.empty() ? "" : " | ").append(kind).append(" ").append(what);
  };
  while (!pieces.empty()) {
    const std::string_view hex = pieces.substr(0, pieces.find(','));
    pieces.remove_prefix(std::min(hex.size() + 1, pieces.size()));
    std::string bytes = bytes_of(hex);
    for (std::span<char> input{bytes.data(), bytes.size()}; !input.empty();) {
      const Found found = framing.next(input);
      kept.append(input.data() + found.skip, found.size);
      input = input.subspan(found.skip + found.size);
      switch (found.find) {
        case Find::nothing:
        case Find::part: break;
        case Find::text: add("text", hex_of(std::exchange(kept, {}))); break;
        case Find::message: add("binary", hex_of(std::exchange(kept, {}))); break;
        case Find::due: add("ping", hex_of(payload_of(framing.take_due()))); break;
        case Find::over: add("close", code_of(framing.farewell(Ending::done))); return events;
        default: add("lost", code_of(framing.farewell(Ending::failed))); return events;
      }
    }
  }
  return events;
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << events_of(line[0] == 's', line.substr(2)) << std::endl;
}
