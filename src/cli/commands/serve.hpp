// `wirecall serve`: a server in the foreground. What it says first is in banner.hpp.
#pragma once

#include <string>
#include <vector>

#include "cli/config/config_reloader.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/options.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::cli {

struct ServeOptions {
  bool demo = false;
  std::vector<std::string> modules = {};  ///< paths of shared libraries that add methods
  std::string fingerprint = {};           ///< of the server's certificate, for the banner; empty where it speaks no TLS
  bool insecure = false;                  ///< listens beyond this machine
  Options server;
  ConfigReloader::Load reload;            ///< the same anew, at SIGHUP; empty where that ends the process
  bool replace = false;                   ///< takes over from the server of the same endpoints, where there is one
  std::uint32_t restart_ms = 30'000;      ///< that a process which takes over has to come up
  std::vector<std::string> command = {};  ///< as this process was started
  std::string program = "wirecall";       ///< as the user called it, for lines to copy
  std::string version;
};

/// Serves until a signal ends it; returns the exit status.
int serve(const ServeOptions& options);

}  // namespace wirecall::cli
