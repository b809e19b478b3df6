// Unix sockets for endpoint_socket.hpp. A socket's file stays behind when its program dies, so one on which nobody
// listens is replaced; anything else that stands at the path is left alone. While the file is looked at and replaced
// its folder is locked, so that two programs that start at once do not take each other's fresh file for an old one.
// Whoever may read the folder can lock it, and for as long as it likes: so the lock is waited for no longer than a
// moment, and then gone without. Only then can the second of two programs that start at once remove the first one's
// file, which listens on where nobody finds it.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <expected>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <thread>

#include "transport/setup.hpp"

namespace wirecall::transport {

// Endpoint has seen to it that the path fits.
static sockaddr_un address_of(const Endpoint& endpoint) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, endpoint.path().data(), endpoint.path().size());
  return address;
}

static int bind_to(int fd, const sockaddr_un& address) noexcept {
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

static int connect_on(int fd, const sockaddr_un& address) noexcept {
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

// Programs of ours hold the lock for microseconds: this long, in all, it is waited for.
constexpr std::chrono::milliseconds kLockPause{10};
constexpr int kLockTries = 100;

// Waits a moment until nobody else has it. Where the folder cannot be opened, binding will say why.
static Descriptor locked_folder(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  Descriptor lock{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  for (int tries = 1; lock.get() >= 0 && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (tries == kLockTries || (errno != EWOULDBLOCK && errno != EINTR)) break;
    std::this_thread::sleep_for(kLockPause);
  }
  return lock;
}

// False when somebody listens there.
static bool remove_stale(const Endpoint& endpoint, const sockaddr_un& address) {
  struct stat status{};
  if (::lstat(address.sun_path, &status) != 0) return true;  // gone by itself
  if (!S_ISSOCK(status.st_mode)) {
    throw failure("cannot listen on", endpoint, "what stands there is no socket",
                  "remove it, or listen on another path");
  }
  const Descriptor probe{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (probe.get() < 0) throw listen_failure(endpoint, errno);
  if (connect_on(probe.get(), address) != ECONNREFUSED) return false;
  if (status.st_uid != ::geteuid()) {
    throw failure("cannot listen on", endpoint, "the socket that stands there belongs to another user",
                  "have it removed, or listen on another path");
  }
  if (::unlink(address.sun_path) != 0) throw listen_failure(endpoint, errno);
  return true;
}

// The file, or why there is none: EADDRINUSE when somebody listens there already. A file whose program does not listen
// yet looks like one that stayed behind: so the folder is locked until ours does.
static std::expected<SocketFile, int> listen_there(int fd, const Endpoint& endpoint) {
  const sockaddr_un address = address_of(endpoint);
  const Descriptor lock = locked_folder(endpoint.path());
  int error = bind_to(fd, address);
  if (error == EADDRINUSE && remove_stale(endpoint, address)) error = bind_to(fd, address);
  if (error != 0) return std::unexpected{error};
  SocketFile file{endpoint.path()};
  if (::listen(fd, kBacklog) != 0) throw listen_failure(endpoint, errno);
  return file;
}

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
  struct stat status{};
  if (::lstat(path_.c_str(), &status) != 0) path_.clear();
  device_ = status.st_dev;
  node_ = status.st_ino;
}

SocketFile::~SocketFile() {
  if (path_.empty()) return;
  struct stat status{};
  if (::lstat(path_.c_str(), &status) != 0 || status.st_dev != device_ || status.st_ino != node_) return;
  ::unlink(path_.c_str());
}

BoundSocket listen_on_unix(const Endpoint& endpoint) {
  Descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (socket.get() < 0) throw listen_failure(endpoint, errno);
  std::expected<SocketFile, int> file = listen_there(socket.get(), endpoint);
  for (int tries = 0; !file && file.error() == EADDRINUSE && tries != kInUseTries; ++tries) {
    std::this_thread::sleep_for(kInUsePause);
    file = listen_there(socket.get(), endpoint);
  }
  if (!file) throw listen_failure(endpoint, file.error());
  return {socket.release(), endpoint, std::move(*file)};
}

int connect_to_unix(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  Descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (socket.get() < 0) throw connect_failure(endpoint, errno);
  // Connecting waits only while the listener's backlog is full, and no longer than a send may take. A signal ends it,
  // and then what is left of the time is waited for.
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  int error = EINTR;
  for (auto left = std::chrono::microseconds{timeout}; error == EINTR;) {
    left = std::max(left, std::chrono::microseconds{1});  // 0 would be for ever
    const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
    const timeval limit{.tv_sec = seconds.count(), .tv_usec = (left - seconds).count()};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    error = connect_on(socket.get(), address_of(endpoint));
    left = std::chrono::floor<std::chrono::microseconds>(deadline - std::chrono::steady_clock::now());
    if (error == EINTR && left.count() <= 0) error = ETIMEDOUT;
  }
  if (error != 0) throw connect_failure(endpoint, error == EAGAIN ? ETIMEDOUT : error);
  const timeval none{};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
  ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
  return socket.release();
}

}  // namespace wirecall::transport
