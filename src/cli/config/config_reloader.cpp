#include "cli/config/config_reloader.hpp"

#include <algorithm>
#include <pthread.h>
#include <signal.h>

#include "cli/config/service_manager.hpp"
#include "options/rows.hpp"
#include "server/principals.hpp"

namespace wirecall::cli {

using net::OptionRow;

static sigset_t hang_ups() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGHUP);
  return set;
}

static std::string value_of(const OptionRow& row, Options& options) {
  return net::json_of(row, row.in_server(options, row));
}

void block_sighup() {
  const sigset_t set = hang_ups();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

ConfigReloader::ConfigReloader(Server& server, Options in_force, Load load)
    : reload_(server, std::move(in_force), std::move(load)), thread_([this] { wait(); }) {}

ConfigReloader::~ConfigReloader() {
  over_.store(true);
  pthread_kill(thread_.native_handle(), SIGHUP);
}

void ConfigReloader::wait() {
  const sigset_t set = hang_ups();
  for (;;) {
    int number = 0;
    if (sigwait(&set, &number) != 0 || over_.load()) return;
    reload_();
  }
}

Reload::Reload(Server& server, Options in_force, Load load, Narrow narrow)
    : server_(&server),
      in_force_(std::move(in_force)),
      load_(std::move(load)),
      narrow_(std::move(narrow)),
      principals_(principals_of(in_force_)),
      fingerprint_(server.certificate_fingerprint()) {}

void Reload::refuse(std::string_view reason) const {
  in_force_.log(LogLevel::error, "the configuration is refused as a whole, and all stays as it is",
                {{"reason", reason}});
  notify_ready();
}

// Whether it is another one that clients are shown; of several, the first.
bool Reload::tell_certificates(const LogSink& log) {
  const std::string now = server_->certificate_fingerprint();
  if (now.empty()) return false;
  const std::string is = "sha256:" + now;
  if (in_force_.tls.self_signed) {
    log(LogLevel::info, "the certificate stays, since the server has made it itself", {{"fingerprint", is}});
    return false;
  }
  std::string files;
  for (const std::string& file : in_force_.tls.cert) files.append(files.empty() ? "" : ",").append(file);
  const std::string was = "sha256:" + std::exchange(fingerprint_, now);
  log(LogLevel::info, "the certificates are read anew", {{"files", files}, {"was", was}, {"fingerprint", is}});
  return was != is;
}

void Reload::operator()() {
  notify_reloading();
  auto loaded = load_();
  if (!loaded) return refuse(loaded.error());
  // Another file needs a restart, as the options below; until then the principals in force stay.
  const bool same_file = loaded->principals_file == in_force_.principals_file;
  std::optional<std::size_t> principals;
  try {
    std::vector<Principal> known = principals_;
    if (same_file && !in_force_.principals_file.empty()) {
      known = principals_of(in_force_);
      net::warn_of_open_principals_file(in_force_);
    }
    const bool are_others = known != principals_;
    std::vector<Principal> narrowed = are_others ? narrow_(known) : std::vector<Principal>{};
    server_->reload_certificates();  // the last that may be refused
    if (are_others) {
      principals = known.size();
      server_->set_principals(std::move(narrowed));
      principals_ = std::move(known);
    }
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
  // Whoever asks for another level sees that, and what else has changed, unless neither level lets it through.
  const LogSink log = in_force_.log.at_least(std::min(in_force_.log_level, loaded->log_level));
  std::int64_t taken = tell_certificates(log) ? 1 : 0;
  std::int64_t need_restart = 0;
  if (principals) {
    ++taken;
    log(LogLevel::info, "the principals are others, or may do other things",
        {{"principals", static_cast<std::int64_t>(*principals)}});
  }
  for (const OptionRow& row : net::option_rows()) {
    if (row.in_server == nullptr) continue;
    const std::string was = value_of(row, in_force_);
    const std::string is = value_of(row, *loaded);
    if (was == is) continue;
    ++(row.live ? taken : need_restart);
    if (row.live) {
      log(LogLevel::info, "an option has another value", {{"option", row.name}, {"was", was}, {"is", is}});
    } else {
      log(LogLevel::warning, "an option is not what the configuration says: that needs a restart",
          {{"option", row.name}, {"is", was}, {"configured", is}});
    }
  }
  in_force_.limits = loaded->limits;
  in_force_.log_level = loaded->log_level;
  server_->set_log_level(loaded->log_level);
  server_->set_limits(loaded->limits, [log, taken, need_restart] {
    log(LogLevel::info, "the configuration is in force", {{"changed", taken}, {"need_restart", need_restart}});
    notify_ready();
  });
}

}  // namespace wirecall::cli
