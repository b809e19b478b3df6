// Of a Database: consumers, and how far they are (database.hpp).
#include <algorithm>

#include "local_store/statements.hpp"

namespace wirecall::local_store {

using durable::Failure;

// Consumers that one principal has made, at most.
constexpr std::uint64_t kPrincipalConsumersMax = 1024;

durable::ConsumerState Database::open_consumer(const durable::ConsumerSettings& settings) {
  durable::ConsumerState state{.settings = settings, .floor = std::min(settings.after, last_seq_)};
  std::string& principal = state.settings.principal;
  Statement& find = statements_->find_consumer.with(settings.name);
  if (find.step()) {
    const std::string pattern = find.text(0);
    state.floor = find.number(1);
    principal = find.text(5);
    while (find.step()) continue;
    if (pattern != settings.pattern) {
      throw Failed{{.kind = Failure::Kind::conflict,
                    .why = "the consumer of that name has another topic: forget it first, or use another name"}};
    }
  } else {
    Statement& count = statements_->count_consumers.with(principal);
    const std::uint64_t made = count.step() ? count.number(0) : 0;
    while (count.step()) continue;
    if (made >= kPrincipalConsumersMax) {
      throw Failed{{.kind = Failure::Kind::full,
                    .why = "this principal has made as many consumers as may be: forget some",
                    .limit = "consumers"}};
    }
  }
  statements_->save_consumer.run(settings.name, settings.pattern, state.floor, settings.ack_wait_ms,
                                 settings.max_deliver, settings.max_in_flight, principal);
  if (settings.with_tried) state.tried = tried_of(settings.name);
  return state;
}

std::vector<durable::Tried> Database::tried_of(const std::string& consumer) {
  std::vector<durable::Tried> all;
  Statement& row = statements_->read_tried.with(consumer);
  while (row.step()) {
    all.push_back({.seq = row.number(0),
                   .deliveries = static_cast<std::uint32_t>(row.integer(1)),
                   .acknowledged = row.integer(2) != 0});
  }
  return all;
}

std::vector<durable::ConsumerState> Database::consumers() {
  std::vector<durable::ConsumerState> all;
  Statement& row = statements_->list_consumers.with();
  while (row.step()) {
    const durable::ConsumerSettings settings{.name = row.text(0),
                                             .pattern = row.text(1),
                                             .after = row.number(2),
                                             .ack_wait_ms = static_cast<std::uint32_t>(row.integer(3)),
                                             .max_deliver = static_cast<std::uint32_t>(row.integer(4)),
                                             .max_in_flight = static_cast<std::uint32_t>(row.integer(5)),
                                             .principal = row.text(6)};
    all.push_back({.settings = settings, .floor = settings.after});
  }
  return all;
}

durable::Appended Database::progress(const durable::Progress& progress, std::int64_t now_ms) {
  durable::Appended dead;
  // One that is larger than its topic may be is given up without a trace; else it would come for ever.
  const bool is_kept = progress.dead && stream_of(progress.dead->topic).takes(size_of(*progress.dead));
  if (is_kept) dead = append(*progress.dead, now_ms);
  // One that has been forgotten meanwhile is not made anew.
  if (statements_->move_floor.run(progress.consumer, progress.floor) == 0) return dead;
  statements_->forget_tried.run(progress.consumer, progress.floor);
  if (progress.tried && progress.tried->seq > progress.floor) {
    statements_->save_tried.run(progress.consumer, progress.tried->seq, progress.tried->deliveries,
                                progress.tried->acknowledged ? 1 : 0);
  }
  return dead;
}

void Database::forget_consumer(const std::string& name) {
  if (statements_->remove_consumer.run(name) == 0)
    throw Failed{{.kind = Failure::Kind::unknown, .why = "there is no consumer of that name"}};
  statements_->forget_tried.run(name, INT64_MAX);
}

}  // namespace wirecall::local_store
