#include "rpc/dispatcher.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "base/words.hpp"
#include "message/own_error.hpp"
#include "message/transcoder.hpp"
#include "rpc/access.hpp"
#include "rpc/broker.hpp"
#include "rpc/method_counts.hpp"
#include "rpc/peer_calls.hpp"
#include "rpc/pending.hpp"
#include "rpc/reserved.hpp"
#include "rpc/terms.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall {

void Next::operator()(Call& call) const {
  if (count_ == 0) return call.method().invoke(call);
  (*rest_)(call, Next{rest_ + 1, count_ - 1});
}

namespace rpc {
namespace {

// The three errors of the specification about a message that reaches no handler.
void reply_error(CallState& state, const Workspace& workspace, ErrorCode code, std::string_view data_json,
                 std::string_view id_json) {
  workspace.stats.count_error(static_cast<int>(code));
  if (data_json.empty()) return state.reply.plain_error(code, id_json);
  state.reply.error(static_cast<int>(code), message_of(code), data_json, id_json);
}

constexpr std::uint32_t bit(Member member) { return std::uint32_t{1} << static_cast<unsigned>(member); }
// What a request may say of its own handling.
constexpr std::uint32_t kTerms = bit(Member::timeout_ms) | bit(Member::stream) | bit(Member::hops);

// No other request of ours has such an id: a response to it comes from a peer that is there.
constexpr std::string_view kPing = R"({"jsonrpc":"2.0","method":"rpc.ping","id":"rpc.ping"})";
constexpr std::string_view kPingId = R"("rpc.ping")";

}  // namespace

Workspace::Workspace(const Codec& codec, Scheduler* timers, const LogSink* log)
    : codec(&codec),
      readers{.reader = codec.reader(), .defaults = {}},
      writer(codec.writer()),
      scheduler(timers),
      log(log) {
  tasks.set_window(&window);
}

Workspace::~Workspace() = default;

Workspace::Scratch Workspace::make_scratch() const {
  return {{.reader = codec->reader(), .defaults = {}}, std::make_unique<Elements>(), nullptr};
}

Workspace::Scratch Workspace::give_up_scratch(Scratch fresh) noexcept {
  return {std::exchange(readers, std::move(fresh.readers)), std::exchange(elements, std::move(fresh.elements)),
          std::move(packed_made)};
}

message::Transcoder& Workspace::transcoder() {
  if (!transcoder_made) transcoder_made = std::make_unique<message::Transcoder>();
  return *transcoder_made;
}

Workspace::PackedCursors& Workspace::packed() {
  if (!packed_made) packed_made = std::make_unique<PackedCursors>();
  return *packed_made;
}

void Workspace::write_log(LogLevel level, std::string_view line) const {
  if (log != nullptr) (*log)(level, line);
}

Dispatcher::Dispatcher(const Registry& registry, Outlet& outlet, const Limits& limits, Workspace& workspace,
                       const PeerLoad* load) noexcept
    : registry_(&registry),
      middleware_(&registry.middleware()),
      outlet_(&outlet),
      limits_(&limits),
      workspace_(&workspace),
      load_(load) {}

Dispatcher::~Dispatcher() { abandon(); }

// What is said of calls in progress: lost, it would end them wrongly, or not at all.
bool Dispatcher::belongs_to_a_call(const Received& message) noexcept {
  constexpr std::array<std::string_view, 5> kNames{"rpc.item", "rpc.credit", "rpc.cancel", "$/progress",
                                                   "$/cancelRequest"};
  return message.kind == MessageKind::notification && !message.method_escaped &&
         std::ranges::find(kNames, message.method()) != kNames.end();
}

[[gnu::always_inline]] inline void Dispatcher::run(Call& call, CallState& state) {
  // The one place in which a handler's exceptions are caught; those of tasks come here by way of error_in_flight.
  try {
    if (middleware_->empty()) [[likely]] {
      call.method().invoke(call);
    } else {
      Next{middleware_->data(), middleware_->size()}(call);
    }
  } catch (...) {
    if (state.answered && !state.reply.begun() && call.late_sink() == nullptr) {
      static_cast<void>(error_of_exception(*workspace_, call.method()));  // too late for the peer, but not for the log
    } else {
      call.error_in_flight();
    }
  }
  if (!state.answered) [[unlikely]] {
    workspace_->write_log(LogLevel::error, "method " + call.method().name() + ": nobody answered the call");
    call.error(Error{ErrorCode::internal_error});
  }
}

[[gnu::always_inline]] inline void Dispatcher::handle_single(const Received& message, CallState& state) {
  if (message.kind == MessageKind::invalid) [[unlikely]]
    return refuse(message, state);
  if (limits_->rate != 0 && !belongs_to_a_call(message)) [[unlikely]] {
    if (const std::chrono::nanoseconds wait = wait_for_rate(); wait > std::chrono::nanoseconds{0})
      return refuse_rate(message, state, wait);
  }
  if ((message.present & kTerms) != 0 || timeout_max_ms_ != kNoTimeout) [[unlikely]] {
    if (!take_terms(message, state)) return;
  }
  std::string_view name = message.method();
  if (message.method_escaped) [[unlikely]] {
    workspace_->readers.reader->reset(message[Member::method]);
    static_cast<void>(workspace_->readers.reader->read_string(name));
  }
  if (message.kind == MessageKind::notification && workspace_->broker != nullptr)
    broker_peer()->notified(message, name);
  if (workspace_->authority != nullptr && !is_reserved(name) && !may_call(principal(), name)) [[unlikely]] {
    if (workspace_->broker != nullptr) broker_peer()->not_granted(name);
    return unknown_method(message, name, state);
  }
  const Method* method = registry_->find(name);
  if (method == nullptr) {
    if (workspace_->broker != nullptr) method = broker_peer()->find(name);
    if (method == nullptr) [[unlikely]]
      return unknown_method(message, name, state);
  }
  Stats& stats = workspace_->stats;
  ++(message.kind == MessageKind::notification ? stats.notifications : stats.calls);
  Call call{state, message, *method, workspace_->window};
  if (draining_) [[unlikely]] {
    return call.error(
        message::make({.code = ErrorCode::draining, .reason = "the server is shutting down", .delivered = "no"}));
  }
  if (is_full()) [[unlikely]] {
    return call.error(message::make({.code = ErrorCode::limit_exceeded,
                                     .reason = "too many calls of this connection are in flight",
                                     .delivered = "no",
                                     .limit = "in_flight"}));
  }
  if (workspace_->broker != nullptr && workspace_->broker->is_tapped()) [[unlikely]]
    broker_peer()->tapped(call, name);
  if (workspace_->own_counts != nullptr) {
    OwnCounts::Row* const row = workspace_->own_counts->of(*method);
    if (row != nullptr) {
      ++row->calls;
      if (row->timed_in != stats.loop_turns) [[unlikely]]
        return run_timed(call, state, *row);
    }
  }
  run(call, state);
}

// A call that is answered at once is timed where it is the method's first in its turn: looking at the clock costs as
// much as many a method, and next to nothing beside a turn. Those that wait are timed when they are closed.
void Dispatcher::run_timed(Call& call, CallState& state, OwnCountsRow& row) {
  row.timed_in = workspace_->stats.loop_turns;
  const Scheduler* const clock = workspace_->scheduler;
  const std::chrono::nanoseconds began = clock != nullptr ? clock->now() : std::chrono::nanoseconds{0};
  run(call, state);
  if (!state.waits && clock != nullptr) row.record(clock->now() - began);
}

// How long until the connection may send what it has just sent; 0 when it may, which is then counted. The bucket holds
// one second's worth: it is full when the next message is due now, and empty when it is due in a second.
std::chrono::nanoseconds Dispatcher::wait_for_rate() {
  using std::chrono::nanoseconds;
  if (workspace_->scheduler == nullptr) return nanoseconds{0};
  constexpr nanoseconds kSecond = std::chrono::seconds{1};
  const nanoseconds now = workspace_->scheduler->now();
  nanoseconds& due = pending().load->rate_due;
  const nanoseconds next = std::max(due, now) + kSecond / limits_->rate;
  if (next - now > kSecond) return next - now - kSecond;
  due = next;
  return nanoseconds{0};
}

void Dispatcher::refuse_rate(const Received& message, CallState& state, std::chrono::nanoseconds wait) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
  workspace_->stats.count_error(static_cast<int>(ErrorCode::limit_exceeded));
  if (message.kind == MessageKind::notification) return;
  state.reply.error(message::make({.code = ErrorCode::limit_exceeded,
                                   .reason = "too many messages of this connection",
                                   .delivered = "no",
                                   .limit = "rate",
                                   .retry_after_ms = static_cast<std::uint64_t>(milliseconds)}),
                    message.id());
}

const Principal* Dispatcher::principal() const noexcept {
  return pending_ != nullptr && pending_->identity != nullptr ? pending_->identity->shown.principal : nullptr;
}

PeerIdentity& Dispatcher::identity() {
  std::unique_ptr<PeerIdentity>& known = pending().identity;
  if (!known) known = std::make_unique<PeerIdentity>();
  return *known;
}

void Dispatcher::await_identity() {
  if (workspace_->authority == nullptr || workspace_->scheduler == nullptr || limits_->registration_timeout_ms == 0)
    return;
  const std::chrono::milliseconds time{limits_->registration_timeout_ms};
  identity().awaited = std::make_unique<AwaitedIdentity>(*outlet_, *workspace_, time);
}

void Dispatcher::identify(const Principal* principal, std::string_view token) {
  PeerIdentity& known = identity();
  known.shown = {.authority = workspace_->authority, .principal = principal, .token = std::string{token}};
  if (principal != nullptr) known.awaited.reset();
  if (broker_peer_) broker_peer_->identify(principal);
}

bool Dispatcher::is_still_known(bool was_open) const noexcept {
  const Principal* const before = principal();
  if (before == nullptr) return !was_open || workspace_->authority == nullptr;
  const Identity& shown = pending_->identity->shown;
  if (shown.authority == workspace_->authority) return true;
  const Principal* const after = workspace_->authority != nullptr ? workspace_->authority->find(shown.token) : nullptr;
  return after != nullptr && same_grants(*after, *before);
}

// Whether a peer that has not said who it is may say this, or one that has still may: else it is refused, and its
// connection closed.
bool Dispatcher::admit(const Received& message) {
  const bool known = principal() != nullptr;
  if (known && pending_->identity->shown.authority == workspace_->authority) [[likely]]
    return true;
  if (known && is_still_known()) {
    const std::string token = std::move(pending_->identity->shown.token);
    identify(workspace_->authority->find(token), token);
    return true;
  }
  const bool single = message.kind == MessageKind::request || message.kind == MessageKind::notification;
  const std::string_view name = single && !message.method_escaped ? message.method() : std::string_view{};
  if (!known && (name == "rpc.hello" || name == "rpc.ping" || name == "keepAlive")) return true;
  if (message.kind != MessageKind::notification) {
    workspace_->stats.count_error(static_cast<int>(ErrorCode::unauthenticated));
    CallState{*this, nullptr}.reply.error(unauthenticated(), single ? message.id() : "null");
  }
  outlet_->close();
  return false;
}

void Dispatcher::handle(const Received& message, std::span<const Received> elements) {
  if (workspace_->authority != nullptr && !admit(message)) [[unlikely]]
    return;
  if (message.kind == MessageKind::batch) [[unlikely]] {
    return handle_batch(message, elements,
                        [this](const Received& element, CallState& state) { handle_single(element, state); });
  }
  CallState state{*this, nullptr};
  handle_single(message, state);
}

void Dispatcher::handle_transcoded(const Received& message, std::span<const Received> elements,
                                   std::span<const message::Unheld> unheld) {
  if (workspace_->authority != nullptr && !admit(message)) return;
  const auto serve = [&](const Received& one, CallState& state) {
    const auto offset = static_cast<std::size_t>(one.text.data() - message.text.data());
    if (!refuse_values(one, state, offset, unheld)) handle_single(one, state);
  };
  if (message.kind == MessageKind::batch) return handle_batch(message, elements, serve);
  CallState state{*this, nullptr};
  serve(message, state);
}

void Dispatcher::handle_packed(const Received& message, std::span<const Received> elements, std::string_view packed) {
  if (workspace_->authority != nullptr && !admit(message)) return;
  const auto serve = [&](const Received& one, CallState& state) {
    Received restored = one;
    message::Transcoder::restore(packed, restored);
    if (state.batch == nullptr) restored.text = packed;
    if (is_for_reserved(restored)) return handle_unpacked(restored, state);
    handle_single(restored, state);
  };
  if (message.kind == MessageKind::batch) return handle_batch(message, elements, serve);
  CallState state{*this, nullptr};
  serve(message, state);
}

bool Dispatcher::is_for_reserved(const Received& message) const noexcept {
  const bool calls = message.kind == MessageKind::request || message.kind == MessageKind::notification;
  return calls && is_reserved(message.method()) && registry_->find(message.method()) == nullptr;
}

// What is said to wirecall itself is looked at as JSON.
void Dispatcher::handle_unpacked(Received& message, CallState& state) {
  Buffer json;
  const std::string_view why = workspace_->transcoder().unpack(message, *limits_, json);
  if (why.empty()) return handle_single(message, state);
  workspace_->stats.count_error(static_cast<int>(ErrorCode::invalid_params));
  if (message.kind == MessageKind::request) state.reply.error(message::unheld_params(why), message.id());
}

bool Dispatcher::may_stay_packed(std::string_view packed) const noexcept {
  if (workspace_->broker == nullptr) return true;
  const std::string_view name = message::Transcoder::method_of(packed);
  return message::Transcoder::is_single(packed) && !name.empty() && !is_reserved(name) && outlet_->connected();
}

// Events, streams and batches go through a broker as JSON, and so does what somebody looks at.
bool Dispatcher::takes_packed(const Received& message) const noexcept {
  if (message.kind == MessageKind::response) return broker_peer_ != nullptr && broker_peer_->takes_packed(message);
  if (workspace_->broker == nullptr) return true;
  return message.kind == MessageKind::request && !message.has(Member::stream) && !workspace_->broker->is_tapped();
}

// Whether the message, `offset` bytes into what has come, is one that was no JSON as it was sent, and is answered for
// that.
bool Dispatcher::refuse_values(const Received& message, CallState& state, std::size_t offset,
                               std::span<const message::Unheld> unheld) {
  if (message.kind != MessageKind::request && message.kind != MessageKind::notification) return false;
  const auto found = std::ranges::find(unheld, offset, &message::Unheld::offset);
  std::optional<Error> error;
  if (found != unheld.end()) {
    error = message::unheld_params(found->why);
  } else if (workspace_->broker != nullptr && message.text.size() > limits_->max_message_size) {
    // Peers that it may be relayed to take no more than that.
    error = message::too_large_as_json();
  }
  if (!error) return false;
  workspace_->stats.count_error(error->code());
  if (message.kind == MessageKind::request) state.reply.error(*error, message.id());
  return true;
}

template <class Serve>
[[gnu::noinline]] void Dispatcher::handle_batch(const Received& message, std::span<const Received> elements,
                                                const Serve& serve_one) {
  BatchScope scope;
  // The scratch memory goes with the batch, in case a handler brings in another one.
  scope.local.text = std::move(workspace_->batch_text);
  scope.local.begin(form_);
  const auto serve = [&](const Received& element) {
    if (element.kind == MessageKind::response) return;
    CallState state{*this, &scope};
    serve_one(element, state);
  };
  if (message.batch_size <= elements.size()) {
    for (const Received& element : elements.first(message.batch_size)) serve(element);
  } else {
    BatchElements walk{message.text};
    Received element;
    while (walk.next(element)) serve(element);
  }
  BatchReply& batch = scope.current();
  batch.dispatched = true;
  if (batch.unanswered != 0) return;
  send_batch(*outlet_, batch);
  workspace_->batch_text = std::move(batch.text);
}

void Dispatcher::refuse(const Received& message, CallState& state) {
  std::string_view data;
  if (message.fault == Fault::id_limit) data = R"({"limit":"id"})";
  if (message.fault == Fault::batch_limit) data = R"({"limit":"batch"})";
  reply_error(state, *workspace_, ErrorCode::invalid_request, data, message.id());
}

// Reads what the request says of its own handling. False when that is the end of it.
bool Dispatcher::take_terms(const Received& message, CallState& state) {
  const auto refused = [&](const Error& error) {
    if (message.kind == MessageKind::notification) return false;
    workspace_->stats.count_error(error.code());
    state.reply.error(error, message.id());
    return false;
  };
  CallExtras& extras = state.extras();
  if (message.has(Member::stream)) {
    extras.credit = read_count(*workspace_, message[Member::stream]).value_or(0);
    if (extras.credit == 0) return refused(Error{ErrorCode::invalid_request});
  }
  if (message.has(Member::hops)) {
    const std::optional<std::uint64_t> hops = read_count(*workspace_, message[Member::hops]);
    if (!hops) return refused(Error{ErrorCode::invalid_request});
    if (*hops > limits_->hops) {
      return refused(message::make({.code = ErrorCode::limit_exceeded,
                                    .reason = "too many calls within calls",
                                    .delivered = "no",
                                    .limit = "hops"}));
    }
    extras.bounds.hops = static_cast<std::uint32_t>(*hops);
  }
  if (message.has(Member::timeout_ms) || timeout_max_ms_ != kNoTimeout) {
    const std::uint32_t own =
        message.has(Member::timeout_ms) ? milliseconds_of(message[Member::timeout_ms]) : kNoTimeout;
    extras.timeout_ms = std::min(own, timeout_max_ms_);
    const std::chrono::milliseconds time{*extras.timeout_ms};
    const bool late =
        *extras.timeout_ms == 0 || (workspace_->scheduler != nullptr && workspace_->scheduler->now() - came() >= time);
    if (late) {
      return refused(message::make(
          {.code = ErrorCode::timeout, .reason = "the time was up before the call began", .delivered = "no"}));
    }
  }
  return true;
}

std::chrono::nanoseconds Dispatcher::came() const {
  const std::optional<std::chrono::nanoseconds> known = outlet_->came();
  return known ? *known : workspace_->scheduler->now();
}

CallBounds Dispatcher::bounds(CallState& state) const {
  CallExtras* const extras = state.rare.get();
  if (extras != nullptr && extras->bounded) return extras->bounds;
  CallBounds bounds;
  std::optional<std::uint32_t> timeout_ms = limits_->call_timeout_ms;
  if (extras != nullptr) {
    bounds = extras->bounds;
    if (extras->items) {
      timeout_ms = extras->timeout_ms;  // the other one is for the time from item to item
    } else {
      timeout_ms = std::min(*timeout_ms, extras->timeout_ms.value_or(*timeout_ms));
    }
  }
  if (workspace_->scheduler != nullptr) {
    bounds.began = came();
    if (timeout_ms) bounds.deadline = bounds.began + std::chrono::milliseconds{*timeout_ms};
  }
  if (extras != nullptr) {
    extras->bounds = bounds;
    extras->bounded = true;
  }
  return bounds;
}

void Dispatcher::unknown_method(const Received& message, std::string_view name, CallState& state) {
  BrokerPeer* const broker = broker_peer();
  Identity* const shown = workspace_->authority != nullptr ? &identity().shown : nullptr;
  if (serve_reserved({message, name, state.reply, *workspace_, *limits_, *outlet_, *registry_, pending_.get(), broker,
                      greeted_, unknown_methods_, shown})) {
    if (principal() != nullptr) pending_->identity->awaited.reset();
    return;
  }
  if (message.kind == MessageKind::notification) return;
  std::string_view near = registry_->nearest(name, principal());
  if (near.empty() && broker != nullptr) near = broker->nearest(name);
  std::string data;
  if (!near.empty()) data.append(R"({"did_you_mean":)").append(to_json(near)).append("}");
  if (unknown_methods_ != std::numeric_limits<std::uint8_t>::max()) ++unknown_methods_;
  reply_error(state, *workspace_, ErrorCode::method_not_found, data, message.id());
}

void Dispatcher::refuse_syntax(ScanStatus status) {
  CallState state{*this, nullptr};
  reply_error(state, *workspace_, ErrorCode::parse_error, status == ScanStatus::too_deep ? R"({"limit":"depth"})" : "",
              "null");
}

void Dispatcher::refuse_size() {
  workspace_->stats.count_error(static_cast<int>(ErrorCode::too_large));
  CallState{*this, nullptr}.reply.error(message::make({.code = ErrorCode::too_large,
                                                       .reason = "the message is larger than allowed",
                                                       .delivered = "no",
                                                       .limit = "max_message_size"}),
                                        "null");
}

std::size_t Dispatcher::waiting_calls() const noexcept {
  return (pending_ ? pending_->active : 0) + (broker_peer_ ? broker_peer_->in_flight() : 0);
}

BrokerPeer* Dispatcher::broker_peer() {
  if (!broker_peer_ && workspace_->broker != nullptr) {
    broker_peer_ = workspace_->broker->meet(*outlet_, pending().load);
    broker_peer_->identify(principal());
  }
  return broker_peer_.get();
}

void Dispatcher::room() {
  if (broker_peer_) broker_peer_->room();
  const std::shared_ptr<PendingCalls> calls = pending_;
  if (!calls) return;
  // Those that have to rest again are at the end of the queue then: each had its turn.
  for (std::size_t left = calls->waiting_for_room.size(); left != 0; --left) {
    if (calls->waiting_for_room.empty() || !outlet_->has_room()) return;
    calls->waiting_for_room.front()->go_on();
  }
}

bool Dispatcher::is_full() const noexcept { return load_ != nullptr && load_->calls >= limits_->in_flight; }

PendingCalls& Dispatcher::pending() {
  if (pending_) return *pending_;
  pending_ = std::make_shared<PendingCalls>(*this, outlet_->load());
  load_ = pending_->load.get();
  return *pending_;
}

void Dispatcher::drain() noexcept {
  if (std::exchange(draining_, true) || !greeted_) return;
  try {
    send_own(R"({"jsonrpc":"2.0","method":"rpc.draining"})");
  } catch (const std::bad_alloc&) {
    // The peer learns from the next answer, or from the end.
  }
}

void Dispatcher::send_own(std::string_view text) {
  Buffer& out = outlet_->open_message();
  try {
    out.append(text);
  } catch (...) {
    outlet_->discard_message();
    throw;
  }
  outlet_->close_message();
}

void Dispatcher::ask_to_stop() noexcept {
  if (pending_) pending_->stop_all();
}

void Dispatcher::end_calls(const Error& error) noexcept {
  if (pending_) pending_->end_all(error);
  if (broker_peer_) broker_peer_->end_calls(error);
}

void Dispatcher::stop_calls() noexcept {
  end_calls(message::make({.code = ErrorCode::draining,
                           .reason = "the server has shut down before the call was done",
                           .delivered = "maybe"}));
}

std::shared_ptr<PeerCalls> Dispatcher::peer_calls() {
  if (!outlet_->connected()) return nullptr;
  std::shared_ptr<PeerCalls>& calls = pending().peer_calls;
  if (!calls) calls = std::make_shared<PeerCalls>(*outlet_, *workspace_, *limits_);
  return calls;
}

bool Dispatcher::ask_for_life() {
  if (!greeted_) return false;
  send_own(kPing);
  return true;
}

bool Dispatcher::is_relied_on() const noexcept { return broker_peer_ && broker_peer_->provides_any(); }

bool Dispatcher::is_kept() const noexcept {
  return broker_peer_ && (broker_peer_->provides_any() || broker_peer_->subscribes_any());
}

bool Dispatcher::awaits_responses() const noexcept {
  return (pending_ && pending_->peer_calls && !pending_->peer_calls->empty()) ||
         (broker_peer_ && broker_peer_->awaits_responses());
}

bool Dispatcher::response(const Received& message) {
  if (broker_peer_ && broker_peer_->response(message)) return true;
  if (message.has(Member::id) && message.id() == kPingId) return true;
  if (!pending_ || !pending_->peer_calls) return false;
  // Whoever is answered may end all this.
  const std::shared_ptr<PeerCalls> calls = pending_->peer_calls;
  return calls->response(message);
}

void Dispatcher::peer_ended() {
  if (broker_peer_) broker_peer_->peer_ended();
  const std::shared_ptr<PendingCalls> calls = pending_;
  if (!calls) return;
  if (const std::shared_ptr<PeerCalls> peer_calls = calls->peer_calls) peer_calls->peer_ended();
  calls->peer_ended();
}

void Dispatcher::abandon() noexcept {
  broker_peer_.reset();
  if (!pending_) return;
  load_ = nullptr;  // which goes with them
  const std::shared_ptr<PendingCalls> calls = std::move(pending_);
  if (calls->identity) calls->identity->awaited.reset();
  const std::shared_ptr<PeerCalls> peer_calls = calls->peer_calls;
  if (peer_calls) peer_calls->gone();
  calls->abandon(*workspace_);
  // Who has survived being stopped learns why nobody answers.
  if (peer_calls) peer_calls->peer_ended();
}

}  // namespace rpc
}  // namespace wirecall
