// BlockingSocket: a non-blocking socket that a thread sets a connection up on, within a time. For the sources that
// connect; nothing of it is used in a turn of a loop.
#pragma once

#include <cerrno>
#include <poll.h>
#include <sys/socket.h>

#include "transport/setup.hpp"

namespace wirecall::transport {

class BlockingSocket {
 public:
  /// The cause and the cure of a peer that has accepted the connection, and is silent until the deadline.
  struct Silence {
    std::string_view cause;
    std::string_view cure;
  };

  /// `endpoint` is named by what is thrown; it outlives this, as do the texts of `silence`. The socket stays the
  /// caller's.
  BlockingSocket(int socket, const Endpoint& endpoint, std::chrono::steady_clock::time_point deadline,
                 const Silence& silence)
      : socket_(socket), endpoint_(endpoint), deadline_(deadline), silence_(silence) {}

  /// Sends all. Throws std::runtime_error.
  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else {
        wait(POLLOUT);
      }
    }
  }
  /// Receives from 1 to `bytes` bytes; 0 when the peer has ended. `flags` are of recv(2). Throws std::runtime_error.
  [[nodiscard]] std::size_t receive(char* to, std::size_t bytes, int flags = 0) const {
    for (;;) {
      const ssize_t received = ::recv(socket_, to, bytes, flags);
      if (received >= 0) return static_cast<std::size_t>(received);
      wait(POLLIN);
    }
  }

 private:
  void wait(short events) const {
    if (errno != EAGAIN && errno != EINTR) throw connect_failure(endpoint_, errno);
    using std::chrono::milliseconds;
    const auto left = std::chrono::ceil<milliseconds>(deadline_ - std::chrono::steady_clock::now());
    pollfd waiting{.fd = socket_, .events = events, .revents = 0};
    const bool in_time = left.count() > 0 && ::poll(&waiting, 1, static_cast<int>(left.count())) != 0;
    if (!in_time) throw failure("cannot connect to", endpoint_, silence_.cause, silence_.cure);
  }

  const int socket_;
  const Endpoint& endpoint_;
  const std::chrono::steady_clock::time_point deadline_;
  const Silence silence_;
};

}  // namespace wirecall::transport
