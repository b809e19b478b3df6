// See jetstream_job_counts.hpp.
#include "jetstream_store/jetstream_job_counts.hpp"

#include <algorithm>

#include "jetstream_store/jetstream_answers.hpp"

namespace wirecall::jetstream_store {

using durable::Done;
using durable::Failure;
using durable::Outcome;
using durable::Then;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// For which what was counted holds, and after which it is counted anew, to find jobs of which this broker was not told.
constexpr milliseconds kUsageTime{1000};
constexpr milliseconds kLookTime{5000};
// Methods that have jobs.
constexpr std::size_t kMethodsMax = 16'384;

JetStreamJobCounts::JetStreamJobCounts(const JobSubjects& subjects, const JobLimits& limits, JetStream& jetstream,
                                       Scheduler& scheduler, Counted counted)
    : subjects_(&subjects),
      limits_(limits),
      jetstream_(&jetstream),
      scheduler_(&scheduler),
      counted_(std::move(counted)),
      timer_([this] {
        read();
        scheduler_->start(timer_, kLookTime);
      }) {}

JetStreamJobCounts::~JetStreamJobCounts() { scheduler_->stop(timer_); }

void JetStreamJobCounts::begin() {
  if (std::exchange(usable_, true)) return;
  read();
  scheduler_->start(timer_, kLookTime);
}

void JetStreamJobCounts::lost() {
  usable_ = false;
  until_ = nanoseconds{0};
  scheduler_->stop(timer_);
}

JetStreamJobCounts::Size JetStreamJobCounts::size_of(const durable::NewJob& job) {
  return {.method = job.method, .principal = token_of(job.principal), .bytes = job.params.size()};
}

// Nothing is refused for what was counted a while ago.
void JetStreamJobCounts::require_room(const durable::NewJob& job, Then<Done> then) {
  Size size = size_of(job);
  if (waiting_.empty() && scheduler_->now() < until_ && !why_full(size)) {
    count(size, true);
    return then(Done{});
  }
  waiting_.push_back({std::move(size), std::move(then)});
  read();
}

void JetStreamJobCounts::read() {
  if (!usable_ || std::exchange(reads_, true)) return;
  const auto usage = std::make_shared<Usage>();
  const auto add = [usage, &prefix = subjects_->prefix](std::string_view subject, std::uint64_t messages) {
    const auto read = job_subject(subject, prefix);
    if (!read) return;
    Counts& principal = usage->principals[std::string{read->principal}];
    for (Counts* const one : {&usage->methods[read->method], &principal}) {
      one->count += messages;
      one->bytes += messages * read->bytes;
    }
    principal.methods.insert(read->method);
    if (read->kind == "jobs") usage->waiting.insert(read->method);
  };
  const auto failed = [this](const Failure& failure) {
    reads_ = false;
    for (Waiting& one : std::exchange(waiting_, {})) one.then(std::unexpected(failure));
  };
  const nanoseconds began = scheduler_->now();
  jetstream_->list_subjects(subjects_->jobs, subjects_->prefix + "jobs.>", add,
                            [this, usage, add, failed, began](const Outcome<Done>& waiting) {
                              if (!waiting) return failed(waiting.error());
                              jetstream_->list_subjects(subjects_->trials, subjects_->prefix + "buried.>", add,
                                                        [this, usage, failed, began](const Outcome<Done>& dead) {
                                                          if (!dead) return failed(dead.error());
                                                          const nanoseconds now = scheduler_->now();
                                                          until_ = now + std::max<nanoseconds>(kUsageTime,
                                                                                               10 * (now - began));
                                                          usage_read(std::move(*usage));
                                                        });
                            });
}

void JetStreamJobCounts::usage_read(Usage usage) {
  reads_ = false;
  usage_ = std::move(usage);
  for (Waiting& one : std::exchange(waiting_, {})) {
    if (std::optional<Failure> full = why_full(one.size)) {
      one.then(std::unexpected(*std::move(full)));
    } else {
      count(one.size, true);
      one.then(Done{});
    }
  }
  counted_(std::set{usage_.waiting});
}

void JetStreamJobCounts::count(const Size& size, bool more) {
  const std::uint64_t bytes = size_class(size.bytes);
  Counts& principal = usage_.principals[size.principal];
  for (Counts* const one : {&usage_.methods[size.method], &principal}) {
    one->count = more ? one->count + 1 : one->count - std::min<std::uint64_t>(one->count, 1);
    one->bytes = more ? one->bytes + bytes : one->bytes - std::min(one->bytes, bytes);
  }
  if (more) principal.methods.insert(size.method);
}

std::optional<Failure> JetStreamJobCounts::why_full(const Size& size) const {
  const auto full = [](std::string_view why, std::string_view limit) {
    return Failure{.kind = Failure::Kind::full, .why = std::string{why}, .limit = std::string{limit}};
  };
  const auto queue = usage_.methods.find(size.method);
  if (queue == usage_.methods.end()) {
    if (usage_.methods.size() >= kMethodsMax) return full("too many methods have jobs", "queues");
  } else {
    if (queue->second.count >= limits_.queue_count)
      return full("the queue of this method is full", "durable.queue_count");
    if (queue->second.bytes + size.bytes > limits_.queue_bytes)
      return full("the queue of this method is full", "durable.queue_bytes");
  }
  const auto principal = usage_.principals.find(size.principal);
  static const Counts kNone;
  const Counts& has = principal != usage_.principals.end() ? principal->second : kNone;
  if (!has.methods.contains(size.method) && has.methods.size() >= limits_.principal_queues)
    return full("this principal has jobs of as many methods as may be", "queues");
  if (has.count >= limits_.principal_jobs)
    return full("as many jobs of this principal wait, run or are dead as may be", "durable.principal_jobs");
  if (has.bytes + size.bytes > limits_.principal_bytes)
    return full("the jobs of this principal hold too many bytes", "durable.principal_bytes");
  return std::nullopt;
}

}  // namespace wirecall::jetstream_store
