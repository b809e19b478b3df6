// See jetstream_jobs.hpp.
#include "jetstream_store/jetstream_jobs.hpp"

#include <algorithm>
#include <chrono>

#include "base/dotted_name.hpp"
#include "cluster/subjects.hpp"
#include "jetstream_store/jetstream_answers.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::jetstream_store {

using durable::Done;
using durable::Failure;
using durable::Job;
using durable::Outcome;
using durable::Then;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// For which what was counted holds, and after which it is counted anew, to find jobs of which this broker was not told.
constexpr milliseconds kUsageTime{1000};
constexpr milliseconds kLookTime{5000};
// Before a job that was put off is looked for again that JetStream has not given yet, and for how long it is.
constexpr milliseconds kDuePause{100};
constexpr milliseconds kDueTime{2000};
// What a message of a job holds beside its params: with the error that one is dead of.
constexpr std::size_t kHeadBytesMax = std::size_t{32} << 10U;
constexpr std::size_t kMethodsMax = 16'384;
// Of params that are taken at once.
constexpr std::size_t kTakenBytesMax = std::size_t{4} << 20U;

// The first line of a job's message; its params are behind it.
struct JobHead {
  std::optional<std::uint64_t> id;  // of one that was dead; else the number of the message
  std::string principal;
  std::uint32_t max_deliver = 0;
  std::uint32_t timeout_ms = 0;
  std::uint64_t delay_ms = 0;
};

// The first line of what is kept of a job beside its message; behind it are its params, where it is dead, and its
// result or last error.
struct JobRecord {
  std::uint64_t seq = 0;  // of the message
  std::uint32_t deliveries = 0;
  std::uint32_t given = 0;  // how often the message had been given then
  bool running = false;
  std::string principal;
  std::uint32_t max_deliver = 0;
  std::uint32_t timeout_ms = 0;
  std::int64_t at_ms = 0;
  std::uint64_t params_bytes = 0;
};

namespace {

std::string_view line_of(std::string_view& data) noexcept {
  const std::size_t end = data.find('\n');
  const std::string_view line = data.substr(0, end);
  data.remove_prefix(end == std::string_view::npos ? data.size() : end + 1);
  return line;
}

JobRecord record_of(const Job& job, std::uint64_t seq) {
  return {.seq = seq,
          .deliveries = job.deliveries,
          .given = 0,
          .running = false,
          .principal = job.principal,
          .max_deliver = job.max_deliver,
          .timeout_ms = job.timeout_ms,
          .at_ms = job.at_ms,
          .params_bytes = 0};
}

// What `answer` has of the job that is kept beside its message.
std::optional<JobRecord> read_record(const Value& answer, Job& job) {
  const StoredMessage message = stored_message(answer);
  std::string_view data = message.data;
  const auto record = from_json<JobRecord>(line_of(data));
  if (!record) return std::nullopt;
  job.deliveries = record->deliveries + (record->running ? 1 : 0);
  job.max_deliver = record->max_deliver;
  job.timeout_ms = record->timeout_ms;
  job.at_ms = record->at_ms;
  job.principal = record->principal;
  job.params = data.substr(0, record->params_bytes);
  job.result = data.substr(job.params.size());
  return *record;
}

std::string last_by_subject(const std::string& subject) { return R"({"last_by_subj":)" + to_json(subject) + "}"; }
std::string by_number(std::uint64_t seq) { return R"({"seq":)" + std::to_string(seq) + "}"; }
const Failure kNoJob{.kind = Failure::Kind::unknown, .why = "there is no job of that id"};

}  // namespace

JetStreamJobs::JetStreamJobs(const std::string& realm, const JobLimits& limits, JetStream& jetstream,
                             Scheduler& scheduler)
    : limits_(limits),
      jetstream_(&jetstream),
      scheduler_(&scheduler),
      prefix_("wc." + realm + ".d."),
      notices_("wc." + realm + ".js.jobs"),
      jobs_("wirecall_" + realm + "_jobs"),
      trials_("wirecall_" + realm + "_trials"),
      results_("wirecall_" + realm + "_results"),
      usage_timer_([this] {
        read_usage();
        scheduler_->start(usage_timer_, kLookTime);
      }),
      work_timer_([this] {
        for (const auto& [id, running] : running_) jetstream_->send(running.reply, "+WPI");
        if (!running_.empty()) scheduler_->start(work_timer_, milliseconds{limits_.lease_ms / 3});
      }) {}

JetStreamJobs::~JetStreamJobs() {
  scheduler_->stop(usage_timer_);
  scheduler_->stop(work_timer_);
}

// ---- the streams ----

std::vector<WantedStream> JetStreamJobs::streams() const {
  const auto configuration = [](const std::string& name, std::string_view description, const std::string& subjects,
                                const std::string& rest) {
    return WantedStream{
        name, R"("description":"wirecall: )" + std::string{description} + R"(","subjects":[)" + subjects + "]," + rest};
  };
  const auto below = [this](std::string_view word) { return '"' + prefix_ + std::string{word} + ".>\""; };
  constexpr std::uint64_t kLeastMs = 100;  // NATS refuses less
  const std::uint64_t window = std::max(limits_.dedup_ms, kLeastMs);
  const std::uint64_t age = std::max(limits_.result_ms, kLeastMs);
  return {
      configuration(jobs_, "jobs that wait or run", below("jobs"),
                    R"("retention":"workqueue","discard":"new","max_msgs":-1,"max_bytes":-1,"duplicate_window":)" +
                        nanoseconds_of(window)),
      configuration(trials_, "jobs that were tried, or are dead", below("trials") + ',' + below("buried"),
                    R"("retention":"limits","discard":"new","max_msgs_per_subject":1,"max_msgs":-1,"max_bytes":-1)"),
      configuration(results_, "results of jobs", below("results"),
                    R"("retention":"limits","discard":"old","max_msgs_per_subject":1,"max_msgs":)" +
                        std::to_string(limits_.queue_count) + R"(,"max_bytes":)" + std::to_string(limits_.queue_bytes) +
                        R"(,"max_age":)" + nanoseconds_of(age) + R"(,"duplicate_window":)" +
                        nanoseconds_of(std::min<std::uint64_t>(age, 120'000)))};
}

void JetStreamJobs::on_jobs(durable::ToldOfJobs told) {
  told_ = std::move(told);
  jetstream_->subscribe(notices_, [this](const cluster::BusMessage& message) {
    if (is_name(message.payload)) told_({std::string{message.payload}}, false);
  });
}

void JetStreamJobs::begin() {
  if (std::exchange(usable_, true)) return;
  read_usage();
  scheduler_->start(usage_timer_, kLookTime);
}

void JetStreamJobs::lost() {
  usable_ = false;
  consumers_.clear();
  usage_until_ = nanoseconds{0};
  scheduler_->stop(usage_timer_);
}

void JetStreamJobs::give_back() {
  for (const auto& [id, running] : std::exchange(running_, {})) jetstream_->send(running.reply, "-NAK");
}

std::string JetStreamJobs::subject_of(const durable::NewJob& job) const {
  return prefix_ + "jobs." + token_of(job.principal) + '.' + std::to_string(size_class(job.params.size())) + '.' +
         cluster::subject_of_name(job.method);
}
std::string JetStreamJobs::trial_subject(std::uint64_t id, std::string_view method) const {
  return prefix_ + "trials." + std::to_string(id) + '.' + cluster::subject_of_name(method);
}
std::string JetStreamJobs::buried_subject(const Job& job) const {
  return prefix_ + "buried." + token_of(job.principal) + '.' + std::to_string(size_class(job.params.size())) + '.' +
         std::to_string(job.id) + '.' + cluster::subject_of_name(job.method);
}

// ---- how much there is ----

void JetStreamJobs::read_usage() {
  if (!usable_ || std::exchange(reads_usage_, true)) return;
  const auto usage = std::make_shared<Usage>();
  const auto count = [this, usage](std::string_view subject, std::uint64_t messages) {
    std::string_view rest = subject.substr(std::min(prefix_.size(), subject.size()));
    const bool waits = take_word(rest) == "jobs";
    const std::string principal{take_word(rest)};
    const std::uint64_t bytes = messages * to_number(take_word(rest));
    if (!waits) static_cast<void>(take_word(rest));
    const auto method = cluster::name_of_subject(rest);
    if (!method) return;
    for (Counts* const one : {&usage->methods[*method], &usage->principals[principal]}) {
      one->count += messages;
      one->bytes += bytes;
    }
    if (waits) usage->waiting.insert(*method);
  };
  const auto failed = [this](const Failure& failure) {
    reads_usage_ = false;
    for (WaitingPush& one : std::exchange(pushes_, {})) one.then(std::unexpected(failure));
  };
  const nanoseconds began = scheduler_->now();
  jetstream_->list_subjects(
      jobs_, prefix_ + "jobs.>", count, [this, usage, count, failed, began](const Outcome<Done>& waiting) {
        if (!waiting) return failed(waiting.error());
        jetstream_->list_subjects(trials_, prefix_ + "buried.>", count,
                                  [this, usage, failed, began](const Outcome<Done>& dead) {
                                    if (!dead) return failed(dead.error());
                                    const nanoseconds now = scheduler_->now();
                                    usage_until_ = now + std::max<nanoseconds>(kUsageTime, 10 * (now - began));
                                    usage_read(std::move(*usage));
                                  });
      });
}

void JetStreamJobs::usage_read(Usage usage) {
  reads_usage_ = false;
  usage_ = std::move(usage);
  for (WaitingPush& one : std::exchange(pushes_, {})) {
    if (std::optional<Failure> full = why_full(one.job)) {
      one.then(std::unexpected(*std::move(full)));
    } else {
      publish(std::move(one.job), std::move(one.then));
    }
  }
  if (told_) told_(std::set{usage_.waiting}, true);
}

void JetStreamJobs::count(const durable::NewJob& job, bool more) {
  const std::uint64_t bytes = size_class(job.params.size());
  for (Counts* const one : {&usage_.methods[job.method], &usage_.principals[token_of(job.principal)]}) {
    one->count = more ? one->count + 1 : one->count - std::min<std::uint64_t>(one->count, 1);
    one->bytes = more ? one->bytes + bytes : one->bytes - std::min(one->bytes, bytes);
  }
}

std::optional<Failure> JetStreamJobs::why_full(const durable::NewJob& job) const {
  const auto full = [](std::string_view why, std::string_view limit) {
    return Failure{.kind = Failure::Kind::full, .why = std::string{why}, .limit = "durable." + std::string{limit}};
  };
  const auto queue = usage_.methods.find(job.method);
  if (queue == usage_.methods.end()) {
    if (usage_.methods.size() >= kMethodsMax)
      return Failure{.kind = Failure::Kind::full, .why = "too many methods have jobs", .limit = "queues"};
  } else {
    if (queue->second.count >= limits_.queue_count) return full("the queue of this method is full", "queue_count");
    if (queue->second.bytes + job.params.size() > limits_.queue_bytes)
      return full("the queue of this method is full", "queue_bytes");
  }
  const auto principal = usage_.principals.find(token_of(job.principal));
  const Counts has = principal != usage_.principals.end() ? principal->second : Counts{};
  if (has.count >= limits_.principal_jobs)
    return full("as many jobs of this principal wait, run or are dead as may be", "principal_jobs");
  if (has.bytes + job.params.size() > limits_.principal_bytes)
    return full("the jobs of this principal hold too many bytes", "principal_bytes");
  return std::nullopt;
}

// ---- pushing ----

bool JetStreamJobs::fits(const durable::NewJob& job) const noexcept {
  return job.params.size() + kHeadBytesMax <= jetstream_->payload_bytes_max();
}

// Nothing is refused for what was counted a while ago.
void JetStreamJobs::push(durable::NewJob job, Then<durable::Pushed> then) {
  if (scheduler_->now() < usage_until_ && !why_full(job)) return publish(std::move(job), std::move(then));
  pushes_.push_back({std::move(job), std::move(then)});
  read_usage();
}

void JetStreamJobs::publish(durable::NewJob job, Then<durable::Pushed> then) {
  std::string payload = to_json(JobHead{.id = std::nullopt,
                                        .principal = job.principal,
                                        .max_deliver = job.max_deliver,
                                        .timeout_ms = job.timeout_ms,
                                        .delay_ms = job.delay_ms});
  payload.append("\n").append(job.params);
  JetStream::Headers headers;
  if (!job.msg_id.empty() && limits_.dedup_ms != 0)
    headers.push_back({"Nats-Msg-Id", header_text(job.method) + ' ' + header_text(job.msg_id)});
  count(job, true);
  const std::string subject = subject_of(job);
  jetstream_->request(
      subject, payload,
      [this, job = std::move(job), then = std::move(then)](const Outcome<Value>& outcome) mutable {
        if (!outcome) {
          count(job, false);
          return then(std::unexpected(outcome.error()));
        }
        const Value* const known = jetstream_store::find(*outcome, "duplicate");
        const bool duplicate = known != nullptr && known->is_bool() && known->as_bool();
        if (duplicate) {
          count(job, false);
        } else {
          jetstream_->send(notices_, job.method);
        }
        then(durable::Pushed{.id = number(jetstream_store::find(*outcome, "seq")), .duplicate = duplicate});
      },
      headers);
}

// ---- taking ----

/// Messages of jobs that have come, of which it is asked what is kept beside them.
struct JetStreamJobs::Taking {
  std::string method;
  Then<durable::Taken> then;
  std::size_t left = 0;
  durable::Taken taken = {};
};

void JetStreamJobs::take(durable::Take take, Then<durable::Taken> then) {
  const std::string consumer = token_of(take.method);
  if (consumers_.contains(consumer)) return pull(take, std::move(then));
  const std::string asked = R"({"stream_name":")" + jobs_ + R"(","config":{"durable_name":")" + consumer +
                            R"(","description":)" + to_json(take.method) + R"(,"filter_subject":)" +
                            to_json(prefix_ + "jobs.*.*." + cluster::subject_of_name(take.method)) +
                            R"(,"ack_policy":"explicit","deliver_policy":"all","max_deliver":-1,"ack_wait":)" +
                            nanoseconds_of(limits_.lease_ms) + R"(,"max_ack_pending":-1}})";
  jetstream_->request(
      "$JS.API.CONSUMER.DURABLE.CREATE." + jobs_ + '.' + consumer, asked,
      [this, consumer, take = std::move(take), then = std::move(then)](const Outcome<Value>& outcome) mutable {
        if (!outcome) return then(std::unexpected(outcome.error()));
        consumers_.insert(consumer);
        pull(take, std::move(then));
      });
}

void JetStreamJobs::pull(const durable::Take& take, Then<durable::Taken> then) {
  auto taking = std::make_shared<Taking>(Taking{.method = take.method, .then = std::move(then)});
  jetstream_->pull(jobs_, token_of(take.method), take.count, std::min(take.bytes, kTakenBytesMax), JetStream::Wait::no,
                   [this, taking](const Outcome<std::vector<PulledMessage>>& outcome) { pulled(outcome, taking); });
}

void JetStreamJobs::pulled(const Outcome<std::vector<PulledMessage>>& outcome, const std::shared_ptr<Taking>& taking) {
  if (!outcome) return taking->then(std::unexpected(outcome.error()));
  taking->left = outcome->size() + 1;
  for (const PulledMessage& message : *outcome) examine(message, taking);
  taken(taking);
}

// One that comes for the first time has nothing beside it.
void JetStreamJobs::examine(const PulledMessage& message, const std::shared_ptr<Taking>& taking) {
  const Delivery delivery = delivery_of(message.reply);
  std::string_view data = message.payload;
  const auto head = from_json<JobHead>(line_of(data));
  if (!head) {  // none of a broker's
    jetstream_->send(message.reply, "+TERM");
    return taken(taking);
  }
  const std::uint64_t id = head->id.value_or(delivery.seq);
  if (const auto known = running_.find(id); known != running_.end()) {  // it has come once more
    known->second.reply = message.reply;
    known->second.given = delivery.deliveries;
    return taken(taking);
  }
  Running running{.job = {.id = id,
                          .method = taking->method,
                          .params = std::string{data},
                          .state = Job::State::running,
                          .deliveries = 0,
                          .max_deliver = head->max_deliver,
                          .at_ms = delivery.at_ms,
                          .result = {},
                          .timeout_ms = head->timeout_ms,
                          .principal = head->principal},
                  .reply = message.reply,
                  .seq = delivery.seq,
                  .given = delivery.deliveries};
  const std::uint64_t delay_ms = head->delay_ms;
  if (delivery.deliveries == 1 && !head->id) return begin_job(std::move(running), delay_ms, taking);
  const std::string of_id = std::to_string(id) + ".>";
  jetstream_->request_all(
      {{"$JS.API.STREAM.MSG.GET." + results_, last_by_subject(prefix_ + "results." + of_id)},
       {"$JS.API.STREAM.MSG.GET." + trials_, last_by_subject(prefix_ + "buried.*.*." + of_id)},
       {"$JS.API.STREAM.MSG.GET." + trials_, last_by_subject(prefix_ + "trials." + of_id)}},
      [this, running = std::move(running), delay_ms, taking](const Outcome<Answers>& outcome) mutable {
        if (outcome) return examined(std::move(running), delay_ms, *outcome, taking);
        jetstream_->send(running.reply, "-NAK");
        taken(taking);
      });
}

// Of what was given before, and of which nobody has said anything, a broker has ended in the middle.
void JetStreamJobs::examined(Running running, std::uint64_t delay_ms, const Answers& before,
                             const std::shared_ptr<Taking>& taking) {
  Job kept;
  const auto is_of_this = [&](const std::optional<Value>& answer) {
    const auto record = answer ? read_record(*answer, kept) : std::nullopt;
    return record && record->seq == running.seq;
  };
  if (is_of_this(before[0]) || is_of_this(before[1])) {  // only its acknowledgement was lost
    jetstream_->send(running.reply, "+ACK");
    forget_trial(running.job.id);
    return taken(taking);
  }
  if (before[1]) purge(trials_, "buried.*.*." + std::to_string(running.job.id) + ".>", [](const Outcome<Done>&) {});
  std::uint32_t silent = running.given - 1;
  if (const auto trial = before[2] ? read_record(*before[2], kept) : std::nullopt) {
    running.has_trial = true;
    if (trial->seq == running.seq) {
      running.job.deliveries = trial->deliveries;
      silent -= std::min(silent, trial->given);
    }
  }
  running.job.deliveries += silent;
  begin_job(std::move(running), delay_ms, taking);
}

void JetStreamJobs::begin_job(Running running, std::uint64_t delay_ms, const std::shared_ptr<Taking>& taking) {
  Job& job = running.job;
  if (job.deliveries == 0 && delay_ms != 0) {
    const std::int64_t due = job.at_ms + static_cast<std::int64_t>(delay_ms);
    const std::int64_t now =
        std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    if (now < due) {
      const std::uint64_t left = std::min(static_cast<std::uint64_t>(due - now), delay_ms);
      return put_off(running, 0, {}, left, [this, taking](const Outcome<Done>&) { taken(taking); });
    }
  }
  if (running.given != 1 || running.has_trial) {
    JobRecord record = record_of(job, running.seq);
    record.given = running.given - 1;
    record.running = true;
    running.has_trial = true;
    jetstream_->request(trial_subject(job.id, job.method), to_json(record) + '\n', [](const Outcome<Value>&) {});
  }
  ++job.deliveries;
  const auto due = due_.find(job.method);
  if (due != due_.end()) due->second.erase(job.id);
  taking->taken.jobs.push_back(job);
  if (running_.empty()) {
    scheduler_->stop(work_timer_);
    scheduler_->start(work_timer_, milliseconds{limits_.lease_ms / 3});
  }
  running_.insert_or_assign(job.id, std::move(running));
  taken(taking);
}

void JetStreamJobs::taken(const std::shared_ptr<Taking>& taking) {
  if (--taking->left != 0) return;
  durable::Taken& taken = taking->taken;
  std::ranges::sort(taken.jobs, {}, &Job::id);
  if (const auto due = due_.find(taking->method); due != due_.end()) {
    const nanoseconds now = scheduler_->now();
    std::erase_if(due->second, [now](const auto& one) { return one.second + kDueTime < now; });
    for (const auto& [id, time] : due->second) {
      const auto left = std::max(std::chrono::ceil<milliseconds>(time - now), kDuePause);
      taken.next_ms = std::min(taken.next_ms.value_or(UINT64_MAX), static_cast<std::uint64_t>(left.count()));
    }
    if (due->second.empty()) due_.erase(due);
  }
  taking->then(std::move(taken));
}

// ---- what becomes of it ----

void JetStreamJobs::put_off(const Running& running, std::uint32_t deliveries, const std::string& error,
                            std::uint64_t delay_ms, Then<Done> then) {
  const Job& job = running.job;
  JobRecord record = record_of(job, running.seq);
  record.deliveries = deliveries;
  record.given = running.given;
  jetstream_->request(trial_subject(job.id, job.method), to_json(record) + '\n' + error,
                      [this, id = job.id, method = job.method, reply = running.reply, delay_ms,
                       then = std::move(then)](const Outcome<Value>& outcome) mutable {
                        if (!outcome) return then(std::unexpected(outcome.error()));
                        const std::string nak = R"(-NAK {"delay":)" + nanoseconds_of(delay_ms) + "}";
                        jetstream_->send(reply, delay_ms == 0 ? "-NAK" : nak);
                        due_[method][id] = scheduler_->now() + milliseconds{delay_ms};
                        then(Done{});
                      });
}

void JetStreamJobs::finish(durable::JobOutcome outcome, Then<Done> then) {
  const Running& running = running_.at(outcome.id);
  const Job& job = running.job;
  const std::uint64_t id = outcome.id;
  if (outcome.state == Job::State::waiting) {
    return put_off(running, job.deliveries - (outcome.untried ? 1 : 0), outcome.result, outcome.delay_ms,
                   [this, id, then = std::move(then)](const Outcome<Done>& safe) mutable {
                     if (safe) running_.erase(id);
                     then(safe);
                   });
  }
  JobRecord record = record_of(job, running.seq);
  std::string data;
  std::string subject;
  if (outcome.state == Job::State::done) {
    subject = prefix_ + "results." + std::to_string(id) + '.' + cluster::subject_of_name(job.method);
    if (outcome.result.size() + kHeadBytesMax <= jetstream_->payload_bytes_max()) data = std::move(outcome.result);
  } else {
    subject = buried_subject(job);
    record.params_bytes = job.params.size();
    data = job.params + outcome.result;
  }
  jetstream_->request(subject, to_json(record) + '\n' + data,
                      [this, id, then = std::move(then)](const Outcome<Value>& safe) mutable {
                        if (!safe) return then(std::unexpected(safe.error()));
                        finished(id);
                        then(Done{});
                      });
}

void JetStreamJobs::finished(std::uint64_t id) {
  const auto found = running_.find(id);
  if (found == running_.end()) return;
  jetstream_->send(found->second.reply, "+ACK");
  if (found->second.has_trial) forget_trial(id);
  running_.erase(found);
}

void JetStreamJobs::forget_trial(std::uint64_t id) {
  purge(trials_, "trials." + std::to_string(id) + ".>", [](const Outcome<Done>&) {});
}

void JetStreamJobs::purge(const std::string& stream, const std::string& subjects, Then<Done> then) {
  jetstream_->request("$JS.API.STREAM.PURGE." + stream, R"({"filter":)" + to_json(prefix_ + subjects) + "}",
                      [then = std::move(then)](const Outcome<Value>& outcome) mutable {
                        if (!outcome) return then(std::unexpected(outcome.error()));
                        then(Done{});
                      });
}

// ---- one job ----

void JetStreamJobs::find(std::uint64_t id, Then<Found> then) {
  const std::string of_id = std::to_string(id) + ".>";
  jetstream_->request_all(
      {{"$JS.API.STREAM.MSG.GET." + results_, last_by_subject(prefix_ + "results." + of_id)},
       {"$JS.API.STREAM.MSG.GET." + trials_, last_by_subject(prefix_ + "buried.*.*." + of_id)},
       {"$JS.API.STREAM.MSG.GET." + trials_, last_by_subject(prefix_ + "trials." + of_id)}},
      [this, id, then = std::move(then)](const Outcome<Answers>& outcome) mutable {
        if (!outcome) return then(std::unexpected(outcome.error()));
        Found found;
        const auto read = [&](std::size_t at, int words_before_method) -> std::optional<JobRecord> {
          const std::optional<Value>& answer = (*outcome)[at];
          if (!answer) return std::nullopt;
          found.job = {.id = id, .method = {}, .params = {}};
          const std::string subject = jetstream_store::text(jetstream_store::find(*answer, "message", "subject"));
          std::string_view rest = std::string_view{subject}.substr(std::min(prefix_.size(), subject.size()));
          for (int i = 0; i != words_before_method; ++i) static_cast<void>(take_word(rest));
          found.job.method = cluster::name_of_subject(rest).value_or(std::string{rest});
          return read_record(*answer, found.job);
        };
        if (read(0, 2)) {
          found.job.state = Job::State::done;
          return then(std::move(found));
        }
        const auto trial = read(2, 2);
        Job tried = found.job;
        if (const auto buried = read(1, 4); buried && !(trial && trial->seq > buried->seq)) {
          found.job.state = Job::State::dead;
          return then(std::move(found));
        }
        found = {.job = std::move(tried), .seq = trial ? trial->seq : id};
        found.job.id = id;
        found.job.state = trial && trial->running ? Job::State::running : Job::State::waiting;
        find_message(std::move(found), trial.has_value(), std::move(then));
      });
}

// One that was tried is known; of any other it says enough whether it has been given.
void JetStreamJobs::find_message(Found found, bool is_tried, Then<Found> then) {
  const std::string asked = by_number(found.seq);
  jetstream_->request(
      "$JS.API.STREAM.MSG.GET." + jobs_, asked,
      [this, found = std::move(found), is_tried, then = std::move(then)](const Outcome<Value>& outcome) mutable {
        if (!outcome) {
          return then(std::unexpected(outcome.error().kind == Failure::Kind::unknown ? kNoJob : outcome.error()));
        }
        StoredMessage message = stored_message(*outcome);
        std::string_view data = message.data;
        const auto head = from_json<JobHead>(line_of(data));
        if (!head || head->id.value_or(message.seq) != found.job.id) return then(std::unexpected(kNoJob));
        std::string_view rest =
            std::string_view{message.subject}.substr(std::min(prefix_.size(), message.subject.size()));
        for (int i = 0; i != 3; ++i) static_cast<void>(take_word(rest));
        Job& job = found.job;
        job.method = cluster::name_of_subject(rest).value_or(std::string{rest});
        job.params = data;
        job.max_deliver = head->max_deliver;
        job.timeout_ms = head->timeout_ms;
        job.principal = head->principal;
        job.at_ms = message.at_ms;
        if (is_tried) return then(std::move(found));
        const std::string consumer = token_of(job.method);
        jetstream_->request("$JS.API.CONSUMER.INFO." + jobs_ + '.' + consumer, {},
                            [found = std::move(found), then = std::move(then)](const Outcome<Value>& info) mutable {
                              if (!info && info.error().kind != Failure::Kind::unknown)
                                return then(std::unexpected(info.error()));
                              const std::uint64_t given =
                                  info ? number(jetstream_store::find(*info, "delivered", "stream_seq")) : 0;
                              if (given >= found.seq) {
                                found.job.state = Job::State::running;
                                found.job.deliveries = 1;
                              }
                              then(std::move(found));
                            });
      });
}

void JetStreamJobs::find_job(std::uint64_t id, Then<Job> then) {
  find(id, [then = std::move(then)](Outcome<Found> found) mutable {
    if (!found) return then(std::unexpected(found.error()));
    then(std::move(found->job));
  });
}

// It keeps its id: the new message tells it, and what is kept of its trials where that message is.
void JetStreamJobs::retry_job(std::uint64_t id, Then<Done> then) {
  find(id, [this, id, then = std::move(then)](Outcome<Found> found) mutable {
    if (!found) return then(std::unexpected(found.error()));
    Job job = std::move(found->job);
    if (job.state != Job::State::dead) {
      return then(
          std::unexpected(Failure{.kind = Failure::Kind::conflict, .why = "the job is not among the dead letters"}));
    }
    const std::string payload = to_json(JobHead{.id = id,
                                                .principal = job.principal,
                                                .max_deliver = job.max_deliver,
                                                .timeout_ms = job.timeout_ms,
                                                .delay_ms = 0}) +
                                '\n' + job.params;
    const std::string subject = subject_of({.method = job.method, .params = job.params, .principal = job.principal});
    jetstream_->request(
        subject, payload, [this, job = std::move(job), then = std::move(then)](const Outcome<Value>& pushed) mutable {
          if (!pushed) return then(std::unexpected(pushed.error()));
          job.deliveries = 0;
          const JobRecord record = record_of(job, number(jetstream_store::find(*pushed, "seq")));
          jetstream_->request(trial_subject(job.id, job.method), to_json(record) + '\n',
                              [this, job, then = std::move(then)](const Outcome<Value>& kept) mutable {
                                if (!kept) return then(std::unexpected(kept.error()));
                                jetstream_->send(notices_, job.method);
                                purge(trials_, "buried.*.*." + std::to_string(job.id) + ".>", std::move(then));
                              });
        });
  });
}

void JetStreamJobs::drop_job(std::uint64_t id, Then<Done> then) {
  find(id, [this, id, then = std::move(then)](const Outcome<Found>& found) mutable {
    if (!found) return then(std::unexpected(found.error()));
    const std::string of_id = std::to_string(id) + ".>";
    switch (found->job.state) {
      case Job::State::running:
        return then(std::unexpected(
            Failure{.kind = Failure::Kind::conflict, .why = "the job is running: drop it once it is done"}));
      case Job::State::done: return purge(results_, "results." + of_id, std::move(then));
      case Job::State::dead: return purge(trials_, "buried.*.*." + of_id, std::move(then));
      case Job::State::waiting: break;
    }
    jetstream_->request("$JS.API.STREAM.MSG.DELETE." + jobs_,
                        R"({"seq":)" + std::to_string(found->seq) + R"(,"no_erase":true})",
                        [this, of_id, then = std::move(then)](const Outcome<Value>& deleted) mutable {
                          if (!deleted) return then(std::unexpected(deleted.error()));
                          purge(trials_, "trials." + of_id, std::move(then));
                        });
  });
}

// ---- many jobs ----

void JetStreamJobs::list_queues(Then<std::vector<durable::QueueCounts>> then) {
  struct Listing {
    Then<std::vector<durable::QueueCounts>> then;
    std::map<std::string, durable::QueueCounts> queues;
  };
  auto listing = std::make_shared<Listing>(Listing{.then = std::move(then), .queues = {}});
  const auto queue_of = [listing, prefix = prefix_.size()](std::string_view subject, int words_before_method) {
    std::string_view rest = subject.substr(std::min(prefix, subject.size()));
    std::uint64_t bytes = 0;
    for (int i = 0; i != words_before_method; ++i) {
      const std::string_view word = take_word(rest);
      if (i == 2) bytes = to_number(word);
    }
    const std::string method = cluster::name_of_subject(rest).value_or(std::string{rest});
    durable::QueueCounts& queue = listing->queues[method];
    queue.method = method;
    return std::pair{&queue, bytes};
  };
  const auto failed = [listing](const Failure& failure) { listing->then(std::unexpected(failure)); };
  const auto count_done = [queue_of](std::string_view subject, std::uint64_t count) {
    queue_of(subject, 2).first->done += count;
  };
  const auto count_dead = [queue_of](std::string_view subject, std::uint64_t count) {
    queue_of(subject, 4).first->dead += count;
  };
  const auto count_waiting = [queue_of](std::string_view subject, std::uint64_t count) {
    const auto [queue, bytes] = queue_of(subject, 3);
    queue->waiting += count;
    queue->bytes += count * bytes;
  };
  // What runs, of those that wait or run.
  const auto answer = [this, listing, failed] {
    list_consumers(
        0,
        [listing](const Value& info) {
          const auto found = listing->queues.find(text(jetstream_store::find(info, "config", "description")));
          if (found == listing->queues.end()) return;
          durable::QueueCounts& queue = found->second;
          queue.running = std::min(queue.waiting, number(jetstream_store::find(info, "num_ack_pending")));
          queue.waiting -= queue.running;
        },
        [listing, failed](const Outcome<Done>& outcome) {
          if (!outcome) return failed(outcome.error());
          std::vector<durable::QueueCounts> all;
          for (auto& [method, queue] : listing->queues) all.push_back(std::move(queue));
          listing->then(std::move(all));
        });
  };
  jetstream_->list_subjects(results_, prefix_ + "results.>", count_done, [=, this](const Outcome<Done>& done) {
    if (!done) return failed(done.error());
    jetstream_->list_subjects(trials_, prefix_ + "buried.>", count_dead, [=, this](const Outcome<Done>& dead) {
      if (!dead) return failed(dead.error());
      jetstream_->list_subjects(jobs_, prefix_ + "jobs.>", count_waiting, [=](const Outcome<Done>& waiting) {
        if (!waiting) return failed(waiting.error());
        answer();
      });
    });
  });
}

void JetStreamJobs::list_consumers(std::uint64_t offset, std::function<void(const Value& info)> each, Then<Done> then) {
  jetstream_->request(
      "$JS.API.CONSUMER.LIST." + jobs_, R"({"offset":)" + std::to_string(offset) + "}",
      [this, offset, each = std::move(each), then = std::move(then)](const Outcome<Value>& outcome) mutable {
        if (!outcome) return then(std::unexpected(outcome.error()));
        const Value* const consumers = jetstream_store::find(*outcome, "consumers");
        const std::size_t size = consumers != nullptr && consumers->is_array() ? consumers->size() : 0;
        for (std::size_t i = 0; i != size; ++i) each(consumers->as_array()[i]);
        if (size == 0 || offset + size >= number(jetstream_store::find(*outcome, "total"))) return then(Done{});
        list_consumers(offset + size, std::move(each), std::move(then));
      });
}

/// Jobs that are looked at one by one. Those that wait or run are found by walking through their messages, but for
/// those that have been dead, whose messages are elsewhere than their ids say: these are visited by their ids.
struct JetStreamJobs::Peeking {
  durable::Peek peek;
  Then<std::vector<Job>> then;
  std::vector<Job> jobs = {};
  std::set<std::uint64_t> ids = {};  // that are still to be visited
  std::uint64_t walked = 0;
  std::size_t count = 0;  // that were added of late
  std::size_t bytes = 0;

  [[nodiscard]] static std::size_t bytes_of(const Job& job) noexcept { return job.params.size() + job.result.size(); }
  [[nodiscard]] bool is_full() const noexcept { return count == peek.count || bytes > peek.bytes; }
  void add(Job job) {
    if (job.state != peek.state || job.method != peek.method) return;
    if (peek.principal && *peek.principal != job.principal) return;
    ++count;
    bytes += bytes_of(job);
    jobs.push_back(std::move(job));
  }
  void end() {
    std::ranges::sort(jobs, {}, &Job::id);
    std::size_t kept = 0;
    std::size_t kept_bytes = 0;
    while (kept != std::min(jobs.size(), peek.count)) {
      kept_bytes += bytes_of(jobs[kept]);
      if (kept != 0 && kept_bytes > peek.bytes) break;
      ++kept;
    }
    jobs.resize(kept);
    then(std::move(jobs));
  }
};

void JetStreamJobs::peek(durable::Peek peek, Then<std::vector<Job>> then) {
  const bool is_done = peek.state == Job::State::done;
  const bool is_dead = peek.state == Job::State::dead;
  const std::string& stream = is_done ? results_ : trials_;
  const std::string_view words = is_done ? "results.*." : is_dead ? "buried.*.*.*." : "trials.*.";
  const int words_before_id = is_dead ? 3 : 1;
  const std::string filter = prefix_ + std::string{words} + cluster::subject_of_name(peek.method);
  auto peeking = std::make_shared<Peeking>(Peeking{.peek = std::move(peek), .then = std::move(then)});
  jetstream_->list_subjects(
      stream, filter,
      [peeking, words_before_id, prefix = prefix_.size()](std::string_view subject, std::uint64_t) {
        std::string_view rest = subject.substr(std::min(prefix, subject.size()));
        for (int i = 0; i != words_before_id; ++i) static_cast<void>(take_word(rest));
        if (const std::uint64_t id = to_number(take_word(rest)); id > peeking->peek.after) peeking->ids.insert(id);
      },
      [this, peeking, walks = !is_done && !is_dead](const Outcome<Done>& listed) {
        if (!listed) return peeking->then(std::unexpected(listed.error()));
        peeking->walked = peeking->peek.after;
        if (walks) return walk(peeking);
        visit(peeking);
      });
}

void JetStreamJobs::walk(std::shared_ptr<Peeking> peeking) {
  const std::string asked = R"({"seq":)" + std::to_string(peeking->walked + 1) + R"(,"next_by_subj":)" +
                            to_json(prefix_ + "jobs.*.*." + cluster::subject_of_name(peeking->peek.method)) + "}";
  jetstream_->request("$JS.API.STREAM.MSG.GET." + jobs_, asked, [this, peeking](const Outcome<Value>& outcome) {
    if (!outcome && outcome.error().kind != Failure::Kind::unknown)
      return peeking->then(std::unexpected(outcome.error()));
    const StoredMessage message = outcome ? stored_message(*outcome) : StoredMessage{};
    if (message.seq == 0) return visit(peeking);  // there are no more
    peeking->walked = message.seq;
    find(message.seq, [this, peeking, seq = message.seq](Outcome<Found> found) {
      if (!found && found.error().kind != Failure::Kind::unknown) return peeking->then(std::unexpected(found.error()));
      peeking->ids.erase(seq);
      if (found) peeking->add(std::move(found->job));
      if (!peeking->is_full()) return walk(peeking);
      // Of the others only those are missing that come before it.
      peeking->ids.erase(peeking->ids.lower_bound(seq), peeking->ids.end());
      peeking->count = 0;
      peeking->bytes = 0;
      visit(peeking);
    });
  });
}

void JetStreamJobs::visit(std::shared_ptr<Peeking> peeking) {
  if (peeking->is_full() || peeking->ids.empty()) return peeking->end();
  const std::uint64_t id = peeking->ids.extract(peeking->ids.begin()).value();
  find(id, [this, peeking](Outcome<Found> found) {
    if (!found && found.error().kind != Failure::Kind::unknown) return peeking->then(std::unexpected(found.error()));
    if (found) peeking->add(std::move(found->job));
    visit(peeking);
  });
}

}  // namespace wirecall::jetstream_store
