// The part of OutstandingCalls that makes refused calls once more. Two refusals are safe to follow up. One by which a
// server says that it has not begun the call, as when it is overloaded or leaves. And, where a call has a `wait`, that
// nobody provides its method: then it is made again until somebody does, but never when it may have been delivered
// (MissingMethods).
#include <algorithm>
#include <limits>

#include "client/input.hpp"
#include "client/outstanding_calls.hpp"

namespace wirecall::net {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// Before a call that was refused for overload is made again, where the server names no time.
constexpr milliseconds kRetryPause{20};

// What the data of an error says about making the call again.
struct RetryAdvice {
  bool safe = false;
  std::optional<milliseconds> after;
};

// The codes of the errors that wirecall itself makes. -32000 is what a handler has raised.
bool is_own(const Error& error) noexcept {
  return has_code(error, ErrorCode::cancelled) || (error.code() <= static_cast<int>(ErrorCode::provider_lost) &&
                                                   error.code() >= static_cast<int>(ErrorCode::draining));
}

// Data means this only where wirecall itself has made the error, which its code says together with `origin`: handlers
// have run by the time that they raise errors, whatever they write into them.
RetryAdvice advice_of(const Error& error) {
  RetryAdvice advice;
  if (!is_own(error) || error.data().find("delivered") == std::string::npos) return advice;
  const std::unique_ptr<Reader> reader = json_codec().reader();
  Buffer padded{error.data()};
  std::string_view name;
  std::string_view words;
  std::uint64_t number = 0;
  bool own = false;
  bool delivered = true;
  reader->reset(padded.padded());
  if (!reader->begin_object()) return advice;
  while (reader->next_member(name)) {
    if (name == "origin" && reader->kind() == ValueKind::string) {
      own = reader->read_string(words) && (words == "local" || words == "remote" || words == "bus");
    } else if (name == "delivered" && reader->kind() == ValueKind::string) {
      delivered = !reader->read_string(words) || words != "no";
    } else if (name == "retry_after_ms" && reader->kind() == ValueKind::number) {
      if (!reader->read_uint(std::numeric_limits<std::uint32_t>::max(), number)) return advice;
      advice.after = milliseconds{number};
    } else {
      reader->skip();
    }
  }
  advice.safe = own && !delivered;
  return advice;
}

bool waits_until(const ClientCall& call, nanoseconds time) noexcept {
  return time < call.begun + call.wait && time < call.deadline;
}

}  // namespace

bool OutstandingCalls::retry(ClientCall& call, const Error& error) {
  const RetryAdvice advice = advice_of(error);
  if (has_code(error, ErrorCode::draining)) connections_.leave(*call.connection);
  // Who may not do it now may not do it a moment later.
  const bool for_good = has_code(error, ErrorCode::unauthenticated) || has_code(error, ErrorCode::forbidden);
  const nanoseconds now = shared_.loop.now();
  nanoseconds after = advice.after.value_or(milliseconds{0});
  const bool lost = has_code(error, ErrorCode::provider_lost);
  const bool waits = lost && waits_until(call, now + ClientCall::pause_of(call.attempts));
  const bool again = !call.retried || waits;
  if (!advice.safe || !again || for_good || (call.input && call.input->has_begun())) return false;
  if ((lost || has_code(error, ErrorCode::limit_exceeded)) && !advice.after)
    after = waits ? ClientCall::pause_of(call.attempts < 4 ? call.attempts++ : call.attempts) : kRetryPause;
  if (now + after >= call.deadline) return false;
  if (lost) call.lost_provider = error;
  call.retried = true;
  if (after != nanoseconds{0}) {
    delay(call, now + after);
    return true;
  }
  call.behind_another = false;
  call.enter(CallState::queued);
  queue_.push_back(call);
  return true;
}

bool OutstandingCalls::wait_for_provider(ClientCall& call, const Error& error) {
  if (call.wait == milliseconds{0} || !has_code(error, ErrorCode::method_not_found)) return false;
  ClientConnection& connection = *call.connection;
  if (connection.http != nullptr || connection.by_datagrams() || !connection.missing.may_ask() ||
      !waits_until(call, shared_.loop.now() + ClientCall::pause_of(call.attempts)))
    return false;
  if (!connection.missing.asked()) {
    connection.controls.emplace_back(MissingMethods::kQuestion);
    connection.missing.ask();
  }
  call.missing = call.lost_provider ? *call.lost_provider : error;
  delay(call, std::min<nanoseconds>(call.begun + call.wait, call.deadline));
  return true;
}

void OutstandingCalls::settle_missing(const ClientConnection& connection, bool undelivered) noexcept {
  if (delayed_.empty()) [[likely]]
    return;
  const nanoseconds now = shared_.loop.now();
  for (CallList delayed = std::exchange(delayed_, {}); !delayed.empty();) {
    ClientCall& call = delayed.pop_front();
    if (!call.missing || call.connection != &connection) {
      delayed_.push_back(call);
    } else if (const nanoseconds next = now + ClientCall::pause_of(call.attempts);
               undelivered && waits_until(call, next)) {
      call.missing.reset();
      if (call.attempts < 4) ++call.attempts;
      delay(call, next);
    } else {
      fail_missing(call);
    }
  }
}

// What it was refused for is its end.
void OutstandingCalls::fail_missing(ClientCall& call) noexcept {
  fail(call, *std::exchange(call.missing, std::nullopt));
}

void OutstandingCalls::release_due(nanoseconds& wait_max) noexcept {
  const nanoseconds now = shared_.loop.now();
  for (CallList delayed = std::exchange(delayed_, {}); !delayed.empty();) {
    ClientCall& call = delayed.pop_front();
    if (call.not_before > now) {
      shorten(wait_max, call.not_before - now);
      delayed_.push_back(call);
    } else if (call.missing) {
      fail_missing(call);
    } else {
      call.enter(CallState::queued);
      queue_.push_back(call);
    }
  }
}

// It is in no list.
void OutstandingCalls::delay(ClientCall& call, nanoseconds until) noexcept {
  call.behind_another = false;
  call.not_before = until;
  call.enter(CallState::delayed);
  delayed_.push_back(call);
}

}  // namespace wirecall::net
