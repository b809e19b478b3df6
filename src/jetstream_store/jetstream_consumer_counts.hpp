// JetStreamConsumerCounts: how many consumers there are in the streams of a JetStreamStore, and how many each principal
// has made, for all brokers together: nats-server keeps each of them until it is forgotten. Thread: the loop's.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "durable/store.hpp"
#include "wirecall/context.hpp"

namespace wirecall::jetstream_store {

/// Consumers at most.
struct ConsumerLimits {
  std::size_t all = 4096;
  std::size_t of_principal = 1024;
};

class JetStreamConsumerCounts {
 public:
  using List = std::function<void(durable::Then<std::vector<durable::ConsumerState>> then)>;

  /// `list` lists all of them, and `scheduler` outlives all calls.
  JetStreamConsumerCounts(const ConsumerLimits& limits, List list, Scheduler& scheduler)
      : limits_(limits), list_(std::move(list)), scheduler_(&scheduler) {}
  JetStreamConsumerCounts(JetStreamConsumerCounts&&) = delete;
  ~JetStreamConsumerCounts() = default;

  /// Whether the principal may make one more, which is counted then: `then` is called, maybe from within, with nothing,
  /// or with why not.
  void require_room(const std::string& principal, durable::Then<durable::Done> then);

 private:
  struct Waiting {
    std::string principal;
    durable::Then<durable::Done> then;
  };

  void read();
  [[nodiscard]] std::optional<durable::Failure> why_full(const std::string& principal) const;
  void add(const std::string& principal);

  const ConsumerLimits limits_;
  const List list_;
  Scheduler* scheduler_;
  std::size_t all_ = 0;
  std::map<std::string, std::size_t> by_principal_;
  std::chrono::nanoseconds until_{};  // it may be counted with
  bool reads_ = false;
  std::vector<Waiting> waiting_;
};

}  // namespace wirecall::jetstream_store
