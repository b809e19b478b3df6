// ClientCore: joins the parts of a client: each is told in its own header.
//   Driver            which thread drives the loop; the one mutex
//   CallPool          lends calls
//   OutstandingCalls  moves calls from being submitted to being delivered
//   ConnectionPool    makes connections, and sees them end
//   BrokerSession     rpc.hello, declarations, events
//   RequestWriter     writes calls on connections
//   MessageRouter     gives what comes in to whom it is for
// Its own are what one step of the driver does, in which order, and the ways to call.
// Thread: any; what the parts say of theirs holds.
#pragma once

#include "client/broker_session.hpp"
#include "client/call_pool.hpp"
#include "client/connection_pool.hpp"
#include "client/driver.hpp"
#include "client/message_router.hpp"
#include "client/outstanding_calls.hpp"
#include "client/request_writer.hpp"
#include "client/shared.hpp"
#include "runtime/backend.hpp"
#include "runtime/inbox.hpp"
#include "runtime/thread_pool.hpp"

namespace wirecall::net {

/// Of a run of small responses, so much is looked at at once: what their callers ask for next is on its way to the
/// server while the client looks at the rest, so both are busy at the same time.
inline constexpr std::size_t kClientReceiveBytes = 2048;

/// What a client stands on; the default is the system.
struct ClientSeams {
  std::unique_ptr<runtime::Backend> backend = runtime::make_epoll_backend(kClientReceiveBytes);
  DialFunction dial;        ///< by default transport::connect_to
  unsigned seed = 0;        ///< of the jitter; 0 for a random one
  bool one_thread = false;  ///< `dial` returns at once and is called on the driver's thread
};

class ClientCore final : public std::enable_shared_from_this<ClientCore>,
                         private ConnectionOwner,
                         private DriverWork,
                         private PoolUser {
 public:
  ClientCore(std::vector<Endpoint> endpoints, ClientOptions options, ClientSeams seams = {});
  ~ClientCore();
  ClientCore(ClientCore&&) = delete;

  [[nodiscard]] ClientShared& shared() noexcept { return shared_; }
  [[nodiscard]] Driver& driver() noexcept { return driver_; }
  [[nodiscard]] OutstandingCalls& calls() noexcept { return calls_; }
  [[nodiscard]] ConnectionPool& connections() noexcept { return connections_; }
  [[nodiscard]] BrokerSession& broker() noexcept { return broker_; }
  [[nodiscard]] const ClientOptions& options() const noexcept { return shared_.options; }
  /// The executor of the tasks that this client runs.
  [[nodiscard]] const std::shared_ptr<runtime::Inbox>& executor() const noexcept { return shared_.loop.inbox(); }
  [[nodiscard]] std::uint64_t responses_dropped() const { return router_.dropped(); }

  /// A call to be filled, and to be given back once it has ended.
  [[nodiscard]] ClientCall& take() { return pool_.take(); }
  void give_back(ClientCall& call) noexcept { pool_.give_back(call); }

  /// Sends the calls as one message, and blocks until all have ended.
  void call_and_wait(std::span<ClientCall* const> calls);
  /// Makes the calls, as one message; each one's `done` is called once, later. They are the core's from here on,
  /// unless it throws.
  void start(std::span<ClientCall* const> calls);
  /// Connects now, or throws ConnectionError; where something is declared, waits for the broker's answer, or throws it.
  void connect();
  /// The client is no more: ends all that has not ended, and waits for handlers that block, unless this is within a
  /// callback.
  void close() noexcept;

 private:
  // Runs handlers that block on threads, made when the first comes, and what comes of them where the loop is driven.
  // The core lasts as long as one runs.
  class BlockingHandlers final : public detail::BlockingPool {
   public:
    explicit BlockingHandlers(ClientCore& core) noexcept : core_(core) {}
    void run(Work work) override;
    [[nodiscard]] bool have_run() const noexcept { return threads_ != nullptr; }
    /// Waits for those that have begun. Once nobody drives any more.
    void stop() noexcept {
      if (threads_ != nullptr) threads_->stop();
    }

   private:
    ClientCore& core_;
    std::unique_ptr<runtime::ThreadPool> threads_;  // most clients have none
  };

  // DriverWork.
  void step(Lock& lock, std::chrono::nanoseconds wait_max, bool may_block) override;
  bool catch_up(Lock& lock) override;
  void write() noexcept override { writer_.write(); }
  [[nodiscard]] bool controls_wait() const noexcept override { return connections_.controls_wait(); }
  [[nodiscard]] BackgroundNeed background_need() const noexcept override;
  void deliver_ended(Lock& lock) override { calls_.deliver_ended(lock); }
  void end_all(Lock& lock) noexcept override;
  void say_ends(Lock& lock);
  [[nodiscard]] std::shared_ptr<void> keep_alive() override { return shared_from_this(); }
  // PoolUser.
  [[nodiscard]] bool calls_wait() const noexcept override { return calls_.queued(); }
  [[nodiscard]] bool declares() const noexcept override { return broker_.declares(); }
  void greet(ClientConnection& connection) override;
  void ended(ClientConnection& connection) noexcept override { broker_.connection_ended(connection); }
  void unreachable(std::string_view failure) noexcept override { calls_.lose_queued(failure); }
  // ConnectionOwner: without the mutex, from within a turn.
  void connection_ended(Connection& ended, CloseReason reason, int error) noexcept override;
  void connection_promoted(Connection& connection, std::unique_ptr<Connection> promoted) override;

  void turn(Lock& lock, std::chrono::nanoseconds wait_max);
  void after_turn(Lock& lock);
  /// It is of no use any more, for that reason: its calls end, or are made again.
  void lose(ClientConnection& connection, std::string gone) noexcept;

  ClientShared shared_;
  BlockingHandlers blocking_handlers_{*this};
  const bool http_;  // there is an endpoint where HTTP is spoken: servers close between calls as a matter of course
  std::chrono::nanoseconds last_used_{0};
  Driver driver_;
  CallPool pool_;
  ConnectionPool connections_;
  OutstandingCalls calls_;
  BrokerSession broker_;
  RequestWriter writer_;
  MessageRouter router_;
};

}  // namespace wirecall::net
