// ByteStream: a transport that carries bytes in order, both ways: the seam under a connection. It knows no messages. A
// stream belongs to its user and lives on one loop; nothing of the user is called from within a call to the stream, its
// destructor included.
#pragma once

#include <span>

#include "wirecall/bytes.hpp"
#include "wirecall/context.hpp"

namespace wirecall::transport {

class TlsSession;

/// Whoever reads a stream. Within each of these the user may destroy the stream: whoever calls it touches neither the
/// stream nor the user after that.
class StreamUser {
 public:
  /// The bytes are lent until this returns, or the stream is destroyed; kPaddingBytes are readable behind them, the
  /// first of them zero. The user may write to them.
  virtual void received(std::span<char> bytes) = 0;
  /// The peer sends no more.
  virtual void ended() = 0;
  /// All bytes of the last send are on their way; `buffer` is given back.
  virtual void sent(Buffer buffer) = 0;
  /// The connection is lost; `error` is an errno. Nothing comes after it.
  virtual void failed(int error) = 0;
  /// Whether it is going to send something in this turn, without being told anything more: what a stream has to say of
  /// itself may wait for that, and go with it.
  [[nodiscard]] virtual bool sends_in_turn() const noexcept { return false; }

 protected:
  ~StreamUser() = default;
};

class ByteStream {
 public:
  /// Closes at once whatever is under way; the user is told nothing any more.
  virtual ~ByteStream() = default;

  /// Begins to receive. Called before anything else; and once more, perhaps, by another user that takes over, while
  /// nothing is being sent and nothing is paused.
  virtual void start(StreamUser& user) = 0;
  /// Sends all of `bytes`; one send at a time: the next only after `sent`. `prompt` asks for `sent` to be called as
  /// soon as it is true and not with whatever comes next.
  virtual void send(Buffer bytes, bool prompt) = 0;
  /// Receives no more for now, or again.
  virtual void pause() = 0;
  virtual void resume() = 0;
  /// Bytes that have arrived and have not been received yet.
  [[nodiscard]] virtual std::size_t readable() const noexcept = 0;
  /// Bytes of the send in flight that the system has not taken yet.
  [[nodiscard]] virtual std::size_t unsent() const noexcept = 0;
  /// Ends what is sent; receiving goes on.
  virtual void shut_down() = 0;
  /// Whether the peer has yet to be told that nothing more is sent, by a word of the encryption for that: this says it,
  /// and is false once it is on its way, or cannot be. Called while nothing is being sent.
  [[nodiscard]] virtual bool says_farewell() noexcept { return false; }

  /// The system is to find out by itself whether a peer that is silent is still there, and to fail with ETIMEDOUT after
  /// that time. No effect where it always knows.
  virtual void watch_peer(std::chrono::nanoseconds) noexcept {}

  /// None where the system cannot tell; it can for unix sockets, and is asked each time.
  [[nodiscard]] virtual std::optional<PeerCredentials> peer_credentials() const { return std::nullopt; }
  /// Where the peer comes from: an address (of IPv6 its first 64 bits, which one host has for itself), or a user of
  /// this machine; empty where that is not known. The same text is the same source.
  [[nodiscard]] virtual std::string peer_source() const { return {}; }
  /// What is known of the encryption, and by it of the peer; null for a stream that is not encrypted. Lives as long as
  /// the stream.
  [[nodiscard]] virtual const TlsSession* tls() const noexcept { return nullptr; }
};

}  // namespace wirecall::transport
