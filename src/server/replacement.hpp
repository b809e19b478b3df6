// Replacement: how one process takes over from another that serves the same endpoints. Of the new one it gives the
// server what it has been given; of the old one it shares the sockets, and has the server serve only those who are
// there already. How the two processes talk is not its concern. Refers to a server, which outlives it.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "transport/inherited_sockets.hpp"
#include "wirecall/listeners.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {

class Replacement {
 public:
  explicit Replacement(Server& server) noexcept : server_(&server) {}

  // The new one, on the thread that makes the server.

  /// Server::listen takes its sockets from these, as far as they are bound where it listens.
  void inherit(transport::InheritedSockets sockets) noexcept;
  /// Those that it has not taken.
  [[nodiscard]] const transport::InheritedSockets& left() const noexcept;
  void close_left() noexcept;
  /// Before Server::run: duplicates of all sockets that the server listens on. Throws as `share` below.
  [[nodiscard]] std::vector<transport::ListeningSocket> share() const;
  /// Before Server::run, once nobody else accepts: those that it has opened where others listen already listen as well.
  /// Whoever connected there before would be lost with a process that does not come to serve.
  void begin_to_listen() noexcept;
  /// Before Server::run, while the old one stands still: opens what only one of them may have open, as the broker's
  /// durable store. Throws std::runtime_error where that cannot be.
  void open_store();
  /// Before Server::run: a broker knows what the old one's has said (`state`), and asks that over `link`, a stream
  /// socket, for those who provide methods there. Throws std::invalid_argument for a state that is none.
  void take_over(std::string_view state, runtime::Descriptor link);
  /// Likewise, once the old one serves no new connection any more: the files of the sockets are the server's.
  void own_files();
  /// Likewise: they stay where they are when the server ends, since somebody else keeps its sockets.
  void keep_files() noexcept;

  // The same of several processes, which share what one of them has opened; each of these is the process that has.

  /// As Listeners, with the sockets that are bound there already; where some are missing, they listen with the server
  /// that serves them. Throws as that does.
  [[nodiscard]] static Listeners listen_together(std::string_view uri, std::size_t count,
                                                 transport::InheritedSockets& sockets);
  /// Duplicates of all of its sockets. Throws std::system_error.
  [[nodiscard]] static std::vector<transport::ListeningSocket> share(const Listeners& listeners);
  /// The file goes with the object; or stays, for a process that has taken over.
  static void own_file(Listeners& listeners);
  static void keep_file(Listeners& listeners) noexcept;

  // The old one, while it runs, on a thread that is none of the server's.

  using Seconds = std::chrono::seconds;
  /// Duplicates of all sockets that the server listens on. Throws std::runtime_error where the server ends, does not
  /// answer in time, or an endpoint cannot be shared, and std::system_error.
  [[nodiscard]] std::vector<transport::ListeningSocket> share(Seconds in_time) const;
  /// Told the state of the broker, empty without one. Where it returns true, `link` is a socket to the new process.
  using Commit = std::move_only_function<bool(const std::string& state, runtime::Descriptor& link)>;
  /// Lets what a broker has sent out of its durable store be answered, for a second at most. Then calls `commit` on the
  /// first loop's thread between two turns of it. Where that returns true, the server accepts
  /// no further connection, asks those that it has to leave, serves them for Options::drain_ms at most, and then
  /// drains and ends as by Server::stop. Returns what `commit` has returned; false where the server ends, or has not
  /// called it in time: then it is not called any more. `commit` must not throw.
  [[nodiscard]] bool hand_over(Commit commit, Seconds in_time) const;

 private:
  void settle() const;

  Server* server_;
};

}  // namespace wirecall::net
