// `wirecall serve`: a server in the foreground, and the banner that tells how to call it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wirecall/endpoint.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::cli {

struct ServeOptions {
  bool demo = false;
  bool insecure = false;              ///< listens beyond this machine
  std::vector<std::string> listen;    ///< URIs
  std::optional<std::uint16_t> port;  ///< one more on 127.0.0.1
  std::string program = "wirecall";   ///< as the user called it, for lines to copy
  std::string version;
};

/// Serves until a signal ends it; returns the exit status.
int serve(const ServeOptions& options);

/// Every way in, with lines to copy.
[[nodiscard]] std::string banner(const ServeOptions& options, std::span<const Endpoint> endpoints,
                                 const Registry& registry);

}  // namespace wirecall::cli
