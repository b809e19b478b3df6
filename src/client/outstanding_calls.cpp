// See outstanding_calls.hpp. Here are the ways in and the ends; being made once more is in retry.cpp.
#include "client/outstanding_calls.hpp"

#include "client/stream.hpp"
#include "message/cancel_request.hpp"
#include "message/own_error.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {

using detail::Answer;
using detail::ErrorClass;
using std::chrono::nanoseconds;

// From this timeout on, what the clock said at the system's last tick is exact enough to reckon from.
constexpr std::chrono::milliseconds kLongTimeout{1000};
// Looking which calls are over takes no more than one part in so many of the time.
constexpr int kExpiryShare = 8;
constexpr std::string_view kDestroyed = "the client was destroyed";

static Error cancelled(bool sent) {
  return message::make(
      {.code = ErrorCode::cancelled, .reason = "the call was given up", .delivered = sent ? "maybe" : "no"});
}

void StopCall::operator()() const noexcept { calls->stop_requested(*call, generation); }

// ---- submitting and withdrawing ----

void OutstandingCalls::submit(std::span<ClientCall* const> calls) {
  bool long_timeouts = true;
  for (ClientCall* call : calls) {
    long_timeouts &= call->timeout >= kLongTimeout;
    if (call->stop_asked && !call->error) [[unlikely]]
      call->error = cancelled(false);
  }
  const nanoseconds now = long_timeouts ? shared_.loop.recently() : shared_.loop.now();
  ClientCall* last = nullptr;
  for (ClientCall* call : calls) {
    call->begun = now;
    call->deadline = now + call->timeout;
    call->enter(CallState::queued);
    call->retried = false;
    call->attempts = 0;
    call->lost_provider.reset();
    call->missing.reset();
    call->response.clear();
    call->connection = nullptr;
    call->next_in_batch = nullptr;
    call->behind_another = false;
    call->id = 0;
    call->result_at = call->result_size = 0;
    ++call->generation;
    if (call->asynchronous) {
      driver_.asynchronous(1);
      earliest_ = std::min(earliest_, call->deadline);
    }
    if (call->error) [[unlikely]] {
      finish(*call);
      continue;
    }
    if (driver_.closing()) [[unlikely]] {
      lose(*call, kDestroyed, false);
      continue;
    }
    if (last == nullptr) {
      queue_.push_back(*call);
    } else {
      last->next_in_batch = call;
      call->behind_another = true;
    }
    last = call;
  }
}

void OutstandingCalls::withdraw(ClientCall& call) noexcept {
  switch (call.state) {
    case CallState::queued: withdraw_queued(call); break;
    case CallState::delayed: delayed_.remove(call); break;
    case CallState::sent: withdraw_sent(call); break;
    case CallState::idle:
    case CallState::ended: return;
  }
  call.enter(CallState::idle);
}

void OutstandingCalls::withdraw_queued(ClientCall& call) noexcept {
  ClientCall* const next = std::exchange(call.next_in_batch, nullptr);
  if (!call.behind_another) {
    if (next == nullptr) return queue_.remove(call);
    queue_.replace(call, *next);
    next->behind_another = false;
    return;
  }
  for (ClientCall* before : queue_) {
    while (before->next_in_batch != nullptr && before->next_in_batch != &call) before = before->next_in_batch;
    if (before->next_in_batch == nullptr) continue;
    before->next_in_batch = next;
    return;
  }
}

void OutstandingCalls::withdraw_sent(ClientCall& call) noexcept {
  ClientConnection& connection = *call.connection;
  if (connection.http != nullptr) {
    // HTTP has one way to say that a response is not wanted any more, which is to close the connection. As long as
    // another call of the same POST waits, it has to stay.
    take_out(call);
    if (connection.is_open() && !connection.awaits()) connections_.give_up(connection);
    return;
  }
  // The other end of datagrams knows of no former ones.
  if (call.notification || connection.by_datagrams()) return take_out(call);
  // Also that it is given up may be refused, which is said next. A notification is one of them already.
  connection.unattributed.add(2, call.in_batch ? UnattributedErrors::kInBatch : call.position);
  take_out(call);
  try {
    connection.controls.push_back(message::cancel_request(call.id_json()));
  } catch (const std::bad_alloc&) {
    // Without memory to tell the server, its answer comes and is dropped.
  }
}

bool OutstandingCalls::cancel(ClientCall& call, std::uint64_t generation) noexcept {
  const Lock lock = driver_.lock();
  if (call.generation != generation || call.has_ended()) return false;
  stop(call);
  driver_.wake_driver();
  return true;
}

void OutstandingCalls::stop_requested(ClientCall& call, std::uint64_t generation) noexcept {
  if (cancel(call, generation)) return;
  const Lock lock = driver_.lock();
  if (call.generation + 1 == generation) call.stop_asked = true;  // before it was submitted
}

void OutstandingCalls::forget(ClientCall& call, std::uint64_t generation) noexcept {
  {
    Lock lock = driver_.lock();
    if (call.generation != generation || call.state == CallState::idle) return;
    if (call.state == CallState::ended) {
      // Its answer is on its way to a task that does not want it any more.
      ended_.remove(call);
      call.enter(CallState::idle);
    } else {
      withdraw(call);
    }
    driver_.asynchronous_over();
    driver_.send_controls(lock);
  }
  pool_.give_back(call);
}

// ---- ends ----

void OutstandingCalls::finish(ClientCall& call) {
  if (call.stream != nullptr) [[unlikely]]
    call.stream->call_ended();
  call.enter(CallState::ended);
  if (call.asynchronous) {
    ended_.push_back(call);
  } else {
    driver_.tell(*call.waiting);
  }
}

// To end with an error needs no memory but the error's.
void OutstandingCalls::fail(ClientCall& call, Error error, ErrorClass thrown) noexcept {
  call.error = std::move(error);
  call.error_class = thrown;
  finish(call);
}

// Without memory for the reason there is none.
void OutstandingCalls::lose(ClientCall& call, std::string_view why, bool sent) noexcept {
  const auto delivered = sent ? ConnectionError::Delivered::maybe : ConnectionError::Delivered::no;
  try {
    fail(call, ConnectionError{std::string{why}, delivered}, ErrorClass::connection_error);
  } catch (const std::bad_alloc&) {
    fail(call, Error{ErrorCode::provider_lost}, ErrorClass::connection_error);
  }
}

void OutstandingCalls::lose_queued(std::string_view why) noexcept {
  while (!queue_.empty()) {
    ClientCall& call = queue_.front();
    withdraw(call);
    lose(call, why, false);
  }
}

void OutstandingCalls::lose_all() noexcept {
  const auto end = [this](ClientCall& call) {
    const bool sent = call.state == CallState::sent;
    withdraw(call);
    lose(call, kDestroyed, sent);
  };
  for (const auto& connection : connections_) {
    for (ClientCall* call : connection->calls) end(*call);
    for (ClientCall* call : connection->notifications) end(*call);
  }
  while (!queue_.empty()) end(queue_.front());
  while (!delayed_.empty()) end(delayed_.front());
}

void OutstandingCalls::fail_all(ClientConnection& connection, const Error& why) noexcept {
  const auto refuse = [&](ClientCall& call) {
    try {
      fail(call, why);
    } catch (const std::bad_alloc&) {
      fail(call, Error{ErrorCode::unauthenticated});
    }
  };
  while (connection.awaits()) refuse(take_first(connection));
  while (!queue_.empty()) refuse(queue_.pop_front());
}

void OutstandingCalls::time_out(ClientCall& call) noexcept {
  const bool sent = call.state == CallState::sent;
  withdraw(call);
  if (call.missing) return fail_missing(call);
  if (const std::string& failure = connections_.last_failure(); !sent && !failure.empty())
    return lose(call, failure, false);
  fail(call, message::make(
                 {.code = ErrorCode::timeout, .reason = "no answer came in time", .delivered = sent ? "maybe" : "no"}));
}

void OutstandingCalls::stop(ClientCall& call) noexcept {
  const bool sent = call.state == CallState::sent;
  withdraw(call);
  fail(call, cancelled(sent));
}

void OutstandingCalls::not_sent(ClientCall& first, std::string_view limit) noexcept {
  for (ClientCall* call = &first; call != nullptr;) {
    ClientCall* next = std::exchange(call->next_in_batch, nullptr);
    if (table_.find(call->id) == call) table_.erase(*call);
    fail(*call, limit.empty() ? Error{ErrorCode::internal_error}
                              : message::make({.code = ErrorCode::too_large,
                                               .reason = "the request is larger than allowed",
                                               .delivered = "no",
                                               .limit = limit}));
    call = next;
  }
}

void OutstandingCalls::finish_taken(ClientConnection& connection) {
  const std::uint64_t taken = connection.taken_bytes();
  while (!connection.notifications.empty() && connection.notifications.front().position <= taken) {
    finish(connection.notifications.pop_front());
  }
}

void OutstandingCalls::connection_ended(ClientConnection& connection, std::uint64_t taken,
                                        std::string_view why) noexcept {
  const std::uint64_t handed = connection.stream->bytes();
  CallList newer = std::exchange(queue_, {});
  while (connection.awaits()) {
    ClientCall& call = take_first(connection);
    if (call.position > handed) {
      queue_again(call);
    } else if (call.notification && connection.http == nullptr && call.position <= taken) {
      finish(call);
    } else {
      lose(call, why, true);
    }
  }
  while (!newer.empty()) queue_.push_back(newer.pop_front());
}

// Puts a call that is to be sent again at the end of the queue; what was one message is one again, in its order.
void OutstandingCalls::queue_again(ClientCall& call) noexcept {
  call.enter(CallState::queued);
  call.behind_another = false;
  if (queue_.empty() || queue_.back().position != call.position) return queue_.push_back(call);
  ClientCall& first = queue_.back();
  if (call.index < first.index) {
    queue_.replace(first, call);
    call.next_in_batch = &first;
    first.behind_another = true;
    return;
  }
  call.behind_another = true;
  ClientCall* before = &first;
  while (before->next_in_batch != nullptr && before->next_in_batch->index < call.index) before = before->next_in_batch;
  call.next_in_batch = std::exchange(before->next_in_batch, &call);
}

void OutstandingCalls::take_out(ClientCall& call) noexcept {
  if (!call.notification) table_.erase(call);
  call.connection->remove(call);
}

ClientCall& OutstandingCalls::take_first(ClientConnection& connection) noexcept {
  ClientCall& call = connection.first();
  take_out(call);
  return call;
}

// ---- delivering ----

void OutstandingCalls::deliver_ended(Lock& lock) {
  // One after the other, since each may give up another.
  while (!ended_.empty()) {
    ClientCall& call = ended_.pop_front();
    call.enter(CallState::idle);
    if (call.stream != nullptr) {
      driver_.asynchronous_over();
      std::function<void()> wake = call.stream->take_wake();
      const Unlocked unlocked{lock};
      if (wake) std::exchange(wake, nullptr)();
      continue;
    }
    const Unlocked unlocked{lock};
    Answer answer = call.error ? Answer{std::move(*call.error), call.error_class} : Answer{};
    deliver(call, answer);
  }
  driver_.settle();
}

void OutstandingCalls::deliver(ClientCall& call, Answer& answer) noexcept {
  if (call.on_stop) call.on_stop.reset();
  driver_.delivered();
  detail::AnswerFunction done = std::move(call.done);
  // Now, so that a call made by `done` finds this one free. What `answer` refers to is elsewhere.
  pool_.give_back(call);
  if (done) done(answer);
}

// ---- time ----

void OutstandingCalls::expire_at(nanoseconds due) noexcept {
  if (due >= earliest_) return;
  earliest_ = due;
  driver_.wake_driver();  // it may have gone to sleep for longer
}

void OutstandingCalls::expire_due(nanoseconds& wait_max) noexcept {
  const nanoseconds now = shared_.loop.now();
  if (now >= earliest_) {
    earliest_ = nanoseconds::max();
    const auto check = [this, now](ClientCall& call) {
      if (!call.asynchronous) return;
      if (call.deadline <= now) {
        time_out(call);
      } else {
        earliest_ = std::min(earliest_, call.deadline);
      }
    };
    for (ClientCall* head : queue_) {
      for (ClientCall* call = head; call != nullptr;) check(*std::exchange(call, call->next_in_batch));
    }
    for (ClientCall* call : delayed_) check(*call);
    for (const auto& connection : connections_) {
      for (ClientCall* call : connection->calls) check(*call);
      for (ClientCall* call : connection->notifications) check(*call);
    }
    if (earliest_ == nanoseconds::max()) return;
    // Of very many calls, some have to wait a little, or nothing else would be done but to look at them.
    const nanoseconds after = shared_.loop.now();
    earliest_ = std::max(earliest_, after + kExpiryShare * (after - now));
  }
  shorten(wait_max, earliest_ - now);
}

}  // namespace wirecall::net
