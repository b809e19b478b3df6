// WorkQueues: calls that are kept in a durable::Store until a provider of their method has answered them, over restarts
// of either. Each is made as a call of a peer of the broker's own, so that it takes the way of every call; one that
// fails is made again later, and after some times is kept among the dead. One thread. Implements docs/durable.md
// "Queues".
#pragma once

#include <map>
#include <unordered_map>

#include "broker/context.hpp"
#include "broker/durable_topics.hpp"
#include "durable/store.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/message.hpp"

namespace wirecall::broker {

class WorkQueues {
 public:
  /// `store` may be null: then what needs one is refused. All referred to outlive it.
  WorkQueues(BrokerContext& context, DurableTopics& topics, durable::Store* store);
  WorkQueues(WorkQueues&&) = delete;
  ~WorkQueues();
  /// There is a store now. Once, where there was none.
  void open(durable::Store& store);

  /// The method of that reserved name; null where it is none of this.
  [[nodiscard]] const Method* find(std::string_view name) const noexcept;
  /// There may be a provider for jobs that wait: it has registered that name, or prefix with `>` at its end.
  void provided(const std::string& name);
  /// Whether there are jobs for which that is of interest.
  [[nodiscard]] bool waits_for_providers() const noexcept { return !queues_.empty(); }
  /// No more jobs begin, until it goes on.
  void drain() noexcept { draining_ = true; }
  void go_on();
  /// Whether jobs run, or are about to.
  [[nodiscard]] bool at_work() const noexcept;
  /// The same, and none is waited for any more.
  void stop() noexcept;

 private:
  class Queue;
  class JobCaller;
  struct RunningJob {
    std::string method;
    std::uint32_t deliveries;
    std::uint32_t max_deliver;
  };

  void push(Call& call);
  void result(Call& call);
  void list(Call& call);
  void peek(Call& call);
  void retry(Call& call);
  void drop(Call& call);
  /// Does something to a job that the caller may call, and answers true.
  void change(Call& call, void (durable::Store::*act)(std::uint64_t id, durable::Then<durable::Done> then));

  [[nodiscard]] durable::Store& require_store() const;
  Queue& queue_of(const std::string& method);
  void jobs_came(const std::set<std::string>& methods, bool all);
  [[nodiscard]] std::size_t window_of(const std::string& method) const;
  void pump(const std::string& method);
  void take(const std::string& method, Queue& queue, std::size_t count);
  void free_if_empty(const std::string& method);
  void taken(const std::string& method, const durable::Outcome<durable::Taken>& outcome, std::size_t asked);
  void begin(const durable::Job& job);
  void answered(std::uint64_t id, const Received& message);
  void finish(std::uint64_t id, durable::JobOutcome outcome);
  void save(RunningJob job, durable::JobOutcome outcome);
  void finished(const RunningJob& job, const durable::JobOutcome& outcome, const durable::Outcome<durable::Done>& done);

  BrokerContext* context_;
  DurableTopics* topics_;
  durable::Store* store_;
  const Method push_;
  const Method result_;
  const Method list_;
  const Method peek_;
  const Method retry_;
  const Method drop_;
  std::map<std::string, std::unique_ptr<Queue>, std::less<>> queues_;
  std::unordered_map<std::uint64_t, RunningJob> running_;
  std::unique_ptr<JobCaller> caller_;  // null before the first job
  bool draining_ = false;
};

}  // namespace wirecall::broker
