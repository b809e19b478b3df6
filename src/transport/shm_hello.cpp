// See shm_hello.hpp.
#include "transport/shm_hello.hpp"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <vector>

namespace wirecall::transport {

namespace {

// A message with room for the descriptor.
struct Message {
  explicit Message(std::span<char> bytes) : part{.iov_base = bytes.data(), .iov_len = bytes.size()} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  Message(Message&&) = delete;

  iovec part;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
};

}  // namespace

int send_shm_hello(int socket, const ShmHello& hello, int memory) noexcept {
  ShmHello copy = hello;
  Message message{{reinterpret_cast<char*>(&copy), sizeof copy}};
  cmsghdr* const control = CMSG_FIRSTHDR(&message.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof memory);
  std::memcpy(CMSG_DATA(control), &memory, sizeof memory);
  const ssize_t taken = ::sendmsg(socket, &message.header, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (taken < 0) return errno;
  return taken == sizeof copy ? 0 : EMSGSIZE;
}

// Whatever comes is owned first, so that nothing of a message that is refused stays open.
static std::vector<runtime::Descriptor> descriptors_of(msghdr& header) {
  std::vector<runtime::Descriptor> received;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(control) + i * sizeof descriptor, sizeof descriptor);
      received.emplace_back(descriptor);
    }
  }
  return received;
}

std::expected<std::pair<ShmHello, runtime::Descriptor>, std::string> receive_shm_hello(int socket) {
  ShmHello hello;
  Message message{{reinterpret_cast<char*>(&hello), sizeof hello}};
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC | MSG_WAITALL);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::unexpected{"it does not answer in time"};
  if (got < 0) return std::unexpected{std::string{std::strerror(errno)}};
  std::vector<runtime::Descriptor> received = descriptors_of(message.header);
  if (got == 0) return std::unexpected{"it has closed the connection"};
  if (got != sizeof hello || hello.magic != ShmHello::kMagic)
    return std::unexpected{"what listens there does not speak of shared memory"};
  if (hello.version != ShmHello::kVersion)
    return std::unexpected{"it speaks version " + std::to_string(hello.version) + " of this, and this is version " +
                           std::to_string(ShmHello::kVersion)};
  if (received.size() != 1 || (message.header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return std::unexpected{"it has not sent one descriptor"};
  return std::pair{hello, std::move(received.front())};
}

}  // namespace wirecall::transport
