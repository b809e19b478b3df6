// JetStreamJobs: the jobs of a JetStreamStore, in three streams that the brokers of a realm share. A job that is not
// done is a message of a stream of retention workqueue, from which it is gone once it is acknowledged; a consumer for
// each method gives it to one broker at a time, which says every few seconds that it is still at work, and another gets
// it where nothing is said any more. Its id is the number of its first message. What that message cannot tell is kept
// in another stream, one message a job: how often it has been tried, and what it ended with where it is dead; and
// results are in the third. Thread: the loop's.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "durable/store.hpp"
#include "jetstream_store/jetstream.hpp"
#include "jetstream_store/jetstream_job_counts.hpp"
#include "jetstream_store/jetstream_job_finder.hpp"

namespace wirecall::jetstream_store {

/// A stream that has to be there.
struct WantedStream {
  std::string name;
  std::string configuration;  ///< what it has beside a name, replicas and where it is kept, as members in JSON
};

class JetStreamJobs {
 public:
  /// `jetstream` and `scheduler` outlive all calls.
  JetStreamJobs(const std::string& realm, const JobLimits& limits, JetStream& jetstream, Scheduler& scheduler);
  JetStreamJobs(JetStreamJobs&&) = delete;
  ~JetStreamJobs();

  [[nodiscard]] std::vector<WantedStream> streams() const;
  void on_jobs(durable::ToldOfJobs told);
  /// The streams are there, from now on until the connection is lost.
  void begin();
  void lost();
  /// Others get at once what runs here, and nothing begins any more.
  void leave();

  /// Whether NATS takes it.
  [[nodiscard]] bool fits(const durable::NewJob& job) const noexcept;
  /// Whether this broker has been given the job, and has not finished it.
  [[nodiscard]] bool runs(std::uint64_t id) const { return running_.contains(id); }
  /// Whether jobs of the method wait or run, as far as has been counted.
  [[nodiscard]] bool waits(const std::string& method) const { return counts_.waits(method); }

  // As of durable::Store: of a job that fits, of one that runs, and to take one at least.

  void push(durable::NewJob job, durable::Then<durable::Pushed> then);
  void take(durable::Take take, durable::Then<durable::Taken> then);
  void finish(durable::JobOutcome outcome, durable::Then<durable::Done> then);
  void find_job(std::uint64_t id, durable::Then<durable::Job> then);
  void list_queues(durable::Then<std::vector<durable::QueueCounts>> then) { finder_.list_queues(std::move(then)); }
  void peek(durable::Peek peek, durable::Then<std::vector<durable::Job>> then) {
    finder_.peek(std::move(peek), std::move(then));
  }
  void retry_job(std::uint64_t id, durable::Then<durable::Done> then);
  void drop_job(std::uint64_t id, durable::Then<durable::Done> then);

 private:
  /// A job that this broker has been given.
  struct Running {
    durable::Job job;
    std::string reply;       // where it is acknowledged
    std::uint64_t seq;       // of its message
    std::uint32_t given;     // how often that has been given, with this time
    std::uint64_t delay_ms;  // before it is made for the first time
    bool has_trial = false;  // in the stream of trials
  };
  struct Taking;
  using Found = JetStreamJobFinder::Found;
  using Answers = std::vector<std::optional<Value>>;

  void publish(durable::NewJob job, durable::Then<durable::Pushed> then);

  void pull(const std::shared_ptr<Taking>& taking);
  void pulled(const durable::Outcome<std::vector<PulledMessage>>& outcome, const std::shared_ptr<Taking>& taking);
  void examine(const PulledMessage& message, const std::shared_ptr<Taking>& taking);
  void examined(Running running, const Answers& before, const std::shared_ptr<Taking>& taking);
  void begin_job(Running running, std::uint32_t silent, const std::shared_ptr<Taking>& taking);
  void taken(const std::shared_ptr<Taking>& taking);
  void put_off(const Running& running, const std::string& error, std::uint64_t delay_ms,
               durable::Then<durable::Done> then);
  void finished(std::uint64_t id);
  void purge(const std::string& stream, const std::string& subjects, durable::Then<durable::Done> then);
  void jobs_counted(const std::set<std::string>& waiting);
  void forget_consumer(const std::string& method);

  class CallTimer final : public Timer {
   public:
    explicit CallTimer(std::function<void()> act) : act_(std::move(act)) {}
    void expired() override { act_(); }

   private:
    std::function<void()> act_;
  };

  const JobLimits limits_;
  JetStream* jetstream_;
  Scheduler* scheduler_;
  const JobSubjects subjects_;
  const std::string notices_;
  JetStreamJobCounts counts_;
  JetStreamJobFinder finder_;
  durable::ToldOfJobs told_;
  bool left_ = false;
  std::map<std::string, std::chrono::nanoseconds, std::less<>> consumers_;  // by method: when it was last of use
  std::map<std::uint64_t, Running> running_;
  std::map<std::string, std::map<std::uint64_t, std::chrono::nanoseconds>, std::less<>> due_;  // of jobs put off here
  CallTimer work_timer_;
};

}  // namespace wirecall::jetstream_store
