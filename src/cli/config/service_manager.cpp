#include "cli/config/service_manager.hpp"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

namespace wirecall::cli {

static void notify(std::string_view state) noexcept {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t bytes = path != nullptr ? std::strlen(path) : 0;
  if (bytes < 2 || bytes >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) return;
  std::memcpy(address.sun_path, path, bytes);
  if (path[0] == '@') address.sun_path[0] = '\0';  // not a file
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return;
  static_cast<void>(::sendto(descriptor, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                             reinterpret_cast<const sockaddr*>(&address),
                             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes)));
  ::close(descriptor);
}

void notify_ready() noexcept { notify("READY=1\n"); }

// The time tells this reload from one before it.
void notify_reloading() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  std::array<char, 96> text{};
  const int bytes = std::snprintf(text.data(), text.size(), "RELOADING=1\nMONOTONIC_USEC=%lld\n",
                                  static_cast<long long>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000);
  notify({text.data(), static_cast<std::size_t>(bytes)});
}

void notify_stopping() noexcept { notify("STOPPING=1\n"); }

}  // namespace wirecall::cli
