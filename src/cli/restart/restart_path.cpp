// See restart_path.hpp.
#include "cli/restart/restart_path.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/core.h>

#include "transport/user_folder.hpp"

namespace wirecall::cli {

// FNV-1a of 64 bits: the name has to be the same in every version.
static std::uint64_t hash_of(const std::string& text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::string restart_path(std::span<const Endpoint> endpoints) {
  std::string all;
  for (const Endpoint& endpoint : endpoints) {
    const bool of_network = endpoint.kind() == EndpointKind::tcp || endpoint.kind() == EndpointKind::udp;
    if (of_network && endpoint.port() == 0) return {};
    all.append(endpoint.uri()).append("\n");
  }
  return fmt::format("{}/restart-{:016x}.sock", transport::user_folder(), hash_of(all));
}

}  // namespace wirecall::cli
