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

#include "base/assert.hpp"
#include "transport/setup.hpp"

namespace wirecall::transport {

// The path is one that fits.
static sockaddr_un address_of(const std::string& path) noexcept {
  WIRECALL_ASSERT(path.size() <= kSocketPathBytesMax);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
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
static std::expected<SocketFile, int> listen_there(int fd, const Endpoint& endpoint, const std::string& path) {
  const sockaddr_un address = address_of(path);
  const Descriptor lock = locked_folder(path);
  int error = bind_to(fd, address);
  if (error == EADDRINUSE && remove_stale(endpoint, address)) error = bind_to(fd, address);
  if (error != 0) return std::unexpected{error};
  SocketFile file{path};
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

BoundSocket listen_on_unix(const Endpoint& endpoint) { return listen_on_path(endpoint, endpoint.path()); }

BoundSocket listen_on_path(const Endpoint& endpoint, const std::string& path) {
  Descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (socket.get() < 0) throw listen_failure(endpoint, errno);
  std::expected<SocketFile, int> file = listen_there(socket.get(), endpoint, path);
  for (int tries = 0; !file && file.error() == EADDRINUSE && tries != kInUseTries; ++tries) {
    std::this_thread::sleep_for(kInUsePause);
    file = listen_there(socket.get(), endpoint, path);
  }
  if (!file) throw listen_failure(endpoint, file.error());
  return {socket.release(), endpoint, std::move(*file)};
}

static void set_timeout(int socket, int option, std::chrono::nanoseconds time) noexcept {
  const auto whole = std::chrono::ceil<std::chrono::microseconds>(time);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(whole);
  const timeval limit{.tv_sec = seconds.count(), .tv_usec = (whole - seconds).count()};
  ::setsockopt(socket, SOL_SOCKET, option, &limit, sizeof limit);
}

// As a socket has it, 0 is for ever.
constexpr std::chrono::nanoseconds kNoTimeout{0};
constexpr std::chrono::nanoseconds kShortest = std::chrono::microseconds{1};

void set_receive_timeout(int socket, std::chrono::nanoseconds time) noexcept {
  set_timeout(socket, SO_RCVTIMEO, std::max(time, kShortest));
}

void set_non_blocking(int socket) noexcept {
  set_timeout(socket, SO_RCVTIMEO, kNoTimeout);
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
}

int connect_to_path(const Endpoint& endpoint, const std::string& path, std::chrono::milliseconds timeout) {
  Descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (socket.get() < 0) throw connect_failure(endpoint, errno);
  // Connecting waits only while the listener's backlog is full, and no longer than a send may take. A signal ends it,
  // and then what is left of the time is waited for.
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const sockaddr_un address = address_of(path);
  int error = EINTR;
  for (std::chrono::nanoseconds left = timeout; error == EINTR;) {
    set_timeout(socket.get(), SO_SNDTIMEO, std::max(left, kShortest));
    error = connect_on(socket.get(), address);
    left = deadline - std::chrono::steady_clock::now();
    if (error == EINTR && left.count() <= 0) error = ETIMEDOUT;
  }
  if (error != 0) throw connect_failure(endpoint, error == EAGAIN ? ETIMEDOUT : error);
  set_timeout(socket.get(), SO_SNDTIMEO, kNoTimeout);
  return socket.release();
}

int connect_to_unix(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  Descriptor socket{connect_to_path(endpoint, endpoint.path(), timeout)};
  set_non_blocking(socket.get());
  return socket.release();
}

}  // namespace wirecall::transport
