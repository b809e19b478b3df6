// What our framing of WebSocket finds in bytes, for compare.py: reads lines of "<end> <hex of a piece>,<hex>,…", where
// the end is "s" or "c", a server or client, and "sz" or "cz" one that has agreed on permessage-deflate. Answers each
// with a line of events: "text <hex>", "binary <hex>", "ping <hex>", "close <code>", "lost <code>"; and "cut <n>" where
// something else is found in the same bytes cut before byte n.
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framing/websocket.hpp"
#include "http/zlib_deflate.hpp"

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

// Reads pieces as a connection does; `events` are told as they come.
class Reader {
 public:
  Reader(bool server, bool deflate)
      : framing_{server ? WebSocket::Role::server : WebSocket::Role::client,
                 kLimits,
                 {.deflate = deflate ? &deflate_ : nullptr}} {}

  void read(std::string bytes) {
    for (std::span<char> input{bytes.data(), bytes.size()}; !input.empty() && !over_;) {
      const Found found = framing_.next(input);
      kept_.append(input.data() + found.skip, found.size);
      input = input.subspan(found.skip + found.size);
      take(found.find);
    }
  }
  std::string events;

 private:
  static inline const wirecall::Limits kLimits{.max_message_size = 100'000};

  void take(Find find) {
    if (find == Find::packed) {
      wirecall::Buffer whole;
      const auto outcome = framing_.unpack(kept_, kLimits.max_message_size, whole);
      find = framing_.unpacked(outcome, whole.view());
      kept_ = whole.view();
    }
    switch (find) {
      case Find::nothing:
      case Find::part: break;
      case Find::text: add("text", hex_of(std::exchange(kept_, {}))); break;
      case Find::message: add("binary", hex_of(std::exchange(kept_, {}))); break;
      case Find::due: add("ping", hex_of(payload_of(framing_.take_due()))); break;
      case Find::over:
        over_ = true;
        add("close", code_of(framing_.farewell(Ending::done)));
        break;
      default: over_ = true; add("lost", code_of(framing_.farewell(Ending::failed)));
    }
  }
  void add(std::string_view kind, std::string_view what) {
    events.append(events.empty() ? "" : " | ").append(kind).append(" ").append(what);
  }

  static inline wirecall::net::ZlibDeflate deflate_;  // which keeps nothing between messages
  WebSocket framing_;
  std::string kept_;
  bool over_ = false;
};

std::string events_of(std::string_view mode, const std::vector<std::string_view>& pieces) {
  Reader reader{mode[0] == 's', mode.ends_with('z')};
  for (const std::string_view piece : pieces) reader.read(std::string{piece});
  return reader.events;
}

// The same must be found wherever the bytes are cut in two: else what is found says so.
std::string answer_to(std::string_view mode, std::string_view hex) {
  constexpr std::size_t kCutBytesMax = 500;  // that takes the square of it
  std::string all;
  std::vector<std::size_t> sizes;
  while (!hex.empty()) {
    const std::string bytes = bytes_of(hex.substr(0, hex.find(',')));
    hex.remove_prefix(std::min(2 * bytes.size() + 1, hex.size()));
    sizes.push_back(bytes.size());
    all += bytes;
  }
  std::vector<std::string_view> pieces;
  for (std::size_t at = 0; const std::size_t size : sizes) {
    pieces.push_back(std::string_view{all}.substr(at, size));
    at += size;
  }
  std::string events = events_of(mode, pieces);
  const std::string_view text = all;
  for (std::size_t cut = 0; cut < text.size() && text.size() <= kCutBytesMax; ++cut) {
    if (events_of(mode, {text.substr(0, cut), text.substr(cut)}) != events)
      return events + " | cut " + std::to_string(cut);
  }
  return events;
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const std::size_t space = line.find(' ');
    std::cout << answer_to(line.substr(0, space), std::string_view{line}.substr(space + 1)) << std::endl;
  }
}
