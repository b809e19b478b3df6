// ConnectionPool: which connections a client has, and should have: it dials, dials again, leaves a server that drains,
// and sees connections end. Which calls and declarations go over them it does not know: its user, the ClientCore, says
// what connections are wanted for, and is told when one is made and when one ends.
// All of it is the driver's, with the mutex held, but what says so.
#pragma once

#include <algorithm>
#include <functional>

#include "client/connection.hpp"
#include "client/driver.hpp"
#include "client/shared.hpp"
#include "wirecall/error.hpp"
#include "wirecall/subscription.hpp"

namespace wirecall::net {

/// What a ConnectionPool needs to know, and whom it tells. With the mutex held.
class PoolUser {
 public:
  /// Calls wait for a connection.
  [[nodiscard]] virtual bool calls_wait() const noexcept = 0;
  /// Something is declared to a broker, on the first connection.
  [[nodiscard]] virtual bool declares() const noexcept = 0;
  /// The connection is being made: says what comes first on it. When it throws, the connection is not made.
  virtual void greet(ClientConnection& connection) = 0;
  /// It has ended; its calls have not yet.
  virtual void ended(ClientConnection& connection) noexcept = 0;
  /// As many attempts as there are to be have failed: no call waits any longer.
  virtual void unreachable(std::string_view failure) noexcept = 0;

 protected:
  ~PoolUser() = default;
};

class ConnectionPool {
 public:
  using Connections = std::vector<std::unique_ptr<ClientConnection>>;

  /// `one_thread`: `dial` returns at once, and is called on the driver's thread. `seed`: of the jitter; 0 for a random
  /// one.
  ConnectionPool(ClientShared& shared, Driver& driver, PoolUser& user, MessageRouter& router, const DialFunction& dial,
                 bool one_thread, unsigned seed);
  ConnectionPool(ConnectionPool&&) = delete;

  [[nodiscard]] Connections::const_iterator begin() const noexcept { return connections_.begin(); }
  [[nodiscard]] Connections::const_iterator end() const noexcept { return connections_.end(); }
  /// On which all is declared.
  [[nodiscard]] ClientConnection& first() const noexcept { return *connections_.front(); }
  [[nodiscard]] ClientConnection& of(const Connection& session) const noexcept;
  /// The one that has least to do and takes calls; null for none.
  [[nodiscard]] ClientConnection* free_connection() const noexcept;
  [[nodiscard]] bool controls_wait() const noexcept {
    return given_up_ ||
           std::ranges::any_of(connections_, [](const auto& one) { return one->is_open() && !one->controls.empty(); });
  }

  /// Dials where a connection is wanted and due, and makes what has been dialed. `wait_max` becomes how long at most it
  /// is to be left alone. May let go of the mutex.
  void maintain(Lock& lock, std::chrono::nanoseconds& wait_max, bool may_block);
  /// Waits until there is a connection as it is wanted, trying at once; throws ConnectionError. Any thread that does
  /// not drive.
  void connect(Lock& lock);
  /// Waits to be told of connections and of answers, at least once, until what has come is `enough`. As `connect`.
  void await_news(Lock& lock, std::chrono::nanoseconds time, const std::function<bool()>& enough);
  /// Whoever waits so: there is a connection, or there is none, or an answer.
  void tell() noexcept;

  /// The connection's server has agreed to what is spoken, by `session`; or not.
  void agreed(ClientConnection& connection, std::unique_ptr<Connection> session);
  void not_agreed(ClientConnection& connection, CloseReason reason, int error);

  /// Its server takes no more calls, on none of the connections to it.
  void leave(const ClientConnection& connection) noexcept;
  /// It is of no more use, and closed when it owes nothing any more. Any thread.
  void turn_away(ClientConnection& connection) noexcept;
  /// It is not waited for any more, and is closed. Any thread.
  void give_up(ClientConnection& connection) noexcept;
  /// One is to be closed by `reap`: whether that has been asked for since the last time.
  [[nodiscard]] bool take_given_up() noexcept { return std::exchange(given_up_, false); }
  /// After `ended`, or when it is done with: the next is made, at once if this one was of use.
  void end(ClientConnection& connection, std::string_view cause) noexcept;
  /// Destroys those that are over, and ends those that are done with. Lets go of the mutex.
  void reap(Lock& lock);
  [[nodiscard]] std::string why_gone(const ClientConnection& connection, CloseReason reason, int error) const noexcept;

  /// Why there is no connection: the last attempt's failure; empty once there is one.
  [[nodiscard]] const std::string& last_failure() const noexcept { return last_failure_; }
  void set_last_failure(std::string failure) noexcept { last_failure_ = std::move(failure); }
  /// By which the server has ended a connection; of the last attempt.
  [[nodiscard]] const std::optional<Error>& refusal() const noexcept { return refusal_; }
  void set_refusal(std::optional<Error> refusal) noexcept { refusal_ = std::move(refusal); }

  /// Any thread, without the mutex.
  void on_connection(ConnectionFunction function);
  /// The server takes this client: it has answered rpc.hello, or was not told any.
  void announce(ClientConnection& connection) noexcept;
  /// Tells the user's function. Lets go of the mutex.
  void tell_news(Lock& lock) noexcept;
  [[nodiscard]] bool has_news() const noexcept { return !news_.empty(); }

 private:
  [[nodiscard]] bool any_open() const noexcept;
  [[nodiscard]] bool connected_as_wanted() const noexcept;
  [[nodiscard]] bool wanted(const ClientConnection& connection) const noexcept;
  [[nodiscard]] bool may_dial_here(const Endpoint& endpoint, std::chrono::nanoseconds wait_max) const noexcept;
  [[nodiscard]] std::string cannot_use(const Endpoint& endpoint) const;
  [[nodiscard]] std::optional<Dialer::Result> dial(Lock& lock, ClientConnection& connection,
                                                   std::chrono::nanoseconds& wait_max, bool may_block);
  void connected(ClientConnection& connection, transport::PendingConnection pending);
  void not_connected(ClientConnection& connection, std::string failure);
  [[nodiscard]] std::unique_ptr<MessageConnection> make_session(ClientConnection& connection,
                                                                std::unique_ptr<transport::ByteStream> stream,
                                                                std::unique_ptr<framing::Framing> framing);
  void agree(ClientConnection& connection, std::unique_ptr<transport::ByteStream> stream);
  void opened(ClientConnection& connection);
  [[nodiscard]] std::string cause_of(const ClientConnection& connection, CloseReason reason, int error) const;
  void note(bool connected, const ClientConnection& connection, std::string_view cause) noexcept;

  ClientShared& shared_;
  Driver& driver_;
  PoolUser& user_;
  const bool one_thread_;
  const bool by_proxy_;  // some of the endpoints
  Connections connections_;
  std::vector<Waiting*> awaiting_news_;
  std::string last_failure_;
  std::optional<Error> refusal_;
  bool given_up_ = false;
  std::shared_ptr<const ConnectionFunction> on_connection_;
  std::vector<ConnectionEvent> news_;  // that have not been told
};

/// What is offered to a server that speaks HTTP alone would wait for ever. Throws std::logic_error.
void require_callable(const std::vector<Endpoint>& endpoints, std::string_view what);

}  // namespace wirecall::net
