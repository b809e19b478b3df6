// Of a Database: what each principal has in it, and each queue (database.hpp). It is counted in memory, and taken back
// with the changes that it counts.
#include <algorithm>

#include "local_store/statements.hpp"

namespace wirecall::local_store {

using durable::Failure;
using durable::Job;

const Database::Usage& Database::usage_of(const std::string& principal) const noexcept {
  static const Usage kNone;
  const auto found = usages_.find(principal);
  return found != usages_.end() ? found->second : kNone;
}

// Of one more event. What the broker itself has published is on no account.
void Database::require_room_for(const std::string& principal, std::uint64_t size) const {
  if (principal.empty()) return;
  const Usage& usage = usage_of(principal);
  if (options_.principal_events != 0 && usage.events >= options_.principal_events) {
    throw Failed{{.kind = Failure::Kind::full,
                  .why = "as many events of this principal are kept as may be",
                  .limit = "durable.principal_events"}};
  }
  if (options_.principal_event_bytes != 0 && usage.event_bytes + size > options_.principal_event_bytes) {
    throw Failed{{.kind = Failure::Kind::full,
                  .why = "the events of this principal hold too many bytes",
                  .limit = "durable.principal_event_bytes"}};
  }
}

void Database::touch_events_of(const std::string& principal) {
  if (!changed_usages_.insert(principal).second) return;
  const Usage& before = usage_of(principal);
  on_rollback([this, principal, events = before.events, bytes = before.event_bytes] {
    Usage& usage = usages_[principal];
    usage.events = events;
    usage.event_bytes = bytes;
    if (usage.is_none()) usages_.erase(principal);
  });
}

// So many jobs more, or less, that hold `jobs.bytes` together.
void Database::count_job(const JobRow& jobs, std::int64_t by) {
  on_rollback([this, jobs, by] {
    change_count(jobs, -by);
    forget_if_empty(jobs.method);
  });
  try {
    change_count(jobs, by);
  } catch (const std::bad_alloc&) {  // in the middle of it
    is_stale_ = true;
    throw;
  }
}

void Database::change_count(const JobRow& jobs, std::int64_t by) {
  durable::QueueCounts& queue = queues_[jobs.method];
  queue.method = jobs.method;
  std::uint64_t& count = [&]() -> std::uint64_t& {
    switch (jobs.state) {
      case Job::State::waiting: return queue.waiting;
      case Job::State::running: return queue.running;
      case Job::State::done: return queue.done;
      case Job::State::dead: break;
    }
    return queue.dead;
  }();
  count += static_cast<std::uint64_t>(by);
  const auto found = usages_.try_emplace(jobs.principal).first;
  Usage& usage = found->second;
  const auto of_method = usage.queues.try_emplace(jobs.method).first;
  of_method->second += static_cast<std::uint64_t>(by);
  if (of_method->second == 0) usage.queues.erase(of_method);
  if (jobs.state == Job::State::done) {
    const auto done = done_bytes_.try_emplace(jobs.method).first;
    const std::uint64_t bytes = jobs.bytes + jobs.result_bytes;
    done->second += by < 0 ? 0 - bytes : bytes;
    if (count == 0) done_bytes_.erase(done);
  } else {
    const std::uint64_t change = by < 0 ? 0 - jobs.bytes : jobs.bytes;
    queue.bytes += change;
    usage.jobs += static_cast<std::uint64_t>(by);
    usage.job_bytes += change;
  }
  if (usage.is_none()) usages_.erase(found);
}

void Database::forget_if_empty(const std::string& method) noexcept {
  const auto found = queues_.find(method);
  const durable::QueueCounts& left = found->second;
  if (left.waiting + left.running + left.done + left.dead == 0) queues_.erase(found);
}

}  // namespace wirecall::local_store
