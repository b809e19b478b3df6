// The part of Router (router.hpp) by which a broker tells of itself: who comes and goes, and what is provided. One
// connection may register thousands of methods before thousands who watch: each turn tells a share of that.
#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "broker/outgoing.hpp"
#include "broker/router.hpp"
#include "rpc/event_text.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {

void Router::announce(Peer& peer, std::string_view topic, std::string_view method) noexcept {
  if (subscriptions_.empty() && taps_.empty()) return;
  // Where there is no memory nobody hears of it: there is none to say so either.
  if_memory_allows([&] {
    if (loop_context_->scheduler == nullptr ||
        (announcements_.empty() && announcing_steps_left_ != 0 && announced_ == nullptr)) {
      tell(&peer, topic, peer.name, method);
    } else {
      peer.sink().charge(announcing_cost_);  // about what the last one has cost
      announcements_.add({.topic = topic, .peer = peer.number, .client = peer.name, .method = std::string{method}});
    }
    announce_later();
  });
}

void Router::tell(Peer* peer, std::string_view topic, std::string_view client, std::string_view method) {
  std::string params = R"({"client":)" + (client.empty() ? std::string{"null"} : to_json(client));
  if (!method.empty()) params += R"(,"method":)" + to_json(method);
  params += '}';
  Buffer text = rpc::event_of(topic, params);
  const Delivered delivered =
      deliver_event(peer, {.topic = topic, .text = text.view(), .params = params, .method = method, .owned = &text});
  announcing_cost_ = delivered.cost;
  announcing_steps_left_ -= std::min(announcing_steps_left_, delivered.cost + 1);
}

// Whoever might have been told of them learns how many they were.
void Router::tell_of_lost_announcements() {
  for (const Announcements::Lost& lost : announcements_.take_lost()) {
    subscriptions_.each(lost.topic, nullptr, [&](Subscriber& subscriber) {
      Peer& peer = static_cast<Peer&>(subscriber);
      count_lag(peer, lost.topic, lost.count);
      if (peer.takes_events()) tell_lag(peer);
    });
  }
}

void Router::announce_more() noexcept {
  announces_ = false;
  announcing_steps_left_ = kAnnouncingSteps;
  while (!announcements_.empty() && announcing_steps_left_ != 0 && announced_ == nullptr) {
    if_memory_allows([&] {
      if (announcements_.next_are_lost()) return tell_of_lost_announcements();
      const Announcement next = announcements_.take();
      const auto known = peers_.find(next.peer);
      tell(known == peers_.end() ? nullptr : known->second, next.topic, next.client, next.method);
    });
  }
  if_memory_allows([&] { announce_later(); });
}

void Router::announce_later() {
  const bool none = announcements_.empty() && announcing_steps_left_ == kAnnouncingSteps;
  if (announces_ || none || loop_context_->scheduler == nullptr) return;
  loop_context_->scheduler->start(announcing_, std::chrono::nanoseconds{0});
  announces_ = true;
}

}  // namespace wirecall::broker
