// ShmHello: the first message over the socket of a connection by shared memory: from the server, as soon as it has
// accepted, with the descriptor of the memory. docs/transports.md has its format.
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
  static constexpr std::uint32_t kVersion = 2;

  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t ring_bytes = 0;
};
static_assert(sizeof(ShmHello) == 16);

/// Sends it, or returns an errno. Does not wait: a new socket has room for it.
[[nodiscard]] int send_shm_hello(int socket, const ShmHello& hello, int memory) noexcept;
/// Waits for it, and the memory's descriptor, as long as the socket's SO_RCVTIMEO says. The error says what is wrong.
[[nodiscard]] std::expected<std::pair<ShmHello, runtime::Descriptor>, std::string> receive_shm_hello(int socket);

}  // namespace wirecall::transport
