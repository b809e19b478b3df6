// The part of ClientCore (client_core.hpp) that is about the life of a call: it is lent to its maker, joins the queue,
// ends in one of many ways, and is given back. What happens to it on a connection is in client_exchange.cpp. Nothing
// here fails for want of memory but to lend one: a call that has been begun comes to its end.
#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/reserve_extra.hpp"
#include "client/core.hpp"
#include "message/cancel_request.hpp"
#include "message/own_error.hpp"
#include "wirecall/client.hpp"

namespace wirecall::session {

using detail::ErrorClass;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// Larger buffers are given back after the call that needed them; smaller ones where there are many calls.
constexpr std::size_t kKeptBytesMax = 1024 * 1024;
constexpr std::size_t kKeptBytesOfMany = 16 * 1024;
// A few calls keep larger ones: fresh memory for each call would cost more than copying what goes into it.
constexpr std::size_t kKeptBytesOfFew = 4 * 1024 * 1024;
constexpr int kFew = 2;
constexpr std::size_t kMany = 64;
// From this timeout on, what the clock said at the system's last tick is exact enough to reckon from.
constexpr milliseconds kLongTimeout{1000};
// Looking which calls are over takes no more than one part in so many of the time.
constexpr int kExpiryShare = 8;
constexpr std::string_view kDestroyed = "the client was destroyed";

Error cancelled(bool written) {
  return message::make(
      {.code = ErrorCode::cancelled, .reason = "the call was given up", .delivered = written ? "maybe" : "no"});
}

}  // namespace

// ---- calls, lent and given back ----

ClientCall& ClientCore::take() {
  if (on_driver() && !own_idle_.empty()) {
    ClientCall& call = *own_idle_.back();
    own_idle_.pop_back();
    return call;
  }
  const std::scoped_lock lock{mutex_};
  if (idle_.empty()) {
    reserve_extra(idle_, calls_.size() + 1);  // for when they come back
    ClientCall& call = calls_.emplace_back(codec());
    if (calls_.size() > kMany) many_.store(true, std::memory_order_relaxed);
    return call;
  }
  ClientCall& call = *idle_.back();
  idle_.pop_back();
  return call;
}

void ClientCore::give_back(ClientCall& call) noexcept {
  // A stop callback may be running and wait for the mutex: so it goes while we do not hold that.
  call.on_stop.reset();
  call.stop = {};
  call.done = nullptr;
  call.error.reset();
  call.error_class = ErrorClass::error;
  call.has_params = call.keep_response = call.wants_json = call.stop_asked = false;
  call.to.clear();
  call.hops = call.credit = 0;
  call.stream = nullptr;
  const std::size_t kept = many_.load(std::memory_order_relaxed) ? kKeptBytesOfMany : kKeptBytesMax;
  for (Buffer* buffer : {&call.request, &call.response}) {
    if (buffer->capacity() <= kept || (call.keeps_large && buffer->capacity() <= kKeptBytesOfFew)) continue;
    if (!call.keeps_large) call.keeps_large = large_.fetch_add(1, std::memory_order_relaxed) < kFew;
    if (!call.keeps_large || buffer->capacity() > kKeptBytesOfFew) buffer->release();
  }
  if (on_driver()) {
    try {
      return own_idle_.push_back(&call);
    } catch (const std::bad_alloc&) {
      // There is room in the other list.
    }
  }
  const std::scoped_lock lock{mutex_};
  idle_.push_back(&call);
}

// ---- the life of a call ----

// The calls join the queue as one message, or have ended.
void ClientCore::submit(std::span<ClientCall* const> calls) {
  const bool long_timeouts = std::ranges::all_of(calls, [](const auto* call) { return call->timeout >= kLongTimeout; });
  const nanoseconds now = long_timeouts ? loop_.recently() : loop_.now();
  ClientCall* last = nullptr;
  for (ClientCall* call : calls) {
    call->begun = now;
    call->deadline = now + call->timeout;
    call->stage = ClientCall::Stage::queued;
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
      ++asynchronous_;
      earliest_ = std::min(earliest_, call->deadline);
    }
    if (call->stop_asked && !call->error) call->error = cancelled(false);
    if (call->error) [[unlikely]] {
      finish(*call);
      continue;
    }
    if (closing_) [[unlikely]] {
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

// Tells whoever waits, now or, for something asynchronous, when the driver comes to it.
void ClientCore::finish(ClientCall& call) {
  call.stage = ClientCall::Stage::ended;
  if (call.stream != nullptr) return finish_stream(call);
  if (call.asynchronous) {
    ended_.push_back(call);
  } else if (--call.waiting->unfinished == 0) {
    call.waiting->ready.notify_one();
    told_ = true;
  }
}

// To end with an error needs no memory but the error's.
void ClientCore::fail(ClientCall& call, Error error, ErrorClass thrown) noexcept {
  call.error = std::move(error);
  call.error_class = thrown;
  finish(call);
}

// Without memory for the reason there is none.
void ClientCore::lose(ClientCall& call, std::string_view why, bool written) noexcept {
  const auto delivered = written ? ConnectionError::Delivered::maybe : ConnectionError::Delivered::no;
  try {
    fail(call, ConnectionError{std::string{why}, delivered}, ErrorClass::connection_error);
  } catch (const std::bad_alloc&) {
    fail(call, Error{ErrorCode::provider_lost}, ErrorClass::connection_error);
  }
}

// The call is nowhere any more; the server is told where it may know of it.
void ClientCore::withdraw(ClientCall& call) noexcept {
  switch (call.stage) {
    case ClientCall::Stage::queued: {
      if (!call.behind_another) {
        if (call.next_in_batch == nullptr) {
          queue_.remove(call);
        } else {
          queue_.replace(call, *call.next_in_batch);
          call.next_in_batch->behind_another = false;
        }
        call.next_in_batch = nullptr;
        break;
      }
      for (ClientCall* before : queue_) {
        while (before->next_in_batch != nullptr && before->next_in_batch != &call) before = before->next_in_batch;
        if (before->next_in_batch == nullptr) continue;
        before->next_in_batch = call.next_in_batch;
        break;
      }
      call.next_in_batch = nullptr;
      break;
    }
    case ClientCall::Stage::delayed:
      delayed_.remove(call);
      break;
    case ClientCall::Stage::written: {
      ClientConnection& connection = *call.connection;
      if (connection.http != nullptr) {
        withdraw_posted(call);
        break;
      }
      // Also that it is given up may be refused, which is said next. A notification is one of them already.
      if (!call.notification)
        connection.unattributed.add(2, call.in_batch ? UnattributedErrors::kInBatch : call.position);
      if (call.notification) {
        connection.notifications.remove(call);
        break;
      }
      take_out(call);
      try {
        connection.controls.push_back(message::cancel_request(std::to_string(call.id)));
      } catch (const std::bad_alloc&) {
        // Without memory to tell the server, its answer comes and is dropped.
      }
      break;
    }
    case ClientCall::Stage::idle:
    case ClientCall::Stage::ended:
      return;
  }
  call.stage = ClientCall::Stage::idle;
}

// Its time is up.
void ClientCore::give_up(ClientCall& call) noexcept {
  const bool written = call.stage == ClientCall::Stage::written;
  withdraw(call);
  if (call.missing) return fail(call, *std::exchange(call.missing, std::nullopt));
  if (!written && !last_failure_.empty()) return lose(call, last_failure_, false);
  fail(call,
       message::make(
           {.code = ErrorCode::timeout, .reason = "no answer came in time", .delivered = written ? "maybe" : "no"}));
}

// Whoever waits for it wants it no more.
void ClientCore::stop(ClientCall& call) noexcept {
  const bool written = call.stage == ClientCall::Stage::written;
  withdraw(call);
  fail(call, cancelled(written));
}

void ClientCore::expire(nanoseconds now) noexcept {
  earliest_ = nanoseconds::max();
  const auto check = [this, now](ClientCall& call) {
    if (!call.asynchronous) return;
    if (call.deadline <= now) {
      give_up(call);
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
  // Of very many calls, some have to wait a little, or nothing else would be done but to look at them.
  const nanoseconds after = loop_.now();
  if (earliest_ != nanoseconds::max()) earliest_ = std::max(earliest_, after + kExpiryShare * (after - now));
}

bool ClientCore::cancel(ClientCall& call, std::uint64_t generation) noexcept {
  const std::scoped_lock lock{mutex_};
  if (call.generation != generation) return false;
  if (call.stage == ClientCall::Stage::idle || call.stage == ClientCall::Stage::ended) return false;
  stop(call);
  wake_driver();
  return true;
}

void StopCall::operator()() const noexcept {
  if (core->cancel(*call, generation)) return;
  const std::scoped_lock lock{core->mutex_};
  if (call->generation + 1 == generation) call->stop_asked = true;  // before it was handed in
}

void ClientCore::forget(ClientCall& call, std::uint64_t generation) noexcept {
  {
    Lock lock{mutex_};
    if (call.generation != generation || call.stage == ClientCall::Stage::idle) return;
    if (call.stage == ClientCall::Stage::ended) {
      // Its answer is on its way to a task that does not want it any more.
      ended_.remove(call);
    } else {
      withdraw(call);
    }
    call.stage = ClientCall::Stage::idle;
    --asynchronous_;
    send_controls(lock);
  }
  give_back(call);
}

void ClientCore::end_all(Lock& lock) noexcept {
  const auto end = [this](ClientCall& call) {
    const bool written = call.stage == ClientCall::Stage::written;
    withdraw(call);
    lose(call, kDestroyed, written);
  };
  for (const auto& connection : connections_) {
    for (ClientCall* call : connection->calls) end(*call);
    for (ClientCall* call : connection->notifications) end(*call);
  }
  while (!queue_.empty()) end(queue_.front());
  while (!delayed_.empty()) end(delayed_.front());
  say_last(lock);
  deliver_ended(lock);  // last, since others may begin calls as long as the mutex is let go now and then
}

// The servers are told what nobody waits for any more, as far as the system takes it at once: to them the end of the
// connection alone does not say so.
void ClientCore::say_last(Lock& lock) noexcept {
  if (!controls_wait()) return;
  for (const auto& connection : connections_) {
    if (connection->up()) write_controls(*connection);
  }
  const Unlocked unlocked{lock};
  try {
    for (const auto& connection : connections_) {
      if (connection->session != nullptr) connection->session->flush();
    }
    loop_.turn(nanoseconds{0});
  } catch (const std::bad_alloc&) {
    // Then they make answers that are not read.
  }
}

}  // namespace wirecall::session
