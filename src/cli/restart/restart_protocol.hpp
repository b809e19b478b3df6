// What the two processes of a takeover say (restart_channel.hpp), in this order; each is one message, most a struct as
// JSON.
//   new   RestartHello      who it is
//   old   RestartSockets    with the descriptors
//   new   RestartReady      it has come up, and would serve; it accepts nothing yet
//   old   the broker's state (rpc::Broker::hand_over), no JSON; it stands still until the next comes
//   new   RestartPrepared   it has all that it needs, the durable store among it, which the old one has let go
//   old   RestartGo         it serves nobody new any more; the other one serves from here on
// Either says `error` at any of these points instead, or ends. The old one goes on as before, unless it has said the
// last; the new one serves only if it has heard that, or where the old one has died after the second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace wirecall::cli {

/// Of these messages. Another one is refused by both.
inline constexpr std::uint32_t kRestartVersion = 1;

struct RestartHello {
  std::uint32_t restart = 0;  ///< kRestartVersion
  std::int64_t pid = 0;
};

struct RestartSockets {
  std::uint32_t restart = 0;
  std::int64_t pid = 0;
  std::vector<std::string> uris;        ///< of the descriptors, in their order, with actual ports
  std::vector<std::uint32_t> passed{};  ///< those of them, by index, that are the service manager's own
  std::string path;  ///< by which --replace finds the server, whose descriptor is the last; empty for none
  std::string error;
};

struct RestartReady {
  std::string error;
  bool has_path = false;  ///< --replace finds it there as well
};

struct RestartPrepared {
  std::string error;
  bool prepared = false;
};

struct RestartGo {
  bool go = false;
};

/// The most time that each of the short steps may take.
inline constexpr std::chrono::milliseconds kRestartStep{5000};
/// That in which the old process stands still.
inline constexpr std::chrono::milliseconds kRestartCommit{1000};
/// The same, while the new one opens the durable store: it reads how many jobs there are of each method and principal.
inline constexpr std::chrono::milliseconds kRestartOpen{5000};
/// The most bytes that a message may have, but for the state of the broker.
inline constexpr std::uint64_t kRestartBytesMax = std::uint64_t{1} << 20;
/// Of the one that has the sockets; the others have no descriptors.
inline constexpr std::uint32_t kRestartDescriptorsMax = 4096;
inline constexpr std::uint64_t kRestartStateBytesMax = std::uint64_t{1} << 32;
/// The environment variable that tells a process the descriptor of its channel.
inline constexpr const char* kRestartVariable = "WIRECALL_RESTART";

}  // namespace wirecall::cli
