// See dispatcher.hpp.
#include "rpc/dispatcher.hpp"

#include "message/own_error.hpp"
#include "rpc/broker.hpp"
#include "rpc/invocation.hpp"
#include "rpc/own_subscriptions.hpp"

namespace wirecall::rpc {

// No other request of ours has such an id: a response to it comes from a peer that is there.
constexpr std::string_view kPing = R"({"jsonrpc":"2.0","method":"rpc.ping","id":"rpc.ping"})";
constexpr std::string_view kPingId = R"("rpc.ping")";

void Dispatcher::handle(const Received& message, std::span<const Received> elements) {
  if (!authenticate(peer_, message)) [[unlikely]]
    return;
  if (message.kind == MessageKind::batch) [[unlikely]] {
    BatchRun run{message.text};
    return serve_batch(peer_, run, message.batch_size, elements);
  }
  CallState state{peer_, nullptr};
  Invocation::serve(peer_, message, state);
}

void Dispatcher::handle_transcoded(const Received& message, std::span<const Received> elements,
                                   std::span<const message::Unrepresentable> unrepresentable) {
  if (!authenticate(peer_, message)) return;
  if (message.kind == MessageKind::batch) {
    BatchRun run{message.text};
    run.unrepresentable = unrepresentable;
    run.way = BatchRun::Way::transcoded;
    return serve_batch(peer_, run, message.batch_size, elements);
  }
  CallState state{peer_, nullptr};
  serve_transcoded(message, state, 0, unrepresentable);
}

void Dispatcher::handle_encoded(const Received& message, std::span<const Received> elements, EncodedText encoded,
                                bool too_large) {
  if (!authenticate(peer_, message, &encoded)) return;
  if (message.kind == MessageKind::batch) {
    BatchRun run{message.text};
    run.encoded = encoded;
    run.encoded_rest = peer_.loop.codecs.native(encoded.encoding).elements_offset(encoded.text);
    run.way = BatchRun::Way::encoded;
    return serve_batch(peer_, run, message.batch_size, elements);
  }
  CallState state{peer_, nullptr};
  serve_encoded(message, state, encoded, encoded.text, too_large);
}

void Dispatcher::await_identity() {
  if (peer_.loop.services.authority == nullptr) return;
  const std::chrono::milliseconds time{peer_.limits.registration_timeout_ms};
  peer_.identity().awaited = std::make_unique<AwaitedIdentity>(peer_.sink, peer_.loop, time);
}

void Dispatcher::end_if_revoked() noexcept {
  if (!is_revoked(peer_)) return;
  refuse_open_batch();
  end_calls(message::make(ErrorCode::unauthenticated, peer_.calls->identity->shown.credential.revoked(), "maybe"));
}

void Dispatcher::on_writable() {
  if (peer_.broker) peer_.broker->on_writable();
  const std::shared_ptr<PendingCalls> calls = peer_.calls;
  if (!calls) return;
  // Those that have to rest again are at the end of the queue then: each had its turn.
  for (std::size_t left = calls->waiting_until_writable.size(); left != 0; --left) {
    if (calls->waiting_until_writable.empty() || !peer_.sink.writable()) return;
    calls->waiting_until_writable.front()->resume();
  }
}

BrokerPeer& Dispatcher::trust() {
  static const Principal kAnyBroker{
      .name = "", .tokens = {}, .call = {">"}, .provide = {">"}, .publish = {">"}, .subscribe = {">"}};
  if (peer_.loop.services.authority != nullptr) identify(&kAnyBroker, {});
  peer_.trusted = true;
  return *peer_.join_broker();
}

void Dispatcher::ask_to_leave() noexcept {
  if (!peer_.greeted || peer_.asked_to_leave) return;
  // What it is still asked comes before that: whoever provides methods may go with its last answer.
  if (peer_.broker && !peer_.draining && !peer_.broker->release()) return;
  try {
    send_message(peer_.sink, R"({"jsonrpc":"2.0","method":"rpc.draining"})");
    peer_.asked_to_leave = true;
  } catch (const std::bad_alloc&) {
    // The peer learns from the next answer, or from the end.
  }
}

void Dispatcher::drain() noexcept {
  peer_.draining = true;
  ask_to_leave();
}

void Dispatcher::ask_to_stop() noexcept {
  if (peer_.calls) peer_.calls->stop_all(peer_.loop);
}

void Dispatcher::end_calls(const Error& error) noexcept {
  if (peer_.calls) peer_.calls->end_all(error);
  if (peer_.broker) peer_.broker->end_calls(error);
}

void Dispatcher::stop_calls() noexcept {
  end_calls(message::make(ErrorCode::draining, "the server has shut down before the call was done", "maybe"));
}

bool Dispatcher::send_keepalive() {
  if (!peer_.greeted) return false;
  send_message(peer_.sink, kPing);
  return true;
}

bool Dispatcher::is_provider() const noexcept { return peer_.broker && peer_.broker->provides_any(); }

bool Dispatcher::idle_exempt() const noexcept {
  if (peer_.calls && peer_.calls->subscriptions && !peer_.calls->subscriptions->empty()) return true;
  return peer_.broker && (peer_.broker->provides_any() || peer_.broker->subscribes_any());
}

bool Dispatcher::awaits_responses() const noexcept {
  return (peer_.calls && peer_.calls->peer_calls && !peer_.calls->peer_calls->empty()) ||
         (peer_.broker && peer_.broker->awaits_responses());
}

bool Dispatcher::response(const Received& message) {
  if (peer_.broker && peer_.broker->response(message)) return true;
  if (message.has(Member::id) && message.id() == kPingId) return true;
  if (!peer_.calls || !peer_.calls->peer_calls) return false;
  // Whoever is answered may end all this.
  const std::shared_ptr<PeerCalls> calls = peer_.calls->peer_calls;
  return calls->response(message);
}

void Dispatcher::peer_ended() {
  if (peer_.broker) peer_.broker->peer_ended();
  limit_half_closed();
  const std::shared_ptr<PendingCalls> calls = peer_.calls;
  if (!calls) return;
  if (const std::shared_ptr<PeerCalls> peer_calls = calls->peer_calls) peer_calls->peer_ended();
  calls->peer_ended();
}

// Nobody can tell whether a peer that has ended its side still waits for answers: so they are waited for only so long,
// and so many.
void Dispatcher::limit_half_closed() {
  const std::size_t waiting = in_flight();
  if (waiting == 0 || peer_.loop.scheduler == nullptr || peer_.pending().half_closed != 0) return;
  const std::shared_ptr<PendingCalls> calls = peer_.calls;
  const std::size_t kept = std::min(waiting, half_closed_left());
  calls->half_closed = kept;
  peer_.loop.budgets.half_closed_calls += kept;
  const std::chrono::nanoseconds until = half_closed_until();
  const Error error = message::limit_exceeded("too many calls wait for callers that have ended their side",
                                              "half_closed_calls", "maybe");
  const std::size_t own = std::min(calls->active, kept);
  if (peer_.broker) peer_.broker->limit_calls(kept - own, until, error);
  calls->limit(own, until, error);
}

// Half of what is left to all.
std::size_t Dispatcher::half_closed_left() const noexcept {
  const std::size_t all = peer_.loop.budgets.half_closed_calls + peer_.loop.stop_requests.later();
  return (peer_.limits.half_closed_calls - std::min(peer_.limits.half_closed_calls, all) + 1) / 2;
}

std::chrono::nanoseconds Dispatcher::half_closed_until() const noexcept {
  return peer_.loop.now() + std::chrono::milliseconds{peer_.limits.half_closed_ms};
}

void Dispatcher::abandon() noexcept {
  if (peer_.calls) {
    WIRECALL_ASSERT(peer_.calls->half_closed <= peer_.loop.budgets.half_closed_calls);
    peer_.loop.budgets.half_closed_calls -= std::exchange(peer_.calls->half_closed, 0);
  }
  peer_.load = nullptr;  // which goes with the others
  peer_.broker.reset();
  if (!peer_.loop.batches.open.empty()) peer_.loop.batches.open.erase(&peer_);
  if (!peer_.calls) return;
  const std::shared_ptr<PendingCalls> calls = std::move(peer_.calls);
  if (calls->identity) calls->identity->awaited.reset();
  const std::shared_ptr<PeerCalls> peer_calls = calls->peer_calls;
  if (peer_calls) peer_calls->gone();
  calls->let_notifications_go_on(peer_.loop, half_closed_left(), half_closed_until());
  calls->abandon(peer_.loop);
  // Who has survived being stopped learns why nobody answers.
  if (peer_calls) peer_calls->peer_ended();
}

}  // namespace wirecall::rpc
