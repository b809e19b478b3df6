// See unknown_method.hpp.
#include "rpc/unknown_method.hpp"

#include "base/dotted_name.hpp"
#include "message/own_error.hpp"
#include "rpc/admission.hpp"
#include "rpc/authentication.hpp"
#include "rpc/batch_run.hpp"
#include "rpc/broker.hpp"
#include "rpc/call_record.hpp"
#include "rpc/refused_messages.hpp"
#include "rpc/reserved.hpp"

namespace wirecall::rpc {

// What a search for a name that was mistyped costs, however many names there are.
constexpr std::size_t kSuggestionSteps = 256;

// Calls that reach a method are logged by middleware.
static void log_unserved(const ServedPeer& peer, std::string_view name, ErrorCode code) noexcept {
  const LogSink& log = *peer.loop.services.call_log;
  if (is_reserved(name) || !log.takes(LogLevel::info)) return;
  const Principal* const known = peer.principal();
  write_call_record(log, {.method = name,
                          .client = peer.broker ? std::string_view{peer.broker->name_given()} : std::string_view{},
                          .principal = known != nullptr ? std::string_view{known->name} : std::string_view{},
                          .outcome = "error",
                          .code = static_cast<int>(code)});
}

// Whether the time is up of what is served again in a later turn, so far as it does not say so itself.
static bool is_late(const ServedPeer& peer, const BatchRun& run) {
  const std::chrono::milliseconds time{peer.limits.call_timeout_ms};
  return run.received_at && peer.loop.now() - *run.received_at >= time;
}

// False where the name is none of ours.
static bool serve_own(const Received& message, std::string_view name, CallState& state) {
  ServedPeer& peer = state.peer;
  BrokerPeer* const broker = peer.join_broker();
  Identity* const shown = peer.loop.services.authority != nullptr ? &peer.identity().shown : nullptr;
  BatchRun* const running = running_batch(peer);
  std::shared_ptr<Rendering> rendering;
  switch (
      serve_reserved({message, name, state.reply, peer.loop, peer.limits, peer.sink, peer.registry, peer.calls.get(),
                      peer.load, broker, peer.greeted, shown, running != nullptr ? running->rendering : rendering,
                      running != nullptr && is_late(peer, *running)})) {
    case Served::done:
      if (peer.principal() != nullptr) {
        peer.calls->identity->awaited.reset();
        peer.use_account();
      }
      return true;
    case Served::continues:
      if (running == nullptr) {
        open_single(peer, message, name, std::move(rendering));
      } else {
        running->next = BatchRun::Next::same_element;
      }
      return true;
    case Served::unknown: break;
  }
  return false;
}

Error no_such_client() {
  return message::make(
      {.code = ErrorCode::provider_lost, .reason = "no client of that name provides the method", .delivered = "no"});
}

void serve_reserved_or_refuse(const Received& message, std::string_view name, CallState& state) {
  if (message.has(Member::to) && is_reserved(name) && !belongs_to_a_call(message)) [[unlikely]]
    return refuse_addressed(message, name, state);
  if (serve_own(message, name, state) || message.kind == MessageKind::notification) return;
  ServedPeer& peer = state.peer;
  if (peer.broker != nullptr && peer.broker->is_replaced()) {
    log_unserved(peer, name, ErrorCode::draining);
    return refuse(message, state, message::make(ErrorCode::draining, "another process has taken over", "no"));
  }
  std::string_view near;
  if (may_suggest(peer)) {
    near = peer.registry.nearest(name, peer.principal());
    if (near.empty() && peer.broker != nullptr) near = peer.broker->nearest(name);
    peer.sink.charge(kSuggestionSteps);
  }
  std::string data;
  if (!near.empty()) data.append(R"({"did_you_mean":)").append(to_json(near)).append("}");
  if (peer.sink.capabilities().registration) peer.shared_load()->count_undelivered();
  log_unserved(peer, name, ErrorCode::method_not_found);
  reply_error(state, ErrorCode::method_not_found, data, message.id());
}

void refuse_addressed(const Received& message, std::string_view name, CallState& state) {
  if (message.kind == MessageKind::notification) return;
  log_unserved(state.peer, name, ErrorCode::provider_lost);
  refuse(message, state, no_such_client());
}

}  // namespace wirecall::rpc
