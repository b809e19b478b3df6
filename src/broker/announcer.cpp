// See announcer.hpp.
#include "broker/announcer.hpp"

#include "broker/exclusive_leases.hpp"
#include "broker/linked_broker.hpp"
#include "broker/outgoing.hpp"

namespace wirecall::broker {

void Announcer::announce(Peer& peer, std::string_view topic, std::string_view method) noexcept {
  if (context_->realm != nullptr && !method.empty() && !peer.of_node) [[unlikely]]
    context_->realm->provided_changed(method);
  if (!method.empty()) {
    if (context_->leases != nullptr) context_->leases->provided_changed(method);
    for (LinkedBroker* const link : context_->links) link->provided_changed(method);
  }
  if (context_->topics.empty() && tap_feed_->empty()) return;
  if (peer.tells_itself && !peer.has_ended()) return;
  // Where there is no memory nobody hears of it: there is none to say so either.
  if_memory_allows([&] {
    if (waiting_.empty() && !budget_.is_spent() && !fan_outs_->is_announcing()) {
      tell(&peer, topic, peer.name, method);
    } else {
      peer.sink().charge(cost_);  // about what the last one has cost
      waiting_.add({.topic = topic, .peer = peer.number, .client = peer.name, .method = std::string{method}});
    }
    budget_.resume_later(!waiting_.empty());
  });
}

void Announcer::tell(Peer* peer, std::string_view topic, std::string_view client, std::string_view method) {
  std::string params = R"({"client":)" + (client.empty() ? std::string{"null"} : to_json(client));
  if (!method.empty()) params += R"(,"method":)" + to_json(method);
  if (context_->realm != nullptr && (peer == nullptr || !peer->of_node || peer->node != nullptr)) {
    const bool elsewhere = peer != nullptr && peer->of_node;
    params += R"(,"node":)" + to_json(elsewhere ? peer->node->name() : context_->realm->node());
  }
  params += '}';
  Buffer text = rpc::event_of(topic, params);
  cost_ =
      events_->deliver(peer, {.topic = topic, .text = text.view(), .params = params, .method = method, .owned = &text})
          .cost;
  budget_.spend(cost_ + 1);
}

// Whoever might have been told of them learns how many they were.
void Announcer::tell_of_lost() {
  for (const Announcements::Lost& lost : waiting_.take_lost()) {
    context_->topics.each(lost.topic, nullptr, [&](Subscriber& subscriber) {
      count_lag(*subscriber.peer, lost.topic, lost.count);
      if (subscriber.peer->takes_events()) tell_lag(*subscriber.peer);
    });
  }
}

void Announcer::tell_more() noexcept {
  while (!waiting_.empty() && !budget_.is_spent() && !fan_outs_->is_announcing()) {
    if_memory_allows([&] {
      if (waiting_.next_are_lost()) return tell_of_lost();
      const Announcement next = waiting_.take();
      tell(context_->peers.find(next.peer), next.topic, next.client, next.method);
    });
  }
  budget_.resume_later(!waiting_.empty());
}

}  // namespace wirecall::broker
