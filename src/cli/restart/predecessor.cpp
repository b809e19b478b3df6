// See predecessor.hpp.
#include "cli/restart/predecessor.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/restart/restart_protocol.hpp"
#include "transport/user_folder.hpp"

namespace wirecall::cli {

using runtime::Descriptor;

// That a process has to be gone once its end of the connection is.
constexpr int kDeathTime = 1000;  // ms

namespace {

// The channel of the process that has started this one; none for none.
Descriptor take_own_channel() {
  const char* const text = std::getenv(kRestartVariable);
  if (text == nullptr) return Descriptor{};
  int number = -1;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), number);
  if (error != std::errc{} || *end != '\0' || number < 0)
    throw RestartError{std::string{kRestartVariable} + " is no descriptor: unset it, it is for `wirecall serve` alone"};
  ::unsetenv(kRestartVariable);
  if (::fcntl(number, F_SETFD, FD_CLOEXEC) != 0)
    throw RestartError{std::string{kRestartVariable} + " names a descriptor that is not open: unset it"};
  return Descriptor{number};
}

// None where nobody listens at the path. In a folder that others may write in, it may lead to any server of this
// user's.
Descriptor connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty())
    throw RestartError{"--replace finds no server by a port of the system's choice: name the port, or send SIGUSR2"};
  if (path.size() >= sizeof address.sun_path)
    throw RestartError{path + " has more than 107 bytes: choose a shorter XDG_RUNTIME_DIR"};
  const std::string folder = path.substr(0, path.rfind('/'));
  if (::access(folder.c_str(), F_OK) != 0 && errno == ENOENT) return Descriptor{};
  if (const auto fault = transport::user_folder_fault(folder)) throw RestartError{fault->cause + "; " + fault->cure};
  std::memcpy(address.sun_path, path.data(), path.size());
  Descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "a socket"};
  int error = EINTR;
  while (error == EINTR)
    error = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
  if (error == ENOENT || error == ECONNREFUSED) return Descriptor{};
  if (error != 0) throw RestartError{path + ": " + std::strerror(error)};
  return socket;
}

}  // namespace

void take_over(RestartChannel& channel) {
  channel.send(to_json(RestartPrepared{.error = {}, .prepared = true}), kRestartCommit);
  // It gives up after a moment, and then the connection ends: so there is an answer, unless it is stopped meanwhile.
  RestartMessage said;
  try {
    said = channel.receive(kRestartStep + kRestartStep, kRestartBytesMax);
  } catch (const RestartError&) {
    // What it says from now on fails there, so that it goes on; what it has said up to now holds.
    channel.end_input();
    if (!channel.has_input()) throw;
    said = channel.receive(kRestartCommit, kRestartBytesMax);
  }
  if (!understood<RestartGo>(said).go) throw RestartError{"the server that is to be replaced goes on"};
}

std::unique_ptr<Predecessor> Predecessor::find(bool replace, const std::string& path) {
  Descriptor socket = take_own_channel();
  if (socket.get() < 0 && replace) socket = connect_to(path);
  if (socket.get() < 0) return nullptr;
  return std::unique_ptr<Predecessor>{new Predecessor{RestartChannel{std::move(socket)}}};
}

Predecessor::Predecessor(RestartChannel channel) : channel_(std::move(channel)) {
  channel_.send(to_json(RestartHello{.restart = kRestartVersion, .pid = ::getpid()}), kRestartStep);
  RestartMessage message = channel_.receive(kRestartStep, kRestartBytesMax, kRestartDescriptorsMax);
  auto said = understood<RestartSockets>(message);
  if (!said.error.empty()) throw RestartError{"the server that is to be replaced refuses: " + said.error};
  if (said.restart != kRestartVersion)
    throw RestartError{"the server that is to be replaced is of a version that cannot be: stop it, and start this one"};
  const std::size_t count = said.uris.size() + (said.path.empty() ? 0 : 1);
  if (message.descriptors.size() != count)
    throw RestartError{"the server that is to be replaced has not sent all sockets"};
  pid_ = said.pid;
  process_ = Descriptor{static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid_), 0))};
  was_gone_ = process_.get() < 0 && errno == ESRCH;
  path_ = std::move(said.path);
  if (!path_.empty()) restart_socket_ = std::move(message.descriptors.back());
  for (std::size_t i = 0; i < said.uris.size(); ++i)
    sockets_.push_back({.descriptor = std::move(message.descriptors[i]), .endpoint = Endpoint{said.uris[i]}});
  for (const std::uint32_t i : said.passed) {
    if (i < sockets_.size()) sockets_[i].passed = true;
  }
}

Descriptor Predecessor::take_restart_socket(const std::string& path) {
  has_path_ = !path.empty() && path == path_;
  if (!has_path_) return Descriptor{};
  return std::move(restart_socket_);
}

std::string Predecessor::receive_state() {
  channel_.send(to_json(RestartReady{.error = {}, .has_path = has_path_}), kRestartStep);
  RestartMessage state = channel_.receive(kRestartStep + kRestartStep, kRestartStateBytesMax);
  has_state_ = true;
  return std::move(state.text);
}

Descriptor Predecessor::share_socket() const {
  return Descriptor{::fcntl(channel_.descriptor(), F_DUPFD_CLOEXEC, 0), "the socket of restarts is shared"};
}

void Predecessor::take_over() {
  settled_ = true;
  cli::take_over(channel_);
}

bool Predecessor::has_died() const noexcept {
  if (was_gone_) return true;
  pollfd process{.fd = process_.get(), .events = POLLIN, .revents = 0};
  return process_.get() >= 0 && ::poll(&process, 1, kDeathTime) > 0;
}

void Predecessor::give_up(const std::string& reason) noexcept {
  if (std::exchange(settled_, true)) return;
  try {
    channel_.send(has_state_ ? to_json(RestartPrepared{.error = reason}) : to_json(RestartReady{.error = reason}),
                  kRestartCommit);
  } catch (const std::exception&) {
    // It sees that this process ends.
  }
}

}  // namespace wirecall::cli
