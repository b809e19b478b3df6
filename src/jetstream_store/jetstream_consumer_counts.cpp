// See jetstream_consumer_counts.hpp.
#include "jetstream_store/jetstream_consumer_counts.hpp"

#include <algorithm>

namespace wirecall::jetstream_store {

using durable::Done;
using durable::Failure;
using durable::Outcome;
using durable::Then;
using std::chrono::nanoseconds;

// For which what was counted holds.
constexpr std::chrono::milliseconds kConsumersCountedTime{1000};

// Nothing is refused for what was counted a while ago.
void JetStreamConsumerCounts::require_room(const std::string& principal, Then<Done> then) {
  if (waiting_.empty() && scheduler_->now() < until_ && !why_full(principal)) {
    add(principal);
    return then(Done{});
  }
  waiting_.push_back({principal, std::move(then)});
  read();
}

void JetStreamConsumerCounts::read() {
  if (std::exchange(reads_, true)) return;
  list_([this, began = scheduler_->now()](const Outcome<std::vector<durable::ConsumerState>>& outcome) {
    reads_ = false;
    if (outcome) {
      all_ = 0;
      by_principal_.clear();
      for (const durable::ConsumerState& one : *outcome) add(one.settings.principal);
      const nanoseconds now = scheduler_->now();
      until_ = now + std::max<nanoseconds>(kConsumersCountedTime, 10 * (now - began));
    }
    for (Waiting& one : std::exchange(waiting_, {})) {
      if (!outcome) {
        one.then(std::unexpected(outcome.error()));
      } else if (std::optional<Failure> full = why_full(one.principal)) {
        one.then(std::unexpected(*std::move(full)));
      } else {
        add(one.principal);
        one.then(Done{});
      }
    }
  });
}

std::optional<Failure> JetStreamConsumerCounts::why_full(const std::string& principal) const {
  const auto found = by_principal_.find(principal);
  if (all_ >= limits_.all) {
    return Failure{
        .kind = Failure::Kind::full, .why = "there are too many consumers: forget some", .limit = "consumers"};
  }
  if (found != by_principal_.end() && found->second >= limits_.of_principal) {
    return Failure{.kind = Failure::Kind::full,
                   .why = "this principal has made as many consumers as may be: forget some",
                   .limit = "consumers"};
  }
  return std::nullopt;
}

void JetStreamConsumerCounts::add(const std::string& principal) {
  ++all_;
  ++by_principal_[principal];
}

}  // namespace wirecall::jetstream_store
