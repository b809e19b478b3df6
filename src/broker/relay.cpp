// See router.hpp. The way of a relayed call: relay, send, response, deliver. The rest is for what goes another way.
#include "broker/router.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "broker/call_all_results.hpp"
#include "broker/clean_response.hpp"
#include "broker/outgoing.hpp"
#include "broker/request_to_all.hpp"
#include "broker/splice.hpp"
#include "message/cancel_request.hpp"
#include "message/msgpack_reply.hpp"
#include "message/own_error.hpp"
#include "message/read_error.hpp"
#include "message/replaced.hpp"
#include "message/transcoder.hpp"
#include "rpc/reply.hpp"
#include "rpc/unknown_method.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using State = RelayedCall::State;

namespace {

constexpr std::uint32_t bit(Member member) { return std::uint32_t{1} << static_cast<unsigned>(member); }
// What does not go to a provider as it came.
constexpr std::uint32_t kChanged = bit(Member::timeout_ms) | bit(Member::to) | bit(Member::from);

Error own_error(ErrorCode code, std::string_view reason, std::string_view delivered) {
  return message::make({.code = code, .reason = reason, .delivered = delivered});
}

// A string's value; empty for anything else, which no peer is called.
std::string string_of(Reader& reader, std::string_view json) {
  reader.reset(json);
  std::string_view text;
  if (reader.kind() != ValueKind::string || !reader.read_string(text)) return {};
  return std::string{text};
}

}  // namespace

RelayErrors::RelayErrors()
    : not_delivered(own_error(ErrorCode::provider_lost, "the provider has gone", "no")),
      not_there(rpc::no_such_client()),
      maybe_delivered(own_error(ErrorCode::provider_lost, "the provider has gone", "maybe")),
      timed_out_before(own_error(ErrorCode::timeout, "the call was not answered in time", "no")),
      timed_out(own_error(ErrorCode::timeout, "the call was not answered in time", "maybe")),
      malformed(ErrorCode::internal_error, std::string{message_of(ErrorCode::internal_error)},
                R"({"reason":"the provider's response is malformed"})"),
      same_subscription(ErrorCode::internal_error, std::string{message_of(ErrorCode::internal_error)},
                        R"({"reason":"the provider has given the id of a subscription that is live"})"),
      overrun(ErrorCode::internal_error, std::string{message_of(ErrorCode::internal_error)},
              R"({"reason":"the provider sends more items than it has credit for"})"),
      no_memory(ErrorCode::internal_error),
      cancelled_before(own_error(ErrorCode::cancelled, "the call was cancelled", "no")) {}

Router::Router(const Registry& own, const Limits& limits, rpc::LoopContext& loop_context, const Settings& settings)
    : own_(&own),
      limits_(&limits),
      loop_context_(&loop_context),
      settings_(settings),
      call_all_(untyped_method<[](Router& router, Call& call) { router.call_all(call); }>("rpc.call_all", *this)),
      retained_(limits.retained_bytes, limits.principal_retained_bytes),
      log_(loop_context, settings.log_calls_every),
      began_(now()) {
  loop_context.services.own_counts = &own_counts_;
}

Router::~Router() {
  end_all_left();
  loop_context_->services.own_counts = nullptr;
  if (loop_context_->scheduler == nullptr) return;
  loop_context_->scheduler->stop(*this);
  loop_context_->scheduler->stop(walking_);
  loop_context_->scheduler->stop(ending_);
  loop_context_->scheduler->stop(announcing_);
  loop_context_->scheduler->stop(scatter_timer_);
  loop_context_->scheduler->stop(fanning_out_);
}

nanoseconds Router::now() const noexcept {
  return loop_context_->scheduler != nullptr ? loop_context_->scheduler->now() : nanoseconds{0};
}

// ---- to the provider ----

// The one that a call is for: the one it names, or the one that the policy chooses.
Provider* Router::provider_for(Route& route, const Received& message, Reader& reader) {
  if (!message.has(Member::to)) [[likely]]
    return route.choose(message.has(Member::params) ? message[Member::params] : std::string_view{}, reader);
  const auto named = names_.find(string_of(*loop_context_->codecs.readers.reader, message[Member::to]));
  if (named == names_.end()) return nullptr;
  Provider* const provider = route.find(*named->second);
  return provider == nullptr || provider->ended ? nullptr : provider;
}

void Router::relay(Route& route, Call& call) {
  const Received& message = call.message();
  if (const std::size_t count = route.providers().size(); count >= kProvidersInStep) [[unlikely]]
    static_cast<Peer&>(*call.broker_peer()).sink().charge(count / kProvidersInStep);
  Provider* const provider = provider_for(route, message, call.reader());
  if (provider == nullptr) {
    const Error& why = message.has(Member::to) ? errors_.not_there : errors_.not_delivered;
    log_.not_provided(route.name(), static_cast<const Peer*>(call.broker_peer()), why);
    return call.error(why);
  }
  if (!message.msgpack) [[likely]]
    return relay_to(*provider, route, call, message);
  // As it came to a provider that speaks MessagePack as well, unless it asks for progress, which is shown.
  const bool same = provider->peer->sink().speaks_msgpack() && !asks_for_progress(call);
  if (same) return relay_to(*provider, route, call, message);
  Buffer json;
  Received plain;
  if (const std::optional<Error> why = read_as_json(message.text, json, plain)) return refuse(call, route, *why);
  relay_to(*provider, route, call, plain);
}

// `message` is the call's, or the same in JSON.
void Router::relay_to(Provider& chosen, Route& route, Call& call, const Received& message) {
  Provider* const provider = &chosen;
  Peer& caller = static_cast<Peer&>(*call.broker_peer());
  if (call.is_notification()) {
    if (withheld_event_ == event_) return call.end_result();
    // A provider that subscribes to its method's name as well is told once.
    if (provider->peer->last_event != event_) notify(*provider, message, from_of(caller));
    if (!taps_.empty()) [[unlikely]]
      tap_notification(*provider, caller, message);
    return call.end_result();
  }
  const bool waits = !provider->is_free();
  bool long_id = false;
  if (message.text.size() > rpc::kIdBytesUncounted) [[unlikely]] {
    long_id = message.id().size() > rpc::kIdBytesUncounted;
    if (!waits && !has_budget(*provider, message.text.size())) return refuse(call, route, provider_holds_too_much());
  }
  if ((waits || long_id) && !may_keep(caller, message.text)) return refuse(call, route, too_many_bytes());
  if (waits && provider->waiting >= provider->options.queue && !shed_waiting_call(*provider, caller))
    return refuse(call, route, queue_is_full());
  rpc::MethodCounts& counts = route.counts();
  const bool direct = call.can_be_left();
  const CallBounds bounds = call.bounds();
  const std::optional<SlotNumber> slot = calls_.take(message.id());
  if (!slot) return refuse(call, route, too_many_calls());
  RelayedCall& relayed = calls_[*slot];
  relayed.began = bounds.began;
  relayed.deadline = bounds.deadline;
  relayed.provider = provider;
  relayed.state = State::waiting;
  relayed.form = call.form();
  relayed.addressed = message.has(Member::to);
  relayed.ends = message.has(Member::timeout_ms) ? bounds.deadline : kNoDeadline;
  try {
    if (direct) relayed.stream = stream_of(message);
    const bool keeps = waits || (provider->options.idempotent && may_keep(caller, message.text));
    if (keeps || !direct || long_id) {
      relayed.extras = std::make_unique<RelayExtras>();
      if (long_id) relayed.extras->id.set(caller.shared_load(), message.id().size());
      if (keeps) relayed.extras->request.keep(message.text, caller.shared_load());
      relayed.extras->from = from_of(caller);
      relayed.extras->asked_by = &caller;
      relayed.extras->asker = caller.number;
      if (route.description.subscription)
        relayed.extras->subscribing = {.caller = &caller, .link = call.context().caller_link()};
    }
    if (direct) {
      if (bounds.deadline != kNoDeadline) {
        deadlines_.add(*slot);
        relayed.timed = true;
        watch(*slot);
      }
    } else {
      call.on_reply(
          [this, number = calls_.number_of(*slot)](const Outcome& outcome) { caller_ended(number, outcome); });
      relayed.extras->sink = call.detach();
    }
    if (!waits) {
      if (settings_.disclose_callers) [[unlikely]] {
        send(*slot, message, from_of(caller));
      } else {
        send(*slot, message, {});
      }
    }
  } catch (...) {
    // Whatever it has been put into knows it no more; a sink that goes answers -32603.
    if (relayed.timed) deadlines_.remove(*slot);
    const ReplySink sink = relayed.extras ? std::move(relayed.extras->sink) : ReplySink{};
    calls_.give_back(*slot);
    throw;
  }
  if (direct) {
    call.leave();
    relayed.caller = &caller;
    calls_.append(caller.calls, &RelayedCall::of_caller, *slot);
    caller.calls_by_id.add(relayed, *slot);
    ++caller.calls_made;
    if (relayed.stream) ++caller.streams;
    ++caller.load().calls;
    ++loop_context_->stats.calls_in_flight;
  }
  ++counts.calls;
  if (waits && !keep_for(*provider, *slot)) return;
  if (!taps_.empty()) [[unlikely]]
    tap_call(*slot, caller, message);
}

// A call that nobody is asked for.
void Router::refuse(Call& call, const Route& route, const Error& error) {
  log_.failed(route.name(), static_cast<const Peer*>(call.broker_peer()), error);
  call.error(error);
}

// Whether the broker keeps that text for its caller; a single one it keeps however long it is.
bool Router::may_keep(const Peer& caller, std::string_view text) const noexcept {
  const std::size_t kept = caller.load().held_bytes;
  if (kept > rpc::kBytesUnweighed) caller.sink().held_changed();
  return kept == 0 || kept + text.size() <= limits_->hard_output;
}

// Whether a request of so many bytes may be sent to the provider besides what waits for those of its principal.
bool Router::has_budget(const Provider& provider, std::size_t bytes) {
  return bytes <= rpc::kBytesUnasked || provider.peer->sink().has_budget_for(bytes);
}

Error Router::provider_holds_too_much() {
  return message::make({.code = ErrorCode::limit_exceeded,
                        .reason = "too many bytes wait for the provider and others of its principal",
                        .delivered = "no",
                        .limit = "principal_bytes"});
}

Error Router::too_many_bytes() {
  return message::make({.code = ErrorCode::limit_exceeded,
                        .reason = "too many bytes of this connection's calls wait",
                        .delivered = "no",
                        .limit = "hard_output"});
}

Error Router::queue_is_full() {
  return message::make({.code = ErrorCode::limit_exceeded,
                        .reason = "too many calls wait for the provider",
                        .delivered = "no",
                        .limit = "queue"});
}

Error Router::too_many_calls() {
  return message::make({.code = ErrorCode::limit_exceeded,
                        .reason = "too many calls are in flight",
                        .delivered = "no",
                        .limit = "relayed_calls"});
}

// Sees to it that time goes on for a call just added.
void Router::watch(SlotNumber slot) {
  if (calls_[slot].deadline >= wakes_at_) return;
  const nanoseconds next = deadlines_.next();
  Scheduler& scheduler = *loop_context_->scheduler;
  scheduler.stop(*this);
  scheduler.start(*this, std::max(next - scheduler.now(), nanoseconds{0}));
  wakes_at_ = next;
}

// What tells a provider whose message it is given: the member, with a comma behind it; empty where that is not told.
std::string Router::from_of(const Peer& peer) const {
  if (!settings_.disclose_callers || peer.name.empty()) [[likely]]
    return {};
  return R"("from":)" + to_json(peer.name) + ",";
}

void Router::notify(const Provider& provider, const Received& message, std::string_view from) {
  if (provider.peer->is_congested() || !has_budget(provider, message.text.size())) {
    ++loop_context_->stats.events_dropped;
    return;
  }
  if (!message.msgpack) [[likely]]
    return append_message(provider.peer->sink(), [&](Buffer& out) { append_addressed(out, message, from); });
  append_message_as(provider.peer->sink(), MessageForm::msgpack, [&](Buffer& out) {
    const std::string_view name_json = from.empty() ? std::string_view{} : value_of_from(from);
    message::append_msgpack_request(out, message.text, {.id = 0, .from_json = name_json},
                                    loop_context_->codecs.transcoder());
  });
}

// A call in no list of its provider's goes there.
void Router::send(SlotNumber slot, const Received& message, std::string_view from) {
  if (message.msgpack) [[unlikely]]
    return send_msgpack(slot, message, from);
  RelayedCall& call = calls_[slot];
  Provider& provider = *call.provider;
  StreamEdits edits{.id = Digits{calls_.number_of(slot)}};
  if (call.stream && provider.peer->sink().strict_peer()) call.stream->without_credit = true;
  append_message(provider.peer->sink(), [&](Buffer& out) {
    if ((message.present & (kChanged | bit(Member::stream))) == 0 && !call.stream && !call.extras && from.empty())
        [[likely]]
      return message::append_replaced(out, message.text, message[Member::id], edits.id.view());
    Splice splice{message.text};
    edit_stream(call, message, edits, splice);
    std::optional<Digits> left;
    if (message.has(Member::timeout_ms) && call.deadline != kNoDeadline) {
      splice.replace(message[Member::timeout_ms], left.emplace(milliseconds_left(call)).view());
    }
    address(splice, message, from);
    splice.append_to(out);
  });
  sent(slot);
}

void Router::sent(SlotNumber slot) {
  RelayedCall& call = calls_[slot];
  ++loop_context_->stats.calls_relayed;
  if (call.stream) {
    call.stream->credit = first_credit(call);
    call.stream->withheld -= call.stream->credit;
  }
  call.state = State::sent;
  if (call.extras && call.extras->subscribing.caller != nullptr) ++call.provider->peer->source->asked;
  calls_.append(call.provider->sent, &RelayedCall::of_provider, slot);
  ++call.provider->at_work;
}

std::uint64_t Router::milliseconds_left(const RelayedCall& call) const {
  const auto time = std::max(std::chrono::ceil<milliseconds>(call.deadline - now()), milliseconds{1});
  return static_cast<std::uint64_t>(time.count());
}

// What was kept for the caller is going to wait for the provider instead: between connections of one account that is no
// more than before, unless the text is kept all the same.
bool Router::moves_within_budget(SlotNumber slot, std::string_view text) noexcept {
  RelayedCall& call = calls_[slot];
  RelayExtras& extras = *call.extras;
  const Provider& provider = *call.provider;
  const auto known = peers_.find(extras.asker);
  Peer* const caller = known == peers_.end() ? nullptr : known->second;
  if (provider.options.idempotent || caller == nullptr) return has_budget(provider, text.size());
  const std::size_t before = caller->load().held_bytes;
  extras.request.uncount();
  if (before / rpc::kBytesUnweighed != caller->load().held_bytes / rpc::kBytesUnweighed) caller->sink().held_changed();
  return caller->load().calls.account() == provider.peer->load().calls.account() || has_budget(provider, text.size());
}

// Sends a request that has been kept. A call whose request cannot be sent, for want of memory or of room in the budget
// of its provider, ends.
void Router::send_kept(SlotNumber slot) noexcept {
  try {
    if (calls_[slot].extras->to_all) {
      if (has_budget(*calls_[slot].provider, calls_[slot].extras->to_all->size())) return send_to_all(slot);
      calls_[slot].provider = nullptr;
      return fail(slot, provider_holds_too_much());
    }
    const std::string_view text = calls_[slot].extras->request.padded();
    if (!moves_within_budget(slot, text)) {
      calls_[slot].provider = nullptr;
      return fail(slot, calls_[slot].retried ? errors_.maybe_delivered : provider_holds_too_much());
    }
    const bool as_msgpack = calls_[slot].provider->peer->sink().speaks_msgpack();
    Received message;
    Buffer read;
    if (const std::optional<Error> why = read_kept(text, as_msgpack, read, message)) {
      calls_[slot].provider = nullptr;
      return fail(slot, *why);
    }
    send(slot, message, calls_[slot].extras->from);
    if (!calls_[slot].provider->options.idempotent) calls_[slot].extras->request.release();
  } catch (const std::bad_alloc&) {
    calls_[slot].provider = nullptr;  // who has not got it
    fail(slot, errors_.no_memory);
  }
}

// ---- back to the caller ----

bool Router::response(Peer& peer, const Received& message) {
  if (!message.has(Member::id)) return false;
  peer.overdue = 0;
  const SlotNumber slot = calls_.find(message.id());
  if (slot == kNoSlot) {
    if (!is_unsubscribed(message)) return false;
    if (peer.source) peer.source->end_unsubscribing();
    return true;
  }
  const RelayedCall& call = calls_[slot];
  if (call.provider->peer != &peer || call.state == State::waiting) return false;
  Provider& provider = *call.provider;
  const bool wanted = call.state == State::sent;
  const bool error = message.has(Member::error);
  const bool malformed = message.fault != Fault::none ||
                         (error && !message::is_error(*loop_context_->codecs.readers.reader, message[Member::error]));
  if (wanted) answered(provider, call, malformed || error);
  if (wanted && !taps_.empty() && !malformed) [[unlikely]]
    tap_response(slot, message);
  leave_provider(slot);
  if (wanted && malformed) [[unlikely]] {
    fail(slot, errors_.malformed);
  } else if (wanted) {
    deliver(slot, message, provider);
  } else {
    if (provider.route->description.subscription) end_unwanted(provider, message);
    calls_.give_back(slot);
  }
  if (peer.source != nullptr) [[unlikely]]
    drop_early_events(peer);
  free_again(provider);
  return wanted;
}

void Router::answered(const Provider& provider, const RelayedCall& call, bool failed) noexcept {
  rpc::MethodCounts& counts = *provider.route->counted();
  const std::optional<nanoseconds> received_at = provider.peer->sink().received_at();
  const nanoseconds time = (received_at ? *received_at : now()) - call.began;
  counts.record(time);
  if (failed) ++counts.errors;
  if (log_.is_sample()) [[unlikely]] {
    log_.answered({.method = provider.route->name(),
                   .client = call.caller != nullptr ? std::string_view{call.caller->name} : std::string_view{},
                   .provider = provider,
                   .time = time,
                   .failed = failed});
  }
}

void Router::log_failure(SlotNumber slot, const Error& error) noexcept {
  if (error.code() == static_cast<int>(ErrorCode::cancelled)) return;  // as its caller wanted it
  const RelayedCall& call = calls_[slot];
  log_.failed(call.provider != nullptr ? std::string_view{call.provider->route->name()} : std::string_view{},
              call.caller, error);
}

// Whether the response with the caller's own id is.
bool Router::is_too_large(const RelayedCall& call, const Received& message) const noexcept {
  return message.text.size() - message.id().size() + call.id_bytes > limits_->max_message_size;
}

// The call ends with its provider's response.
void Router::deliver(SlotNumber slot, const Received& message, Provider& provider) {
  RelayedCall& call = calls_[slot];
  if (call.caller == nullptr) {
    if (call.extras->subscribing.caller != nullptr && message.has(Member::result))
      return begin_subscription(slot, message, provider);
    if (message.msgpack) {
      ReplySink sink = std::move(call.extras->sink);
      forget_call(slot);  // as in `fail`
      return sink.encoded_result(message[Member::result], {});
    }
    Buffer stripped;
    const CleanResponse relayed = without_origin(message, *loop_context_->codecs.readers.reader, stripped);
    if (call.extras->call_all.results) {
      const CallAllEntry call_all = std::move(call.extras->call_all);
      forget_call(slot);
      if (!relayed.error.empty()) return call_all.results->set(call_all.index, "error", relayed.error);
      return call_all.results->set(call_all.index, "result", message[Member::result]);
    }
    ReplySink sink = std::move(call.extras->sink);
    forget_call(slot);  // as in `fail`
    return sink.response(relayed.text, relayed.id, relayed.code);
  }
  rpc::MessageSink& message_sink = call.caller->sink();
  if (is_too_large(call, message)) [[unlikely]]
    return fail(slot, rpc::reply_too_large());
  try {
    if (message.msgpack) [[unlikely]] {
      append_message_as(message_sink, MessageForm::msgpack, [&](Buffer& out) {
        message::begin_msgpack_result(out);
        out.append(message[Member::result]);
        message::end_msgpack_reply(out, call.id(), loop_context_->codecs.transcoder());
      });
      return forget_call(slot);
    }
    Buffer stripped;
    const CleanResponse relayed = without_origin(message, *loop_context_->codecs.readers.reader, stripped);
    append_message_as(message_sink, sent_as(call.form),
                      [&](Buffer& out) { message::append_replaced(out, relayed.text, relayed.id, call.id()); });
  } catch (const std::bad_alloc&) {
    message_sink.lose_answer();
  }
  forget_call(slot);
}

// Tells a caller that has a connection; the call is where it was.
void Router::answer(SlotNumber slot, const Error& error) noexcept {
  const RelayedCall& call = calls_[slot];
  loop_context_->stats.count_error(error.code());
  rpc::MessageSink& message_sink = call.caller->sink();
  rpc::Reply reply{&message_sink, loop_context_, call.form, limits_->max_message_size};
  try {
    reply.error(error, call.id());
  } catch (const std::bad_alloc&) {
    reply.discard();
    message_sink.lose_answer();
  }
}

// The call ends with `error`, and nobody is at work on it any more.
void Router::fail(SlotNumber slot, const Error& error) noexcept {
  const RelayedCall& call = calls_[slot];
  if (!taps_.empty()) tap_end(slot, error);
  log_failure(slot, error);
  if (call.caller != nullptr) {
    answer(slot, error);
    return forget_call(slot);
  }
  ReplySink sink = std::move(call.extras->sink);
  const CallAllEntry call_all = std::move(call.extras->call_all);
  forget_call(slot);  // what the answer sets off may look for the call, and must not find it
  if (call_all.results) return call_all.results->set(call_all.index, error);
  if_memory_allows([&] { sink.error(error); });
}

// ---- lists ----

void Router::leave_caller(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  if (call.timed) {
    deadlines_.remove(slot);
    call.timed = false;
  }
  if (call.caller == nullptr) return;
  calls_.remove(call.caller->calls, &RelayedCall::of_caller, slot);
  call.caller->calls_by_id.remove(call, slot);
  --call.caller->calls_made;
  if (call.stream) --call.caller->streams;
  --call.caller->load().calls;
  --loop_context_->stats.calls_in_flight;
  call.caller = nullptr;
}

void Router::leave_provider(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  Provider& provider = *call.provider;
  if (call.state == State::waiting) {
    (call.addressed ? provider.addressed_queue : provider.queue).remove(calls_, slot);
    --provider.waiting;
  } else {
    calls_.remove(provider.sent, &RelayedCall::of_provider, slot);
    --provider.at_work;
    if (call.extras && call.extras->subscribing.caller != nullptr) --provider.peer->source->asked;
  }
  call.provider = nullptr;
}

void Router::forget_call(SlotNumber slot) noexcept {
  leave_caller(slot);
  if (const Provider* const provider = calls_[slot].provider) {
    leave_provider(slot);
    if (provider->peer->source != nullptr) [[unlikely]]
      drop_early_events(*provider->peer);
  }
  calls_.give_back(slot);
}

// A call in no list of a provider's goes to that one, or waits for it. Its request has been kept.
void Router::hand_to(Provider& provider, SlotNumber slot) noexcept {
  calls_[slot].provider = &provider;
  if (provider.is_free()) return send_kept(slot);
  static_cast<void>(keep_for(provider, slot));
}

// False where there is no memory for that: then the call has ended.
bool Router::keep_for(Provider& provider, SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  try {
    (call.addressed ? provider.addressed_queue : provider.queue).add(calls_, slot);
  } catch (const std::bad_alloc&) {
    ++provider.route->counted()->errors;
    call.provider = nullptr;
    fail(slot, errors_.no_memory);
    return false;
  }
  ++provider.waiting;
  return true;
}

// Where no further call may wait for the provider, the last one of the caller who has the most waiting is refused,
// unless this one has as many.
bool Router::shed_waiting_call(Provider& provider, const Peer& caller) noexcept {
  const std::size_t own = provider.queue.count(&caller) + provider.addressed_queue.count(&caller);
  if (2 * (own + 1) > provider.waiting) return false;  // nobody else can have more
  const WaitingFlow* longest = provider.queue.longest();
  const WaitingFlow* const addressed = provider.addressed_queue.longest();
  if (longest == nullptr || (addressed != nullptr && addressed->count > longest->count)) longest = addressed;
  if (longest == nullptr || longest->count <= own + 1) return false;
  const SlotNumber last = longest->calls.last;
  ++provider.route->counted()->errors;
  fail(last, queue_is_full());
  return true;
}

// The call whose turn it is: of those for this provider alone and of the others one each, since one of these may wait
// where the other is always full. If there is none, one that waits for another provider of the same route.
SlotNumber Router::next_for(Provider& provider) noexcept {
  if (!provider.addressed_queue.empty() && (provider.addressed_next || provider.queue.empty())) {
    provider.addressed_next = false;
    return provider.addressed_queue.next();
  }
  provider.addressed_next = true;
  if (!provider.queue.empty()) return provider.queue.next();
  if (!provider.route->shares_queues()) return kNoSlot;
  Provider* from = &provider;
  for (const auto& other : provider.route->providers()) {
    if (!other->queue.empty() && other->waiting > from->waiting) from = other.get();
  }
  return from->queue.empty() ? kNoSlot : from->queue.next();
}

// The provider may be free for a call that waits.
void Router::free_again(Provider& provider) noexcept {
  while (!provider.ended && provider.is_free()) {
    const SlotNumber slot = next_for(provider);
    if (slot == kNoSlot) return;
    leave_provider(slot);
    calls_[slot].provider = &provider;
    send_kept(slot);
  }
  const bool is_done = provider.at_work == 0 && provider.waiting == 0;
  if (provider.ended && is_done && !provider.ending) remove_provider(provider);
}

}  // namespace wirecall::broker
