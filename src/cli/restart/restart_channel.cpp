// See restart_channel.hpp. A message is a header, then as many bytes as descriptors, each of which carries one, then
// its text.
#include "cli/restart/restart_channel.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "transport/socket.hpp"

namespace wirecall::cli {

using runtime::Descriptor;

namespace {

struct Header {
  static constexpr std::uint32_t kMagic = 0x57435253;  // "WCRS"
  std::uint32_t magic = kMagic;
  std::uint32_t descriptors = 0;
  std::uint64_t text_bytes = 0;
};

constexpr std::size_t kReadBytes = std::size_t{1} << 20;
constexpr std::string_view kGone = "the other process has ended, or has given up";
constexpr std::string_view kLate = "the other process did not answer in time";
constexpr std::string_view kStrange = "what the other process says is not understood: is it wirecall?";

[[noreturn]] void fail(std::string_view why) { throw RestartError{std::string{why}}; }

}  // namespace

RestartChannel::RestartChannel(Descriptor socket, int interrupt) : socket_(std::move(socket)), interrupt_(interrupt) {
  const auto peer = transport::peer_credentials(socket_.get());
  if (!peer || peer->uid != ::geteuid()) fail("the other process is another user's");
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
}

void RestartChannel::wait_for(short events, Clock::time_point until) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) fail(kLate);
    std::array<pollfd, 2> waiting{pollfd{.fd = socket_.get(), .events = events, .revents = 0},
                                  pollfd{.fd = interrupt_, .events = POLLIN, .revents = 0}};
    const int ready = ::poll(waiting.data(), waiting.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) fail(std::strerror(errno));
    if (waiting[1].revents != 0) fail("the server ends");
    if (ready > 0) return;
  }
}

void RestartChannel::send_all(std::string_view bytes, Clock::time_point until) {
  while (!bytes.empty()) {
    const ssize_t taken = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (taken >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(taken));
    } else if (errno == EAGAIN) {
      wait_for(POLLOUT, until);
    } else if (errno != EINTR) {
      fail(errno == EPIPE || errno == ECONNRESET ? std::string{kGone} : std::string{std::strerror(errno)});
    }
  }
}

void RestartChannel::send(std::string_view text, Time in_time, std::span<const Descriptor> descriptors) {
  const Clock::time_point until = Clock::now() + in_time;
  Header header;
  header.descriptors = static_cast<std::uint32_t>(descriptors.size());
  header.text_bytes = text.size();
  send_all({reinterpret_cast<const char*>(&header), sizeof header}, until);
  for (const Descriptor& descriptor : descriptors) {
    char byte = 'd';
    iovec part{.iov_base = &byte, .iov_len = 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    cmsghdr* const control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = descriptor.get();
    std::memcpy(CMSG_DATA(control), &number, sizeof number);
    while (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
      if (errno == EAGAIN) {
        wait_for(POLLOUT, until);
      } else if (errno != EINTR) {
        fail(errno == EPIPE || errno == ECONNRESET ? std::string{kGone} : std::string{std::strerror(errno)});
      }
    }
  }
  send_all(text, until);
}

void RestartChannel::end_input() noexcept { ::shutdown(socket_.get(), SHUT_RD); }

bool RestartChannel::has_input() const noexcept {
  char byte = 0;
  return ::recv(socket_.get(), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void RestartChannel::receive_all(std::span<char> bytes, RestartMessage& whole, std::size_t descriptors_max,
                                 Clock::time_point until) {
  while (!bytes.empty()) {
    iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> space{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) {
      wait_for(POLLIN, until);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != ECONNRESET) fail(std::strerror(errno));
    if (got <= 0) fail(kGone);
    // Whatever comes is owned first, so that nothing of what is refused stays open.
    for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr; control = CMSG_NXTHDR(&message, control)) {
      if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int number = -1;
        std::memcpy(&number, CMSG_DATA(control) + i * sizeof number, sizeof number);
        whole.descriptors.emplace_back(number);
      }
    }
    if (whole.descriptors.size() > descriptors_max) fail(kStrange);
    if ((message.msg_flags & MSG_CTRUNC) != 0) fail("this process may not open as many descriptors: raise ulimit -n");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

RestartMessage RestartChannel::receive(Time in_time, std::uint64_t bytes_max, std::uint32_t descriptors_max) {
  const Clock::time_point until = Clock::now() + in_time;
  RestartMessage message;
  Header header;
  receive_all({reinterpret_cast<char*>(&header), sizeof header}, message, 0, until);
  const bool small = header.descriptors <= descriptors_max && header.text_bytes <= bytes_max;
  if (header.magic != Header::kMagic || !small) fail(kStrange);
  for (std::uint32_t i = 0; i < header.descriptors; ++i) {
    char byte = 0;
    receive_all({&byte, 1}, message, header.descriptors, until);
  }
  // As it comes: what a header says alone takes no memory.
  for (std::uint64_t left = header.text_bytes; left != 0;) {
    const std::size_t bytes = std::min<std::uint64_t>(left, kReadBytes);
    const std::size_t before = message.text.size();
    message.text.resize(before + bytes);
    receive_all(std::span{message.text}.subspan(before), message, header.descriptors, until);
    left -= bytes;
  }
  if (message.descriptors.size() != header.descriptors) fail(kStrange);
  return message;
}

}  // namespace wirecall::cli
