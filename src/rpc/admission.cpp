// See admission.hpp.
#include "rpc/admission.hpp"

#include "message/own_error.hpp"
#include "rpc/broker.hpp"
#include "rpc/refused_messages.hpp"

namespace wirecall::rpc {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kSecond = std::chrono::seconds{1};

// Searches for a name that a connection may have mistyped.
constexpr int kSuggestionsInSecond = 16;

struct RateWait {
  nanoseconds time{0};  // 0 for none
  std::string_view limit;
};

// How long until the connection may send what it has just sent; 0 when it may, which is then counted. A bucket holds
// one second's worth: it is full when the next message is due now, and empty when it is due in a second. There is one
// of the connection, and one of its account.
RateWait wait_for_rate(ServedPeer& peer) {
  const Limits& limits = peer.limits;
  const nanoseconds now = peer.loop.now();
  PeerLoad& load = *peer.shared_load();
  Account& account = *load.calls.account();
  const auto next = [&](nanoseconds due, std::uint32_t rate) {
    return rate == 0 ? due : std::max(due, now) + kSecond / rate;
  };
  const nanoseconds own = next(load.rate_due, limits.rate);
  const nanoseconds all = next(account.rate_due, limits.principal_rate);
  if (limits.rate != 0 && own - now > kSecond) return {.time = own - now - kSecond, .limit = "rate"};
  if (limits.principal_rate != 0 && all - now > kSecond)
    return {.time = all - now - kSecond, .limit = "principal_rate"};
  load.rate_due = own;
  account.rate_due = all;
  return {};
}

}  // namespace

Error too_many_of_principal(std::string_view delivered) {
  return message::limit_exceeded("too many calls of this principal, address or user are in flight", "principal_calls",
                                 delivered);
}

bool belongs_to_a_call(const Received& message) noexcept {
  constexpr std::array<std::string_view, 5> kNames{"rpc.item", "rpc.credit", "rpc.cancel", "$/progress",
                                                   "$/cancelRequest"};
  return message.kind == MessageKind::notification && !message.method_escaped &&
         std::ranges::find(kNames, message.method()) != kNames.end();
}

bool refuse_rate(const Received& message, CallState& state) {
  if (state.peer.loop.scheduler == nullptr) return false;
  const RateWait wait = wait_for_rate(state.peer);
  if (wait.time == nanoseconds{0}) return false;
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(wait.time).count();
  refuse(message, state,
         message::make({.code = ErrorCode::limit_exceeded,
                        .reason = wait.limit == "rate" ? "too many messages of this connection"
                                                       : "too many messages of this principal, address or user",
                        .delivered = "no",
                        .limit = wait.limit,
                        .retry_after_ms = static_cast<std::uint64_t>(milliseconds)}));
  return true;
}

std::optional<Error> refuse_full(ServedPeer& peer) {
  if (peer.load->calls >= peer.limits.in_flight) {
    const bool datagram = peer.sink.capabilities().datagrams;
    return message::limit_exceeded(
        datagram ? "too many calls by UDP are in flight" : "too many calls of this connection are in flight",
        "in_flight");
  }
  if (peer.broker && peer.broker->shed_call()) return std::nullopt;
  return too_many_of_principal("no");
}

bool may_suggest(ServedPeer& peer) {
  if (peer.loop.scheduler == nullptr) return true;
  const nanoseconds now = peer.loop.now();
  nanoseconds& due = peer.shared_load()->suggestion_due;
  const nanoseconds next = std::max(due, now) + kSecond / kSuggestionsInSecond;
  if (next - now > kSecond) return false;
  due = next;
  return true;
}

}  // namespace wirecall::rpc
