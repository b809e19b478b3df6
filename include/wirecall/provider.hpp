// ProvideOptions: how a method that a client provides at a broker is to be called. A value. See docs/client.md, "At a
// broker".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "wirecall/registry.hpp"

namespace wirecall {

/// How a broker is to call a method that a client provides. What is left out, the broker decides.
struct ProvideOptions {
  /// Calls that are at this client at once, from 1; further ones wait at the broker.
  std::optional<std::uint32_t> concurrency = {};
  /// How many wait there for this client at most; beyond that a call is answered -32005.
  std::optional<std::uint32_t> queue = {};
  /// Which of several providers is asked: "least_inflight", "round_robin", "hash:<param>", "exclusive", "random",
  /// "first" or "last"; all have to name the same.
  std::string policy = {};
  /// A call may be made again at another provider where this one is lost.
  bool idempotent = false;
  /// It changes nothing.
  bool safe = false;
  std::string summary = {};
  /// The parameters' names, as of Registry::method.
  std::vector<Param> params = {};
};

}  // namespace wirecall
