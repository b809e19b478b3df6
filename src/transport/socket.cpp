// See socket.hpp. Replies are small and must not wait for acknowledgements, so every connection has TCP_NODELAY; those
// that are accepted have it from their listener.
#include "transport/socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace wirecall::transport {
namespace {

using runtime::Completion;
using runtime::OperationKind;

// Connections that the kernel keeps for us until they are accepted.
constexpr int kBacklog = 4096;
// How long accepting waits when the process has no descriptors or the system no memory left.
constexpr std::chrono::milliseconds kAcceptPause{100};

using Addresses = std::unique_ptr<addrinfo, decltype([](addrinfo* list) { ::freeaddrinfo(list); })>;

class Socket {
 public:
  explicit Socket(int fd = -1) noexcept : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

void set_option(int fd, int level, int option) noexcept {
  const int on = 1;
  ::setsockopt(fd, level, option, &on, sizeof on);
}

std::runtime_error failure(std::string_view what, const Endpoint& endpoint, std::string_view cause,
                           std::string_view cure) {
  std::string text{what};
  text.append(" ").append(endpoint.uri()).append(": ").append(cause);
  if (!cure.empty()) text.append("; ").append(cure);
  return std::runtime_error{text};
}

Addresses resolve(const Endpoint& endpoint, std::string_view what, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(endpoint.host().c_str(), std::to_string(endpoint.port()).c_str(), &hints, &list);
  if (error != 0) {
    throw failure(what, endpoint, ::gai_strerror(error), "check the name of the host, or give its address");
  }
  return Addresses{list};
}

Socket open_socket(const addrinfo& address) {
  Socket socket{::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (socket.get() >= 0) set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY);
  return socket;
}

std::uint16_t bound_port(int fd) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  const auto* as6 = reinterpret_cast<const sockaddr_in6*>(&address);
  const auto* as4 = reinterpret_cast<const sockaddr_in*>(&address);
  return ntohs(address.ss_family == AF_INET6 ? as6->sin6_port : as4->sin_port);
}

std::string_view cure_of_listen(int error) noexcept {
  switch (error) {
    case EADDRINUSE:
      return "another program listens there: stop it, or listen on another port";
    case EACCES:
      return "ports below 1024 are for privileged programs: listen on a higher one";
    case EADDRNOTAVAIL:
      return "this machine has no such address: listen on 127.0.0.1, 0.0.0.0 or one of its own";
    case EMFILE:
    case ENFILE:
      return "there are no descriptors left: raise the limit with ulimit -n";
    default:
      return {};
  }
}

std::string_view cure_of_connect(int error) noexcept {
  switch (error) {
    case ECONNREFUSED:
      return "nothing listens there: start the server, or check the port";
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "the host does not answer: check its address and what stands in between";
    case EMFILE:
    case ENFILE:
      return "there are no descriptors left: raise the limit with ulimit -n";
    default:
      return {};
  }
}

// 0, or an errno.
int finish_connecting(int fd, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = fd, .events = POLLOUT, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return errno;
    if (ready == 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }
}

}  // namespace

// ---- SocketStream ----

SocketStream::SocketStream(Loop& loop, int descriptor) : loop_(&loop), handle_(loop.attach(descriptor, *this)) {}

SocketStream::~SocketStream() { loop_->detach(handle_); }

void SocketStream::start(StreamUser& user) {
  user_ = &user;
  resume();
}

void SocketStream::send(Buffer bytes, bool prompt) {
  loop_->submit({.kind = OperationKind::send, .prompt = prompt, .handle = handle_, .buffer = std::move(bytes)});
}

void SocketStream::pause() {
  if (!std::exchange(wanted_, false) || !receiving_) return;
  loop_->submit({.kind = OperationKind::cancel, .handle = handle_, .buffer = {}});
}

void SocketStream::resume() {
  if (std::exchange(wanted_, true) || receiving_) return;
  receiving_ = true;
  loop_->submit({.kind = OperationKind::receive, .handle = handle_, .buffer = {}});
}

void SocketStream::shut_down() { loop_->submit({.kind = OperationKind::shut_down, .handle = handle_, .buffer = {}}); }

void SocketStream::completed(Completion& completion) {
  if (completion.kind == OperationKind::send) {
    if (completion.error != 0) return user_->failed(completion.error);
    return user_->sent(std::move(completion.buffer));
  }
  if (!completion.last) [[likely]]
    return user_->received(completion.bytes);
  receiving_ = false;
  if (completion.error == ECANCELED) {
    // Paused; and resumed, perhaps, before this came.
    if (std::exchange(wanted_, false)) resume();
    return;
  }
  if (completion.error != 0) return user_->failed(completion.error);
  wanted_ = false;
  user_->ended();
}

// ---- Listener ----

Listener::Listener(Loop& loop, int descriptor, Accepted accepted, Failed failed)
    : loop_(&loop),
      accepted_(std::move(accepted)),
      failed_(std::move(failed)),
      handle_(loop.attach(descriptor, *this)) {
  loop_->submit({.kind = OperationKind::accept, .handle = handle_, .buffer = {}});
}

Listener::~Listener() {
  loop_->stop(*this);
  loop_->detach(handle_);
}

void Listener::completed(Completion& completion) {
  if (completion.descriptor >= 0) return accepted_(std::exchange(completion.descriptor, -1));
  loop_->stop(*this);
  loop_->start(*this, kAcceptPause);
  waiting_ = true;
  if (!std::exchange(failing_, true)) failed_(completion.error);
}

// Accepts again after a pause. It is over when as long a time has passed without a failure: one connection accepted
// says little, since the next may find no descriptor.
void Listener::expired() {
  if (!std::exchange(waiting_, false)) {
    failing_ = false;
    return failed_(0);
  }
  loop_->submit({.kind = OperationKind::accept, .handle = handle_, .buffer = {}});
  loop_->start(*this, kAcceptPause);
}

// ---- set-up ----

Listening listen_on(const Endpoint& endpoint) {
  int error = 0;
  const Addresses addresses = resolve(endpoint, "cannot listen on", AI_PASSIVE);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Socket socket = open_socket(*address);
    if (socket.get() >= 0) {
      set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR);
      if (::bind(socket.get(), address->ai_addr, address->ai_addrlen) == 0 && ::listen(socket.get(), kBacklog) == 0) {
        const std::uint16_t port = bound_port(socket.get());
        return {socket.release(), endpoint.with_port(port)};
      }
    }
    error = errno;
  }
  throw failure("cannot listen on", endpoint, std::strerror(error), cure_of_listen(error));
}

int connect_to(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  int error = 0;
  const Addresses addresses = resolve(endpoint, "cannot connect to", 0);
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    Socket socket = open_socket(*address);
    if (socket.get() < 0) {
      error = errno;
      continue;
    }
    error = ::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) error = finish_connecting(socket.get(), deadline);
    if (error == 0) return socket.release();
  }
  throw failure("cannot connect to", endpoint, std::strerror(error), cure_of_connect(error));
}

}  // namespace wirecall::transport
