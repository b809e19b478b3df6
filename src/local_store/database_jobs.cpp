// Of a Database: jobs, and what has become of them (database.hpp).
#include <algorithm>
#include <sqlite3.h>
#include <utility>

#include "local_store/statements.hpp"

namespace wirecall::local_store {

using durable::Failure;
using durable::Job;

// Methods that have jobs, or results, at most.
constexpr std::size_t kQueuesMax = 16'384;
// Of these, those in which one principal has jobs or results.
constexpr std::size_t kPrincipalQueuesMax = 4096;

durable::Pushed Database::push(const durable::NewJob& job, std::int64_t now_ms) {
  const std::string scope = "queue:" + job.method;
  if (const auto before = seen(scope, job.msg_id)) return {.id = *before, .duplicate = true};
  const auto queue = queues_.find(job.method);
  if (queue == queues_.end() && queues_.size() >= kQueuesMax)
    throw Failed{{.kind = Failure::Kind::full, .why = "too many methods have jobs", .limit = "queues"}};
  if (queue != queues_.end()) {
    const durable::QueueCounts& counts = queue->second;
    if (counts.waiting + counts.running + counts.dead >= options_.queue_count)
      throw Failed{
          {.kind = Failure::Kind::full, .why = "the queue of this method is full", .limit = "durable.queue_count"}};
    if (counts.bytes + job.params.size() > options_.queue_bytes)
      throw Failed{
          {.kind = Failure::Kind::full, .why = "the queue of this method is full", .limit = "durable.queue_bytes"}};
  }
  const Usage& usage = usage_of(job.principal);
  if (!usage.queues.contains(job.method) && usage.queues.size() >= kPrincipalQueuesMax) {
    throw Failed{{.kind = Failure::Kind::full,
                  .why = "this principal has jobs or results of as many methods as may be",
                  .limit = "queues"}};
  }
  if (usage.jobs >= options_.principal_jobs) {
    throw Failed{{.kind = Failure::Kind::full,
                  .why = "as many jobs of this principal wait, run or are dead as may be",
                  .limit = "durable.principal_jobs"}};
  }
  if (usage.job_bytes + job.params.size() > options_.principal_bytes) {
    throw Failed{{.kind = Failure::Kind::full,
                  .why = "the jobs of this principal hold too many bytes",
                  .limit = "durable.principal_bytes"}};
  }
  statements_->add_job.run(job.method, now_ms + static_cast<std::int64_t>(job.delay_ms), now_ms, job.principal,
                           job.max_deliver, job.params, job.timeout_ms);
  const auto id = static_cast<std::uint64_t>(sqlite3_last_insert_rowid(database_.get()));
  count_job(
      {.method = job.method, .principal = job.principal, .state = Job::State::waiting, .bytes = job.params.size()}, 1);
  remember(scope, job.msg_id, id, now_ms);
  return {.id = id};
}

// One that nobody has written is that of a job which nobody runs.
Job::State Database::state_of(std::int64_t number) noexcept {
  return number >= 0 && number <= static_cast<int>(Job::State::dead) ? static_cast<Job::State>(number)
                                                                     : Job::State::dead;
}

Job Database::read_job(const Statement& row) {
  return {.id = row.number(0),
          .method = row.text(1),
          .params = row.text(2),
          .state = state_of(row.integer(3)),
          .deliveries = static_cast<std::uint32_t>(row.integer(4)),
          .max_deliver = static_cast<std::uint32_t>(row.integer(5)),
          .at_ms = row.integer(6),
          .result = row.text(7),
          .timeout_ms = static_cast<std::uint32_t>(row.integer(8)),
          .principal = row.text(9)};
}

Database::JobRow Database::job_row(std::uint64_t id) {
  Statement& row = statements_->size_job.with(id);
  if (!row.step()) throw Failed{{.kind = Failure::Kind::unknown, .why = "there is no job of that id"}};
  JobRow read{.method = row.text(0),
              .principal = row.text(1),
              .state = state_of(row.integer(2)),
              .bytes = row.number(3),
              .result_bytes = row.number(4)};
  while (row.step()) continue;
  return read;
}

durable::Taken Database::take(const durable::Take& take, std::int64_t now_ms) {
  durable::Taken taken;
  Statement& due = statements_->due_jobs.with(take.method, now_ms, static_cast<std::uint64_t>(take.count));
  std::size_t bytes = 0;
  while (due.step()) {
    Job job = read_job(due);
    bytes += job.params.size();
    if (!taken.jobs.empty() && bytes > take.bytes) break;
    taken.jobs.push_back(std::move(job));
  }
  due.reset();
  for (Job& job : taken.jobs) {
    statements_->start_job.run(job.id);
    job.state = Job::State::running;
    ++job.deliveries;
    change_state(
        {.method = job.method, .principal = job.principal, .state = Job::State::waiting, .bytes = job.params.size()},
        Job::State::running);
  }
  Statement& next = statements_->next_due.with(take.method);
  if (next.step()) {
    taken.next_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(next.integer(0) - now_ms, 0));
    while (next.step()) continue;
  }
  return taken;
}

void Database::reset_jobs() {
  execute("UPDATE job SET state=0 WHERE state=1");
  for (auto& [method, queue] : queues_) {
    if (queue.running == 0) continue;
    on_rollback([this, method, running = queue.running] {
      durable::QueueCounts& before = queues_[method];
      before.running += running;
      before.waiting -= running;
    });
    queue.waiting += std::exchange(queue.running, 0);
  }
}

void Database::change_state(JobRow row, Job::State to, std::uint64_t result_bytes) {
  count_job(row, -1);
  row.state = to;
  row.result_bytes = result_bytes;
  count_job(row, 1);
}

void Database::remove_job(std::uint64_t id, const JobRow& row) {
  statements_->remove_job.run(id);
  count_job(row, -1);
  forget_if_empty(row.method);
}

void Database::finish(const durable::JobOutcome& outcome, std::int64_t now_ms) {
  const JobRow row = job_row(outcome.id);
  if (row.state != Job::State::running)
    throw Failed{{.kind = Failure::Kind::conflict, .why = "the job is not running any more"}};
  const std::int64_t due = now_ms + static_cast<std::int64_t>(outcome.delay_ms);
  statements_->end_job.run(outcome.id, static_cast<int>(outcome.state), due, outcome.untried ? 1 : 0, outcome.result);
  change_state(row, outcome.state, outcome.result.size());
  if (outcome.state != Job::State::done) return;
  const auto is_beyond = [&] {
    const auto queue = queues_.find(row.method);
    const auto bytes = done_bytes_.find(row.method);
    return (queue != queues_.end() && queue->second.done > options_.queue_count) ||
           (bytes != done_bytes_.end() && bytes->second > options_.queue_bytes);
  };
  while (is_beyond()) {
    Statement& oldest = statements_->oldest_done.with(row.method);
    if (!oldest.step()) return;
    const std::uint64_t id = oldest.number(0);
    while (oldest.step()) continue;
    remove_job(id, job_row(id));
  }
}

Job Database::find_job(std::uint64_t id) {
  Statement& row = statements_->read_job.with(id);
  if (!row.step()) throw Failed{{.kind = Failure::Kind::unknown, .why = "there is no job of that id"}};
  Job job = read_job(row);
  while (row.step()) continue;
  return job;
}

std::vector<durable::QueueCounts> Database::list_queues() const {
  std::vector<durable::QueueCounts> all;
  for (const auto& [method, counts] : queues_) all.push_back(counts);
  return all;
}

std::vector<Job> Database::peek(const durable::Peek& peek) {
  std::vector<Job> jobs;
  const int state = static_cast<int>(peek.state);
  const auto count = static_cast<std::uint64_t>(peek.count);
  Statement& row = peek.principal
                       ? statements_->peek_own_jobs.with(peek.method, state, peek.after, count, *peek.principal)
                       : statements_->peek_jobs.with(peek.method, state, peek.after, count);
  std::size_t bytes = 0;
  while (row.step()) {
    Job job = read_job(row);
    bytes += job.params.size() + job.result.size();
    if (!jobs.empty() && bytes > peek.bytes) break;
    jobs.push_back(std::move(job));
  }
  row.reset();
  return jobs;
}

void Database::retry_job(std::uint64_t id, std::int64_t now_ms) {
  const JobRow row = job_row(id);
  if (row.state != Job::State::dead)
    throw Failed{{.kind = Failure::Kind::conflict, .why = "the job is not among the dead letters"}};
  statements_->renew_job.run(id, now_ms);
  change_state(row, Job::State::waiting);
}

void Database::drop_job(std::uint64_t id) {
  const JobRow row = job_row(id);
  if (row.state == Job::State::running)
    throw Failed{{.kind = Failure::Kind::conflict, .why = "the job is running: drop it once it is done"}};
  remove_job(id, row);
}

}  // namespace wirecall::local_store
