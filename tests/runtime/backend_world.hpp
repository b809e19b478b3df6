// The worlds that the backends' tests run in: each has a backend, connections to it whose other ends the test holds,
// and a listener. Two kernels' interfaces over two kinds of sockets, and the simulated backend with several seeds.
#pragma once

#include <arpa/inet.h>
#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <netinet/in.h>
#include <ostream>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "runtime/backend.hpp"
#include "tests/runtime/simulated_backend.hpp"

namespace wirecall::runtime {

/// The other end of a connection, of any kind.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void send(std::string_view bytes) = 0;
  virtual void finish() = 0;
  /// Closes, and drops what was sent to it and not taken.
  virtual void reset() = 0;
  virtual std::string take() = 0;
  [[nodiscard]] virtual bool sees_end() = 0;
  /// Limits what the other side can send before it has to wait for `take`.
  virtual void narrow() = 0;
};

class World {
 public:
  virtual ~World() = default;
  virtual Backend& backend() = 0;
  /// A descriptor for the backend, and the other end of the connection.
  virtual int connect(std::unique_ptr<Peer>& peer) = 0;
  /// What the owner of a polled descriptor does with it: takes all that has come, and sends until there is no room.
  virtual void drain(int descriptor) = 0;
  virtual void fill(int descriptor) = 0;
  /// A descriptor that accepts connections of `dial`.
  virtual int listen() = 0;
  virtual std::unique_ptr<Peer> dial() = 0;
  /// From now on no descriptor is available, to the test neither.
  virtual void exhaust_descriptors() = 0;
  virtual void relieve() = 0;
  /// Whether a descriptor is closed; only for those that the backend has owned.
  [[nodiscard]] virtual bool closed(int descriptor) = 0;
};

class SocketPeer final : public Peer {
 public:
  SocketPeer(int fd, int other) : fd_(fd), other_(other) {}
  ~SocketPeer() override { reset(); }
  void send(std::string_view bytes) override {
    ASSERT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void finish() override { ::shutdown(fd_, SHUT_WR); }
  void reset() override {
    if (fd_ < 0) return;
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(std::exchange(fd_, -1));
  }
  std::string take() override {
    std::string all;
    char block[65536];
    ssize_t got;
    while ((got = ::recv(fd_, block, sizeof block, MSG_DONTWAIT)) > 0) all.append(block, static_cast<std::size_t>(got));
    ended_ = ended_ || got == 0 || errno == ECONNRESET;
    return all;
  }
  bool sees_end() override {
    take();
    return ended_;
  }
  void narrow() override {
    // Large enough for TCP to keep sending: it delays less than a segment.
    const int bytes = 128 * 1024;
    ::setsockopt(other_, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }

 private:
  int fd_;
  int other_;
  bool ended_ = false;
};

class SocketWorld final : public World {
 public:
  SocketWorld(std::unique_ptr<Backend> backend, int family) : backend_(std::move(backend)), family_(family) {}
  ~SocketWorld() override { relieve(); }
  Backend& backend() override { return *backend_; }
  int connect(std::unique_ptr<Peer>& peer) override {
    int ends[2];
    if (family_ == AF_UNIX) {
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    } else {
      const int listener = listen();
      ends[1] = dialled();
      ends[0] = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      ::close(listener);
    }
    EXPECT_GE(ends[0], 0);
    peer = std::make_unique<SocketPeer>(ends[1], ends[0]);
    return ends[0];
  }
  void drain(int descriptor) override {
    char block[65536];
    while (::recv(descriptor, block, sizeof block, MSG_DONTWAIT) > 0) {
    }
  }
  void fill(int descriptor) override {
    const std::string block(65536, 'x');
    while (::send(descriptor, block.data(), block.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
  }
  int listen() override {
    const int fd = ::socket(family_, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // A name of no file for unix sockets, a free port for TCP: both of the system's choice.
    const socklen_t given = family_ == AF_UNIX ? sizeof(sa_family_t) : sizeof(sockaddr_in);
    address_ = {};
    address_.ss_family = static_cast<sa_family_t>(family_);
    if (family_ == AF_INET) reinterpret_cast<sockaddr_in*>(&address_)->sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address_), given), 0);
    EXPECT_EQ(::listen(fd, 1000), 0);
    address_size_ = sizeof address_;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&address_), &address_size_);
    // Connections are ready when requested, so the test's own calls need not wait.
    const int flags = ::fcntl(fd, F_GETFL);
    ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    return fd;
  }
  std::unique_ptr<Peer> dial() override {
    const int fd = dialled();
    return fd < 0 ? nullptr : std::make_unique<SocketPeer>(fd, fd);
  }
  void exhaust_descriptors() override {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit_), 0);
    // Below the lowest free number none is free.
    const int lowest = ::dup(0);
    ::close(lowest);
    const rlimit none{.rlim_cur = static_cast<rlim_t>(lowest), .rlim_max = limit_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    exhausted_ = true;
  }
  void relieve() override {
    if (std::exchange(exhausted_, false)) ::setrlimit(RLIMIT_NOFILE, &limit_);
  }
  bool closed(int descriptor) override { return ::fcntl(descriptor, F_GETFD) < 0; }

 private:
  int dialled() {
    const int fd = ::socket(family_, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address_), address_size_) == 0) {
      const int flags = ::fcntl(fd, F_GETFL);
      ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
      return fd;
    }
    ::close(fd);
    return -1;
  }

  std::unique_ptr<Backend> backend_;
  int family_;
  sockaddr_storage address_{};
  socklen_t address_size_ = 0;
  rlimit limit_{};
  bool exhausted_ = false;
};

class SimulatedWorld final : public World {
 public:
  explicit SimulatedWorld(unsigned seed) : backend_(seed) {}
  Backend& backend() override { return backend_; }
  int connect(std::unique_ptr<Peer>& peer) override {
    auto [descriptor, end] = backend_.pair();
    peer = std::make_unique<End>(end);
    return descriptor;
  }
  void drain(int descriptor) override { backend_.peer_of(descriptor).to_us.clear(); }
  void fill(int descriptor) override { backend_.peer_of(descriptor).window = 0; }
  int listen() override { return listener_ = backend_.listen(); }
  std::unique_ptr<Peer> dial() override {
    if (backend_.closed(listener_)) return nullptr;
    return std::make_unique<End>(backend_.connect(listener_));
  }
  void exhaust_descriptors() override { backend_.fail_accept(EMFILE); }
  void relieve() override {}
  bool closed(int descriptor) override { return backend_.closed(descriptor); }

 private:
  struct End final : Peer {
    explicit End(std::shared_ptr<SimulatedPeer> end) : end(std::move(end)) {}
    void send(std::string_view bytes) override { end->send(bytes); }
    void finish() override { end->finish(); }
    void reset() override { end->reset(); }
    std::string take() override {
      if (end->window < 1000) end->window = 1000;
      return end->take();
    }
    bool sees_end() override { return end->shut_down || end->closed; }
    void narrow() override { end->window = 1000; }
    std::shared_ptr<SimulatedPeer> end;
  };

  SimulatedBackend backend_;
  int listener_ = -1;
};

/// A kind of world, by its name. `make` returns null if it is not available, for the reason in `reason`.
struct WorldKind {
  std::string name;
  std::function<std::unique_ptr<World>(std::string& reason)> make;
};

inline void PrintTo(const WorldKind& kind, std::ostream* out) { *out << kind.name; }

inline std::vector<WorldKind> all_worlds() {
  std::vector<WorldKind> all;
  for (const auto& [family, name] : {std::pair{AF_INET, "tcp"}, std::pair{AF_UNIX, "unix"}}) {
    all.push_back({std::string{"epoll_"} + name,
                   [family](std::string&) { return std::make_unique<SocketWorld>(make_epoll_backend(), family); }});
    all.push_back({std::string{"epoll_by_little_"} + name,
                   [family](std::string&) { return std::make_unique<SocketWorld>(make_epoll_backend(64), family); }});
    if (!kRingsAreFollowed) continue;
    all.push_back({std::string{"uring_"} + name, [family](std::string& reason) -> std::unique_ptr<World> {
                     try {
                       return std::make_unique<SocketWorld>(make_uring_backend(), family);
                     } catch (const std::system_error& refusal) {
                       reason = refusal.what();
                       return nullptr;
                     }
                   }});
  }
  for (unsigned seed = 1; seed <= 8; ++seed) {
    all.push_back(
        {"simulated_" + std::to_string(seed), [seed](std::string&) { return std::make_unique<SimulatedWorld>(seed); }});
  }
  return all;
}

}  // namespace wirecall::runtime
