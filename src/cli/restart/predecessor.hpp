// Predecessor: the process that this one takes over from, as this one sees it: by SIGUSR2 the one that has started it,
// with --replace the one that serves the same endpoints. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/restart/restart_channel.hpp"
#include "transport/inherited_sockets.hpp"

namespace wirecall::cli {

/// This process has all that the other one has sent it: from when this returns it is the one that serves. Throws
/// RestartError: then it is not.
void take_over(RestartChannel& channel);

class Predecessor {
 public:
  /// The one that has started this process; or, to `replace` it, the one that is found at `path`. Null for none. Throws
  /// RestartError.
  [[nodiscard]] static std::unique_ptr<Predecessor> find(bool replace, const std::string& path);

  /// Those it listens on; once.
  [[nodiscard]] std::vector<transport::ListeningSocket> take_sockets() { return std::move(sockets_); }
  /// That by which it is found at that path; -1 where it is found at another, or not.
  [[nodiscard]] runtime::Descriptor take_restart_socket(const std::string& path);
  [[nodiscard]] std::int64_t pid() const noexcept { return pid_; }

  /// This process has come up. Returns the state of the other's broker; from now on that one stands still, for a
  /// moment. Throws RestartError.
  [[nodiscard]] std::string receive_state();
  /// A duplicate of the socket to it: over that its broker speaks once it has been taken over from.
  [[nodiscard]] runtime::Descriptor share_socket() const;
  /// As above.
  void take_over();
  /// Waits for a moment; whether that process has died, so that this one may serve in its place without all that.
  [[nodiscard]] bool has_died() const noexcept;
  /// This process does not come up, for that reason.
  void give_up(const std::string& reason) noexcept;

 private:
  Predecessor(RestartChannel channel);

  RestartChannel channel_;
  std::int64_t pid_ = 0;
  std::vector<transport::ListeningSocket> sockets_;
  std::string path_;
  runtime::Descriptor restart_socket_;
  bool has_path_ = false;
  bool has_state_ = false;
  bool settled_ = false;         // it has been told how this has ended
  bool was_gone_ = false;        // when this process looked for it
  runtime::Descriptor process_;  // readable once it has died; -1 where the system does not tell
};

}  // namespace wirecall::cli
