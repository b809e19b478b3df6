// OutstandingCalls: the calls of a client that have been submitted and not been delivered: each waits in the queue, or
// for its next attempt, or for its answer, or to be delivered (CallState), and is moved on here until it ends, once.
// Nothing here fails for want of memory: a call that has been submitted comes to its end.
//
// Deadlines are neither timers of the loop nor in a wheel. When the earliest of them is over, `expire` looks at all
// asynchronous calls (one that blocks keeps its own time). A timer would be started and stopped for each call, which is
// 9 ns in the loop's heap (build/bench/bench_timers), and only by the thread that drives, while calls are submitted on
// any; to keep the earliest deadline is one comparison. What it costs instead is a look at each call, 2 to 10 ns, when
// one of them times out, which is rare, and at most one part in kExpiryShare of the time.
//
// With the mutex held, and the driver's, but what says so.
#pragma once

#include "client/call.hpp"
#include "client/call_pool.hpp"
#include "client/connection_pool.hpp"
#include "client/driver.hpp"
#include "client/shared.hpp"
#include "wirecall/error.hpp"

namespace wirecall::net {

class OutstandingCalls {
 public:
  OutstandingCalls(ClientShared& shared, Driver& driver, CallPool& pool, ConnectionPool& connections)
      : shared_(shared), driver_(driver), pool_(pool), connections_(connections) {}
  OutstandingCalls(OutstandingCalls&&) = delete;

  // ---- any thread ----

  /// The calls join the queue as one message, or have ended.
  void submit(std::span<ClientCall* const> calls);
  /// The call is cancelled, if it is still the one of that generation and has not ended. Without the mutex.
  bool cancel(ClientCall& call, std::uint64_t generation) noexcept;
  /// As cancel, but also before the call is submitted. Without the mutex.
  void stop_requested(ClientCall& call, std::uint64_t generation) noexcept;
  /// Nobody waits for it any more: it is taken from where it is, and the server is told where it may know of it.
  void withdraw(ClientCall& call) noexcept;
  /// Its time is over.
  void time_out(ClientCall& call) noexcept;
  /// Its caller has cancelled it.
  void stop(ClientCall& call) noexcept;
  /// It is asynchronous, and its deadline is now `due`.
  void expire_at(std::chrono::nanoseconds due) noexcept;
  /// It has ended and is not to be delivered.
  void drop_ended(const ClientCall& call) noexcept { ended_.remove(call); }

  // ---- ends: each is told whoever waits, now or, for something asynchronous, by deliver_ended ----

  void finish(ClientCall& call);
  void fail(ClientCall& call, Error error, detail::ErrorClass thrown = detail::ErrorClass::error) noexcept;
  /// With ConnectionError.
  void lose(ClientCall& call, std::string_view why, bool sent) noexcept;
  void lose_queued(std::string_view why) noexcept;
  /// The client is no more.
  void lose_all() noexcept;
  /// The server refuses the connection: so all of its calls, and those in the queue.
  void fail_all(ClientConnection& connection, const Error& why) noexcept;
  /// Ends the notifications that the system has taken.
  void finish_taken(ClientConnection& connection);
  /// The connection has ended: what the system has seen any byte of may have been delivered, and is never sent again.
  /// The rest is queued again, in its order. `taken`: how many bytes of output the system has taken.
  void connection_ended(ClientConnection& connection, std::uint64_t taken, std::string_view why) noexcept;
  /// Lets go of the mutex.
  void deliver_ended(Lock& lock);
  /// Without the mutex: the answer of an asynchronous call, which is idle.
  void deliver(ClientCall& call, detail::Answer& answer) noexcept;
  /// As cancel, but `done` is not called any more. Without the mutex.
  void forget(ClientCall& call, std::uint64_t generation) noexcept;
  [[nodiscard]] bool any_ended() const noexcept { return !ended_.empty(); }

  // ---- time ----

  /// Ends what has timed out; `wait_max` becomes how long nothing will.
  void expire(std::chrono::nanoseconds& wait_max) noexcept {
    if (earliest_ != std::chrono::nanoseconds::max()) expire_due(wait_max);
  }
  /// Queues what has been delayed for long enough; `wait_max` likewise.
  void release_delayed(std::chrono::nanoseconds& wait_max) noexcept {
    if (!delayed_.empty()) [[unlikely]]
      release_due(wait_max);
  }

  // ---- sending ----

  [[nodiscard]] bool queued() const noexcept { return !queue_.empty(); }
  /// The next call to be sent, of a batch the first.
  [[nodiscard]] ClientCall& pop_queued() noexcept { return queue_.pop_front(); }
  /// Gives it the id by which it is found; throws std::bad_alloc.
  void insert(ClientCall& call) { table_.insert(call); }
  /// It and those that go with it cannot be sent, for that limit or, where it is empty, for want of memory.
  void not_sent(ClientCall& first, std::string_view limit) noexcept;

  // ---- answers ----

  [[nodiscard]] ClientCall* find(std::uint64_t id) const noexcept { return table_.find(id); }
  /// A call that was sent, and is not any more.
  void take_out(ClientCall& call) noexcept;
  ClientCall& take_first(ClientConnection& connection) noexcept;
  /// Refused by `error`: whether the call is made once more, since it was not begun, as the server says, and has time.
  bool retry(ClientCall& call, const Error& error);
  /// Refused because nobody provides its method: whether it waits for a provider until the server has said more.
  bool wait_for_provider(ClientCall& call, const Error& error);
  /// What has become of the calls that wait so: `undelivered` says that the server has itself refused them.
  void settle_missing(const ClientConnection& connection, bool undelivered) noexcept;

 private:
  void expire_due(std::chrono::nanoseconds& wait_max) noexcept;
  void release_due(std::chrono::nanoseconds& wait_max) noexcept;
  void withdraw_queued(ClientCall& call) noexcept;
  void withdraw_sent(ClientCall& call) noexcept;
  void queue_again(ClientCall& call) noexcept;
  void delay(ClientCall& call, std::chrono::nanoseconds until) noexcept;
  void fail_missing(ClientCall& call) noexcept;

  ClientShared& shared_;
  Driver& driver_;
  CallPool& pool_;
  ConnectionPool& connections_;
  CallList queue_;  // of a batch the first
  CallList delayed_;
  CallList ended_;  // asynchronous ones, not from an answer
  CallTable table_;
  std::chrono::nanoseconds earliest_ = std::chrono::nanoseconds::max();  // deadline of an asynchronous call
};

}  // namespace wirecall::net
