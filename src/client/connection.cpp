// See connection.hpp.
#include "client/connection.hpp"

#include "client/driver.hpp"
#include "client/message_router.hpp"

namespace wirecall::net {

// With more output than this waiting on a connection, calls wait in the queue instead: there they can still be given
// up, or go over another connection.
constexpr std::size_t kOutputBytesMax = 256 * 1024;

static bool may_enter(ConnectionState from, ConnectionState to) noexcept {
  using enum ConnectionState;
  switch (to) {
    case down: return from == over || from == dialing;
    case dialing: return from == down;
    case agreeing: return from == down;
    case up: return from == down || from == dialing || from == agreeing;
    case draining: return from == up || from == draining;
    case over: return from == up || from == draining || from == agreeing;
  }
  return false;
}

void ClientConnection::enter(ConnectionState next) noexcept {
  WIRECALL_ASSERT(may_enter(state_, next));
  state_ = next;
  WIRECALL_ASSERT(!is_open() || session != nullptr);
  WIRECALL_ASSERT((state_ != ConnectionState::down && state_ != ConnectionState::dialing) || !awaits());
}

bool ClientConnection::has_lost_server(bool expected, std::chrono::nanoseconds now,
                                       std::chrono::nanoseconds& wait_max) {
  constexpr std::uint8_t kLooks = 4;
  constexpr std::chrono::nanoseconds kNever{0};
  if (!is_open() || !expected || keepalive == kNever || http != nullptr || by_datagrams()) {
    next_look = kNever;
    return false;
  }
  const bool due = next_look != kNever && now >= next_look;
  if (due || next_look == kNever) next_look = now + keepalive / kLooks;
  shorten(wait_max, next_look - now);
  return due && session->has_lost_peer(kLooks);
}

bool ClientConnection::takes_calls() const noexcept {
  return is_up() && !awaiting_response && controls.empty() && in_flight < limits.in_flight_max &&
         session->output_bytes() <= kOutputBytesMax;
}

void ClientConnection::begin(std::chrono::nanoseconds now, const Limits& own) noexcept {
  WIRECALL_ASSERT(!awaits() && in_flight == 0);
  useful = announced = awaiting_response = resends = ends_with_notification = false;
  since = now;
  keepalive = std::chrono::milliseconds{own.keepalive_timeout_ms};
  next_look = std::chrono::nanoseconds{0};
  unattributed.clear();
  missing.reset();
  hello.over();
  controls.clear();
  limits = {.message_bytes_max = own.max_message_size, .in_flight_max = own.in_flight, .batch_max = own.batch};
}

void ClientConnection::add(ClientCall& call, std::uint64_t position) noexcept {
  call.enter(CallState::sent);
  call.connection = this;
  call.position = position;
  ends_with_notification = call.notification;
  if (call.notification) {
    unattributed.add(1, call.in_batch ? UnattributedErrors::kInBatch : position);
    notifications_fresh = true;
    return notifications.push_back(call);
  }
  calls.push_back(call);
  ++in_flight;
  if (!call.idempotent || call.in_batch || !by_datagrams()) [[likely]]
    return;
  resends = true;
  call.resent = 0;
  call.not_before = call.begun + ClientCall::pause_of_resending(0);
}

void ClientConnection::remove(const ClientCall& call) noexcept {
  WIRECALL_ASSERT(call.connection == this);
  if (call.notification) return notifications.remove(call);
  calls.remove(call);
  --in_flight;
}

ClientCall& ClientConnection::first() const noexcept {
  if (calls.empty() || (!notifications.empty() && notifications.front().position <= calls.front().position))
    return notifications.front();
  return calls.front();
}

bool ClientConnection::response(const Received& message) { return router_.response(*this, message); }
bool ClientConnection::takes_encoded(const Received& message) { return router_.takes_encoded(*this, message); }
bool ClientConnection::notified(const Received& message) { return router_.notified(*this, message); }
bool ClientConnection::asked(const Received& message) { return router_.asked(*this, message); }
void ClientConnection::drained() { router_.drained(*this); }
bool ClientConnection::waiting() const { return router_.waiting(*this); }
std::optional<HttpProtocolError> ClientConnection::answered(const HttpAnswer& answer) {
  return router_.answered(*this, answer);
}

}  // namespace wirecall::net
