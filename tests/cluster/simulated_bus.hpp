// A bus without a network: what is published arrives after a delay on a clock that a test moves, in the order of its
// sender, or is lost where the test says so. Who subscribes is found by the subject, so that there may be many buses.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cluster/bus.hpp"
#include "wirecall/context.hpp"

namespace wirecall::test {

class SimulatedBus;

/// What the buses of all brokers meet in. Outlives them.
class SimulatedNetwork {
 public:
  explicit SimulatedNetwork(Scheduler& scheduler, std::uint64_t seed = 0) : scheduler_(&scheduler), random_(seed) {}
  SimulatedNetwork(SimulatedNetwork&&) = delete;
  ~SimulatedNetwork();

  void add(SimulatedBus& bus);
  void remove(SimulatedBus& bus);
  void publish(SimulatedBus& from, std::string_view subject, std::string_view reply, std::string_view payload);
  /// The two cannot reach each other, until `heal`.
  void part(const SimulatedBus& one, const SimulatedBus& other) { parted_.push_back({&one, &other}); }
  void heal() { parted_.clear(); }

  std::chrono::nanoseconds delay = std::chrono::microseconds{40};
  std::chrono::nanoseconds delay_more{0};  ///< up to so much is added, by chance
  unsigned lost_of_million = 0;            ///< messages, by chance
  std::size_t payload_bytes_max = 1 << 20;
  std::uint64_t published = 0;
  std::uint64_t published_bytes = 0;
  std::uint64_t delivered = 0;  ///< one that is published to many is delivered as often

 private:
  friend class SimulatedBus;
  struct Delivery;
  // A subscription of a bus, by their numbers.
  struct Subscriber {
    std::uint64_t bus_number;
    std::uint64_t number;
    SimulatedBus* bus;
  };
  using Subscribers = std::unordered_map<std::string, std::vector<Subscriber>>;
  void subscribe(const std::string& pattern, const Subscriber& subscriber);
  void unsubscribe(const std::string& pattern, std::uint64_t number);
  [[nodiscard]] std::vector<Subscriber> subscribers_of(const std::string& subject) const;
  [[nodiscard]] bool are_parted(const SimulatedBus& one, const SimulatedBus& other) const;
  [[nodiscard]] unsigned chance(unsigned of) { return static_cast<unsigned>(random_() % of); }
  void deliver(Delivery& delivery);

  Scheduler* scheduler_;
  std::mt19937_64 random_;
  std::vector<SimulatedBus*> buses_;
  Subscribers exact_;
  Subscribers by_prefix_;  // of patterns, before their first wildcard
  std::uint64_t numbers_ = 0;
  std::vector<std::pair<const SimulatedBus*, const SimulatedBus*>> parted_;
  std::map<Delivery*, std::unique_ptr<Delivery>> deliveries_;
};

class SimulatedBus final : public cluster::Bus {
 public:
  explicit SimulatedBus(SimulatedNetwork& network) : network_(&network), number_(++network.numbers_) {
    network.add(*this);
  }
  ~SimulatedBus() override {
    for (const Subscription& one : subscriptions_) network_->unsubscribe(one.subject, one.number);
    network_->remove(*this);
  }

  [[nodiscard]] State state() const noexcept override { return state_; }
  void on_state(std::function<void()> changed) override { changed_ = std::move(changed); }
  void subscribe(std::string subject, Handler handler) override {
    subscribe_in_group(std::move(subject), {}, std::move(handler));
  }
  void subscribe_to_absence(std::string subject, Handler handler) override {
    subscribe(std::move(subject), std::move(handler));
  }
  void subscribe_in_group(std::string subject, std::string group, Handler handler) override {
    const std::uint64_t number = ++network_->numbers_;
    network_->subscribe(subject, {.bus_number = number_, .number = number, .bus = this});
    subscriptions_.push_back({std::move(subject), std::move(handler), std::move(group), number});
  }
  void unsubscribe(std::string_view subject) noexcept override {
    for (const Subscription& one : subscriptions_) {
      if (one.subject == subject) network_->unsubscribe(one.subject, one.number);
    }
    std::erase_if(subscriptions_, [subject](const auto& one) { return one.subject == subject; });
  }
  [[nodiscard]] bool publish(std::string_view subject, std::string_view reply,
                             std::string_view payload) noexcept override {
    if (state_ != State::connected || payload.size() > network_->payload_bytes_max) return false;
    network_->publish(*this, subject, reply, payload);
    return true;
  }
  [[nodiscard]] std::size_t payload_bytes_max() const noexcept override { return network_->payload_bytes_max; }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept override { return 0; }
  [[nodiscard]] std::string url() const override { return "simulated"; }
  [[nodiscard]] std::string failure() const override { return state_ == State::connected ? "" : "cut off"; }

  /// As a test wants it.
  void become(State state) {
    state_ = state;
    if (changed_) changed_();
  }
  /// What comes waits until it is read, as for a process that is stopped.
  void hold() { held_ = true; }
  void release() {
    held_ = false;
    for (const Waiting& one : std::exchange(waiting_, {})) {
      one.handler(
          {.subject = one.subject, .reply = one.reply, .payload = one.payload, .no_responders = one.no_responders});
    }
  }

 private:
  friend class SimulatedNetwork;
  struct Waiting {
    Handler handler;
    std::string subject;
    std::string reply;
    std::string payload;
    bool no_responders;
  };
  struct Subscription {
    std::string subject;
    Handler handler;
    std::string group;  // empty for none
    std::uint64_t number;
  };
  [[nodiscard]] const Subscription* find(std::uint64_t number) const {
    const auto found = std::ranges::find(subscriptions_, number, &Subscription::number);
    return found == subscriptions_.end() ? nullptr : &*found;
  }
  void take(const Subscription& subscription, const cluster::BusMessage& message) {
    const Handler handler = subscription.handler;  // the subscription may end meanwhile
    if (!held_) return handler(message);
    waiting_.push_back({.handler = handler,
                        .subject = std::string{message.subject},
                        .reply = std::string{message.reply},
                        .payload = std::string{message.payload},
                        .no_responders = message.no_responders});
  }
  [[nodiscard]] static bool matches(std::string_view pattern, std::string_view subject) {
    while (!pattern.empty()) {
      const std::size_t dot = pattern.find('.');
      const std::size_t end = subject.find('.');
      const std::string_view word = pattern.substr(0, dot);
      if (word == ">") return !subject.empty();
      if (subject.empty() || (word != "*" && word != subject.substr(0, end))) return false;
      pattern = dot == pattern.npos ? std::string_view{} : pattern.substr(dot + 1);
      subject = end == subject.npos ? std::string_view{} : subject.substr(end + 1);
    }
    return subject.empty();
  }

  SimulatedNetwork* network_;
  const std::uint64_t number_;
  State state_ = State::connected;
  std::function<void()> changed_;
  std::vector<Subscription> subscriptions_;
  std::vector<Waiting> waiting_;
  bool held_ = false;
  std::chrono::nanoseconds last_{0};  // when what it published last arrives
};

struct SimulatedNetwork::Delivery final : Timer {
  explicit Delivery(SimulatedNetwork& owner) : network(&owner) {}
  void expired() override { network->deliver(*this); }

  SimulatedNetwork* network;
  const SimulatedBus* from = nullptr;
  std::string subject;
  std::string reply;
  std::string payload;
};

inline SimulatedNetwork::~SimulatedNetwork() {
  for (const auto& [delivery, owned] : deliveries_) scheduler_->stop(*delivery);
}

inline void SimulatedNetwork::add(SimulatedBus& bus) { buses_.push_back(&bus); }
inline void SimulatedNetwork::remove(SimulatedBus& bus) { std::erase(buses_, &bus); }

inline void SimulatedNetwork::subscribe(const std::string& pattern, const Subscriber& subscriber) {
  const std::size_t wildcard = pattern.find_first_of("*>");
  (wildcard == pattern.npos ? exact_[pattern] : by_prefix_[pattern.substr(0, wildcard)]).push_back(subscriber);
}
inline void SimulatedNetwork::unsubscribe(const std::string& pattern, std::uint64_t number) {
  const std::size_t wildcard = pattern.find_first_of("*>");
  Subscribers& all = wildcard == pattern.npos ? exact_ : by_prefix_;
  const auto found = all.find(pattern.substr(0, wildcard));
  std::erase_if(found->second, [number](const auto& one) { return one.number == number; });
  if (found->second.empty()) all.erase(found);
}
// In the order in which their buses and they themselves have begun.
inline std::vector<SimulatedNetwork::Subscriber> SimulatedNetwork::subscribers_of(const std::string& subject) const {
  std::vector<Subscriber> found;
  if (const auto exact = exact_.find(subject); exact != exact_.end()) found = exact->second;
  for (std::size_t end = 0; end != subject.npos;) {
    if (const auto patterns = by_prefix_.find(subject.substr(0, end)); patterns != by_prefix_.end()) {
      std::ranges::copy_if(patterns->second, std::back_inserter(found), [&](const Subscriber& one) {
        return SimulatedBus::matches(one.bus->find(one.number)->subject, subject);
      });
    }
    const std::size_t dot = subject.find('.', end);
    end = dot == subject.npos ? dot : dot + 1;
  }
  std::ranges::sort(found, {}, [](const Subscriber& one) { return std::pair{one.bus_number, one.number}; });
  return found;
}

inline bool SimulatedNetwork::are_parted(const SimulatedBus& one, const SimulatedBus& other) const {
  for (const auto& [a, b] : parted_) {
    if ((a == &one && b == &other) || (a == &other && b == &one)) return true;
  }
  return false;
}

inline void SimulatedNetwork::publish(SimulatedBus& from, std::string_view subject, std::string_view reply,
                                      std::string_view payload) {
  ++published;
  published_bytes += payload.size();
  if (lost_of_million != 0 && chance(1'000'000) < lost_of_million) return;
  auto delivery = std::make_unique<Delivery>(*this);
  delivery->from = &from;
  delivery->subject = subject;
  delivery->reply = reply;
  delivery->payload = payload;
  std::chrono::nanoseconds at = scheduler_->now() + delay;
  if (delay_more.count() != 0)
    at +=
        std::chrono::nanoseconds{static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(delay_more.count()))};
  from.last_ = at = std::max(at, from.last_);
  Delivery& one = *delivery;
  deliveries_.emplace(&one, std::move(delivery));
  scheduler_->start(one, at - scheduler_->now());
}

inline void SimulatedNetwork::deliver(Delivery& delivery) {
  const auto node = deliveries_.extract(&delivery);
  const auto found = std::ranges::find(buses_, delivery.from);
  SimulatedBus* const sender = found == buses_.end() ? nullptr : *found;
  std::vector<Subscriber> subscribers = subscribers_of(delivery.subject);
  std::erase_if(subscribers, [](const auto& one) { return one.bus->state_ != cluster::Bus::State::connected; });
  bool any = false;
  std::map<std::string, std::vector<const SimulatedBus*>> groups;  // who is in them
  for (const Subscriber& one : subscribers) {
    if (const std::string& group = one.bus->find(one.number)->group; !group.empty()) groups[group].push_back(one.bus);
  }
  std::map<std::string, const SimulatedBus*> chosen;
  for (const auto& [group, members] : groups)
    chosen[group] = members[members.size() == 1 ? 0 : chance(static_cast<unsigned>(members.size()))];
  for (const Subscriber& one : subscribers) {
    const SimulatedBus::Subscription* const subscription = one.bus->find(one.number);
    if (subscription == nullptr || (!subscription->group.empty() && chosen[subscription->group] != one.bus)) continue;
    any = true;
    if (sender != nullptr && are_parted(*one.bus, *sender)) continue;
    ++delivered;
    // Its memory goes when the handler has returned.
    const std::string payload = delivery.payload;
    one.bus->take(*subscription, {.subject = delivery.subject, .reply = delivery.reply, .payload = payload});
  }
  if (any || sender == nullptr || delivery.reply.empty()) return;
  for (const auto& subscription : sender->subscriptions_) {
    if (SimulatedBus::matches(subscription.subject, delivery.reply))
      sender->take(subscription, {.subject = delivery.reply, .reply = {}, .payload = {}, .no_responders = true});
  }
}

}  // namespace wirecall::test
