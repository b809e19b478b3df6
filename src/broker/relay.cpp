// See relay.hpp.
#include "broker/relay.hpp"

#include "base/reserve_extra.hpp"
#include "broker/call_all_shared.hpp"
#include "broker/linked_broker.hpp"
#include "broker/outgoing.hpp"
#include "broker/peer_encoding.hpp"
#include "broker/stream_request.hpp"

namespace wirecall::broker {

// A string's value; empty for anything else, which no peer is called.
static std::string string_of(Reader& reader, std::string_view json) {
  reader.reset(json);
  std::string_view text;
  if (reader.kind() != ValueKind::string || !reader.read_string(text)) return {};
  return std::string{text};
}

// Whether the caller speaks for clients of another broker, which has asked others by itself: another node, or the
// process that has taken over from this one.
static bool speaks_for_others(const Peer& caller) noexcept {
  return caller.of_node || (caller.linked != nullptr && !caller.linked->is_predecessor());
}

static Error needs_connection() {
  return Error::with_data(ErrorCode::invalid_request, R"({"reason":"needs_connection"})");
}

// The one that a call is for: the one it names, or the one that the policy chooses.
Provider* Relay::provider_for(Route& route, const Received& message, Call& call) {
  if (!message.has(Member::to)) [[likely]] {
    if (!route.is_at_nodes()) [[likely]]
      return route.choose(message.params(), call.reader());
    return route.choose_in_realm(message.params(), call.reader(), choice_in_realm(&caller_of(call)));
  }
  const std::string name = string_of(*context_->loop.codecs.readers.reader, message[Member::to]);
  const Peer* const named = context_->peers.find(name);
  if (named == nullptr) {
    Provider* const there = speaks_for_others(caller_of(call)) ? nullptr : route.find_at_node(name);
    return there != nullptr ? there : linked_provider(route, caller_of(call));
  }
  Provider* const provider = route.find(*named);
  return provider == nullptr || provider->ended ? nullptr : provider;
}

// The broker of another process that serves the same endpoints, where whoever is named may be; it goes with the call if
// it is asked for nothing else. Null for none.
Provider* Relay::linked_provider(Route& route, const Peer& caller) {
  if (Provider* const linked = route.linked(); linked != nullptr && linked->peer != &caller) return linked;
  for (const LinkedBroker* const link : context_->links) {
    Peer& peer = link->peer();
    if (&peer == &caller || peer.has_ended() || peer.is_congested()) continue;
    reserve_extra(peer.provides, 1);
    const Provider* const known = route.find(peer);
    Provider& provider = route.add(peer, {.linked = true});
    if (known == nullptr) {
      provider.index = static_cast<std::uint32_t>(peer.provides.size());
      peer.provides.push_back(&provider);
    }
    provider.ended = true;
    return &provider;
  }
  return nullptr;
}

// What comes from another broker, or is a job, goes to no other node: it is served here.
RealmChoice Relay::choice_in_realm(const Peer* caller, const Provider* but) const noexcept {
  return {.own = context_->realm != nullptr ? context_->realm->node() : std::string_view{},
          .here = caller != nullptr && (speaks_for_others(*caller) || caller->calls_here),
          .but = but};
}

// Whose call it is, as the provider is told. The node of a caller says that in the message, and the node of a provider
// decides whether to tell.
std::string Relay::from_of(const Provider& provider, const Peer& caller, const Received& message) const {
  if (provider.at_node) return caller.name.empty() ? std::string{} : caller.name_json();
  if (!caller.of_node) return context_->from_of(caller, message);
  return context_->settings.disclose_callers && message.has(Member::from) ? std::string{message[Member::from]}
                                                                          : std::string{};
}

void Relay::relay(Route& route, Call& call) {
  const Received& message = call.message();
  if (const std::size_t count = route.providers().size(); count >= kProvidersInStep) [[unlikely]]
    caller_of(call).sink().charge(count / kProvidersInStep);
  Provider* const provider = provider_for(route, message, call);
  if (provider == nullptr) {
    const Error& why = message.has(Member::to) ? context_->errors.not_there : context_->errors.not_delivered;
    context_->log.not_provided(route.name(), &caller_of(call), why);
    return call.error(why);
  }
  if (provider->ended) [[unlikely]] {
    relay_as_json(*provider, route, call, message);
    return free_again(*provider);  // where it has not been asked
  }
  if (message.is_json()) [[likely]]
    return relay_to(*provider, route, call, message);
  // As it came to a provider that speaks the same, unless it asks for progress, which is shown.
  const bool same =
      takes_as_it_is(*provider->peer, message.encoding) && !asks_for_progress(call.reader(), call.params());
  if (same) return relay_to(*provider, route, call, message);
  relay_as_json(*provider, route, call, message);
}

void Relay::relay_as_json(Provider& provider, Route& route, Call& call, const Received& message) {
  if (message.is_json()) return relay_to(provider, route, call, message);
  Buffer json;
  Received plain;
  if (const std::optional<Error> why = writer_->read_as_json({message.text, message.encoding}, json, plain))
    return context_->refuse(call, route.name(), *why);
  relay_to(provider, route, call, plain);
}

void Relay::notify(const Provider& provider, const Peer& caller, const Received& message) {
  if (context_->notification.is_withheld()) return;
  // A provider that subscribes to its method's name as well is told once.
  if (!context_->notification.has_told(*provider.peer))
    writer_->notify(provider, message, caller, from_of(provider, caller, message));
  if (!tap_feed_->empty()) [[unlikely]]
    tap_feed_->notification(provider, caller, message);
}

// `message` is the call's, or the same in JSON.
void Relay::relay_to(Provider& chosen, Route& route, Call& call, const Received& message) {
  Provider* const provider = &chosen;
  Peer& caller = caller_of(call);
  if (call.is_notification()) {
    notify(chosen, caller, message);
    return call.end_result();
  }
  const bool waits = !provider->is_free();
  bool long_id = false;
  if (message.text.size() > rpc::kBytesUncounted) [[unlikely]] {
    long_id = message.id().size() > rpc::kBytesUncounted;
    if (!waits && !has_budget(*provider, message.text.size()))
      return context_->refuse(call, route.name(), provider_holds_too_much());
  }
  if ((waits || long_id) && !may_keep(caller, message.text))
    return context_->refuse(call, route.name(), too_many_bytes());
  if (waits && !admits_waiting(*provider, caller)) return context_->refuse(call, route.name(), queue_is_full());
  rpc::MethodCounts& counts = route.counts();
  const bool direct = call.can_be_left();
  const bool has_input = message.has(Member::input) && message[Member::input] == "true";
  if (has_input && !direct) [[unlikely]]
    return context_->refuse(call, route.name(), needs_connection());
  const CallBounds bounds = call.bounds();
  const std::optional<SlotNumber> slot = calls_.take(message.id());
  if (!slot) return context_->refuse(call, route.name(), too_many_calls());
  RelayedCall& relayed = calls_[*slot];
  relayed.began = bounds.began;
  relayed.deadline = bounds.deadline;
  relayed.provider = provider;
  relayed.state = RelayedCall::State::waiting;
  relayed.form = call.form();
  relayed.addressed = message.has(Member::to);
  relayed.ends = message.has(Member::timeout_ms) ? bounds.deadline : kNoDeadline;
  try {
    if (direct) relayed.stream = stream_of(context_->loop, message);
    if (has_input) relayed.input = std::make_unique<RelayedInput>();
    // Of one at another node, since that may have none any more when it comes.
    const bool may_move =
        provider->options.idempotent || provider->options.linked || (provider->at_node && route.providers().size() > 1);
    const bool keeps = waits || (may_move && may_keep(caller, message.text));
    if (keeps || !direct || long_id) {
      relayed.extras = std::make_unique<RelayExtras>();
      if (long_id) relayed.extras->id.set(caller.shared_load(), message.id().size());
      if (keeps) relayed.extras->request.keep(message.text, caller.shared_load());
      relayed.extras->asked_by = &caller;
      relayed.extras->asker = caller.number;
      if (route.description.subscription)
        relayed.extras->subscribing = {.caller = &caller, .link = call.context().caller_link()};
    }
    if (direct) {
      if (bounds.deadline != kNoDeadline) calls_.start_timer(*slot);
    } else {
      call.on_reply(
          [this, number = calls_.number_of(*slot)](const Outcome& outcome) { caller_ended(number, outcome); });
      relayed.extras->sink = call.detach();
    }
    if (!waits) {
      if (context_->settings.disclose_callers || provider->at_node) [[unlikely]] {
        writer_->send(*slot, message, &caller, from_of(*provider, caller, message));
      } else {
        writer_->send(*slot, message, nullptr, {});
      }
    }
  } catch (...) {
    // Whatever it has been put into knows it no more; a sink that goes answers -32603.
    const ReplySink sink = relayed.extras ? std::move(relayed.extras->sink) : ReplySink{};
    calls_.drop(*slot);
    throw;
  }
  if (direct) {
    call.leave();
    calls_.enter_caller(*slot, caller);
  }
  ++counts.calls;
  if (waits && !keep_for(*provider, *slot)) return;
  if (!tap_feed_->empty()) [[unlikely]]
    tap_feed_->call(calls_.number_of(*slot), *relayed.provider, caller, message);
}

bool Relay::may_keep(const Peer& caller, std::string_view text) const noexcept {
  const std::size_t kept = caller.load().held_bytes;
  if (kept > rpc::kBytesUnweighed) caller.sink().held_changed();
  return kept == 0 || kept + text.size() <= context_->limits.hard_output;
}

// What was kept for the caller is going to wait for the provider instead: between connections of one account that is no
// more than before, unless the text is kept all the same.
bool Relay::moves_within_budget(SlotNumber slot, std::string_view text) noexcept {
  RelayedCall& call = calls_[slot];
  RelayExtras& extras = *call.extras;
  const Provider& provider = *call.provider;
  const Peer* const caller = context_->peers.find(extras.asker);
  if (provider.options.idempotent || provider.options.linked || provider.at_node || caller == nullptr)
    return has_budget(provider, text.size());
  const std::size_t before = caller->load().held_bytes;
  extras.request.uncount();
  if (before / rpc::kBytesUnweighed != caller->load().held_bytes / rpc::kBytesUnweighed) caller->sink().held_changed();
  return caller->load().calls.account() == provider.peer->load().calls.account() || has_budget(provider, text.size());
}

// A call that was to go to its provider, who has not got it.
void Relay::fail_unsent(SlotNumber slot, const Error& error) noexcept {
  calls_[slot].provider = nullptr;
  answers_->fail(slot, error);
}

// Sends a request that has been kept. A call whose request cannot be sent, for want of memory or of room in the budget
// of its provider, ends.
void Relay::send_kept(SlotNumber slot) noexcept {
  try {
    const Provider& provider = *calls_[slot].provider;
    const Peer* const caller = context_->peers.find(calls_[slot].extras->asker);
    if (provider.at_node && caller == nullptr) return fail_unsent(slot, context_->errors.cancelled_before);
    if (calls_[slot].extras->to_all) {
      if (has_budget(provider, calls_[slot].extras->to_all->size())) return writer_->send_to_all(slot, caller);
      return fail_unsent(slot, provider_holds_too_much());
    }
    const std::string_view text = calls_[slot].extras->request.padded();
    if (!moves_within_budget(slot, text)) {
      return fail_unsent(slot, calls_[slot].asked ? context_->errors.maybe_delivered : provider_holds_too_much());
    }
    const Encoding encoding = message::encoding_of(text.front());
    const Encoding wanted = takes_as_it_is(*provider.peer, encoding) ? encoding : Encoding::json;
    Received message;
    Buffer read;
    if (const std::optional<Error> why = writer_->read_kept(text, wanted, read, message)) {
      return fail_unsent(slot, *why);
    }
    const std::string from = caller != nullptr ? from_of(provider, *caller, message) : std::string{};
    writer_->send(slot, message, caller, from);
    if (!provider.options.idempotent && !provider.options.linked && !provider.at_node)
      calls_[slot].extras->request.release();
  } catch (const std::bad_alloc&) {
    fail_unsent(slot, context_->errors.no_memory);
  }
}

void Relay::hand_to(Provider& provider, SlotNumber slot) noexcept {
  calls_[slot].provider = &provider;
  if (provider.is_free()) return send_kept(slot);
  static_cast<void>(keep_for(provider, slot));
}

// False where there is no memory for that: then the call has ended.
bool Relay::keep_for(Provider& provider, SlotNumber slot) noexcept {
  try {
    calls_.wait_for_provider(slot);
  } catch (const std::bad_alloc&) {
    ++provider.route->counted()->errors;
    fail_unsent(slot, context_->errors.no_memory);
    return false;
  }
  return true;
}

bool Relay::admits_waiting(Provider& provider, const Peer& caller) noexcept {
  if (provider.waiting < provider.options.queue) return true;
  const std::size_t own = provider.queue.count(&caller) + provider.addressed_queue.count(&caller);
  if (2 * (own + 1) > provider.waiting) return false;  // nobody else can have more
  const WaitingFlow* longest = provider.queue.longest();
  const WaitingFlow* const addressed = provider.addressed_queue.longest();
  if (longest == nullptr || (addressed != nullptr && addressed->count > longest->count)) longest = addressed;
  if (longest == nullptr || longest->count <= own + 1) return false;
  const SlotNumber last = longest->calls.last;
  ++provider.route->counted()->errors;
  answers_->fail(last, queue_is_full());
  return true;
}

// The call whose turn it is: of those for this provider alone and of the others one each, since one of these may wait
// where the other is always full. If there is none, one that waits for another provider of the same route.
SlotNumber Relay::next_for(Provider& provider) noexcept {
  if (!provider.addressed_queue.empty() && (provider.addressed_next || provider.queue.empty())) {
    provider.addressed_next = false;
    return provider.addressed_queue.next();
  }
  provider.addressed_next = true;
  if (!provider.queue.empty()) return provider.queue.next();
  if (!provider.route->shares_queues() || provider.at_node) return kNoSlot;
  Provider* from = &provider;
  for (const auto& other : provider.route->providers()) {
    if (!other->queue.empty() && other->waiting > from->waiting) from = other.get();
  }
  return from->queue.empty() ? kNoSlot : from->queue.next();
}

void Relay::free_again(Provider& provider) noexcept {
  while (!provider.ended && provider.is_free()) {
    const SlotNumber slot = next_for(provider);
    if (slot == kNoSlot) return;
    calls_.leave_provider(slot);
    calls_[slot].provider = &provider;
    send_kept(slot);
  }
  const bool is_done = provider.at_work == 0 && provider.waiting == 0;
  if (provider.ended && is_done && !provider.ending) context_->methods.remove(provider);
}

}  // namespace wirecall::broker
