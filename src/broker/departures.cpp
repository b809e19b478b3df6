// See departures.hpp.
#include "broker/departures.hpp"

#include "broker/outgoing.hpp"

namespace wirecall::broker {

// Of a request that is asked of another provider so many bytes take a step of the turn's.
constexpr std::size_t kBytesInStep = 4096;

void Departures::end_peer(Peer& peer) noexcept {
  peer.keep_last();
  if (!peer.has_left()) peer.state = Peer::State::ended;
  parts_.context.topics.remove_all(peer.topics);
  parts_.subscriptions.end_all_of(peer);
  parts_.tap_feed.remove(peer);
  parts_.streams.resume(peer);
  parts_.inputs.caller_ended(peer);
  for (Provider* provider : peer.provides) {
    if (!std::exchange(provider->ended, true))
      parts_.announcer.announce(peer, "rpc.method.unregistered", provider->route->name());
    parts_.subscriptions.end_method(*provider);
  }
  if (!peer.has_left()) end_calls_of(peer);
}

// So many in this turn as it has time for.
void Departures::end_calls_of(Peer& peer) noexcept {
  if (!end_some(peer, budget_.steps()) && !peer.leaves) {
    try {
      queue_.push_back({.peer = &peer, .provider = nullptr});
      peer.leaves = true;
    } catch (const std::bad_alloc&) {
      std::size_t all = TurnBudget::kAll;
      static_cast<void>(end_some(peer, all));
    }
  }
  budget_.resume_later(!queue_.empty());
  if (peer.has_left() && !peer.leaves) delete &peer;
}

void Departures::end_waiting(Provider& provider) noexcept {
  if (provider.ending) return;  // it has registered and unregistered again meanwhile
  if (!lose_some(provider, false, budget_.steps())) {
    try {
      provider.ending = std::make_shared<Provider*>(&provider);
      queue_.push_back({.peer = nullptr, .provider = provider.ending});
    } catch (const std::bad_alloc&) {
      provider.ending = nullptr;
      std::size_t all = TurnBudget::kAll;
      static_cast<void>(lose_some(provider, false, all));
    }
  }
  budget_.resume_later(!queue_.empty());
  if (!provider.ending && provider.at_work == 0) parts_.context.methods.remove(provider);
}

// Takes what it needs off `steps`: one for each call or more, and one for each method. Whether nothing is left.
bool Departures::end_some(Peer& peer, std::size_t& steps) noexcept {
  const auto may = [&steps] { return steps != 0 && steps-- != 0; };
  while (peer.has_left() && !peer.calls.empty()) {
    if (!may()) return false;
    parts_.relay.give_up(peer.calls.first);
  }
  while (peer.has_ended() && !peer.provides.empty()) {
    Provider& provider = *peer.provides.back();
    if (!lose_some(provider, true, steps) || !may()) return false;
    parts_.context.methods.remove(provider);
  }
  return true;
}

// The same for the calls that wait for the provider, and, where it has gone, for those that it has been sent.
bool Departures::lose_some(Provider& provider, bool sent_too, std::size_t& steps) noexcept {
  const auto next = [&] {
    if (!provider.queue.empty()) return provider.queue.next();
    if (!provider.addressed_queue.empty()) return provider.addressed_queue.next();
    return sent_too ? provider.sent.first : kNoSlot;
  };
  for (SlotNumber slot = next(); slot != kNoSlot; slot = next()) {
    if (steps == 0) return false;
    steps -= std::min(steps, steps_to_lose(slot));
    parts_.relay.lose(slot);
  }
  return true;
}

// Where another provider may be asked, the call's text is copied, and each of them looked at.
std::size_t Departures::steps_to_lose(SlotNumber slot) noexcept {
  const RelayedCall& call = parts_.calls[slot];
  if (!call.extras || call.addressed) return 1;
  return 1 + call.extras->request.size() / kBytesInStep + call.provider->route->providers().size() / kProvidersInStep;
}

void Departures::end_more() noexcept {
  while (!queue_.empty() && end_first()) queue_.pop_front();
  budget_.resume_later(!queue_.empty());
}

// False where the turn has no time for all of it.
bool Departures::end_first() noexcept {
  const EndedCalls& ended = queue_.front();
  if (Peer* const peer = ended.peer) {
    if (!end_some(*peer, budget_.steps())) return false;
    peer->leaves = false;
    if (peer->has_left()) delete peer;
  } else if (Provider* const provider = *ended.provider) {
    if (provider->ended && !lose_some(*provider, false, budget_.steps())) return false;
    provider->ending = nullptr;
    if (provider->ended && provider->at_work == 0) parts_.context.methods.remove(*provider);
  }
  return true;
}

// With their connections the providers have gone.
void Departures::end_all() noexcept {
  for (std::size_t all = TurnBudget::kAll; !queue_.empty(); queue_.pop_front()) {
    Peer* const peer = queue_.front().peer;
    if (peer == nullptr) continue;
    WIRECALL_ASSERT(peer->has_left());
    static_cast<void>(end_some(*peer, all));
    delete peer;
  }
}

}  // namespace wirecall::broker
