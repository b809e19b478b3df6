// A durable::Store in memory, whose disk is as slow as the test wants: what is asked for is done, and told, by
// `commit`.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/dotted_name.hpp"
#include "durable/store.hpp"

namespace wirecall::test {

class MemoryStore final : public durable::Store {
 public:
  template <class T>
  using Then = durable::Then<T>;
  using Failure = durable::Failure;

  /// What outlives a store: that of the next one.
  struct Disk {
    std::vector<durable::Event> events;
    std::map<std::uint64_t, std::string> principals;  ///< of events
    std::map<std::string, std::uint64_t> seen;
    std::map<std::string, durable::ConsumerState> consumers;
    std::map<std::uint64_t, durable::Job> jobs;
    std::map<std::uint64_t, std::int64_t> due;
    std::uint64_t last_job = 0;
    std::size_t queue_count = 1000;
    std::int64_t now = 0;
    std::string broken;  ///< why all fails; empty for not
  };

  explicit MemoryStore(Disk& disk) : disk_(&disk) {
    for (const auto& [name, state] : disk.consumers) consumers_.push_back(state);
    for (auto& [id, job] : disk.jobs) {
      if (job.state == durable::Job::State::running) job.state = durable::Job::State::waiting;
      if (job.state == durable::Job::State::waiting) waiting_methods_.push_back(job.method);
    }
    first_seq_ = disk.events.empty() ? 0 : disk.events.back().seq;
  }

  std::size_t tried_read = 0;

  /// Does what waits, and what that asks for, and tells.
  void commit() {
    while (!waiting_.empty() && !paused_) commit_one();
  }
  void commit_one() {
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    next();
  }

  [[nodiscard]] std::uint64_t last_seq() const noexcept override { return first_seq_; }
  [[nodiscard]] const std::vector<durable::ConsumerState>& consumers() const noexcept override { return consumers_; }
  [[nodiscard]] const std::vector<std::string>& waiting_methods() const noexcept override { return waiting_methods_; }
  [[nodiscard]] std::size_t waiting() const noexcept override { return waiting_.size(); }

  void pause() override { paused_ = true; }
  void resume() override { paused_ = false; }
  void leave() override {
    left_.broken = "another process has taken over";
    disk_ = &left_;
  }

  void append(durable::NewEvent event, Then<durable::Appended> then) override {
    ask<durable::Appended>(std::move(then), [this, event = std::move(event)] { return add(event); });
  }
  void fetch(durable::Fetch fetch, Then<durable::Fetched> then) override {
    ask<durable::Fetched>(std::move(then), [this, fetch = std::move(fetch)]() -> durable::Outcome<durable::Fetched> {
      durable::Fetched fetched{.events = {}, .scanned = fetch.after};
      for (const durable::Event& event : disk_->events) {
        if (event.seq <= fetch.after) continue;
        if (fetched.events.size() == fetch.count) return fetched;
        if (matches(fetch.pattern, event.topic)) fetched.events.push_back(event);
        fetched.scanned = event.seq;
      }
      return fetched;
    });
  }
  void list_topics(std::string /*asker*/, Then<std::vector<durable::TopicCounts>> then) override {
    ask<std::vector<durable::TopicCounts>>(
        std::move(then), [this]() -> durable::Outcome<std::vector<durable::TopicCounts>> {
          return std::vector<durable::TopicCounts>{
              {.pattern = {}, .count = disk_->events.size(), .bytes = 0, .last_seq = last()}};
        });
  }
  void open_consumer(durable::ConsumerSettings settings, Then<durable::ConsumerState> then) override {
    ask<durable::ConsumerState>(
        std::move(then), [this, settings = std::move(settings)]() -> durable::Outcome<durable::ConsumerState> {
          const auto found = disk_->consumers.find(settings.name);
          if (found == disk_->consumers.end())
            return disk_->consumers[settings.name] = {.settings = settings, .floor = settings.after};
          if (found->second.settings.pattern != settings.pattern)
            return std::unexpected(Failure{.kind = Failure::Kind::conflict, .why = "another topic"});
          found->second.settings = settings;
          durable::ConsumerState state = found->second;
          if (!settings.with_tried) state.tried.clear();
          tried_read += state.tried.size();
          return state;
        });
  }
  void progress(durable::Progress progress, Then<durable::Appended> then) override {
    ask<durable::Appended>(std::move(then),
                           [this, progress = std::move(progress)]() -> durable::Outcome<durable::Appended> {
                             const auto found = disk_->consumers.find(progress.consumer);
                             if (found == disk_->consumers.end()) return durable::Appended{};
                             durable::ConsumerState& state = found->second;
                             state.floor = std::max(state.floor, progress.floor);
                             std::erase_if(state.tried, [&](const durable::Tried& one) {
                               return one.seq <= state.floor || (progress.tried && one.seq == progress.tried->seq);
                             });
                             if (progress.tried && progress.tried->seq > state.floor)
                               state.tried.push_back(*progress.tried);
                             if (progress.dead) return add(*progress.dead);
                             return durable::Appended{};
                           });
  }
  void forget_consumer(std::string name, Then<durable::Done> then) override {
    ask<durable::Done>(std::move(then), [this, name = std::move(name)]() -> durable::Outcome<durable::Done> {
      if (disk_->consumers.erase(name) != 0) return durable::Done{};
      return std::unexpected(Failure{.kind = Failure::Kind::unknown, .why = "there is no consumer of that name"});
    });
  }

  void push(durable::NewJob job, Then<durable::Pushed> then) override {
    ask<durable::Pushed>(std::move(then), [this, job = std::move(job)]() -> durable::Outcome<durable::Pushed> {
      const std::string key = "queue " + job.method + ' ' + job.msg_id;
      if (!job.msg_id.empty() && disk_->seen.contains(key))
        return durable::Pushed{.id = disk_->seen[key], .duplicate = true};
      if (disk_->jobs.size() >= disk_->queue_count)
        return std::unexpected(
            Failure{.kind = Failure::Kind::full, .why = "the queue is full", .limit = "durable.queue_count"});
      const std::uint64_t id = ++disk_->last_job;
      disk_->jobs[id] = {.id = id,
                         .method = job.method,
                         .params = job.params,
                         .max_deliver = job.max_deliver,
                         .timeout_ms = job.timeout_ms,
                         .principal = job.principal};
      disk_->due[id] = disk_->now + static_cast<std::int64_t>(job.delay_ms);
      if (!job.msg_id.empty()) disk_->seen[key] = id;
      return durable::Pushed{.id = id};
    });
  }
  void take(durable::Take take, Then<durable::Taken> then) override {
    ask<durable::Taken>(std::move(then), [this, take = std::move(take)]() -> durable::Outcome<durable::Taken> {
      durable::Taken taken;
      for (auto& [id, job] : disk_->jobs) {
        if (job.method != take.method || job.state != durable::Job::State::waiting) continue;
        if (taken.jobs.size() == take.count || disk_->due[id] > disk_->now) {
          const auto left = static_cast<std::uint64_t>(std::max<std::int64_t>(disk_->due[id] - disk_->now, 0));
          taken.next_ms = std::min(taken.next_ms.value_or(left), left);
          continue;
        }
        job.state = durable::Job::State::running;
        ++job.deliveries;
        taken.jobs.push_back(job);
      }
      return taken;
    });
  }
  void finish(durable::JobOutcome outcome, Then<durable::Done> then) override {
    ask<durable::Done>(std::move(then), [this, outcome = std::move(outcome)]() -> durable::Outcome<durable::Done> {
      durable::Job& job = disk_->jobs[outcome.id];
      job.state = outcome.state;
      job.result = outcome.result;
      if (outcome.untried) --job.deliveries;
      disk_->due[outcome.id] = disk_->now + static_cast<std::int64_t>(outcome.delay_ms);
      return durable::Done{};
    });
  }
  void find_job(std::uint64_t id, std::string /*asker*/, Then<durable::Job> then) override {
    ask<durable::Job>(std::move(then), [this, id]() -> durable::Outcome<durable::Job> {
      const auto found = disk_->jobs.find(id);
      if (found != disk_->jobs.end()) return found->second;
      return std::unexpected(Failure{.kind = Failure::Kind::unknown, .why = "there is no job of that id"});
    });
  }
  void list_queues(std::string /*asker*/, Then<std::vector<durable::QueueCounts>> then) override {
    ask<std::vector<durable::QueueCounts>>(std::move(then),
                                           [this]() -> durable::Outcome<std::vector<durable::QueueCounts>> {
                                             std::map<std::string, durable::QueueCounts> queues;
                                             for (const auto& [id, job] : disk_->jobs) {
                                               durable::QueueCounts& queue = queues[job.method];
                                               queue.method = job.method;
                                               switch (job.state) {
                                                 case durable::Job::State::waiting: ++queue.waiting; break;
                                                 case durable::Job::State::running: ++queue.running; break;
                                                 case durable::Job::State::done: ++queue.done; break;
                                                 case durable::Job::State::dead: ++queue.dead; break;
                                               }
                                             }
                                             std::vector<durable::QueueCounts> all;
                                             for (const auto& [method, queue] : queues) all.push_back(queue);
                                             return all;
                                           });
  }
  void peek(durable::Peek peek, Then<std::vector<durable::Job>> then) override {
    ask<std::vector<durable::Job>>(
        std::move(then), [this, peek = std::move(peek)]() -> durable::Outcome<std::vector<durable::Job>> {
          std::vector<durable::Job> jobs;
          for (const auto& [id, job] : disk_->jobs) {
            if (job.method == peek.method && job.state == peek.state && id > peek.after && jobs.size() < peek.count &&
                (!peek.principal || job.principal == *peek.principal))
              jobs.push_back(job);
          }
          return jobs;
        });
  }
  void retry_job(std::uint64_t id, Then<durable::Done> then) override {
    ask<durable::Done>(std::move(then), [this, id]() -> durable::Outcome<durable::Done> {
      disk_->jobs[id].state = durable::Job::State::waiting;
      disk_->jobs[id].deliveries = 0;
      return durable::Done{};
    });
  }
  void drop_job(std::uint64_t id, Then<durable::Done> then) override {
    ask<durable::Done>(std::move(then), [this, id]() -> durable::Outcome<durable::Done> {
      if (disk_->jobs.erase(id) != 0) return durable::Done{};
      return std::unexpected(Failure{.kind = Failure::Kind::unknown, .why = "there is no job of that id"});
    });
  }

 private:
  [[nodiscard]] std::uint64_t last() const { return disk_->events.empty() ? 0 : disk_->events.back().seq; }
  durable::Outcome<durable::Appended> add(const durable::NewEvent& event) {
    const std::string key = event.topic + ' ' + event.msg_id;
    if (!event.msg_id.empty() && disk_->seen.contains(key))
      return durable::Appended{.seq = disk_->seen[key], .duplicate = true};
    const std::uint64_t seq = last() + 1;
    disk_->events.push_back({.seq = seq, .at_ms = disk_->now, .topic = event.topic, .params = event.params});
    disk_->principals[seq] = event.principal;
    if (!event.msg_id.empty()) disk_->seen[key] = seq;
    return durable::Appended{.seq = seq};
  }
  template <class T, class Act>
  void ask(Then<T> then, Act act) {
    waiting_.push_back([this, then = std::move(then), act = std::move(act)]() mutable {
      durable::Outcome<T> outcome;
      if (disk_->broken.empty()) {
        outcome = act();
      } else {
        outcome = std::unexpected(
            Failure{.kind = disk_ == &left_ ? Failure::Kind::moved : Failure::Kind::broken, .why = disk_->broken});
      }
      if (then) then(std::move(outcome));
    });
  }

  Disk* disk_;
  Disk left_;
  bool paused_ = false;
  std::uint64_t first_seq_ = 0;
  std::vector<durable::ConsumerState> consumers_;
  std::vector<std::string> waiting_methods_;
  std::deque<std::move_only_function<void()>> waiting_;
};

}  // namespace wirecall::test
