// A client by TLS that is OpenSSL over a blocking socket.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "tests/connection/peer.hpp"
#include "tests/transport/tls_peer.hpp"

namespace wirecall::net {

class TlsSocket final : public StreamReader {
 public:
  using Settings = transport::TlsPeerSettings;

  /// Connects, says `before`, and shakes hands.
  explicit TlsSocket(const Endpoint& endpoint, const Settings& settings = {}, std::string_view before = {})
      : raw(endpoint), peer(settings) {
    raw.send(before);
    open = shake_hands();
  }
  TlsSocket(TlsSocket&&) = delete;

  /// Whether that has succeeded; else `peer.failure` says why, where the server has.
  bool shake_hands() {
    for (;;) {
      const bool done = peer.shake_hands();
      if (!flush() || !peer.failure.empty()) return false;
      if (done) return true;
      if (!receive_record()) return false;
    }
  }
  bool send(std::string_view text) { return peer.write(text) && flush(); }
  /// Sends what the peer has to say.
  bool flush() { return raw.send(peer.take()); }
  /// The request's answer, a line.
  std::string ask(std::string_view text) {
    send(text);
    return line();
  }

  RawPeer raw;
  transport::TlsPeer peer;
  bool open = false;

 private:
  bool receive_record() {
    std::string record = raw.bytes(5);
    if (record.size() != 5) return false;
    const std::size_t size =
        static_cast<std::size_t>(static_cast<unsigned char>(record[3])) << 8 | static_cast<unsigned char>(record[4]);
    record += raw.bytes(size);
    peer.feed(record);
    return record.size() == 5 + size;
  }
  bool read_more(std::string& to) override {
    if (peer.ended() || !peer.failure.empty() || !receive_record()) return false;
    to += peer.read();
    flush();
    return true;
  }
};

}  // namespace wirecall::net
