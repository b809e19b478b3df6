// See jetstream_jobs.hpp.
#include "jetstream_store/jetstream_jobs.hpp"

#include <algorithm>
#include <chrono>

#include "base/dotted_name.hpp"
#include "cluster/subjects.hpp"
#include "jetstream_store/jetstream_answers.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::jetstream_store {

using durable::Done;
using durable::Failure;
using durable::Job;
using durable::Outcome;
using durable::Then;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Before a job that was put off is looked for again that JetStream has not given yet, and for how long it is.
constexpr milliseconds kDuePause{100};
constexpr milliseconds kDueTime{2000};
// What a message of a job holds beside its params: with the error that one is dead of.
constexpr std::size_t kHeadBytesMax = std::size_t{32} << 10U;
// Of params that are taken at once.
constexpr std::size_t kTakenBytesMax = std::size_t{4} << 20U;
// Consumers that are forgotten at once.
constexpr std::size_t kForgottenMax = 64;

JetStreamJobs::JetStreamJobs(const std::string& realm, const JobLimits& limits, JetStream& jetstream,
                             Scheduler& scheduler)
    : limits_(limits),
      jetstream_(&jetstream),
      scheduler_(&scheduler),
      subjects_(realm),
      notices_("wc." + realm + ".js.jobs"),
      counts_(subjects_, limits, jetstream, scheduler,
              [this](const std::set<std::string>& waiting) { jobs_counted(waiting); }),
      finder_(subjects_, jetstream),
      work_timer_([this] {
        for (const auto& [id, running] : running_) jetstream_->send(running.reply, "+WPI");
        if (!running_.empty()) scheduler_->start(work_timer_, milliseconds{limits_.lease_ms / 3});
      }) {}

JetStreamJobs::~JetStreamJobs() { scheduler_->stop(work_timer_); }

// ---- the streams ----

std::vector<WantedStream> JetStreamJobs::streams() const {
  const auto configuration = [](const std::string& name, std::string_view description, const std::string& subjects,
                                const std::string& rest) {
    return WantedStream{
        name, R"("description":"wirecall: )" + std::string{description} + R"(","subjects":[)" + subjects + "]," + rest};
  };
  const auto below = [this](std::string_view word) { return '"' + subjects_.prefix + std::string{word} + ".>\""; };
  constexpr std::uint64_t kLeastMs = 100;  // NATS refuses less
  const std::uint64_t window = std::max(limits_.dedup_ms, kLeastMs);
  const std::uint64_t age = std::max(limits_.result_ms, kLeastMs);
  return {
      configuration(subjects_.jobs, "jobs that wait or run", below("jobs"),
                    R"("retention":"workqueue","discard":"new","max_msgs":-1,"max_bytes":-1,"duplicate_window":)" +
                        nanoseconds_of(window)),
      configuration(subjects_.trials, "jobs that were tried, or are dead", below("trials") + ',' + below("buried"),
                    R"("retention":"limits","discard":"new","max_msgs_per_subject":1,"max_msgs":-1,"max_bytes":-1)"),
      configuration(subjects_.results, "results of jobs", below("results"),
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
  counts_.begin();
  // Those of brokers that have gone are looked after as well.
  finder_.list_consumers(
      [this](const Value& info) {
        const std::string method = text(find(info, "config", "description"));
        if (is_name(method)) consumers_.emplace(method, scheduler_->now());
      },
      [](const Outcome<Done>&) {});
}

void JetStreamJobs::lost() {
  consumers_.clear();
  counts_.lost();
}

// That each was given counts, so that whoever asks meanwhile is told that it waits.
void JetStreamJobs::leave() {
  left_ = true;
  for (const auto& [id, running] : std::exchange(running_, {})) {
    JobRecord record = record_of(running.job, running.seq);
    record.given = running.given;
    jetstream_->send(subjects_.trial(running.job), to_json(record) + '\n');
    jetstream_->send(running.reply, "-NAK");
  }
}

void JetStreamJobs::jobs_counted(const std::set<std::string>& waiting) {
  const nanoseconds now = scheduler_->now();
  std::vector<std::string> idle;
  for (auto& [method, used] : consumers_) {
    if (waiting.contains(method)) {
      used = now;
    } else if (now - used >= milliseconds{limits_.consumer_idle_ms} && idle.size() != kForgottenMax) {
      idle.push_back(method);
    }
  }
  for (const std::string& method : idle) forget_consumer(method);
  if (told_ && !left_) told_(waiting, true);
}

// There are no more consumers than methods with jobs, or that had some of late, whoever pushes by which names.
void JetStreamJobs::forget_consumer(const std::string& method) {
  consumers_.erase(method);
  const std::string consumer = subjects_.jobs + '.' + token_of(method);
  jetstream_->request("$JS.API.CONSUMER.INFO." + consumer, {}, [this, consumer](const Outcome<Value>& info) {
    const bool idle = info && number(find(*info, "num_pending")) == 0 && number(find(*info, "num_ack_pending")) == 0;
    if (idle) jetstream_->request("$JS.API.CONSUMER.DELETE." + consumer, {}, [](const Outcome<Value>&) {});
  });
}

// ---- pushing ----

bool JetStreamJobs::fits(const durable::NewJob& job) const noexcept {
  return job.params.size() + kHeadBytesMax <= jetstream_->payload_bytes_max();
}

void JetStreamJobs::push(durable::NewJob job, Then<durable::Pushed> then) {
  const durable::NewJob& asked = job;
  counts_.require_room(asked, [this, job = asked, then = std::move(then)](const Outcome<Done>& has_room) mutable {
    if (!has_room) return then(std::unexpected(has_room.error()));
    publish(std::move(job), std::move(then));
  });
}

// No name of a method has a space. Another principal's message of that id is another one.
void JetStreamJobs::publish(durable::NewJob job, Then<durable::Pushed> then) {
  std::string payload = to_json(JobHead{.id = std::nullopt,
                                        .principal = job.principal,
                                        .max_deliver = job.max_deliver,
                                        .timeout_ms = job.timeout_ms,
                                        .delay_ms = job.delay_ms});
  payload.append("\n").append(job.params);
  JetStream::Headers headers;
  if (!job.msg_id.empty() && limits_.dedup_ms != 0) {
    headers.push_back({"Nats-Msg-Id", token_of(job.method + ' ' + job.msg_id)});
  }
  const std::string subject = subjects_.job(job.principal, job.params.size(), job.method);
  jetstream_->request(
      subject, payload,
      [this, job = std::move(job), then = std::move(then)](const Outcome<Value>& outcome) mutable {
        if (!outcome) {
          counts_.forget(job);
          return then(std::unexpected(outcome.error()));
        }
        const Value* const known = find(*outcome, "duplicate");
        const bool duplicate = known != nullptr && known->is_bool() && known->as_bool();
        if (duplicate) {
          counts_.forget(job);
        } else {
          jetstream_->send(notices_, job.method);
        }
        then(durable::Pushed{.id = number(find(*outcome, "seq")), .duplicate = duplicate});
      },
      headers);
}

// ---- taking ----

/// Messages of jobs that have come, of which it is asked what is kept beside them.
struct JetStreamJobs::Taking {
  durable::Take take;
  Then<durable::Taken> then;
  bool more = false;  // there may be
  std::size_t left = 0;
  durable::Taken taken = {};
};

void JetStreamJobs::take(durable::Take take, Then<durable::Taken> then) {
  auto taking = std::make_shared<Taking>(Taking{.take = std::move(take), .then = std::move(then)});
  const std::string& method = taking->take.method;
  if (consumers_.contains(method)) return pull(taking);
  const std::string consumer = token_of(method);
  const std::string asked = R"({"stream_name":")" + subjects_.jobs + R"(","config":{"durable_name":")" + consumer +
                            R"(","description":)" + to_json(method) + R"(,"filter_subject":)" +
                            to_json(subjects_.prefix + "jobs.*.*." + cluster::subject_of_name(method)) +
                            R"(,"ack_policy":"explicit","deliver_policy":"all","max_deliver":-1,"ack_wait":)" +
                            nanoseconds_of(limits_.lease_ms) + R"(,"max_ack_pending":-1}})";
  jetstream_->request("$JS.API.CONSUMER.DURABLE.CREATE." + subjects_.jobs + '.' + consumer, asked,
                      [this, taking](const Outcome<Value>& outcome) {
                        if (!outcome) return taking->then(std::unexpected(outcome.error()));
                        pull(taking);
                      });
}

void JetStreamJobs::pull(const std::shared_ptr<Taking>& taking) {
  const durable::Take& take = taking->take;
  consumers_.insert_or_assign(take.method, scheduler_->now());
  jetstream_->pull(subjects_.jobs, token_of(take.method), take.count - taking->taken.jobs.size(),
                   std::min(take.bytes, kTakenBytesMax), JetStream::Wait::no,
                   [this, taking](const Outcome<std::vector<PulledMessage>>& outcome) { pulled(outcome, taking); });
}

// Of a consumer that has gone JetStream says nothing: it is made anew.
void JetStreamJobs::pulled(const Outcome<std::vector<PulledMessage>>& outcome, const std::shared_ptr<Taking>& taking) {
  if (!outcome) {
    consumers_.erase(taking->take.method);
    if (taking->taken.jobs.empty()) return taking->then(std::unexpected(outcome.error()));
  }
  taking->left = 1;
  taking->more = outcome && outcome->size() >= taking->take.count - taking->taken.jobs.size();
  if (outcome) {
    taking->left += outcome->size();
    for (const PulledMessage& message : *outcome) examine(message, taking);
  }
  taken(taking);
}

// One that comes for the first time has nothing beside it.
void JetStreamJobs::examine(const PulledMessage& message, const std::shared_ptr<Taking>& taking) {
  const Delivery delivery = delivery_of(message.reply);
  const auto read = read_job(message.payload);
  if (!read) {  // none of a broker's
    jetstream_->send(message.reply, "+TERM");
    return taken(taking);
  }
  const std::uint64_t id = read->head.id.value_or(delivery.seq);
  if (const auto known = running_.find(id); known != running_.end()) {  // it has come once more
    if (known->second.seq == delivery.seq) {
      known->second.reply = message.reply;
      known->second.given = delivery.deliveries;
    } else {  // by another message of one that was tried anew twice
      jetstream_->send(message.reply, "+TERM");
    }
    return taken(taking);
  }
  Running running{.job = {.id = id,
                          .method = taking->take.method,
                          .params = std::string{read->params},
                          .state = Job::State::running,
                          .deliveries = 0,
                          .max_deliver = read->head.max_deliver,
                          .at_ms = delivery.at_ms,
                          .result = {},
                          .timeout_ms = read->head.timeout_ms,
                          .principal = read->head.principal},
                  .reply = message.reply,
                  .seq = delivery.seq,
                  .given = delivery.deliveries,
                  .delay_ms = read->head.delay_ms};
  if (delivery.deliveries == 1 && !read->head.id) return begin_job(std::move(running), 0, taking);
  const auto last = [](const std::string& subject) { return R"({"last_by_subj":)" + to_json(subject) + "}"; };
  const Job& job = running.job;
  std::vector<std::pair<std::string, std::string>> asked{
      {"$JS.API.STREAM.MSG.GET." + subjects_.results, last(subjects_.result(job))},
      {"$JS.API.STREAM.MSG.GET." + subjects_.trials, last(subjects_.buried(job))},
      {"$JS.API.STREAM.MSG.GET." + subjects_.trials, last(subjects_.trial(job))}};
  jetstream_->request_all(std::move(asked),
                          [this, running = std::move(running), taking](const Outcome<Answers>& outcome) mutable {
                            if (outcome) return examined(std::move(running), *outcome, taking);
                            jetstream_->send(running.reply, "-NAK");
                            taken(taking);
                          });
}

// Of what was given before, and of which nobody has said anything, a broker has ended in the middle.
void JetStreamJobs::examined(Running running, const Answers& before, const std::shared_ptr<Taking>& taking) {
  Job kept;
  const auto is_of_this = [&](const std::optional<Value>& answer) {
    const auto record = answer ? read_record(*answer, kept) : std::nullopt;
    return record && record->seq == running.seq;
  };
  const auto nobody_waits = [](const Outcome<Done>&) {};
  if (is_of_this(before[0]) || is_of_this(before[1])) {  // only its acknowledgement was lost
    jetstream_->send(running.reply, "+ACK");
    purge(subjects_.trials, subjects_.trial(running.job), nobody_waits);
    return taken(taking);
  }
  if (before[1]) purge(subjects_.trials, subjects_.buried(running.job), nobody_waits);
  std::uint32_t silent = running.given - 1;
  if (const auto trial = before[2] ? read_record(*before[2], kept) : std::nullopt) {
    running.has_trial = true;
    if (trial->seq == running.seq) {
      running.job.deliveries = trial->deliveries;
      silent -= std::min(silent, trial->given);
    }
  }
  begin_job(std::move(running), silent, taking);
}

// `silent`: how often it was given besides. Before its time has come nobody has made it all the same.
void JetStreamJobs::begin_job(Running running, std::uint32_t silent, const std::shared_ptr<Taking>& taking) {
  Job& job = running.job;
  if (left_) {
    jetstream_->send(running.reply, "-NAK");
    return taken(taking);
  }
  if (job.deliveries == 0 && running.delay_ms != 0) {
    const std::int64_t due = job.at_ms + static_cast<std::int64_t>(running.delay_ms);
    const std::int64_t now =
        std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    if (now < due) {
      const std::uint64_t left = std::min(static_cast<std::uint64_t>(due - now), running.delay_ms);
      return put_off(running, {}, left, [this, taking, reply = running.reply](const Outcome<Done>& safe) {
        if (!safe) jetstream_->send(reply, "-NAK");
        taken(taking);
      });
    }
  }
  job.deliveries += silent;
  if (running.given != 1 || running.has_trial) {
    JobRecord record = record_of(job, running.seq);
    record.given = running.given - 1;
    record.running = true;
    running.has_trial = true;
    jetstream_->request(subjects_.trial(job), to_json(record) + '\n', [](const Outcome<Value>&) {});
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

// Behind those that are for later others may be due.
void JetStreamJobs::taken(const std::shared_ptr<Taking>& taking) {
  if (--taking->left != 0) return;
  durable::Taken& taken = taking->taken;
  if (taking->more && taken.jobs.size() < taking->take.count && !left_) return pull(taking);
  std::ranges::sort(taken.jobs, {}, &Job::id);
  if (const auto due = due_.find(taking->take.method); due != due_.end()) {
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

void JetStreamJobs::put_off(const Running& running, const std::string& error, std::uint64_t delay_ms, Then<Done> then) {
  const Job& job = running.job;
  JobRecord record = record_of(job, running.seq);
  record.given = running.given;
  jetstream_->request(subjects_.trial(job), to_json(record) + '\n' + error,
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
    Running tried = running;
    tried.job.deliveries -= outcome.untried ? 1 : 0;
    return put_off(tried, outcome.result, outcome.delay_ms,
                   [this, id, then = std::move(then)](const Outcome<Done>& safe) mutable {
                     if (safe) running_.erase(id);
                     then(safe);
                   });
  }
  JobRecord record = record_of(job, running.seq);
  std::string data;
  std::string subject;
  if (outcome.state == Job::State::done) {
    subject = subjects_.result(job);
    if (outcome.result.size() + kHeadBytesMax <= jetstream_->payload_bytes_max()) data = std::move(outcome.result);
  } else {
    subject = subjects_.buried(job);
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
  const Running& running = found->second;
  jetstream_->send(running.reply, "+ACK");
  if (running.has_trial) purge(subjects_.trials, subjects_.trial(running.job), [](const Outcome<Done>&) {});
  running_.erase(found);
}

void JetStreamJobs::purge(const std::string& stream, const std::string& subjects, Then<Done> then) {
  jetstream_->request("$JS.API.STREAM.PURGE." + stream, R"({"filter":)" + to_json(subjects) + "}",
                      [then = std::move(then)](const Outcome<Value>& outcome) mutable {
                        if (!outcome) return then(std::unexpected(outcome.error()));
                        then(Done{});
                      });
}

// ---- what people do to one ----

void JetStreamJobs::find_job(std::uint64_t id, Then<Job> then) {
  finder_.find(id, [then = std::move(then)](Outcome<Found> found) mutable {
    if (!found) return then(std::unexpected(found.error()));
    then(std::move(found->job));
  });
}

// It keeps its id: the new message tells it, and what is kept of its trials where that message is. Who retries it twice
// has it tried once.
void JetStreamJobs::retry_job(std::uint64_t id, Then<Done> then) {
  finder_.find(id, [this, id, then = std::move(then)](Outcome<Found> found) mutable {
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
    const std::string subject = subjects_.job(job.principal, job.params.size(), job.method);
    const std::string msg_id = "retry/" + std::to_string(id) + '/' + std::to_string(found->buried_seq);
    jetstream_->request(subject, payload,
                        [this, job = std::move(job), then = std::move(then)](const Outcome<Value>& pushed) mutable {
                          if (!pushed) return then(std::unexpected(pushed.error()));
                          job.deliveries = 0;
                          const JobRecord record = record_of(job, number(find(*pushed, "seq")));
                          const std::string buried = subjects_.buried(job);
                          if (find(*pushed, "duplicate") != nullptr)
                            return purge(subjects_.trials, buried, std::move(then));
                          jetstream_->request(subjects_.trial(job), to_json(record) + '\n',
                                              [this, buried, method = job.method,
                                               then = std::move(then)](const Outcome<Value>& kept) mutable {
                                                if (!kept) return then(std::unexpected(kept.error()));
                                                jetstream_->send(notices_, method);
                                                purge(subjects_.trials, buried, std::move(then));
                                              });
                        },
                        {{"Nats-Msg-Id", msg_id}});
  });
}

void JetStreamJobs::drop_job(std::uint64_t id, Then<Done> then) {
  finder_.find(id, [this, then = std::move(then)](const Outcome<Found>& found) mutable {
    if (!found) return then(std::unexpected(found.error()));
    const Job& job = found->job;
    switch (job.state) {
      case Job::State::running:
        return then(std::unexpected(
            Failure{.kind = Failure::Kind::conflict, .why = "the job is running: drop it once it is done"}));
      case Job::State::done: return purge(subjects_.results, subjects_.result(job), std::move(then));
      case Job::State::dead: return purge(subjects_.trials, subjects_.buried(job), std::move(then));
      case Job::State::waiting: break;
    }
    jetstream_->request(
        "$JS.API.STREAM.MSG.DELETE." + subjects_.jobs,
        R"({"seq":)" + std::to_string(found->seq) + R"(,"no_erase":true})",
        [this, trial = subjects_.trial(job), then = std::move(then)](const Outcome<Value>& deleted) mutable {
          if (!deleted) return then(std::unexpected(deleted.error()));
          purge(subjects_.trials, trial, std::move(then));
        });
  });
}

}  // namespace wirecall::jetstream_store
