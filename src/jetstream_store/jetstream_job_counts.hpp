// JetStreamJobCounts: how many jobs there are that are not done, dead ones among them, and how much they hold, of each
// method and each principal: counted by the subjects of their messages, for all brokers together. It says whether there
// is room for another, and which methods have jobs that wait or run. Thread: the loop's.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "durable/store.hpp"
#include "jetstream_store/jetstream.hpp"
#include "jetstream_store/jetstream_job_messages.hpp"

namespace wirecall::jetstream_store {

/// As DurableOptions says.
struct JobLimits {
  std::uint64_t dedup_ms = 120'000;
  std::uint64_t result_ms = 3'600'000;
  std::uint64_t queue_count = 1'000'000;
  std::uint64_t queue_bytes = 1ULL << 30U;
  std::uint64_t principal_bytes = 256ULL << 20U;
  std::uint64_t principal_jobs = 1'000'000;
  std::size_t principal_queues = 4096;  ///< methods with jobs
  /// For which a job is a broker's that says nothing of it; one that is at work says something three times as often.
  std::uint64_t lease_ms = 30'000;
  /// After which the consumer of a method without jobs is forgotten.
  std::uint64_t consumer_idle_ms = 60'000;
};

class JetStreamJobCounts {
 public:
  using Counted = std::function<void(const std::set<std::string>& waiting)>;

  /// All referred to outlive all calls. `counted` is told, each time, of which methods jobs wait or run.
  JetStreamJobCounts(const JobSubjects& subjects, const JobLimits& limits, JetStream& jetstream, Scheduler& scheduler,
                     Counted counted);
  JetStreamJobCounts(JetStreamJobCounts&&) = delete;
  ~JetStreamJobCounts();

  /// The streams are there, from now on until the connection is lost.
  void begin();
  void lost();

  /// Whether there may be such a job besides, which is counted then: `then` is called, maybe from within, with nothing,
  /// or with why not.
  void require_room(const durable::NewJob& job, durable::Then<durable::Done> then);
  /// It has not come to be.
  void forget(const durable::NewJob& job) { count(size_of(job), false); }
  [[nodiscard]] bool waits(const std::string& method) const { return usage_.waiting.contains(method); }

 private:
  struct Counts {
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::set<std::string> methods = {};  // of a principal
  };
  /// Of principals by their token.
  struct Usage {
    std::map<std::string, Counts, std::less<>> methods = {};
    std::map<std::string, Counts, std::less<>> principals = {};
    std::set<std::string> waiting = {};  // methods with jobs that wait or run
  };
  /// What counts of a job.
  struct Size {
    std::string method;
    std::string principal;  // token
    std::size_t bytes;
  };
  struct Waiting {
    Size size;
    durable::Then<durable::Done> then;
  };

  [[nodiscard]] static Size size_of(const durable::NewJob& job);
  void read();
  void usage_read(Usage usage);
  void count(const Size& size, bool more);
  [[nodiscard]] std::optional<durable::Failure> why_full(const Size& size) const;

  class CallTimer final : public Timer {
   public:
    explicit CallTimer(std::function<void()> act) : act_(std::move(act)) {}
    void expired() override { act_(); }

   private:
    std::function<void()> act_;
  };

  const JobSubjects* subjects_;
  const JobLimits limits_;
  JetStream* jetstream_;
  Scheduler* scheduler_;
  Counted counted_;
  bool usable_ = false;
  Usage usage_;
  std::chrono::nanoseconds until_{};  // it may be counted with
  bool reads_ = false;
  std::vector<Waiting> waiting_;  // for the usage
  CallTimer timer_;
};

}  // namespace wirecall::jetstream_store
