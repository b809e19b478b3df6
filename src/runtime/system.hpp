// What the backends on a kernel have in common: the clock, and what an errno means. No state and no policy.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <iterator>
#include <string_view>
#include <sys/socket.h>

namespace wirecall::runtime {

[[nodiscard]] inline std::chrono::nanoseconds time_of(clockid_t clock) noexcept {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}
[[nodiscard]] inline std::chrono::nanoseconds monotonic_now() noexcept { return time_of(CLOCK_MONOTONIC); }
/// Of the system's last tick, at most 10 ms ago: no look at the processor's counter.
[[nodiscard]] inline std::chrono::nanoseconds monotonic_recently() noexcept { return time_of(CLOCK_MONOTONIC_COARSE); }

/// Whether accepting failed for the sake of one connection, which has gone before we looked. accept(2) says to treat
/// these as nothing.
[[nodiscard]] inline bool concerns_one_connection(int accept_error) noexcept {
  constexpr int kErrors[]{ECONNABORTED, EPROTO, ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH, ENOPROTOOPT, EPERM};
  return std::ranges::find(kErrors, accept_error) != std::end(kErrors);
}

/// What helps where the system has too little of something; empty for any other errno.
[[nodiscard]] inline std::string_view cure_of_shortage(int error) noexcept {
  switch (error) {
    case EMFILE: return "there are no descriptors left: raise the limit with ulimit -n";
    case ENFILE: return "all programs together have used up the descriptors: raise the sysctl fs.file-max";
    case ENOBUFS:
    case ENOMEM: return "the system has no memory for it: give it more, or raise the limit of the container";
    case ENOSPC: return "there are no watches left: raise the sysctl fs.epoll.max_user_watches";
    default: return {};
  }
}

/// Why a connection broke on which nothing was in flight.
[[nodiscard]] inline int error_of_broken(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error != 0 ? error : ECONNRESET;
}

}  // namespace wirecall::runtime
