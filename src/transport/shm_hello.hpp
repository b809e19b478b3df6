// ShmHello: the one message that is sent over the socket by which two processes meet for a connection by shared memory:
// from the server, as soon as it has accepted. With it come three descriptors: the memory, the client's bell, and the
// server's. docs/transports.md has its format.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <span>
#include <string>

#include "runtime/descriptor.hpp"

namespace wirecall::transport {

struct ShmHello {
  static constexpr std::array<char, 8> kMagic{'w', 'i', 'r', 'e', 's', 'h', 'm', '\0'};
  static constexpr std::uint32_t kVersion = 1;

  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t ring_bytes = 0;
};
static_assert(sizeof(ShmHello) == 16);

/// In the order in which they are sent.
struct ShmDescriptors {
  runtime::Descriptor memory;
  runtime::Descriptor client_bell;
  runtime::Descriptor server_bell;
};

/// Sends it, or returns an errno. Does not wait: a new socket has room for it.
[[nodiscard]] int send_shm_hello(int socket, const ShmHello& hello, const ShmDescriptors& descriptors) noexcept;
/// Waits for it as long as the socket's SO_RCVTIMEO says. The error says what is wrong.
[[nodiscard]] std::expected<std::pair<ShmHello, ShmDescriptors>, std::string> receive_shm_hello(int socket);

}  // namespace wirecall::transport
