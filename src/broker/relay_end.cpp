// See relay.hpp: how a relayed call ends, by its provider's response or otherwise.
#include <algorithm>
#include <new>

#include "base/assert.hpp"
#include "broker/call_all_shared.hpp"
#include "broker/linked_broker.hpp"
#include "broker/outgoing.hpp"
#include "broker/relay.hpp"
#include "broker/stream_request.hpp"
#include "message/cancel_request.hpp"
#include "message/own_error.hpp"
#include "message/read_error.hpp"
#include "rpc/admission.hpp"
#include "rpc/method_counts.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {

using std::chrono::nanoseconds;
using State = RelayedCall::State;

// So long after the connection with the most calls of an account has been looked for it is looked for again.
constexpr std::chrono::milliseconds kHeaviestPause{10};
constexpr std::string_view kProviderLost = "-32001";

// ---- its provider answers ----

void Relay::answered(const Provider& provider, const RelayedCall& call, bool failed) noexcept {
  rpc::MethodCounts& counts = *provider.route->counted();
  const std::optional<nanoseconds> received_at = provider.peer->sink().received_at();
  const nanoseconds time = (received_at ? *received_at : context_->now()) - call.began;
  counts.record(time);
  if (failed) ++counts.errors;
  if (context_->log.is_sample()) [[unlikely]] {
    context_->log.answered({.method = provider.route->name(),
                            .client = call.caller != nullptr ? std::string_view{call.caller->name} : std::string_view{},
                            .provider = provider,
                            .time = time,
                            .failed = failed});
  }
}

bool Relay::response(Peer& peer, const Received& message) {
  if (!message.has(Member::id)) return false;
  peer.overdue = 0;
  const SlotNumber slot = calls_.find(message.id());
  if (slot == kNoSlot) [[unlikely]]
    return SubscriptionRelay::unsubscribed(peer, message);
  const RelayedCall& call = calls_[slot];
  if (call.provider->peer != &peer || call.state == State::waiting) return false;
  Provider& provider = *call.provider;
  WIRECALL_ASSERT(provider.at_work != 0);
  const bool wanted = call.state == State::sent;
  const bool error = message.has(Member::error);
  const bool moved = wanted && error && peer.of_node && has_moved(message);
  if (moved && ask_another(slot, false)) [[unlikely]] {
    free_again(provider);
    return true;
  }
  const bool malformed = message.fault != Fault::none ||
                         (error && !message::is_error(*context_->loop.codecs.readers.reader, message[Member::error]));
  if (wanted) answered(provider, call, malformed || error);
  const bool of_predecessor = peer.linked != nullptr && peer.linked->is_predecessor();
  if (of_predecessor && wanted && error && !malformed && was_not_begun(message) && waits_for_return(slot)) {
    peer.linked->close_if_done();
    return true;
  }
  // One that is too large is shown as the error that takes its place.
  if (wanted && !tap_feed_->empty() && !malformed && (call.caller == nullptr || !answers_->is_too_large(call, message)))
      [[unlikely]]
    tap_feed_->response(calls_.number_of(slot), call, message);
  calls_.leave_provider(slot);
  if (wanted && malformed) [[unlikely]] {
    answers_->fail(slot, context_->errors.malformed);
  } else if (moved) [[unlikely]] {
    answers_->fail(slot, context_->errors.moved);
  } else if (wanted) {
    answers_->deliver(slot, message, provider);
  } else {
    if (provider.route->description.subscription) subscriptions_->end_unwanted(provider, message);
    calls_.drop(slot);
  }
  if (peer.source != nullptr) [[unlikely]]
    context_->loop.stats.events_dropped += peer.source->drop_unwanted();
  free_again(provider);
  if (peer.linked != nullptr) [[unlikely]]
    peer.linked->close_if_done();
  return wanted;
}

namespace {

// What a broker says of an error of its own.
struct Origin {
  std::optional<std::string> origin;
  std::optional<std::string> delivered;
};

}  // namespace

// Whether the broker that this one has taken over from has not begun the call, since whoever provided it there has
// left.
bool Relay::was_not_begun(const Received& message) noexcept try {
  const Error error = message::read_error(*context_->loop.codecs.readers.reader, message[Member::error]);
  const auto said = from_json<Origin>(error.data());
  return said && said->origin && said->delivered == "no" &&
         (error.code() == static_cast<int>(ErrorCode::draining) ||
          error.code() == static_cast<int>(ErrorCode::provider_lost));
} catch (const std::bad_alloc&) {
  return false;
}

// Such a call goes to one who has come meanwhile, or waits for one; one that names a client who is not there yet ends.
bool Relay::waits_for_return(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  Provider& linked = *call.provider;
  if (call.addressed) {
    calls_.leave_provider(slot);
    answers_->fail(slot, context_->errors.not_there);
    free_again(linked);
    return true;
  }
  if (!call.extras || call.extras->request.empty()) return false;
  linked.options.concurrency = 0;  // it is asked no more
  const auto& all = linked.route->providers();
  const auto usable = [](const auto& one) { return !one->ended && !one->options.linked; };
  const auto found = std::ranges::find_if(all, usable);
  Provider* const to = found != all.end() ? found->get() : linked.ended ? nullptr : &linked;
  if (to == nullptr || (!to->is_free() && to->waiting >= to->options.queue)) return false;
  calls_.leave_provider(slot);
  call.state = State::waiting;
  hand_to(*to, slot);
  free_again(linked);  // which may go with that
  return true;
}

// Whether another node says that it has no provider of the method any more: then nobody has been asked.
bool Relay::has_moved(const Received& response) const {
  Reader& reader = *context_->loop.codecs.readers_of(response.encoding).reader;
  const auto [code, data] = members_of<2>(reader, response[Member::error], {"code", "data"});
  if (!response.is_json() || code != kProviderLost || data.empty()) return false;
  // What a provider says of itself has no origin by now.
  const auto [moved, origin] = members_of<2>(reader, data, {"moved", "origin"});
  return moved == "true" && !origin.empty();
}

bool Relay::takes_encoded(const Peer& peer, const Received& message) noexcept {
  if (message.fault != Fault::none || !message.has(Member::result)) return false;
  const SlotNumber slot = calls_.find(message.id());
  if (slot == kNoSlot) return false;
  const RelayedCall& call = calls_[slot];
  if (call.provider->peer != &peer || call.state != State::sent) return false;
  // A subscription's id is read here: of values that have no kind of their own in JSON none is an id.
  if (call.caller == nullptr && call.extras->subscribing.caller != nullptr) return true;
  if (call.form.sent != message.encoding) return false;
  if (call.caller != nullptr) return !call.stream || call.form.natively;
  return call.form.natively && !call.extras->call_all.results;
}

// ---- nobody waits for it ----

// Whether a provider may be at work on the call, or have been.
bool Relay::may_have_been_asked(SlotNumber slot) noexcept {
  const RelayedCall& call = calls_[slot];
  return call.asked || (call.state != State::waiting && !call.untaken);
}

std::size_t Relay::cancel(Peer& caller, std::string_view id_json) {
  std::size_t count = 0;
  for (SlotNumber slot; (slot = calls_.find_of(caller, id_json)) != kNoSlot; ++count) {
    give_up(slot, may_have_been_asked(slot) ? context_->errors.cancelled : context_->errors.cancelled_before);
  }
  return count;
}

void Relay::end_calls(Peer& caller, const Error* error) noexcept {
  std::optional<Error> before;  // what those are answered that nobody has got
  if (error != nullptr) before = message::with_delivered(*error, "no");
  while (!caller.calls.empty()) {
    const SlotNumber slot = caller.calls.first;
    if (error == nullptr) {
      give_up(slot);
    } else {
      give_up(slot, may_have_been_asked(slot) ? *error : *before);
    }
  }
}

// The connection with the most is looked for now and then, since there may be many.
bool Relay::shed_call(const Peer& caller) noexcept {
  rpc::Account& account = *caller.load().calls.account();
  const auto heavier = [&] {
    const auto* const heaviest = static_cast<const Peer*>(account.heaviest);
    return heaviest != nullptr && heaviest->calls_made > caller.calls_made + 1;
  };
  if (!heavier() && context_->now() >= account.looked_at + kHeaviestPause) {
    account.looked_at = context_->now();
    account.heaviest = nullptr;
    context_->peers.each([&account](Peer& peer) {
      if (peer.load().calls.account().get() != &account) return;
      const auto* const heaviest = static_cast<const Peer*>(account.heaviest);
      if (heaviest == nullptr || peer.calls_made > heaviest->calls_made) account.heaviest = &peer;
    });
  }
  if (!heavier()) return false;
  const SlotNumber last = static_cast<Peer*>(account.heaviest)->calls.last;
  const std::string_view delivered = may_have_been_asked(last) ? "maybe" : "no";
  if_memory_allows([&] { give_up(last, rpc::too_many_of_principal(delivered)); });
  return true;
}

void Relay::limit_calls(Peer& caller, std::size_t kept, nanoseconds until, const Error& error) noexcept {
  while (caller.calls_made > kept) give_up(caller.calls.last, error);
  for (SlotNumber slot = caller.calls.first; slot != kNoSlot; slot = calls_[slot].of_caller.after) end_by(slot, until);
}

void Relay::end_by(SlotNumber slot, nanoseconds until) noexcept {
  RelayedCall& call = calls_[slot];
  call.ends = std::min(call.ends, until);
  if (call.deadline <= until) return;
  calls_.stop_timer(slot);
  call.deadline = until;
  if_memory_allows([&] { calls_.start_timer(slot); });
}

void Relay::run_out(SlotNumber slot) noexcept {
  const RelayedCall& call = calls_[slot];
  if (call.state == State::sent) call.provider->peer->has_run_out();
  give_up(slot, may_have_been_asked(slot) ? context_->errors.timed_out : context_->errors.timed_out_before);
}

void Relay::caller_ended(std::uint64_t number, const Outcome& outcome) noexcept {
  const SlotNumber slot = calls_.find_number(Digits{number}.view());
  if (slot == kNoSlot || calls_[slot].caller != nullptr || calls_[slot].state == State::given_up) return;
  if_memory_allows([&] {
    const Error error{static_cast<ErrorCode>(outcome.code)};
    answers_->log_failure(slot, error);
    if (!tap_feed_->empty()) tap_feed_->end(calls_.number_of(slot), calls_[slot], error);
  });
  // They go when the call is no longer there for what that sets off.
  RelayExtras& extras = *calls_[slot].extras;
  const ReplySink sink = std::move(extras.sink);
  const CallAllEntry call_all = std::move(extras.call_all);
  give_up(slot);
}

void Relay::give_up(SlotNumber slot, const Error& error) noexcept {
  answers_->log_failure(slot, error);
  if (!tap_feed_->empty()) tap_feed_->end(calls_.number_of(slot), calls_[slot], error);
  if (calls_[slot].caller != nullptr) {
    answers_->tell(slot, error);
    return give_up(slot);
  }
  const CallAllEntry call_all = std::move(calls_[slot].extras->call_all);
  WIRECALL_ASSERT(call_all.results);  // a call that a sink waits for has no timer of the broker's
  give_up(slot);
  call_all.results->set(call_all.index, error);
}

void Relay::give_up(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  Provider& provider = *call.provider;
  if (!tap_feed_->empty()) tap_feed_->end(calls_.number_of(slot), calls_[slot], context_->errors.cancelled);
  ++provider.route->counted()->errors;
  if (call.state != State::sent) return calls_.forget(slot);
  const Peer* const caller = call.caller != nullptr ? call.caller : context_->peers.find(call.extras->asker);
  if_memory_allows([&] {
    const ProviderId id{calls_.number_of(slot), call.input != nullptr};
    if (caller != nullptr) provider.peer->begin_part(*caller);
    append_message(provider.peer->sink(), [&](Buffer& out) { out.append(message::cancel_request(id.view())); });
  });
  // A subscription that begins all the same has to be ended.
  const bool may_begin = provider.route->description.subscription && provider.at_work <= context_->limits.in_flight;
  if (provider.options.concurrency == ProviderOptions::kUnlimited && !may_begin) {
    calls_.forget(slot);
    return free_again(provider);
  }
  calls_.leave_caller(slot);
  call.state = State::given_up;
  // What its caller has sent is of no use now.
  call.forget_id();
  if (!call.extras) return;
  call.extras->id.release();
  call.extras->request.release();
}

// ---- its provider goes ----

void Relay::not_taken(const Peer& node, std::uint64_t number) noexcept {
  const SlotNumber slot = calls_.find_number(Digits{number}.view());
  if (slot == kNoSlot) return;
  RelayedCall& call = calls_[slot];
  call.untaken = call.state == State::sent && call.provider->peer == &node;
}

void Relay::lose(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  if (call.state == State::given_up) return calls_.forget(slot);
  const bool sent = call.state == State::sent && !call.untaken;
  Route& route = *call.provider->route;
  const LostBy by = call.provider->peer->lost_by;
  if (ask_another(slot, sent)) return;
  ++route.counted()->errors;
  answers_->fail(slot, context_->errors.lost(by, sent || call.asked));
}

// A call that has not been sent goes to any other provider; one that was, only where doing it twice does no harm. Its
// request has been kept if its provider had said so by then.
bool Relay::ask_another(SlotNumber slot, bool sent) noexcept {
  RelayedCall& call = calls_[slot];
  Provider& lost = *call.provider;
  if (sent && (!lost.options.idempotent || call.retried || call.stream || call.input)) return false;
  if (!sent && call.state == State::sent && (call.retried || call.input)) return false;  // it moves once
  if (call.addressed || !call.extras || call.extras->request.empty()) return false;
  Received message;
  Buffer read;
  std::string_view params;
  Provider* other = nullptr;
  try {
    // What is asked for is read again only where that tells whom to ask.
    if (lost.route->policy() == Policy::hash) {
      const std::string_view text = call.extras->request.padded();
      if (writer_->read_kept(text, message::encoding_of(text[0]), read, message)) return false;
      params = message.params();
    }
    const Encoding encoding = params.empty() ? Encoding::json : message.encoding;
    Reader& reader = *context_->loop.codecs.readers_of(encoding).reader;
    const Peer* const caller = call.caller != nullptr ? call.caller : context_->peers.find(call.extras->asker);
    other = lost.route->is_at_nodes() ? lost.route->choose_in_realm(params, reader, choice_in_realm(caller, &lost))
                                      : lost.route->choose(params, reader, &lost);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (other == nullptr) return false;
  if (!other->is_free() && other->waiting >= other->options.queue) return false;
  calls_.leave_provider(slot);
  call.retried = call.retried || call.state == State::sent;
  call.asked = call.asked || sent;
  call.untaken = false;
  if (call.stream && call.state == State::sent) call.stream->take_back();
  call.state = State::waiting;
  hand_to(*other, slot);
  return true;
}

}  // namespace wirecall::broker
