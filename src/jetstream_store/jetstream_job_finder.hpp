// JetStreamJobFinder: what there is of a job, or of many, in the streams of JetStreamJobs. Thread: the loop's.
#pragma once

#include "durable/store.hpp"
#include "jetstream_store/jetstream.hpp"
#include "jetstream_store/jetstream_answers.hpp"
#include "jetstream_store/jetstream_job_messages.hpp"

namespace wirecall::jetstream_store {

class JetStreamJobFinder {
 public:
  struct Found {
    durable::Job job;
    std::uint64_t seq = 0;         ///< of its message, where it waits or runs
    std::uint64_t buried_seq = 0;  ///< of what is kept of it, where it is dead
  };

  /// All referred to outlive all calls.
  JetStreamJobFinder(const JobSubjects& subjects, JetStream& jetstream)
      : subjects_(&subjects), jetstream_(&jetstream) {}

  void find(std::uint64_t id, durable::Then<Found> then);
  void list_queues(durable::Then<std::vector<durable::QueueCounts>> then);
  void peek(durable::Peek peek, durable::Then<std::vector<durable::Job>> then);
  /// Calls `each` for what JetStream says of each consumer of the jobs.
  void list_consumers(std::function<void(const Value& info)> each, durable::Then<durable::Done> then,
                      std::uint64_t offset = 0);

 private:
  struct Listing;
  struct Peeking;

  void read_beside(Found found, bool has_message, durable::Then<Found> then);
  void read_tried(Found found, durable::Then<Found> then);
  void ask_whether_given(Found found, durable::Then<Found> then);
  void list_next();
  void count_running(std::shared_ptr<Listing> listing);
  void end_listing(Listing& listing, const durable::Outcome<durable::Done>& outcome);
  void walk(std::shared_ptr<Peeking> peeking);
  void visit(std::shared_ptr<Peeking> peeking);

  const JobSubjects* subjects_;
  JetStream* jetstream_;
  std::vector<durable::Then<std::vector<durable::QueueCounts>>> waiting_;  // for the listing at work
  bool lists_ = false;
};

}  // namespace wirecall::jetstream_store
