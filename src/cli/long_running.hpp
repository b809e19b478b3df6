// LongRunning: a command that runs until a signal ends it, until it has done what it was for, or until it is ended by
// what makes going on pointless. It has the client, which connects again by itself.
#pragma once

#include <functional>
#include <mutex>
#include <set>

#include "cli/interrupt.hpp"
#include "cli/target.hpp"
#include "wirecall/client.hpp"

namespace wirecall::cli {

class LongRunning {
 public:
  /// Throws std::invalid_argument for what names no endpoint.
  explicit LongRunning(const Target& target);
  LongRunning(LongRunning&&) = delete;

  [[nodiscard]] Client& client() noexcept { return client_; }

  /// Ends `stay` with that exit status; the first one holds. Any thread.
  void end(int status);

  /// Connects, tells the user `what` is done once the broker has accepted all, and stays; at the end calls `leave`.
  /// Returns the exit status.
  [[nodiscard]] int stay(const std::string& what, const std::function<void()>& leave = [] {});
  /// In `leave`: the client provides the method no more. Those calls of it that have been sent here by then have come
  /// when this returns; they are to be answered before the connection ends.
  void unregister(const std::string& method);

 private:
  [[nodiscard]] std::optional<int> status() const;
  void tell_connection(const ConnectionEvent& news);
  void tell_refused(std::string_view name, const Error& error);
  void answered_again(const std::string& endpoint);
  void tell_accepted_again();

  std::string what_;
  mutable std::mutex mutex_;
  std::optional<int> status_;
  const Interrupt* interrupt_ = nullptr;  ///< while it is waited for
  std::string again_;                     ///< the endpoint that has answered after a reconnection; empty for none
  std::set<std::string> refused_;         ///< what has been told since the broker last accepted all
  Client client_;                         ///< first to go: its callbacks use the rest
};

}  // namespace wirecall::cli
