// Transport: a way of your own for the bytes of one connection, such as a pair of pipes, a serial line or the socket of
// another library. The framings, limits and everything above are as by any other way. A server is given one by
// Server::serve, a client makes its own by ClientOptions::connect; examples/own_transport.cpp has both.
// The connection that is made of it owns it. Its functions are called on the loop's thread, one at a time, and must not
// block.
#pragma once

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>

namespace wirecall {

class Transport {
 public:
  /// Closes the connection.
  virtual ~Transport() = default;
  /// A descriptor that the system says is readable when `read` has something to bring, and one that is writable when
  /// `write` has room; perhaps the same. Not of a regular file. The same for as long as the transport lives.
  [[nodiscard]] virtual int read_descriptor() const noexcept = 0;
  [[nodiscard]] virtual int write_descriptor() const noexcept = 0;
  /// Reads into `to`, which is not empty, and returns how many bytes that were; 0 when the peer sends no more. The
  /// error is an errno: EAGAIN when there is nothing now, anything else when the connection is lost.
  [[nodiscard]] virtual std::expected<std::size_t, int> read(std::span<char> to) = 0;
  /// Writes the beginning of `bytes`, which are not empty, and returns how many bytes that were, at least one. The
  /// error is an errno: EAGAIN when there is no room now, anything else when the connection is lost.
  [[nodiscard]] virtual std::expected<std::size_t, int> write(std::string_view bytes) = 0;
  /// Tells the peer that nothing more is written, where the transport can; `read` goes on.
  virtual void end_writing() {}

 protected:
  Transport() = default;
  Transport(const Transport&) = default;
  Transport& operator=(const Transport&) = default;
};

}  // namespace wirecall
