#include "rpc/call_options.hpp"

#include <charconv>
#include <cmath>

#include "message/own_error.hpp"
#include "rpc/batch_run.hpp"
#include "rpc/refused_messages.hpp"
#include "rpc/reserved.hpp"

namespace wirecall::rpc {

// A number's size, whatever a double can hold: 0 for zero, else 1 + the power of ten of its first digit, or less than 0
// for a number below 1.
static long power_of_ten(std::string_view number) noexcept {
  constexpr long kFar = 1'000'000;
  long power = 0;
  bool fraction = false;
  bool begun = false;
  for (std::size_t at = 0; at != number.size(); ++at) {
    const char c = number[at];
    if (c == 'e' || c == 'E') {
      const bool negative = number[++at] == '-';
      if (negative || number[at] == '+') ++at;
      long exponent = 0;
      for (; at != number.size() && exponent < kFar; ++at) exponent = exponent * 10 + (number[at] - '0');
      power += negative ? -exponent : exponent;
      break;
    }
    if (c == '.') {
      fraction = true;
    } else if (c != '-') {
      begun |= c != '0';
      if (begun && !fraction) ++power;
      if (!begun && fraction) --power;
    }
  }
  if (!begun) return 0;
  return power > 0 ? power : power - 1;
}

static Error late_call() {
  return message::make(
      {.code = ErrorCode::timeout, .reason = "the time was up before the call began", .delivered = "no"});
}

std::uint32_t milliseconds_of(std::string_view number) noexcept {
  constexpr std::uint32_t kMax = std::numeric_limits<std::uint32_t>::max();
  constexpr long kDigitsMax = 10;
  const long power = power_of_ten(number);
  if (power == 0) return 0;
  if (power < 0) return 1;
  if (power > kDigitsMax) return kMax;
  double milliseconds = 0;
  std::from_chars(number.data(), number.data() + number.size(), milliseconds);
  return milliseconds >= kMax ? kMax : static_cast<std::uint32_t>(std::ceil(milliseconds));
}

std::optional<std::uint64_t> read_count(const LoopContext& loop_context, std::string_view value) {
  std::uint64_t count = 0;
  loop_context.codecs.readers.reader->reset(value);
  if (loop_context.codecs.readers.reader->read_uint(std::numeric_limits<std::int64_t>::max(), count)) return count;
  loop_context.codecs.readers.reader->clear_failure();
  return {};
}

bool take_call_options(const Received& message, CallState& state) {
  ServedPeer& peer = state.peer;
  const auto refused = [&](const Error& error) {
    if (message.kind != MessageKind::notification) refuse(message, state, error);
    return false;
  };
  const auto invalid = [&](std::string_view why) {
    return Error::with_data(ErrorCode::invalid_request,
                            peer.loop.refusals.data(ErrorCode::invalid_request, {}, [&] { return std::string{why}; }));
  };
  CallExtras& extras = state.extras();
  if (message.has(Member::stream)) {
    if (peer.sink.capabilities().datagrams) {
      return refused(Error{ErrorCode::invalid_request, std::string{message_of(ErrorCode::invalid_request)},
                           R"({"reason":"needs_connection"})"});
    }
    extras.credit = read_count(peer.loop, message[Member::stream]).value_or(0);
    if (extras.credit == 0) return refused(invalid("stream must be a whole number from 1"));
  }
  if (message.has(Member::input)) {
    const std::string_view input = message[Member::input];
    if (input != "true" && input != "false") return refused(invalid("input must be true or false"));
    extras.has_input = input == "true";
    // Items come as messages of their own, to a call that has one answer of its own.
    if (extras.has_input && (state.batch != nullptr || !peer.sink.capabilities().registration)) {
      return refused(Error{ErrorCode::invalid_request, std::string{message_of(ErrorCode::invalid_request)},
                           R"({"reason":"needs_connection"})"});
    }
  }
  if (message.has(Member::hops)) {
    const std::optional<std::uint64_t> hops = read_count(peer.loop, message[Member::hops]);
    if (!hops) return refused(invalid("hops must be a whole number from 0"));
    if (*hops > peer.limits.hops) {
      return refused(message::limit_exceeded("too many calls within calls", "hops"));
    }
    extras.bounds.hops = static_cast<std::uint32_t>(*hops);
  }
  if (message.has(Member::timeout_ms) || peer.timeout_max_ms != ServedPeer::kNoTimeout) {
    const std::uint32_t own =
        message.has(Member::timeout_ms) ? milliseconds_of(message[Member::timeout_ms]) : ServedPeer::kNoTimeout;
    extras.timeout_ms = std::min(own, peer.timeout_max_ms);
    const std::chrono::milliseconds time{*extras.timeout_ms};
    const bool late =
        *extras.timeout_ms == 0 || (peer.loop.scheduler != nullptr && peer.loop.now() - received_at(peer) >= time);
    if (late) return refused(is_continued(peer) ? late_answer() : late_call());
  }
  return true;
}

std::chrono::nanoseconds received_at(const ServedPeer& peer) {
  const BatchRun* const running = running_batch(peer);
  if (running != nullptr && running->received_at) return *running->received_at;
  const std::optional<std::chrono::nanoseconds> known = peer.sink.received_at();
  return known ? *known : peer.loop.scheduler->now();
}

CallBounds bounds_of(CallState& state) {
  const ServedPeer& peer = state.peer;
  CallExtras* const extras = state.rare.get();
  if (extras != nullptr && extras->bounded) return extras->bounds;
  CallBounds bounds;
  std::optional<std::uint32_t> timeout_ms = peer.limits.call_timeout_ms;
  if (extras != nullptr) {
    bounds = extras->bounds;
    if (extras->items || extras->input) {
      timeout_ms = extras->timeout_ms;  // the other one is for the time from item to item
    } else {
      timeout_ms = std::min(*timeout_ms, extras->timeout_ms.value_or(*timeout_ms));
    }
  }
  if (peer.loop.scheduler != nullptr) {
    bounds.began = received_at(peer);
    if (timeout_ms) bounds.deadline = bounds.began + std::chrono::milliseconds{*timeout_ms};
  }
  if (extras != nullptr) {
    extras->bounds = bounds;
    extras->bounded = true;
  }
  return bounds;
}

}  // namespace wirecall::rpc
