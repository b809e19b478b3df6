// WebSocket frames: what the framing finds is what a slow reader of RFC 6455 finds (slow_websocket.hpp), whether the
// bytes come whole or in pieces; and a connection answers the same, in frames that are well formed, and sends nothing
// behind its close. The first byte of an input says whose end it is and how frames are made of the rest, the next two
// choose the cuts.
#include "framing/websocket.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "connection/message_connection.hpp"
#include "fuzz/json_maker.hpp"
#include "fuzz/peer.hpp"
#include "fuzz/slow_websocket.hpp"
#include "fuzz/texts.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/value.hpp"

#define FUZZ_FRESH message
#include "fuzz/mutator.hpp"

namespace {

using fuzz::require;
using wirecall::framing::Find;
using wirecall::framing::Found;
using wirecall::framing::WebSocket;

const wirecall::Limits kLimits{.max_message_size = 300, .batch = 3, .depth = 8, .soft_output = 2000};

wirecall::Registry make_registry() {
  wirecall::Registry registry;
  registry.method("subtract", [](int a, int b) { return std::int64_t{a} - b; }, {"a", "b"});
  registry.method("echo", [](wirecall::Value value) { return value; });
  return registry;
}

// Frames whose heads are right, so that more than the first few bytes are looked at: of each run of bytes the first
// chooses the opcode, the second the length.
std::string frames_of(std::string_view bytes, bool server) {
  constexpr char kFirst[]{'\x81', '\x01', '\x80', '\x00', '\x82', '\x89', '\x8A', '\x88'};
  std::string frames;
  while (bytes.size() >= 2) {
    const auto kind = static_cast<unsigned char>(bytes[0]);
    const std::size_t size = std::min<std::size_t>(static_cast<unsigned char>(bytes[1]) % 126, bytes.size() - 2);
    frames += kind < 250 ? kFirst[kind % 8] : bytes[0];
    frames += static_cast<char>(size | (server ? 0x80 : 0));
    std::string_view mask{"\0\0\0\0", 4};
    if (server) {
      mask = std::string_view{"\x01\x80\xFF\x7F", 4};
      frames += mask;
    }
    for (std::size_t i = 0; i < size; ++i) frames += static_cast<char>(bytes[2 + i] ^ mask[i % 4]);
    bytes.remove_prefix(2 + size);
  }
  return frames;
}

int code_of(std::string_view farewell, bool masked) {
  const std::size_t head = masked ? 6 : 2;
  if (farewell.size() < head + 2) return 0;
  std::string code{farewell.substr(head, 2)};
  for (std::size_t i = 0; masked && i < 2; ++i) code[i] = static_cast<char>(code[i] ^ farewell[2 + i]);
  return static_cast<unsigned char>(code[0]) * 256 + static_cast<unsigned char>(code[1]);
}

// What the framing finds, as SlowWebSocket says it.
class Reading {
 public:
  Reading(bool server, std::string_view all)
      : server_(server), all_(all), framing_(server ? WebSocket::Role::server : WebSocket::Role::client, kLimits) {}

  void feed(std::string_view piece) {
    const auto block = std::make_unique<char[]>(piece.size());
    std::ranges::copy(piece, block.get());
    std::span<char> rest{block.get(), piece.size()};
    while (!rest.empty() && !over_) {
      const Found found = framing_.next(rest);
      require(found.skip + found.size <= rest.size(), "more was found than there is", all_);
      require(found.find == Find::lost || found.skip + found.size != 0, "nothing was seen", all_);
      const std::string part{rest.data() + found.skip, found.size};
      rest = rest.subspan(found.skip + found.size);
      take(found.find, part);
    }
  }
  std::vector<std::string> found;

 private:
  void take(Find find, const std::string& part) {
    switch (find) {
      case Find::nothing: break;
      case Find::part: kept_ += part; break;
      case Find::text: found.push_back("text " + std::exchange(kept_, "") + part); break;
      case Find::message: found.push_back("binary " + std::exchange(kept_, "") + part); break;
      case Find::due: {
        const std::string pong{framing_.take_due()};
        const std::size_t head = server_ ? 2 : 6;
        std::string payload = pong.substr(std::min(head, pong.size()));
        for (std::size_t i = 0; !server_ && i < payload.size(); ++i)
          payload[i] = static_cast<char>(payload[i] ^ pong[2 + i % 4]);
        require(pong.starts_with('\x8A'), "a ping is not answered by a pong", all_);
        found.push_back("ping " + payload);
        break;
      }
      case Find::over: {
        over_ = true;
        const std::string farewell{framing_.farewell(wirecall::framing::Ending::failed)};
        const int code = code_of(farewell, !server_);
        std::string line = "close ";
        if (code != 0) line.append(1, static_cast<char>(code / 256)).append(1, static_cast<char>(code % 256));
        found.push_back(line);
        break;
      }
      case Find::lost:
      case Find::too_large:
        over_ = true;
        found.push_back("broken " +
                        std::to_string(code_of(framing_.farewell(wirecall::framing::Ending::failed), !server_)));
        break;
      default: require(false, "not an answer of this framing", all_);
    }
  }

  bool server_;
  bool over_ = false;
  std::string_view all_;
  std::string kept_;
  WebSocket framing_;
};

// A server's frames: whole, unmasked, and nothing behind a close.
void check_frames(std::string_view output, std::string_view all) {
  bool closed = false;
  while (!output.empty()) {
    require(!closed && output.size() >= 2, "bytes behind the close, or half a frame", all);
    const auto first = static_cast<unsigned char>(output[0]);
    std::size_t size = static_cast<unsigned char>(output[1]);
    std::size_t head = 2;
    require(first == 0x81 || first == 0x88 || first == 0x8A, "a frame that is none of ours", all);
    require(size <= 126, "a mask, or a length that is too long", all);
    if (size == 126) {
      require(output.size() >= 4, "half a frame", all);
      size = static_cast<unsigned char>(output[2]) * std::size_t{256} + static_cast<unsigned char>(output[3]);
      head = 4;
    }
    require(size <= output.size() - head, "half a frame", all);
    closed = first == 0x88;
    output.remove_prefix(head + size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const wirecall::Registry registry = make_registry();
  const std::string_view all = fuzz::text_of(data, size);
  if (all.size() < 3) return 0;
  const bool server = (all[0] & 1) == 0;
  const bool made = (all[0] & 2) == 0;
  const std::uint64_t seed =
      static_cast<std::uint64_t>(static_cast<unsigned char>(all[1])) << 8 | static_cast<unsigned char>(all[2]);
  const std::string input = made ? frames_of(all.substr(3), server) : std::string{all.substr(3)};

  const std::vector<std::string> expected = fuzz::SlowWebSocket{server, kLimits.max_message_size}.read(input);
  Reading whole{server, all};
  whole.feed(input);
  require(whole.found == expected, "not what the RFC says", all);
  Reading pieces{server, all};
  fuzz::Random random{seed};
  for (std::string_view rest = input; !rest.empty();) {
    const std::size_t bytes = 1 + random.below(std::min<std::size_t>(rest.size(), 12));
    pieces.feed(rest.substr(0, bytes));
    rest.remove_prefix(bytes);
  }
  require(pieces.found == expected, "what is found depends on how the bytes were cut", all);
  if (!server) return 0;

  const auto make = [](wirecall::net::Host& host, std::unique_ptr<wirecall::transport::ByteStream> stream) {
    return std::make_unique<wirecall::net::MessageConnection>(
        host, std::move(stream), std::make_unique<WebSocket>(WebSocket::Role::server, kLimits));
  };
  fuzz::Peer connection{registry, kLimits, make};
  if (!input.empty()) connection.send(input);
  const std::string answers = connection.finish(input);
  check_frames(answers, all);
  fuzz::Peer cut{registry, kLimits, make};
  fuzz::send_in_pieces(cut, input, fuzz::Random{seed});
  require(cut.finish(input) == answers, "the answers depend on how the bytes were cut", all);
  return 0;
}
