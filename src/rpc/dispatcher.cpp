#include "rpc/dispatcher.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include "base/dotted_name.hpp"
#include "message/explain.hpp"
#include "message/json_bytes.hpp"
#include "message/own_error.hpp"
#include "message/transcoder.hpp"
#include "rpc/access.hpp"
#include "rpc/batch_run.hpp"
#include "rpc/broker.hpp"
#include "rpc/call_options.hpp"
#include "rpc/call_record.hpp"
#include "rpc/method_counts.hpp"
#include "rpc/own_subscriptions.hpp"
#include "rpc/peer_calls.hpp"
#include "rpc/pending.hpp"
#include "rpc/rendering.hpp"
#include "rpc/request_subject.hpp"
#include "rpc/reserved.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall {

void Next::operator()(Call& call) const {
  if (count_ == 0) return call.method().invoke(call);
  (*rest_)(call, Next{rest_ + 1, count_ - 1});
}

namespace rpc {
namespace {

bool is_item(std::string_view name) noexcept { return name == "rpc.item" || name == "$/progress"; }

// Whether a reserved method takes its params in MessagePack as they came: events and items go on to others.
bool reads_msgpack(std::string_view reserved) noexcept { return reserved == "rpc.publish" || is_item(reserved); }

// The three errors of the specification about a message that reaches no handler.
void reply_error(CallState& state, const LoopContext& loop_context, ErrorCode code, std::string_view data_json,
                 std::string_view id_json) {
  loop_context.stats.count_error(static_cast<int>(code));
  if (data_json.empty()) return state.reply.plain_error(code, id_json);
  state.reply.error(static_cast<int>(code), message_of(code), data_json, id_json);
}

/// Whether a reserved method looks at no more of its params than whether there are any.
bool takes_no_params(std::string_view reserved) noexcept {
  return reserved == "rpc.ping" || reserved == "rpc.undelivered";
}

// Of a message in MessagePack that is made JSON, whatever of it is needed, rather than measured.
constexpr std::size_t kTranscodedBytes = 4096;
// What a byte of MessagePack may be in JSON, at most: no bytes at all are two here, and fourteen with a comma there.
constexpr std::size_t kJsonBytesOfByte = 7;

constexpr std::uint32_t bit(Member member) { return std::uint32_t{1} << static_cast<unsigned>(member); }
// What a request may say of its own handling.
constexpr std::uint32_t kCallOptions = bit(Member::timeout_ms) | bit(Member::stream) | bit(Member::hops);

// What is left of a batch is answered so that is not run any more; what of it has begun may have done what it was to
// do.
Error closes_within_batch(bool begun) {
  return message::make(
      {.code = ErrorCode::draining, .reason = "the connection is being closed", .delivered = begun ? "maybe" : "no"});
}

Error late_call() {
  return message::make(
      {.code = ErrorCode::timeout, .reason = "the time was up before the call began", .delivered = "no"});
}

bool is_batch_over_limit(const Received& message) noexcept {
  return message.kind == MessageKind::invalid && message.fault == Fault::batch_limit;
}

// Searches for a name that a connection may have mistyped; and what one costs, however many names there are.
constexpr int kSuggestionsInSecond = 16;
constexpr std::size_t kSuggestionSteps = 256;

// No other request of ours has such an id: a response to it comes from a peer that is there.
constexpr std::string_view kPing = R"({"jsonrpc":"2.0","method":"rpc.ping","id":"rpc.ping"})";
constexpr std::string_view kPingId = R"("rpc.ping")";

}  // namespace

LoopContext::LoopContext(const Codec& codec, Scheduler* timers, const LogSink* log)
    : codec(&codec),
      readers{.reader = codec.reader(), .defaults = {}},
      writer(codec.writer()),
      scheduler(timers),
      log(log),
      refusals(log, timers) {
  tasks.set_watchdog_slot(&watchdog_slot);
}

LoopContext::~LoopContext() = default;

LoopContext::Scratch LoopContext::make_scratch() const {
  return {{.reader = codec->reader(), .defaults = {}}, std::make_unique<Elements>(), nullptr};
}

LoopContext::Scratch LoopContext::give_up_scratch(Scratch fresh) noexcept {
  return {std::exchange(readers, std::move(fresh.readers)), std::exchange(elements, std::move(fresh.elements)),
          std::move(msgpack_made)};
}

message::Transcoder& LoopContext::transcoder() {
  if (!transcoder_made) transcoder_made = std::make_unique<message::Transcoder>();
  return *transcoder_made;
}

LoopContext::MsgpackCursors& LoopContext::msgpack() {
  if (!msgpack_made) msgpack_made = std::make_unique<MsgpackCursors>();
  return *msgpack_made;
}

void LoopContext::write_log(LogLevel level, std::string_view line) const {
  if (log != nullptr) (*log)(level, line);
}

Dispatcher::Dispatcher(const Registry& registry, MessageSink& sink, const Limits& limits, LoopContext& loop_context,
                       const PeerLoad* load) noexcept
    : registry_(&registry),
      middleware_(&registry.middleware()),
      sink_(&sink),
      limits_(&limits),
      loop_context_(&loop_context),
      load_(load) {}

Dispatcher::~Dispatcher() { abandon(); }

[[gnu::always_inline]] inline bool Dispatcher::is_full() const noexcept {
  return load_ != nullptr &&
         (load_->calls >= limits_->in_flight || load_->calls.of_account() >= limits_->principal_calls);
}

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
      static_cast<void>(
          error_of_exception(*loop_context_, call.method()));  // too late for the peer, but not for the log
    } else {
      call.error_in_flight();
    }
  }
  if (!state.answered) [[unlikely]] {
    loop_context_->write_log(LogLevel::error, "method " + call.method().name() + ": nobody answered the call");
    call.error(Error{ErrorCode::internal_error});
  }
}

[[gnu::always_inline]] inline void Dispatcher::handle_single(const Received& message, CallState& state) {
  if (message.kind == MessageKind::invalid) [[unlikely]]
    return refuse(message, state);
  if ((limits_->rate | limits_->principal_rate) != 0 && !belongs_to_a_call(message) && !is_continued()) [[unlikely]] {
    if (const RateWait wait = wait_for_rate(); wait.time > std::chrono::nanoseconds{0})
      return refuse_rate(message, state, wait);
  }
  if ((message.present & kCallOptions) != 0 || timeout_max_ms_ != kNoTimeout) [[unlikely]] {
    if (!take_call_options(message, state)) return;
  }
  std::string_view name = message.method();
  if (message.method_escaped) [[unlikely]] {
    loop_context_->readers.reader->reset(message[Member::method]);
    static_cast<void>(loop_context_->readers.reader->read_string(name));
  }
  if (message.kind == MessageKind::notification && loop_context_->broker != nullptr)
    broker_peer()->notified(message, name);
  if (loop_context_->authority != nullptr && !is_reserved(name) && !may_call(principal(), name)) [[unlikely]] {
    if (loop_context_->broker != nullptr) broker_peer()->not_granted(name);
    return unknown_method(message, name, state);
  }
  const Method* method = registry_->find(name);
  if (method == nullptr) {
    if (loop_context_->broker != nullptr) method = broker_peer()->find(name);
    if (method == nullptr) [[unlikely]]
      return unknown_method(message, name, state);
  } else if (message.has(Member::to)) [[unlikely]] {
    return refuse_addressed(message, name, state);
  }
  Stats& stats = loop_context_->stats;
  ++(message.kind == MessageKind::notification ? stats.notifications : stats.calls);
  Call call{state, message, *method, loop_context_->watchdog_slot};
  if (draining_) [[unlikely]] {
    return call.error(
        message::make({.code = ErrorCode::draining, .reason = "the server is shutting down", .delivered = "no"}));
  }
  if (is_full()) [[unlikely]] {
    if (const std::optional<Error> why = refuse_full()) return call.error(*why);
  }
  if (loop_context_->broker != nullptr && loop_context_->broker->is_tapped()) [[unlikely]]
    broker_peer()->tapped(call, name);
  if (loop_context_->own_counts != nullptr) {
    OwnCounts::Row* const row = loop_context_->own_counts->of(*method);
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
  row.timed_in = loop_context_->stats.loop_turns;
  const Scheduler* const clock = loop_context_->scheduler;
  const std::chrono::nanoseconds began = clock != nullptr ? clock->now() : std::chrono::nanoseconds{0};
  run(call, state);
  if (!state.waits && clock != nullptr) row.record(clock->now() - began);
}

// Why no further call may wait; nothing where another connection of the account has given way to this one.
std::optional<Error> Dispatcher::refuse_full() {
  if (load_->calls >= limits_->in_flight) {
    return message::make({.code = ErrorCode::limit_exceeded,
                          .reason = "too many calls of this connection are in flight",
                          .delivered = "no",
                          .limit = "in_flight"});
  }
  if (broker_peer_ && broker_peer_->shed_call()) return std::nullopt;
  return too_many_of_principal("no");
}

Error no_such_client() {
  return message::make(
      {.code = ErrorCode::provider_lost, .reason = "no client of that name provides the method", .delivered = "no"});
}

Error too_many_of_principal(std::string_view delivered) {
  return message::make({.code = ErrorCode::limit_exceeded,
                        .reason = "too many calls of this principal, address or user are in flight",
                        .delivered = delivered,
                        .limit = "principal_calls"});
}

// How long until the connection may send what it has just sent; 0 when it may, which is then counted. A bucket holds
// one second's worth: it is full when the next message is due now, and empty when it is due in a second. There is one
// of the connection, and one of its account.
Dispatcher::RateWait Dispatcher::wait_for_rate() {
  using std::chrono::nanoseconds;
  if (loop_context_->scheduler == nullptr) return {};
  constexpr nanoseconds kSecond = std::chrono::seconds{1};
  const nanoseconds now = loop_context_->scheduler->now();
  PeerLoad& load = *pending().load;
  Account& account = *load.calls.account();
  const auto next = [&](nanoseconds due, std::uint32_t rate) {
    return rate == 0 ? due : std::max(due, now) + kSecond / rate;
  };
  const nanoseconds own = next(load.rate_due, limits_->rate);
  const nanoseconds all = next(account.rate_due, limits_->principal_rate);
  if (limits_->rate != 0 && own - now > kSecond) return {.time = own - now - kSecond, .limit = "rate"};
  if (limits_->principal_rate != 0 && all - now > kSecond)
    return {.time = all - now - kSecond, .limit = "principal_rate"};
  load.rate_due = own;
  account.rate_due = all;
  return {};
}

void Dispatcher::refuse_rate(const Received& message, CallState& state, const RateWait& wait) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(wait.time).count();
  loop_context_->stats.count_error(static_cast<int>(ErrorCode::limit_exceeded));
  if (message.kind == MessageKind::notification) return;
  const bool own = wait.limit == "rate";
  state.reply.error(message::make({.code = ErrorCode::limit_exceeded,
                                   .reason = own ? "too many messages of this connection"
                                                 : "too many messages of this principal, address or user",
                                   .delivered = "no",
                                   .limit = wait.limit,
                                   .retry_after_ms = static_cast<std::uint64_t>(milliseconds)}),
                    message.id());
}

// What the connection uses is on the account of its principal; before it has one, of where it comes from.
void Dispatcher::use_account() {
  CallCount& calls = pending_->load->calls;
  const Principal* const known = principal();
  // No name of a principal and no source is the other's.
  const std::string_view kind = known != nullptr ? "principal " : "source ";
  if (calls.account()) {
    const std::string_view before = calls.account()->name;
    if (before.starts_with(kind) && (known == nullptr || before.substr(kind.size()) == known->name)) return;
  }
  const std::string name = std::string{kind} + (known != nullptr ? known->name : sink_->peer_source());
  const Scheduler* const clock = loop_context_->scheduler;
  calls.use(loop_context_->accounts.of(name, clock != nullptr ? clock->now() : std::chrono::nanoseconds{0}));
}

const std::shared_ptr<Account>& Dispatcher::account() { return pending().load->calls.account(); }

const Principal* Dispatcher::principal() const noexcept {
  return pending_ != nullptr && pending_->identity != nullptr ? pending_->identity->shown.principal : nullptr;
}

PeerIdentity& Dispatcher::identity() {
  std::unique_ptr<PeerIdentity>& known = pending().identity;
  if (!known) known = std::make_unique<PeerIdentity>();
  return *known;
}

void Dispatcher::await_identity() {
  if (loop_context_->authority == nullptr) return;
  const std::chrono::milliseconds time{limits_->registration_timeout_ms};
  identity().awaited = std::make_unique<AwaitedIdentity>(*sink_, *loop_context_, time);
}

void Dispatcher::identify(const Principal* principal, std::string_view token) {
  PeerIdentity& known = identity();
  known.shown = {.authority = loop_context_->authority, .principal = principal, .token = std::string{token}};
  if (principal != nullptr) known.awaited.reset();
  use_account();
  if (broker_peer_) broker_peer_->identify(principal);
}

void Dispatcher::hold_unidentified(std::size_t bytes) {
  if (!pending_ || !pending_->identity || !pending_->identity->awaited) return;
  loop_context_->unidentified.hold(*pending_->identity->awaited, bytes, limits_->unidentified_bytes);
}

bool Dispatcher::is_still_known(bool was_open) const noexcept {
  const Principal* const before = principal();
  if (before == nullptr) return !was_open || loop_context_->authority == nullptr;
  const Identity& shown = pending_->identity->shown;
  if (shown.authority == loop_context_->authority) return true;
  const Principal* const after =
      loop_context_->authority != nullptr ? loop_context_->authority->find(shown.token) : nullptr;
  return after != nullptr && same_grants(*after, *before);
}

void Dispatcher::end_if_revoked() noexcept {
  if (principal() == nullptr || loop_context_->authority == nullptr) return;
  if (loop_context_->authority->find(pending_->identity->shown.token) != nullptr) return;
  refuse_open_batch();
  end_calls(message::make({.code = ErrorCode::unauthenticated,
                           .reason = "the token that the caller has shown is not known any more",
                           .delivered = "maybe"}));
}

// Whether a peer that has not said who it is may say this, or one that has still may: else it is refused, and its
// connection closed.
bool Dispatcher::admit(const Received& message, std::string_view msgpack) {
  const bool known = principal() != nullptr;
  if (known && pending_->identity->shown.authority == loop_context_->authority) [[likely]]
    return true;
  if (known && is_still_known()) {
    const std::string token = std::move(pending_->identity->shown.token);
    identify(loop_context_->authority->find(token), token);
    return true;
  }
  const bool single = message.kind == MessageKind::request || message.kind == MessageKind::notification;
  const std::string_view name = single && !message.method_escaped ? message.method() : std::string_view{};
  if (!known && (name == "rpc.hello" || name == "rpc.ping" || name == "keepAlive")) {
    const std::size_t unread = sink_->waiting_bytes();
    hold_unidentified(unread);
    if (unread <= kUnidentifiedBytesMax) return true;
    sink_->close();
    return false;
  }
  const Error error = unauthenticated();
  const auto log = [&](Received refused) {
    if (!msgpack.empty()) message::Transcoder::restore(msgpack, refused);
    log_unauthenticated(refused);
  };
  if (message.kind == MessageKind::batch || is_batch_over_limit(message)) {
    BatchElements elements{message.text};
    for (Received element; elements.next(element);) log(element);
    refuse_batch(message, error);
  } else {
    log(message);
    if (message.kind != MessageKind::notification) {
      loop_context_->stats.count_error(error.code());
      CallState{*this, nullptr}.reply.error(error, message.id());
    }
  }
  sink_->close();
  return false;
}

void Dispatcher::log_unauthenticated(const Received& message) noexcept try {
  if (message.kind != MessageKind::request && message.kind != MessageKind::notification) return;
  const bool tells = is_reserved(message.method()) && message.has(Member::params);
  const bool shown = pending_ != nullptr && pending_->identity != nullptr && !pending_->identity->shown.token.empty();
  loop_context_->refusals.log_unauthenticated({.what = message.method(),
                                               .about = tells ? subject_of(message[Member::params]) : std::string{},
                                               .source = sink_->peer_source(),
                                               .reason = shown ? Refusals::kRemovedToken : Refusals::kNoToken});
} catch (const std::bad_alloc&) {
  // The peer is told all the same.
}

void Dispatcher::handle(const Received& message, std::span<const Received> elements) {
  if (loop_context_->authority != nullptr && !admit(message)) [[unlikely]]
    return;
  if (message.kind == MessageKind::batch) [[unlikely]] {
    BatchRun run{message.text};
    return handle_batch(run, message.batch_size, elements);
  }
  CallState state{*this, nullptr};
  handle_single(message, state);
}

void Dispatcher::serve_element(BatchRun& run, const Received& element, CallState& state) {
  if (run.way == BatchRun::Way::plain) [[likely]]
    return handle_single(element, state);
  serve_element_as(run, element, state);
}

void Dispatcher::serve_element_as(BatchRun& run, const Received& element, CallState& state) {
  if (run.way == BatchRun::Way::msgpack) {
    const bool calls = element.kind == MessageKind::request || element.kind == MessageKind::notification;
    // Somebody may have begun to look on since the batch has come.
    if (calls && !takes_msgpack(element)) return handle_as_json(element, state, run.msgpack_element);
    return handle_msgpack(element, state, run.msgpack, run.msgpack_element);
  }
  if (run.way == BatchRun::Way::transcoded) {
    const auto offset = static_cast<std::size_t>(element.text.data() - run.text.data());
    return handle_transcoded(element, state, run.offset + offset, run.unrepresentable);
  }
  if (element.kind != MessageKind::notification) state.reply.error(closes_within_batch(run.begun), element.id());
  run.begun = false;
}

void Dispatcher::handle_transcoded(const Received& message, std::span<const Received> elements,
                                   std::span<const message::Unrepresentable> unrepresentable) {
  if (loop_context_->authority != nullptr && !admit(message)) return;
  if (message.kind == MessageKind::batch) {
    BatchRun run{message.text};
    run.unrepresentable = unrepresentable;
    run.way = BatchRun::Way::transcoded;
    return handle_batch(run, message.batch_size, elements);
  }
  CallState state{*this, nullptr};
  handle_transcoded(message, state, 0, unrepresentable);
}

void Dispatcher::handle_transcoded(const Received& message, CallState& state, std::size_t offset,
                                   std::span<const message::Unrepresentable> unrepresentable) {
  if (!refuse_values(message, state, offset, unrepresentable)) handle_single(message, state);
}

void Dispatcher::handle_msgpack(const Received& message, std::span<const Received> elements, std::string_view msgpack,
                                bool too_large) {
  if (loop_context_->authority != nullptr && !admit(message, msgpack)) return;
  if (message.kind == MessageKind::batch) {
    BatchRun run{message.text};
    run.msgpack = msgpack;
    run.msgpack_rest = message::Transcoder::elements_offset(msgpack);
    run.way = BatchRun::Way::msgpack;
    return handle_batch(run, message.batch_size, elements);
  }
  CallState state{*this, nullptr};
  handle_msgpack(message, state, msgpack, msgpack, too_large);
}

// An element of a batch in MessagePack, `msgpack` itself, as if the batch had come as JSON. A handler may read from
// that as long as it runs: it is on this stack.
void Dispatcher::handle_as_json(const Received& element, CallState& state, std::string_view msgpack) {
  message::Transcoder& transcoder = loop_context_->transcoder();
  Buffer json;
  const bool done = transcoder.checked_to_json(msgpack, *limits_, json) == message::Transcoder::Status::done;
  const std::vector<message::Unrepresentable> unrepresentable = transcoder.take_unrepresentable();
  static_cast<void>(transcoder.take_cancels());  // of items, which stay as they are
  Received message;
  if (done && read_message(json.padded(), *limits_, true, message).status == ScanStatus::complete)
    return handle_transcoded(message, state, 0, unrepresentable);
  refuse_too_large(element, state);
}

// `text` is the message itself: all of `msgpack`, or an element of it.
void Dispatcher::handle_msgpack(const Received& message, CallState& state, std::string_view msgpack,
                                std::string_view text, bool too_large) {
  Received restored = message;
  message::Transcoder::restore(msgpack, restored);
  if (restored.kind != MessageKind::invalid) restored.text = text;
  if (is_for_reserved(restored) && !reads_msgpack(restored.method())) {
    if (too_large) return refuse_too_large(restored, state);
    const bool single = text.data() == msgpack.data();
    const bool measured = loop_context_->broker != nullptr && single && text.size() > kTranscodedBytes;
    if (!measured || !takes_no_params(restored.method())) return handle_unpacked(restored, state);
  }
  handle_single(restored, state);
}

// A request that would be too large as JSON.
void Dispatcher::refuse_too_large(const Received& message, CallState& state) {
  const Error error = message::too_large_as_json();
  loop_context_->stats.count_error(error.code());
  if (message.kind == MessageKind::request) state.reply.error(error, message.id());
}

bool Dispatcher::is_for_reserved(const Received& message) const noexcept {
  const bool calls = message.kind == MessageKind::request || message.kind == MessageKind::notification;
  return calls && is_reserved(message.method()) && registry_->find(message.method()) == nullptr;
}

// What is said to wirecall itself is looked at as JSON.
void Dispatcher::handle_unpacked(Received& message, CallState& state) {
  Buffer json;
  const std::string_view why = loop_context_->transcoder().unpack(message, *limits_, json);
  if (why.empty()) return handle_single(message, state);
  loop_context_->stats.count_error(static_cast<int>(ErrorCode::invalid_params));
  if (message.kind == MessageKind::request) state.reply.error(message::unrepresentable_params(why), message.id());
}

Dispatcher::Passthrough Dispatcher::may_pass_through(std::string_view msgpack,
                                                     const message::MsgpackMembers& members) noexcept {
  if (loop_context_->broker == nullptr) return Passthrough::yes;
  if (!message::Transcoder::is_single(msgpack)) return Passthrough::yes;
  const std::string_view name = message::Transcoder::method_of(msgpack, members);
  if (name.empty()) return Passthrough::no;
  return !is_reserved(name) || reads_msgpack(name) ? Passthrough::yes : need_not_be_json(msgpack, name);
}

// Whether a single message for a reserved method, which looks at JSON, is handled as it would be as such without being
// made that: because it is too large, or nobody looks at its params.
Dispatcher::Passthrough Dispatcher::need_not_be_json(std::string_view msgpack, std::string_view name) noexcept {
  const std::size_t bytes_max = limits_->max_message_size;
  const bool unread = takes_no_params(name) && msgpack.size() > kTranscodedBytes;
  if (!unread && msgpack.size() <= bytes_max / kJsonBytesOfByte) return Passthrough::no;
  if (registry_->find(name) != nullptr) return Passthrough::no;
  const std::optional<message::JsonBytes> bytes = message::json_bytes_of(msgpack, limits_->depth);
  if (!bytes || bytes->max > bytes_max * message::Transcoder::kGrowth) return Passthrough::no;
  if (bytes->min > bytes_max) return Passthrough::too_large;
  return unread && bytes->max <= bytes_max ? Passthrough::yes : Passthrough::no;
}

bool Dispatcher::takes_msgpack(const Received& message) const noexcept {
  if (message.kind == MessageKind::response) return broker_peer_ != nullptr && broker_peer_->takes_msgpack(message);
  return loop_context_->broker == nullptr || message.kind != MessageKind::invalid;
}

// Whether the message, `offset` bytes into what has come, is one that was no JSON as it was sent, and is answered for
// that.
bool Dispatcher::refuse_values(const Received& message, CallState& state, std::size_t offset,
                               std::span<const message::Unrepresentable> unrepresentable) {
  if (message.kind != MessageKind::request && message.kind != MessageKind::notification) return false;
  const auto found = std::ranges::find(unrepresentable, offset, &message::Unrepresentable::offset);
  std::optional<Error> error;
  if (found != unrepresentable.end()) {
    error = message::unrepresentable_params(found->why);
  } else if (loop_context_->broker != nullptr && message.text.size() > limits_->max_message_size) {
    // Peers that it may be relayed to take no more than that.
    error = message::too_large_as_json();
  }
  if (!error) return false;
  loop_context_->stats.count_error(error->code());
  if (message.kind == MessageKind::request) state.reply.error(*error, message.id());
  return true;
}

void Dispatcher::refuse(const Received& message, CallState& state) {
  if (is_batch_over_limit(message)) {
    const auto why = [&] { return "the batch has more than " + std::to_string(limits_->batch) + " elements"; };
    return refuse_batch(message, Error{ErrorCode::invalid_request, std::string{message_of(ErrorCode::invalid_request)},
                                       loop_context_->refusals.data(ErrorCode::invalid_request, "batch", why)});
  }
  const std::string data =
      loop_context_->refusals.data(ErrorCode::invalid_request, message.fault == Fault::id_limit ? "id" : "",
                                   [&] { return message::why_invalid(message, state.batch != nullptr); });
  reply_error(state, *loop_context_, ErrorCode::invalid_request, data, message.id());
}

// Reads what the request says of its own handling. False when that is the end of it.
bool Dispatcher::take_call_options(const Received& message, CallState& state) {
  const auto refused = [&](const Error& error) {
    if (message.kind == MessageKind::notification) return false;
    loop_context_->stats.count_error(error.code());
    state.reply.error(error, message.id());
    return false;
  };
  const auto invalid = [&](std::string_view why) {
    return Error{ErrorCode::invalid_request, std::string{message_of(ErrorCode::invalid_request)},
                 loop_context_->refusals.data(ErrorCode::invalid_request, {}, [&] { return std::string{why}; })};
  };
  CallExtras& extras = state.extras();
  if (message.has(Member::stream)) {
    extras.credit = read_count(*loop_context_, message[Member::stream]).value_or(0);
    if (extras.credit == 0) return refused(invalid("stream must be a whole number from 1"));
  }
  if (message.has(Member::hops)) {
    const std::optional<std::uint64_t> hops = read_count(*loop_context_, message[Member::hops]);
    if (!hops) return refused(invalid("hops must be a whole number from 0"));
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
    const bool late = *extras.timeout_ms == 0 ||
                      (loop_context_->scheduler != nullptr && loop_context_->scheduler->now() - received_at() >= time);
    if (late) return refused(is_continued() ? late_answer() : late_call());
  }
  return true;
}

std::chrono::nanoseconds Dispatcher::received_at() const {
  if (loop_context_->running_batch != nullptr) [[unlikely]] {
    const BatchRun* const running = running_batch();
    if (running != nullptr && running->received_at) return *running->received_at;
  }
  const std::optional<std::chrono::nanoseconds> known = sink_->received_at();
  return known ? *known : loop_context_->scheduler->now();
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
  if (loop_context_->scheduler != nullptr) {
    bounds.began = received_at();
    if (timeout_ms) bounds.deadline = bounds.began + std::chrono::milliseconds{*timeout_ms};
  }
  if (extras != nullptr) {
    extras->bounds = bounds;
    extras->bounded = true;
  }
  return bounds;
}

// `to` names a client, and no client provides a method of the process's own.
void Dispatcher::refuse_addressed(const Received& message, std::string_view name, CallState& state) {
  if (message.kind == MessageKind::notification) return;
  log_unserved(name, ErrorCode::provider_lost);
  loop_context_->stats.count_error(static_cast<int>(ErrorCode::provider_lost));
  state.reply.error(no_such_client(), message.id());
}

// Whether the time is up of what is served again in a later turn, so far as it does not say so itself.
bool Dispatcher::is_late(const BatchRun& run) const {
  const std::chrono::milliseconds time{limits_->call_timeout_ms};
  return run.received_at && loop_context_->scheduler->now() - *run.received_at >= time;
}

void Dispatcher::unknown_method(const Received& message, std::string_view name, CallState& state) {
  if (message.has(Member::to) && is_reserved(name) && !belongs_to_a_call(message)) [[unlikely]]
    return refuse_addressed(message, name, state);
  BrokerPeer* const broker = broker_peer();
  Identity* const shown = loop_context_->authority != nullptr ? &identity().shown : nullptr;
  BatchRun* const running = running_batch();
  std::shared_ptr<Rendering> rendering;
  switch (serve_reserved({message, name, state.reply, *loop_context_, *limits_, *sink_, *registry_, pending_.get(),
                          broker, greeted_, shown, running != nullptr ? running->rendering : rendering,
                          running != nullptr && is_late(*running)})) {
    case Served::done:
      if (principal() != nullptr) {
        pending_->identity->awaited.reset();
        use_account();
      }
      return;
    case Served::continues:
      if (running == nullptr) return open_single(message, name, std::move(rendering));
      running->next = BatchRun::Next::same_element;
      return;
    case Served::unknown:
      break;
  }
  if (message.kind == MessageKind::notification) return;
  std::string_view near;
  if (may_suggest()) {
    near = registry_->nearest(name, principal());
    if (near.empty() && broker != nullptr) near = broker->nearest(name);
    sink_->charge(kSuggestionSteps);
  }
  std::string data;
  if (!near.empty()) data.append(R"({"did_you_mean":)").append(to_json(near)).append("}");
  if (sink_->connected()) pending().load->count_undelivered();
  log_unserved(name, ErrorCode::method_not_found);
  reply_error(state, *loop_context_, ErrorCode::method_not_found, data, message.id());
}

// Calls that reach a method are logged by middleware.
void Dispatcher::log_unserved(std::string_view name, ErrorCode code) const noexcept {
  if (loop_context_->call_log == nullptr || is_reserved(name) || !loop_context_->call_log->takes(LogLevel::info))
    return;
  const Principal* const known = principal();
  write_call_record(*loop_context_->call_log,
                    {.method = name,
                     .client = broker_peer_ ? std::string_view{broker_peer_->name_given()} : std::string_view{},
                     .principal = known != nullptr ? std::string_view{known->name} : std::string_view{},
                     .outcome = "error",
                     .code = static_cast<int>(code)});
}

// A search costs as much as many a call: whoever mistypes one name after the other is no person.
bool Dispatcher::may_suggest() {
  if (loop_context_->scheduler == nullptr) return true;
  constexpr std::chrono::nanoseconds kSecond = std::chrono::seconds{1};
  const std::chrono::nanoseconds now = loop_context_->scheduler->now();
  std::chrono::nanoseconds& due = pending().load->suggestion_due;
  const std::chrono::nanoseconds next = std::max(due, now) + kSecond / kSuggestionsInSecond;
  if (next - now > kSecond) return false;
  due = next;
  return true;
}

void Dispatcher::refuse_syntax(ScanStatus status, const message::Unreadable& where) {
  CallState state{*this, nullptr};
  const std::string data =
      loop_context_->refusals.data(ErrorCode::parse_error, status == ScanStatus::too_deep ? "depth" : "",
                                   [&] { return message::why_unreadable(status, where); });
  reply_error(state, *loop_context_, ErrorCode::parse_error, data, "null");
}

void Dispatcher::refuse_size() {
  loop_context_->stats.count_error(static_cast<int>(ErrorCode::too_large));
  CallState{*this, nullptr}.reply.error(message::make({.code = ErrorCode::too_large,
                                                       .reason = "the message is larger than allowed",
                                                       .delivered = "no",
                                                       .limit = "max_message_size"}),
                                        "null");
}

std::size_t Dispatcher::waiting_calls() const noexcept {
  return (pending_ ? pending_->active : 0) + (broker_peer_ ? broker_peer_->in_flight() : 0);
}

void LeavesBroker::operator()(BrokerPeer* peer) const noexcept { peer->leave(); }

BrokerPeer* Dispatcher::broker_peer() {
  if (!broker_peer_ && loop_context_->broker != nullptr) {
    broker_peer_ = loop_context_->broker->attach_peer(*sink_, pending().load);
    broker_peer_->identify(principal());
  }
  return broker_peer_.get();
}

void Dispatcher::on_writable() {
  if (broker_peer_) broker_peer_->on_writable();
  const std::shared_ptr<PendingCalls> calls = pending_;
  if (!calls) return;
  // Those that have to rest again are at the end of the queue then: each had its turn.
  for (std::size_t left = calls->waiting_until_writable.size(); left != 0; --left) {
    if (calls->waiting_until_writable.empty() || !sink_->writable()) return;
    calls->waiting_until_writable.front()->resume();
  }
}

PendingCalls& Dispatcher::pending() {
  if (pending_) return *pending_;
  pending_ = std::make_shared<PendingCalls>(*this, sink_->load());
  try {
    use_account();
  } catch (...) {
    pending_.reset();
    throw;
  }
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
  Buffer& out = sink_->open_message();
  try {
    out.append(text);
  } catch (...) {
    sink_->discard_message();
    throw;
  }
  sink_->close_message();
}

void Dispatcher::ask_to_stop() noexcept {
  if (pending_) pending_->stop_all(*loop_context_);
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

// Null where the caller cannot be called.
std::shared_ptr<CallerLink> Dispatcher::caller_link() {
  if (!sink_->connected()) return nullptr;
  PendingCalls& calls = pending();
  if (!calls.peer_calls) calls.peer_calls = std::make_shared<PeerCalls>(*sink_, *loop_context_, *limits_);
  return std::make_shared<CallerLink>(calls.peer_calls, calls.load, limits_->soft_output, limits_->hard_output);
}

bool Dispatcher::send_keepalive() {
  if (!greeted_) return false;
  send_own(kPing);
  return true;
}

bool Dispatcher::is_provider() const noexcept { return broker_peer_ && broker_peer_->provides_any(); }

bool Dispatcher::idle_exempt() const noexcept {
  if (pending_ && pending_->subscriptions && !pending_->subscriptions->empty()) return true;
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
  limit_half_closed();
  const std::shared_ptr<PendingCalls> calls = pending_;
  if (!calls) return;
  if (const std::shared_ptr<PeerCalls> peer_calls = calls->peer_calls) peer_calls->peer_ended();
  calls->peer_ended();
}

// Nobody can tell whether a peer that has ended its side still waits for answers: so they are waited for only so long,
// and so many.
void Dispatcher::limit_half_closed() {
  const std::shared_ptr<PendingCalls> calls = pending_;
  const std::size_t waiting = waiting_calls();
  if (!calls || waiting == 0 || calls->half_closed != 0 || loop_context_->scheduler == nullptr) return;
  std::size_t& all = loop_context_->half_closed_calls;
  const std::size_t left = limits_->half_closed_calls - std::min(limits_->half_closed_calls, all);
  const std::size_t kept = std::min(waiting, (left + 1) / 2);
  calls->half_closed = kept;
  all += kept;
  const std::chrono::nanoseconds until =
      loop_context_->scheduler->now() + std::chrono::milliseconds{limits_->half_closed_ms};
  const Error error = message::make({.code = ErrorCode::limit_exceeded,
                                     .reason = "too many calls wait for callers that have ended their side",
                                     .delivered = "maybe",
                                     .limit = "half_closed_calls"});
  const std::size_t own = std::min(calls->active, kept);
  if (broker_peer_) broker_peer_->limit_calls(kept - own, until, error);
  calls->limit(own, until, error);
}

void Dispatcher::abandon() noexcept {
  if (pending_) loop_context_->half_closed_calls -= std::exchange(pending_->half_closed, 0);
  broker_peer_.reset();
  if (!loop_context_->open_batches.empty()) loop_context_->open_batches.erase(this);
  if (!pending_) return;
  load_ = nullptr;  // which goes with them
  const std::shared_ptr<PendingCalls> calls = std::move(pending_);
  if (calls->identity) calls->identity->awaited.reset();
  const std::shared_ptr<PeerCalls> peer_calls = calls->peer_calls;
  if (peer_calls) peer_calls->gone();
  calls->abandon(*loop_context_);
  // Who has survived being stopped learns why nobody answers.
  if (peer_calls) peer_calls->peer_ended();
}

}  // namespace rpc
}  // namespace wirecall
