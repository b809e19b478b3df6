// Successor: while one lives, another process may take over from this server: at SIGUSR2 one that it starts by the same
// command line, or one that was started with --replace and comes by itself. The other gets all sockets and comes up;
// then this one accepts nothing any more and ends once those it has have gone (net::Replacement). Where the other does
// not come up, this one goes on as before and logs why. All of it is done on a thread of its own, but for the moment
// in which the one stops and the other begins. docs/operations.md "Restarts without a gap".
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "cli/restart/restart_channel.hpp"
#include "server/replacement.hpp"
#include "transport/endpoint_socket.hpp"
#include "wirecall/log.hpp"
#include "wirecall/server.hpp"

namespace wirecall::cli {

/// Keeps SIGUSR2 from ending the process: it waits for a Successor. Before any thread is made.
void block_sigusr2();

class Successor {
 public:
  struct Settings {
    std::vector<std::string> command;  ///< as this process was started; empty: SIGUSR2 is refused
    std::string path;                  ///< by which --replace finds it (restart_path.hpp); empty for none
    runtime::Descriptor listening = runtime::Descriptor{};  ///< listens there already; none for one of its own
    std::chrono::milliseconds start_time{30000};            ///< that another process has to come up
    LogSink log;
  };

  /// The server outlives it; SIGUSR2 is held. It never throws for the path: --replace finds nobody then, which the log
  /// says.
  Successor(Server& server, Settings settings);
  ~Successor();
  Successor(Successor&&) = delete;

  /// Another process serves the endpoints. Any thread.
  [[nodiscard]] bool has_taken_over() const noexcept { return taken_over_.load(); }

 private:
  struct Started;

  void wait();
  void start_one();
  void meet_one();
  void tell_replaced();
  void hand_over(runtime::Descriptor socket, Started* child);

  net::Replacement replacement_;
  Settings settings_;
  runtime::Descriptor interrupt_;  // readable once this object goes
  runtime::Descriptor signals_;
  runtime::Descriptor listening_;
  transport::SocketFile file_;
  std::atomic<bool> taken_over_{false};
  std::int64_t replaced_by_ = 0;  // the process that has
  std::jthread thread_;           // last: it uses the rest
};

}  // namespace wirecall::cli
