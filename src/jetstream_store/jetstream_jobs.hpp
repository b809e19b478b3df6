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

namespace wirecall::jetstream_store {

/// A stream that has to be there.
struct WantedStream {
  std::string name;
  std::string configuration;  ///< what it has beside a name, replicas and where it is kept, as members in JSON
};

/// As DurableOptions says.
struct JobLimits {
  std::uint64_t dedup_ms = 120'000;
  std::uint64_t result_ms = 3'600'000;
  std::uint64_t queue_count = 1'000'000;
  std::uint64_t queue_bytes = 1ULL << 30U;
  std::uint64_t principal_bytes = 256ULL << 20U;
  std::uint64_t principal_jobs = 1'000'000;
  /// For which a job is a broker's that says nothing of it; one that is at work says something three times as often.
  std::uint64_t lease_ms = 30'000;
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
  /// Others get at once what runs here.
  void give_back();

  /// Whether NATS takes it.
  [[nodiscard]] bool fits(const durable::NewJob& job) const noexcept;
  /// Whether this broker has been given the job, and has not finished it.
  [[nodiscard]] bool runs(std::uint64_t id) const { return running_.contains(id); }

  // As of durable::Store: of a job that fits, and of one that runs.

  void push(durable::NewJob job, durable::Then<durable::Pushed> then);
  void take(durable::Take take, durable::Then<durable::Taken> then);
  void finish(durable::JobOutcome outcome, durable::Then<durable::Done> then);
  void find_job(std::uint64_t id, durable::Then<durable::Job> then);
  void list_queues(durable::Then<std::vector<durable::QueueCounts>> then);
  void peek(durable::Peek peek, durable::Then<std::vector<durable::Job>> then);
  void retry_job(std::uint64_t id, durable::Then<durable::Done> then);
  void drop_job(std::uint64_t id, durable::Then<durable::Done> then);

 private:
  struct Counts {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
  };
  /// What there is of jobs that are not done, dead ones among them; of principals by their token.
  struct Usage {
    std::map<std::string, Counts, std::less<>> methods = {};
    std::map<std::string, Counts, std::less<>> principals = {};
    std::set<std::string> waiting = {};  // methods with jobs that wait or run
  };
  struct WaitingPush {
    durable::NewJob job;
    durable::Then<durable::Pushed> then;
  };
  /// A job that this broker has been given.
  struct Running {
    durable::Job job;
    std::string reply;       // where it is acknowledged
    std::uint64_t seq;       // of its message
    std::uint32_t given;     // how often that has been given, with this time
    bool has_trial = false;  // in the stream of trials
  };
  struct Taking;
  struct Peeking;
  struct Found {
    durable::Job job;
    std::uint64_t seq = 0;  // of its message, where it waits or runs
  };
  using Answers = std::vector<std::optional<Value>>;

  [[nodiscard]] std::string subject_of(const durable::NewJob& job) const;
  [[nodiscard]] std::string trial_subject(std::uint64_t id, std::string_view method) const;
  [[nodiscard]] std::string buried_subject(const durable::Job& job) const;

  void read_usage();
  void usage_read(Usage usage);
  void count(const durable::NewJob& job, bool more);
  [[nodiscard]] std::optional<durable::Failure> why_full(const durable::NewJob& job) const;
  void publish(durable::NewJob job, durable::Then<durable::Pushed> then);

  void pull(const durable::Take& take, durable::Then<durable::Taken> then);
  void pulled(const durable::Outcome<std::vector<PulledMessage>>& outcome, const std::shared_ptr<Taking>& taking);
  void examine(const PulledMessage& message, const std::shared_ptr<Taking>& taking);
  void examined(Running running, std::uint64_t delay_ms, const Answers& before, const std::shared_ptr<Taking>& taking);
  void begin_job(Running running, std::uint64_t delay_ms, const std::shared_ptr<Taking>& taking);
  void taken(const std::shared_ptr<Taking>& taking);
  void put_off(const Running& running, std::uint32_t deliveries, const std::string& error, std::uint64_t delay_ms,
               durable::Then<durable::Done> then);
  void finished(std::uint64_t id);
  void forget_trial(std::uint64_t id);
  void purge(const std::string& stream, const std::string& subjects, durable::Then<durable::Done> then);

  void find(std::uint64_t id, durable::Then<Found> then);
  void find_message(Found found, bool is_tried, durable::Then<Found> then);
  void list_consumers(std::uint64_t offset, std::function<void(const Value& info)> each,
                      durable::Then<durable::Done> then);
  void walk(std::shared_ptr<Peeking> peeking);
  void visit(std::shared_ptr<Peeking> peeking);

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
  const std::string prefix_;  // of all subjects, with a dot at the end
  const std::string notices_;
  const std::string jobs_;  // streams
  const std::string trials_;
  const std::string results_;
  durable::ToldOfJobs told_;
  bool usable_ = false;
  Usage usage_;
  std::chrono::nanoseconds usage_until_{};  // it may be counted with
  bool reads_usage_ = false;
  std::vector<WaitingPush> pushes_;  // that wait for the usage
  std::set<std::string> consumers_;  // that are there
  std::map<std::uint64_t, Running> running_;
  std::map<std::string, std::map<std::uint64_t, std::chrono::nanoseconds>, std::less<>> due_;  // of jobs put off here
  CallTimer usage_timer_;
  CallTimer work_timer_;
};

}  // namespace wirecall::jetstream_store
