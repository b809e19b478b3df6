// Dialer: how one connection of a client comes to be: which of several endpoints is tried, how long after a failure the
// next attempt is made, and the attempt itself, on the caller's thread or on one of its own. It makes connections, not
// sessions. Owned by a ClientConnection and guarded by the client's mutex.
#pragma once

#include <functional>
#include <mutex>
#include <random>
#include <span>

#include "transport/http_proxy.hpp"
#include "transport/pending_connection.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/options.hpp"

namespace wirecall::net {

/// A connection to the endpoint. Throws std::runtime_error with the cause and a fix. Any thread.
using DialFunction = std::function<transport::PendingConnection(const Endpoint&, std::chrono::milliseconds timeout)>;

/// By which proxy the endpoint is reached, if by any (ClientOptions::proxy). Throws std::invalid_argument.
[[nodiscard]] std::optional<transport::HttpProxy> proxy_for(const Endpoint& endpoint, const ClientOptions& options);
/// How these endpoints, and no others, are connected to: by TLS where they are encrypted, and through proxies, as the
/// options say. Throws std::invalid_argument for files that cannot be used, and for what is no proxy.
[[nodiscard]] DialFunction dial_function(std::span<const Endpoint> endpoints, const ClientOptions& options);

class Dialer {
 public:
  struct Result {
    transport::PendingConnection connection{};
    std::string failure;  ///< why there is none
  };
  /// An attempt keeps its time by itself but for resolving a name, and is given so much more to say what has failed.
  static constexpr std::chrono::milliseconds kGrace{100};

  Dialer(const std::vector<Endpoint>& endpoints, const ClientOptions& options, DialFunction dial, unsigned seed);
  Dialer(Dialer&&) = delete;
  /// Leaves an attempt that is under way to itself: its connection is closed when it comes.
  ~Dialer();

  /// The endpoint that is tried next; while the connection that was made there lasts, where it leads.
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return (*endpoints_)[at_]; }
  /// Before this time nothing is tried.
  [[nodiscard]] std::chrono::nanoseconds due() const noexcept { return due_; }
  /// Forgets what has failed: the next attempt is made at once.
  void try_now() noexcept {
    failures_ = 0;
    due_ = std::chrono::nanoseconds{0};
  }
  /// How often every endpoint has been tried in vain since the last connection.
  [[nodiscard]] std::size_t rounds() const noexcept { return failures_ / endpoints_->size(); }

  /// Tries, and blocks for at most `timeout`. Touches nothing but the function, so no lock is needed.
  [[nodiscard]] static Result attempt(const DialFunction& dial, const Endpoint& endpoint,
                                      std::chrono::milliseconds timeout);
  [[nodiscard]] const DialFunction& function() const noexcept { return dial_; }
  /// Tries on a thread of its own; `wake` is called there when there is a result.
  void start(std::function<void()> wake, std::chrono::nanoseconds now);
  /// When an attempt that has not ended by itself is given up.
  [[nodiscard]] std::chrono::nanoseconds given_up_at() const noexcept { return given_up_at_; }
  /// The result of `start`, once it is there, or that it is given up.
  [[nodiscard]] std::optional<Result> poll(std::chrono::nanoseconds now);

  /// The attempt that ended at `now` has failed: the next endpoint is tried, after all of them not before a pause.
  void failed(std::chrono::nanoseconds now);
  /// The connection that was made has ended. `useful`: it had served, so that there is no reason to wait.
  void ended(std::chrono::nanoseconds now, bool useful);
  /// As ended, by a connection whose server is leaving: the next one is made to another endpoint, if there is one,
  /// where it had not served after the shortest pause.
  void left(std::chrono::nanoseconds now, bool useful);

 private:
  struct Attempt;

  void abandon();
  [[nodiscard]] std::chrono::nanoseconds pause_after(std::size_t rounds);
  void turn_away() noexcept { at_ = (at_ + 1) % endpoints_->size(); }

  const std::vector<Endpoint>* endpoints_;
  const ClientOptions* options_;
  DialFunction dial_;
  std::minstd_rand random_;
  std::size_t at_ = 0;
  std::size_t failures_ = 0;  // in a row
  std::chrono::nanoseconds due_{0};
  std::chrono::nanoseconds given_up_at_{0};
  std::shared_ptr<Attempt> attempt_;
};

}  // namespace wirecall::net
