// ConfigReloader: while one lives, SIGHUP makes a server take anew the options that it can take while it runs, or
// refuses them all and says why. What has changed goes to the log, and so does what needs a restart. The options are
// read on a thread of its own, so that no disk holds up a connection.
#pragma once

#include <atomic>
#include <expected>
#include <functional>
#include <thread>

#include "wirecall/options.hpp"
#include "wirecall/server.hpp"

namespace wirecall::cli {

/// Keeps SIGHUP from ending the process: it waits for a ConfigReloader. Before any thread is made.
void block_sighup();

/// What a server takes anew, each time that it is called. One thread at a time.
class Reload {
 public:
  using Load = std::function<std::expected<Options, std::string>()>;
  /// The principals that the server is given, of those that the options have. A std::exception refuses them all.
  using Narrow = std::function<std::vector<Principal>(std::vector<Principal>)>;

  /// `in_force` are those that the server was made with. The server outlives it.
  Reload(Server& server, Options in_force, Load load, Narrow narrow = std::identity{});
  Reload(Reload&&) = delete;

  void operator()();
  /// Those in force, as the options have them.
  [[nodiscard]] const std::vector<Principal>& principals() const noexcept { return principals_; }

 private:
  void refuse(std::string_view reason) const;
  [[nodiscard]] bool tell_certificates(const LogSink& log);

  Server* server_;
  Options in_force_;
  Load load_;
  Narrow narrow_;
  std::vector<Principal> principals_;
  std::string fingerprint_;  // of the certificate in force; empty where the server speaks no TLS
};

class ConfigReloader {
 public:
  using Load = Reload::Load;

  /// As for Reload; hang-ups are held.
  ConfigReloader(Server& server, Options in_force, Load load);
  ~ConfigReloader();
  ConfigReloader(ConfigReloader&&) = delete;

 private:
  void wait();

  Reload reload_;
  std::atomic<bool> over_{false};
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace wirecall::cli
