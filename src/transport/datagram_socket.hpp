// DatagramSocket: a transport that carries datagrams, each whole or not at all: the seam beside ByteStream. It knows no
// messages and no connections. A socket belongs to its user and lives on one loop; nothing of the user is called from
// within a call to the socket.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace wirecall::transport {

/// Where a datagram comes from, or goes to: bytes that only its transport reads (a sockaddr_in6 has 28, and which of
/// our own addresses a datagram has come to has 20).
struct DatagramAddress {
  std::array<std::byte, 48> bytes{};
  std::uint8_t size = 0;  ///< of `bytes`, those that mean something; the others are zero

  /// By memcmp, which takes whole words: byte by byte, as std::array does it, it costs a fifth of a small call.
  friend bool operator==(const DatagramAddress& a, const DatagramAddress& b) noexcept {
    return a.size == b.size && std::memcmp(a.bytes.data(), b.bytes.data(), sizeof a.bytes) == 0;
  }
};

/// Whoever reads a socket.
class DatagramUser {
 public:
  /// One whole datagram. Its bytes are lent until this returns, also where another thread takes the loop over
  /// meanwhile; kPaddingBytes are readable behind them, the first of which is zero until then. `source`, lent until
  /// then as well, is what the datagram says: anybody may have forged it.
  virtual void received(std::string_view datagram, const DatagramAddress& source) = 0;

 protected:
  ~DatagramUser() = default;
};

class DatagramSocket {
 public:
  /// Closes at once; the user is told nothing any more. May be called within `received`.
  virtual ~DatagramSocket() = default;

  /// Begins to receive. Called once, before anything else.
  virtual void start(DatagramUser& user) = 0;
  /// Receives nothing any more: what comes is for another process that has the socket. `send` goes on.
  virtual void stop() noexcept {}
  /// Sends one datagram of at most `bytes_max` bytes, which are copied or gone when this returns, with the turn at the
  /// latest; drops it where the system has no room for it.
  virtual void send(std::string_view datagram, const DatagramAddress& to) noexcept = 0;
  /// Bytes of the largest datagram that can be sent, or is received; 65,507 for UDP.
  [[nodiscard]] virtual std::size_t bytes_max() const noexcept = 0;
  /// As ByteStream::peer_source: the same text is the same source.
  [[nodiscard]] virtual std::string peer_source(const DatagramAddress& source) const = 0;
};

}  // namespace wirecall::transport
