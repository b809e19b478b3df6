// Heartbeat: what each node tells all others each second, as JSON: that it is there, and how much it has to do.
// Pure. Implements docs/cluster.md "Heartbeats".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wirecall::cluster {

struct Heartbeat {
  std::string node;
  std::uint64_t epoch = 0;    ///< another one each time that a node begins
  std::uint32_t version = 0;  ///< of the protocol
  std::uint32_t load = 0;     ///< calls in progress
  bool draining = false;
  std::optional<std::uint64_t> retained = {};  ///< the digest of what it retains, once that is settled
};

[[nodiscard]] std::string write_heartbeat(const Heartbeat& heartbeat);
/// Nothing for a text that is none. Members of other names are passed over: a later version may have more.
[[nodiscard]] std::optional<Heartbeat> read_heartbeat(std::string_view json);

}  // namespace wirecall::cluster
