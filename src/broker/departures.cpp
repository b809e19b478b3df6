// The part of Router (router.hpp) that is about relayed calls that no provider answers: their time is up, their
// caller cancels them or leaves, or their provider leaves. Many that end together do so in shares, over several turns.
#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "broker/call_all_results.hpp"
#include "broker/outgoing.hpp"
#include "broker/router.hpp"
#include "message/cancel_request.hpp"
#include "rpc/admission.hpp"

namespace wirecall::broker {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using State = RelayedCall::State;

namespace {

// So many calls run out of time in a turn; the others in the next ones.
constexpr std::size_t kExpiredATurn = 256;
// A caller with no more of them has its calls looked through for one of a certain id.
constexpr std::size_t kCallsLookedThrough = 16;
// Of a request that is asked of another provider so many bytes take a step of the turn's.
constexpr std::size_t kBytesInStep = 4096;
// So long after the connection with the most calls of an account has been looked for it is looked for again.
constexpr milliseconds kHeaviestPause{10};

}  // namespace

void Router::expired() {
  wakes_at_ = kNoDeadline;
  deadlines_.expire(now(), kExpiredATurn, [this](SlotNumber slot) {
    if (calls_[slot].state == State::sent) calls_[slot].provider->peer->has_run_out();
    give_up(slot, calls_[slot].state == State::sent ? errors_.timed_out : errors_.timed_out_before);
  });
  const nanoseconds next = deadlines_.next();
  if (next == kNoDeadline) return;
  loop_context_->scheduler->start(*this, std::max(next - now(), nanoseconds{0}));
  wakes_at_ = next;
}

// The first of the caller's calls with that id, streams before others.
SlotNumber Router::find(Peer& caller, std::string_view id_json) {
  if (caller.calls_made > kCallsLookedThrough) return caller.calls_by_id.find(id_json, calls_, caller.calls);
  SlotNumber found = kNoSlot;
  for (SlotNumber slot = caller.calls.first; slot != kNoSlot; slot = calls_[slot].of_caller.after) {
    if (calls_[slot].id() != id_json) continue;
    if (calls_[slot].stream) return slot;
    if (found == kNoSlot) found = slot;
  }
  return found;
}

std::size_t Router::cancel(Peer& caller, std::string_view id_json) {
  std::size_t count = 0;
  for (SlotNumber slot = find(caller, id_json); slot != kNoSlot; slot = find(caller, id_json), ++count) {
    give_up(slot, calls_[slot].state == State::waiting ? errors_.cancelled_before : errors_.cancelled);
  }
  return count;
}

void Router::end_calls(Peer& caller, const Error* error) noexcept {
  while (!caller.calls.empty()) {
    const SlotNumber slot = caller.calls.first;
    if (error != nullptr) {
      const bool asked = calls_[slot].state != State::waiting;
      const bool cancelled = error->code() == static_cast<int>(ErrorCode::cancelled);
      give_up(slot, cancelled && !asked ? errors_.cancelled_before : *error);
    } else {
      give_up(slot);
    }
  }
}

// The connection with the most is looked for now and then, since there may be many.
bool Router::shed_call(const Peer& caller) noexcept {
  rpc::Account& account = *caller.load().calls.account();
  const auto heavier = [&] {
    const auto* const heaviest = static_cast<const Peer*>(account.heaviest);
    return heaviest != nullptr && heaviest->calls_made > caller.calls_made + 1;
  };
  if (!heavier() && now() >= account.looked_at + kHeaviestPause) {
    account.looked_at = now();
    account.heaviest = nullptr;
    for (const auto& [number, peer] : peers_) {
      if (peer->load().calls.account().get() != &account) continue;
      const auto* const heaviest = static_cast<const Peer*>(account.heaviest);
      if (heaviest == nullptr || peer->calls_made > heaviest->calls_made) account.heaviest = peer;
    }
  }
  if (!heavier()) return false;
  const SlotNumber last = static_cast<Peer*>(account.heaviest)->calls.last;
  const std::string_view delivered = calls_[last].state == State::sent ? "maybe" : "no";
  if_memory_allows([&] { give_up(last, rpc::too_many_of_principal(delivered)); });
  return true;
}

void Router::limit_calls(Peer& caller, std::size_t kept, nanoseconds until, const Error& error) noexcept {
  while (caller.calls_made > kept) give_up(caller.calls.last, error);
  for (SlotNumber slot = caller.calls.first; slot != kNoSlot; slot = calls_[slot].of_caller.after) end_by(slot, until);
}

void Router::end_by(SlotNumber slot, nanoseconds until) noexcept {
  RelayedCall& call = calls_[slot];
  call.ends = std::min(call.ends, until);
  if (call.deadline <= until) return;
  if (call.timed) deadlines_.remove(slot);
  call.deadline = until;
  deadlines_.add(slot);
  call.timed = true;
  if_memory_allows([&] { watch(slot); });
}

// The dispatcher of a call that a sink answers has ended it.
void Router::caller_ended(std::uint64_t number, const Outcome& outcome) noexcept {
  const SlotNumber slot = calls_.find(Digits{number}.view());
  if (slot == kNoSlot || calls_[slot].caller != nullptr || calls_[slot].state == State::given_up) return;
  if_memory_allows([&] {
    const Error error{static_cast<ErrorCode>(outcome.code)};
    log_failure(slot, error);
    if (!taps_.empty()) tap_end(slot, error);
  });
  // They go when the call is no longer there for what that sets off.
  RelayExtras& extras = *calls_[slot].extras;
  const ReplySink sink = std::move(extras.sink);
  const CallAllEntry call_all = std::move(extras.call_all);
  give_up(slot);
}

// Whoever waits for the call is told, and so is the provider.
void Router::give_up(SlotNumber slot, const Error& error) noexcept {
  log_failure(slot, error);
  if (!taps_.empty()) tap_end(slot, error);
  if (calls_[slot].caller != nullptr) {
    answer(slot, error);
    return give_up(slot);
  }
  const CallAllEntry call_all = std::move(calls_[slot].extras->call_all);
  give_up(slot);
  call_all.results->set(call_all.index, error);
}

// Nobody waits for the call any more.
void Router::give_up(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  Provider& provider = *call.provider;
  if (!taps_.empty()) tap_end(slot, errors_.cancelled);
  ++provider.route->counted()->errors;
  if (call.state != State::sent) return forget_call(slot);
  if_memory_allows([&] {
    const Digits id{calls_.number_of(slot)};
    append_message(provider.peer->sink(), [&](Buffer& out) { out.append(message::cancel_request(id.view())); });
  });
  // A subscription that begins all the same has to be ended.
  const bool may_begin = provider.route->description.subscription && provider.at_work <= limits_->in_flight;
  if (provider.options.concurrency == ProviderOptions::kUnlimited && !may_begin) {
    forget_call(slot);
    return free_again(provider);
  }
  leave_caller(slot);
  call.state = State::given_up;
  // What its caller has sent is of no use now.
  call.forget_id();
  if (!call.extras) return;
  call.extras->id.release();
  call.extras->request.release();
}

// ---- peers that leave ----

void Router::end_peer(Peer& peer) noexcept {
  peer.keep_last();
  peer.ended = true;
  subscriptions_.remove_all(peer);
  end_subscriptions_of(peer);
  untap(peer);
  resume_streams(peer);
  for (Provider* provider : peer.provides) {
    if (!std::exchange(provider->ended, true)) announce(peer, "rpc.method.unregistered", provider->route->name());
    end_method(*provider);
  }
  if (!peer.left) end_left(peer);
}

// So many of its calls in this turn as it has time for, and the others in later ones.
void Router::end_left(Peer& peer) noexcept {
  std::size_t all = std::numeric_limits<std::size_t>::max();
  const bool done = end_some(peer, loop_context_->scheduler == nullptr ? all : calls_to_end_);
  if (!done && !peer.leaves) {
    try {
      ended_calls_.push_back({.peer = &peer, .provider = nullptr});
      peer.leaves = true;
    } catch (const std::bad_alloc&) {
      static_cast<void>(end_some(peer, all));
    }
  }
  if (loop_context_->scheduler != nullptr) if_memory_allows([&] { end_later(); });
  if (peer.left && !peer.leaves) delete &peer;
}

// The same for the calls that wait for a provider which has unregistered. It goes with the last one that it has.
void Router::end_waiting(Provider& provider) noexcept {
  if (provider.ending) return;  // it has registered and unregistered again meanwhile
  std::size_t all = std::numeric_limits<std::size_t>::max();
  if (!lose_some(provider, false, loop_context_->scheduler == nullptr ? all : calls_to_end_)) {
    try {
      provider.ending = std::make_shared<Provider*>(&provider);
      ended_calls_.push_back({.peer = nullptr, .provider = provider.ending});
    } catch (const std::bad_alloc&) {
      provider.ending = nullptr;
      static_cast<void>(lose_some(provider, false, all));
    }
  }
  if (loop_context_->scheduler != nullptr) if_memory_allows([&] { end_later(); });
  if (!provider.ending && provider.at_work == 0) remove_provider(provider);
}

// Takes what it needs off `steps`: one for each call or more, and one for each method. Whether nothing is left.
bool Router::end_some(Peer& peer, std::size_t& steps) noexcept {
  const auto may = [&steps] { return steps != 0 && steps-- != 0; };
  while (peer.left && !peer.calls.empty()) {
    if (!may()) return false;
    give_up(peer.calls.first);
  }
  while (peer.ended && !peer.provides.empty()) {
    Provider& provider = *peer.provides.back();
    if (!lose_some(provider, true, steps) || !may()) return false;
    remove_provider(provider);
  }
  return true;
}

// The same for the calls that wait for the provider, and, where it has gone, for those that it has been sent.
bool Router::lose_some(Provider& provider, bool sent_too, std::size_t& steps) noexcept {
  const auto next = [&] {
    if (!provider.queue.empty()) return provider.queue.next();
    if (!provider.addressed_queue.empty()) return provider.addressed_queue.next();
    return sent_too ? provider.sent.first : kNoSlot;
  };
  for (SlotNumber slot = next(); slot != kNoSlot; slot = next()) {
    if (steps == 0) return false;
    steps -= std::min(steps, steps_to_lose(slot));
    lose(slot);
  }
  return true;
}

// Where another provider may be asked, the call's text is copied, and each of them looked at.
std::size_t Router::steps_to_lose(SlotNumber slot) noexcept {
  const RelayedCall& call = calls_[slot];
  if (!call.extras || call.addressed) return 1;
  return 1 + call.extras->request.size() / kBytesInStep + call.provider->route->providers().size() / kProvidersInStep;
}

void Router::end_more_calls() noexcept {
  calls_to_end_ = kCallsEndedATurn;
  while (!ended_calls_.empty()) {
    const EndedCalls ended = ended_calls_.front();
    if (Peer* const peer = ended.peer) {
      if (!end_some(*peer, calls_to_end_)) return;
      peer->leaves = false;
      if (peer->left) delete peer;
    } else if (Provider* const provider = *ended.provider) {
      if (provider->ended && !lose_some(*provider, false, calls_to_end_)) return;
      provider->ending = nullptr;
      if (provider->ended && provider->at_work == 0) remove_provider(*provider);
    }
    ended_calls_.pop_front();
  }
}

// Their connections have gone all, and with these the providers.
void Router::end_all_left() noexcept {
  for (std::size_t all = std::numeric_limits<std::size_t>::max(); !ended_calls_.empty(); ended_calls_.pop_front()) {
    Peer* const peer = ended_calls_.front().peer;
    if (peer == nullptr) continue;
    static_cast<void>(end_some(*peer, all));
    delete peer;
  }
}

// The provider will not answer this call: it is asked of another one, where that is safe, or ends.
void Router::lose(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  if (call.state == State::given_up) return forget_call(slot);
  const bool sent = call.state == State::sent;
  Route& route = *call.provider->route;
  if (ask_another(slot)) return;
  ++route.counted()->errors;
  fail(slot, sent ? errors_.maybe_delivered : errors_.not_delivered);
}

// A call that has not been sent goes to any other provider; one that was, only where doing it twice does no harm. Its
// request has been kept if its provider had said so by then.
bool Router::ask_another(SlotNumber slot) noexcept {
  RelayedCall& call = calls_[slot];
  Provider& lost = *call.provider;
  const bool sent = call.state == State::sent;
  if (sent && (!lost.options.idempotent || call.retried || call.stream)) return false;
  if (call.addressed || !call.extras || call.extras->request.empty()) return false;
  Received message;
  Buffer read;
  std::string_view params;
  Provider* other = nullptr;
  try {
    // What is asked for is read again only where that tells whom to ask.
    if (lost.route->policy() == Policy::hash) {
      static_cast<void>(read_kept(call.extras->request.padded(), true, read, message));
      if (message.has(Member::params)) params = message[Member::params];
    }
    const bool msgpack = !params.empty() && message.msgpack;
    other = lost.route->choose(
        params, *loop_context_->codecs.readers_of(msgpack ? MessageForm::msgpack : MessageForm::json).reader, &lost);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (other == nullptr) return false;
  if (!other->is_free() && other->waiting >= other->options.queue) return false;
  leave_provider(slot);
  call.retried = call.retried || sent;
  call.state = State::waiting;
  hand_to(*other, slot);
  return true;
}

}  // namespace wirecall::broker
