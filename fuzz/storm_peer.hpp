// StormPeer: one connection of the broker's storm (broker_storm.hpp) as its peer sees it, and how that writes and reads
// messages in each framing. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "message/protobuf_transcoder.hpp"
#include "tests/runtime/simulated_backend.hpp"

namespace fuzz {

using nlohmann::json;

enum class StormFraming : std::uint8_t { lines, headers, lengths, msgpack, cbor, protobuf, http, websocket };
constexpr std::size_t kStormFramings = 8;

inline bool is_binary(StormFraming framing) {
  return framing == StormFraming::msgpack || framing == StormFraming::cbor || framing == StormFraming::protobuf;
}

/// A connection as its peer sees it.
struct StormPeer {
  struct Asked {  // a call of this peer without an outcome
    std::uint64_t nonce = 0;
    bool batch = false;
    bool streamed = false;
    bool cancelled = false;
    std::uint64_t credit = 0;
    std::uint64_t items = 0;
  };
  struct Serving {  // a call sent to this peer
    json id;
    json params;
    std::uint64_t seq = 0;
    bool streamed = false;
    bool may_answer_again = false;
  };

  std::size_t number = 0;
  StormFraming framing = StormFraming::lines;
  std::shared_ptr<wirecall::runtime::SimulatedPeer> wire;
  std::string authorization;  // a header field of HTTP; empty for none
  std::size_t message_max = 0;
  std::string received;
  std::map<std::string, Asked> calls;  // by id as JSON
  std::vector<Serving> serving;
  std::vector<std::string> patterns;                 // ever subscribed to
  std::map<std::uint64_t, std::uint64_t> event_seq;  // by publisher: the last received live
  std::uint64_t event_number = 0;
  std::string session;
  std::string hello_id;
  bool upgraded = false;  // the answer to its request for a WebSocket has come
  bool events = false;    // its HTTP response is a stream of events
  bool named = false;
  bool junk = false;        // has sent what may be refused without an id
  bool garbled = false;     // its bytes may be read as something else, and stay without an answer
  bool may_be_cut = false;  // because of other peers or a long message, with an answer or without
  bool finished = false;    // has closed its sending side
  bool closed = false;      // by the broker, and the peer has noticed
  bool abandoned = false;   // reset, or closed by the broker: its calls expect nothing
};

// WIRECALL_TRACE in the environment shows the messages.
inline bool is_traced() {
  static const bool kTraced = std::getenv("WIRECALL_TRACE") != nullptr;
  return kTraced;
}
inline void trace(const StormPeer& peer, const char* way, const std::string& text) {
  if (is_traced())
    std::fprintf(stderr, "%zu/%d %s %s\n", peer.number, static_cast<int>(peer.framing), way, text.c_str());
}

inline void finish(StormPeer& peer) {
  if (std::exchange(peer.finished, true)) return;
  trace(peer, "<-", "end");
  peer.serving.clear();
  peer.wire->finish();
}
inline void abandon(StormPeer& peer) {
  peer.abandoned = true;
  peer.calls.clear();
  peer.serving.clear();
}

inline std::string as_protobuf(const std::string& text) {
  wirecall::message::ProtobufTranscoder transcoder;
  wirecall::Buffer json{text};
  wirecall::Buffer bytes;
  static_cast<void>(transcoder.from_json(json.padded(), wirecall::Limits{}, bytes));
  return std::string{bytes.view()};
}
inline json from_protobuf(const std::string& bytes) {
  using Status = wirecall::message::Transcoder::Status;
  wirecall::message::ProtobufTranscoder transcoder;
  wirecall::Buffer text;
  if (transcoder.to_json(bytes, wirecall::Limits{}, text) != Status::done) return json(json::value_t::discarded);
  return json::parse(text.view(), nullptr, false);
}

/// A message of that framing's encoding.
inline std::string encoded(StormFraming framing, const json& message) {
  if (framing == StormFraming::protobuf) return as_protobuf(message.dump());
  const bool cbor = framing == StormFraming::cbor;
  const std::vector<std::uint8_t> bytes = cbor ? json::to_cbor(message) : json::to_msgpack(message);
  // Arrays without the tag are MessagePack's.
  return (cbor ? "\xD9\xD9\xF7" : "") + std::string{bytes.begin(), bytes.end()};
}
inline json decoded(StormFraming framing, const std::string& bytes) {
  if (bytes.starts_with('{') || bytes.starts_with('[')) return json::parse(bytes, nullptr, false);
  if (framing == StormFraming::protobuf) return from_protobuf(bytes);
  if (framing == StormFraming::cbor) return json::from_cbor(bytes, true, false, json::cbor_tag_handler_t::ignore);
  return json::from_msgpack(bytes, true, false);
}

inline std::string behind_length(const std::string& payload) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(payload.size() >> shift & 255);
  return bytes + payload;
}

// A client's frame of text, in a mask.
inline std::string websocket_frame(const std::string& text) {
  constexpr std::string_view kMask = "\x37\xfa\x21\x3d";
  std::string frame = "\x81";
  if (text.size() <= 125) {
    frame += static_cast<char>(0x80 | text.size());
  } else {
    const int bytes = text.size() <= 0xFFFF ? 2 : 8;
    frame += static_cast<char>(0x80 | (bytes == 2 ? 126 : 127));
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) frame += static_cast<char>(text.size() >> shift);
  }
  frame += kMask;
  for (std::size_t i = 0; i < text.size(); ++i) frame += static_cast<char>(text[i] ^ kMask[i % 4]);
  return frame;
}
inline constexpr std::string_view kWebSocketHandshake =
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// `pretty`: with line breaks between the tokens, as providers and publishers may write.
inline void send(StormPeer& peer, const json& message, bool pretty = false) {
  const std::string text = message.dump(pretty ? 1 : -1);
  trace(peer, "<-", text);
  const std::string payload = is_binary(peer.framing) ? encoded(peer.framing, message) : text;
  // In JSON, as which a broker looks at it, it may be larger.
  if (std::max(text.size(), payload.size()) > peer.message_max) peer.may_be_cut = true;
  const std::string length = "Content-Length: " + std::to_string(text.size()) + "\r\n";
  switch (peer.framing) {
    case StormFraming::lines: return peer.wire->send(text + "\n");
    case StormFraming::headers: return peer.wire->send(length + "\r\n" + text);
    case StormFraming::lengths: return peer.wire->send(behind_length(text));
    case StormFraming::msgpack:
    case StormFraming::cbor:
    case StormFraming::protobuf: return peer.wire->send(behind_length(payload));
    case StormFraming::websocket: return peer.wire->send(websocket_frame(text));
    case StormFraming::http:
      return peer.wire->send("POST /rpc HTTP/1.1\r\nHost: localhost\r\n" + peer.authorization + length + "\r\n" + text);
  }
}

// Takes the next `bytes` received.
inline std::string taken(StormPeer& peer, std::size_t from, std::size_t bytes) {
  std::string text = peer.received.substr(from, bytes);
  peer.received.erase(0, from + bytes);
  return text;
}

template <class Model>
void stop_reading(StormPeer& peer, Model& model, const std::string& why) {
  model.fault_at(peer, why);
  peer.received.clear();
}

template <class Model>
bool read_events(StormPeer& peer, Model& model) {
  const std::size_t end = peer.received.find('\n');
  if (end == std::string::npos) return false;
  std::string line = taken(peer, 0, end + 1);
  line.pop_back();
  if (line.starts_with("data: ")) {
    model.receive(peer, json::parse(line.substr(6), nullptr, false), line);
  } else if (!line.empty() && !line.starts_with("id: ") && !line.starts_with("event: ") && !line.starts_with(":") &&
             line != "retry: 3000") {
    model.fault_at(peer, "a line that is none of an event stream's: " + line);
  }
  return true;
}

template <class Model>
bool read_http(StormPeer& peer, Model& model) {
  if (peer.events && peer.event_number != 0) return read_events(peer, model);
  const std::size_t end = peer.received.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const std::string head = peer.received.substr(0, end + 2);
  if (!head.starts_with("HTTP/1.1 ")) {
    stop_reading(peer, model, "head " + head);
    return false;
  }
  if (head.find("text/event-stream") != std::string::npos) {
    static_cast<void>(taken(peer, 0, end + 4));
    peer.event_number = 1;
    return true;
  }
  const std::size_t at = head.find("Content-Length: ");
  const std::size_t bytes = at == std::string::npos ? 0 : std::strtoull(head.c_str() + at + 16, nullptr, 10);
  if (peer.received.size() < end + 4 + bytes) return false;
  const std::string body = taken(peer, end + 4, bytes);
  const bool is_json = body.starts_with('{') || body.starts_with('[');
  if (is_json) model.receive(peer, json::parse(body, nullptr, false), body);
  return true;
}

template <class Model>
bool read_websocket(StormPeer& peer, Model& model) {
  if (!peer.upgraded) {
    const std::size_t end = peer.received.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    // It drains, or time has passed before the whole request was there; what was sent behind it is no request.
    if (peer.received.starts_with("HTTP/1.1 503 ") || peer.received.starts_with("HTTP/1.1 408 ")) {
      peer.garbled = peer.may_be_cut = true;
      peer.received.clear();
      return false;
    }
    if (!peer.received.starts_with("HTTP/1.1 101 ")) {
      stop_reading(peer, model, "no upgrade: " + peer.received.substr(0, 100));
      return false;
    }
    static_cast<void>(taken(peer, 0, end + 4));
    peer.upgraded = true;
  }
  const auto byte = [&](std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(peer.received[at]));
  };
  if (peer.received.size() < 2) return false;
  const std::size_t more = byte(1) < 126 ? 0 : byte(1) == 126 ? 2 : 8;
  if (peer.received.size() < 2 + more) return false;
  std::size_t bytes = more == 0 ? byte(1) : 0;
  for (std::size_t i = 0; i < more; ++i) bytes = bytes << 8 | byte(2 + i);
  const std::size_t first = byte(0);
  if (first != 0x81 && first != 0x88 && first != 0x89) {
    stop_reading(peer, model, "a frame that begins with " + std::to_string(first));
    return false;
  }
  if (peer.received.size() < 2 + more + bytes) return false;
  const std::string text = taken(peer, 2 + more, bytes);
  if (first == 0x81) model.receive(peer, json::parse(text, nullptr, false), text);
  if (first == 0x89 && !peer.finished) peer.wire->send(std::string_view{"\x8A\x80\0\0\0\0", 6});
  return true;
}

/// Hands `model` each message of what has come, and what is none.
template <class Model>
void read(StormPeer& peer, Model& model) {
  if (peer.garbled) return peer.received.clear();
  for (;;) {
    switch (peer.framing) {
      case StormFraming::lines: {
        const std::size_t end = peer.received.find('\n');
        if (end == std::string::npos) return;
        const std::string line = taken(peer, 0, end + 1);
        model.receive(peer, json::parse(line, nullptr, false), line);
        break;
      }
      case StormFraming::headers: {
        static constexpr std::string_view kName = "Content-Length: ";
        const std::size_t end = peer.received.find("\r\n\r\n");
        if (end == std::string::npos) return;
        if (!peer.received.starts_with(kName))
          return stop_reading(peer, model, "header " + peer.received.substr(0, 100));
        const std::size_t bytes = std::strtoull(peer.received.c_str() + kName.size(), nullptr, 10);
        if (peer.received.size() < end + 4 + bytes) return;
        const std::string text = taken(peer, end + 4, bytes);
        model.receive(peer, json::parse(text, nullptr, false), text);
        break;
      }
      case StormFraming::lengths:
      case StormFraming::msgpack:
      case StormFraming::cbor:
      case StormFraming::protobuf: {
        if (peer.received.size() < 4) return;
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < 4; ++i) bytes = bytes << 8 | static_cast<unsigned char>(peer.received[i]);
        if (bytes > std::size_t{1} << 28) return stop_reading(peer, model, "a length of " + std::to_string(bytes));
        if (peer.received.size() < 4 + bytes) return;
        const std::string payload = taken(peer, 4, bytes);
        model.receive(peer, decoded(peer.framing, payload), payload);
        break;
      }
      case StormFraming::websocket:
        if (!read_websocket(peer, model)) return;
        break;
      case StormFraming::http:
        if (!read_http(peer, model)) return;
    }
  }
}

}  // namespace fuzz
