#include "cli/config/service_manager.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "transport/user_folder.hpp"

namespace wirecall::cli {

// The descriptors that the first one passed has.
constexpr int kFirstPassed = 3;
// The name of those that the manager keeps for the next process.
constexpr std::string_view kKeptName = "wirecall";
// As many as one datagram carries.
constexpr std::size_t kDescriptorsMax = 253;

static void notify(std::string_view state, std::span<const int> descriptors = {}) noexcept {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t bytes = path != nullptr ? std::strlen(path) : 0;
  if (bytes < 2 || bytes >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) return;
  std::memcpy(address.sun_path, path, bytes);
  if (path[0] == '@') address.sun_path[0] = '\0';  // not a file
  const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return;
  iovec part{.iov_base = const_cast<char*>(state.data()), .iov_len = state.size()};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + bytes);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kDescriptorsMax * sizeof(int))> space{};
  if (!descriptors.empty()) {
    message.msg_control = space.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(control), descriptors.data(), descriptors.size_bytes());
  }
  static_cast<void>(::sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
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

void notify_main_process(std::int64_t pid) noexcept {
  std::array<char, 32> text{};
  const int bytes = std::snprintf(text.data(), text.size(), "MAINPID=%lld\n", static_cast<long long>(pid));
  notify({text.data(), static_cast<std::size_t>(bytes)});
}

bool keeps_sockets() noexcept { return std::getenv("FDSTORE") != nullptr && std::getenv("NOTIFY_SOCKET") != nullptr; }

void keep_sockets(std::span<const transport::ListeningSocket> sockets) noexcept {
  std::array<int, kDescriptorsMax> numbers{};
  std::size_t count = 0;
  for (const transport::ListeningSocket& one : sockets) {
    if (!one.passed && count < numbers.size()) numbers[count++] = one.descriptor.get();
  }
  notify("FDSTOREREMOVE=1\nFDNAME=wirecall\n");
  if (count != 0) notify("FDSTORE=1\nFDNAME=wirecall\n", std::span{numbers}.first(count));
}

// ---- sockets that are passed ----

static int option_of(int descriptor, int option) noexcept {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

static std::string uri_of_unix(const sockaddr_storage& address, socklen_t size) {
  const auto& as_unix = reinterpret_cast<const sockaddr_un&>(address);
  const std::size_t bytes = size - std::min<std::size_t>(size, offsetof(sockaddr_un, sun_path));
  const std::string path{as_unix.sun_path, ::strnlen(as_unix.sun_path, bytes)};
  if (path.empty()) return {};
  // Those of shared memory are in a folder of their own.
  const std::string folder = transport::user_folder() + '/';
  constexpr std::string_view kSuffix = ".sock";
  if (path.starts_with(folder) && path.ends_with(kSuffix))
    return "shm://" + path.substr(folder.size(), path.size() - folder.size() - kSuffix.size());
  return "unix://" + path;
}

static std::string uri_of_internet(const sockaddr_storage& address, bool datagrams) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool six = address.ss_family == AF_INET6;
  const auto& as6 = reinterpret_cast<const sockaddr_in6&>(address);
  const auto& as4 = reinterpret_cast<const sockaddr_in&>(address);
  const void* const bytes = six ? static_cast<const void*>(&as6.sin6_addr) : static_cast<const void*>(&as4.sin_addr);
  if (::inet_ntop(address.ss_family, bytes, text.data(), text.size()) == nullptr) return {};
  const std::string host = six ? '[' + std::string{text.data()} + ']' : std::string{text.data()};
  const int port = ntohs(six ? as6.sin6_port : as4.sin_port);
  return (datagrams ? "udp://" : "tcp://") + host + ':' + std::to_string(port);
}

// Of a socket that can be served.
static Endpoint endpoint_of(int descriptor, const std::string& name) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const bool bound = ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int type = option_of(descriptor, SO_TYPE);
  const bool internet = address.ss_family == AF_INET || address.ss_family == AF_INET6;
  std::string uri;
  if (bound && type == SOCK_STREAM && option_of(descriptor, SO_ACCEPTCONN) == 1) {
    uri = internet ? uri_of_internet(address, false) : address.ss_family == AF_UNIX ? uri_of_unix(address, size) : "";
  } else if (bound && type == SOCK_DGRAM && internet) {
    uri = uri_of_internet(address, true);
  }
  auto endpoint = Endpoint::parse(uri);
  if (uri.empty() || !endpoint) {
    throw std::runtime_error{
        "descriptor " + std::to_string(descriptor) + " (" + name +
        "), which the service manager has passed, is no listening socket of TCP or a path, nor one "
        "of UDP: correct its socket unit"};
  }
  return *std::move(endpoint);
}

std::vector<transport::ListeningSocket> take_passed_sockets() {
  const auto number_of = [](const char* variable) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  };
  const bool ours = number_of("LISTEN_PID") == ::getpid();
  const long count = number_of("LISTEN_FDS");
  const char* const given = std::getenv("LISTEN_FDNAMES");
  std::string names = given == nullptr ? "" : given;
  for (const char* variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(variable);
  std::vector<transport::ListeningSocket> all;
  for (int descriptor = kFirstPassed; ours && descriptor < kFirstPassed + count; ++descriptor) {
    const std::size_t end = std::min(names.find(':'), names.size());
    const std::string name = names.substr(0, end);
    names.erase(0, std::min(end + 1, names.size()));
    runtime::Descriptor owned{descriptor};
    ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    const int on = 1;
    Endpoint endpoint = endpoint_of(descriptor, name);
    // What is accepted there has it, too.
    if (endpoint.kind() == EndpointKind::tcp) ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    all.push_back({.descriptor = std::move(owned), .endpoint = std::move(endpoint), .passed = name != kKeptName});
  }
  return all;
}

void notify_stopping() noexcept { notify("STOPPING=1\n"); }

}  // namespace wirecall::cli
