// A peer by UDP: a plain blocking socket that is connected, and so receives from where it sends to and from nobody
// else. Waits are bounded, so a failing test does not hang.
#pragma once

#include <cerrno>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <utility>

#include "transport/setup.hpp"
#include "wirecall/endpoint.hpp"

namespace wirecall::transport {

class UdpPeer {
 public:
  explicit UdpPeer(const Endpoint& endpoint) {
    const Addresses to = resolve(endpoint, "cannot send to", {.kind = SOCK_DGRAM});
    fd_ = ::socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(fd_, to->ai_addr, to->ai_addrlen), 0);
    const timeval limit{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  UdpPeer(UdpPeer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~UdpPeer() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  void send(std::string_view datagram) const {
    EXPECT_EQ(::send(fd_, datagram.data(), datagram.size(), 0), static_cast<ssize_t>(datagram.size()));
  }
  /// The next datagram. Fails the test where none comes.
  [[nodiscard]] std::string receive() const {
    std::string datagram(70'000, '\0');
    ssize_t bytes = 0;
    do {  // the end of a ring that the thread has used interrupts it
      bytes = ::recv(fd_, datagram.data(), datagram.size(), 0);
    } while (bytes < 0 && errno == EINTR);
    EXPECT_GE(bytes, 0) << "nothing came";
    datagram.resize(bytes < 0 ? 0 : static_cast<std::size_t>(bytes));
    return datagram;
  }
  [[nodiscard]] std::string ask(std::string_view datagram) const {
    send(datagram);
    return receive();
  }
  /// Whether nothing has come.
  [[nodiscard]] bool is_silent() const {
    char byte;
    return ::recv(fd_, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0;
  }

 private:
  int fd_ = -1;
};

}  // namespace wirecall::transport
