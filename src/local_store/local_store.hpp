// LocalStore: a Store in a folder of this machine. One thread of its own makes the changes that have gathered since the
// last time, commits them together, and says so on the loop when they are safe: so the loop never waits for the disk,
// and many changes share what one sync costs. Between two commits it reads for a moment, for one asker after the other.
//
// Safe means, by LocalStoreOptions::fsync: `always` has synced them (fdatasync of SQLite's log), and they outlive a
// loss of power as far as the disk keeps its word; `everysec` has written them, and they outlive the process; a loss of
// power may take the last second.
//
// The clock of the store is that of the machine at start, but no earlier than what the store has seen before; from then
// on it is monotonic, so that nobody who sets the machine's clock makes events older or jobs due.
//
// `pause` ends the thread and closes the file, which another process may open then. After `resume` the thread tries to
// open it until it can, and then does what has waited.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "durable/store.hpp"
#include "local_store/database.hpp"
#include "local_store/turns.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/log.hpp"

namespace wirecall::local_store {

class LocalStore final : public durable::Store {
 public:
  /// `executor` runs what follows each change on the loop's thread. Opens the folder at once, and throws
  /// std::runtime_error where that cannot be.
  LocalStore(LocalStoreOptions options, std::shared_ptr<detail::Executor> executor, LogSink log,
             Opening opening = Opening::first);
  /// What it has been asked to change is done still, unless it has paused; nobody is told.
  ~LocalStore() override;

  [[nodiscard]] std::uint64_t last_seq() const noexcept override { return first_seq_; }
  [[nodiscard]] const std::vector<durable::ConsumerState>& consumers() const noexcept override { return consumers_; }
  [[nodiscard]] const std::vector<std::string>& waiting_methods() const noexcept override { return waiting_methods_; }
  [[nodiscard]] std::size_t waiting() const noexcept override { return waiting_.load(std::memory_order_relaxed); }

  void pause() override;
  void resume() override;
  void leave() override;

  void append(durable::NewEvent event, durable::Then<durable::Appended> then) override;
  void fetch(durable::Fetch fetch, durable::Then<durable::Fetched> then) override;
  void list_topics(std::string asker, durable::Then<std::vector<durable::TopicCounts>> then) override;
  void open_consumer(durable::ConsumerSettings settings, durable::Then<durable::ConsumerState> then) override;
  void progress(durable::Progress progress, durable::Then<durable::Appended> then) override;
  void forget_consumer(std::string name, durable::Then<durable::Done> then) override;
  void push(durable::NewJob job, durable::Then<durable::Pushed> then) override;
  void take(durable::Take take, durable::Then<durable::Taken> then) override;
  void finish(durable::JobOutcome outcome, durable::Then<durable::Done> then) override;
  void find_job(std::uint64_t id, std::string asker, durable::Then<durable::Job> then) override;
  void list_queues(std::string asker, durable::Then<std::vector<durable::QueueCounts>> then) override;
  void peek(durable::Peek peek, durable::Then<std::vector<durable::Job>> then) override;
  void retry_job(std::uint64_t id, durable::Then<durable::Done> then) override;
  void drop_job(std::uint64_t id, durable::Then<durable::Done> then) override;

 private:
  /// One call of a function of the store's.
  class Request {
   public:
    virtual ~Request() = default;
    /// The store's thread: does it, and keeps what came of it. Throws Failed where the disk fails, and nothing else.
    virtual void run(Database& database, std::int64_t now_ms) = 0;
    /// It is not safe.
    virtual void fail(const durable::Failure& failure) = 0;
    /// What has been read.
    [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;
    /// The loop's thread.
    virtual void tell() = 0;
  };
  template <class T, class Act>
  class RequestOf;
  using Requests = std::vector<std::unique_ptr<Request>>;
  class Answers;

  template <class T, class Act>
  void change(Act act, durable::Then<T> then);
  template <class T, class Act>
  void read(const std::string& asker, Act act, durable::Then<T> then);
  [[nodiscard]] bool refuse_moved(std::unique_ptr<Request>& request);
  void end_thread();
  void serve() noexcept;
  [[nodiscard]] bool open_again();
  void gather(std::unique_lock<std::mutex>& lock);
  void read();
  [[nodiscard]] bool may_read() const noexcept;
  void change(Requests requests);
  void tell(Requests requests, std::size_t bytes = 0);
  void told(std::size_t bytes);
  void keep_house();
  void broken(const durable::Failure& failure);
  [[nodiscard]] std::int64_t now_ms() const noexcept;

  const LocalStoreOptions options_;
  const std::shared_ptr<detail::Executor> executor_;
  const LogSink log_;
  const std::chrono::steady_clock::time_point began_;
  std::optional<Database> database_;  // the thread's, while it runs; none while another process may have the file
  // Likewise: jobs are still running as far as the tables know, at a process that is gone. It may take the store back
  // until this one serves, which is when it is asked for the first time.
  bool has_lost_jobs_;
  const std::int64_t began_ms_;
  const std::uint64_t first_seq_;
  std::vector<durable::ConsumerState> consumers_;
  std::vector<std::string> waiting_methods_;
  bool has_left_ = false;
  const std::shared_ptr<const void> alive_ = std::make_shared<char>();  // as long as anybody is to be told

  std::mutex mutex_;
  std::condition_variable asked_;
  Turns<std::unique_ptr<Request>> reads_;
  Requests changes_;
  std::size_t wanted_ = 1;  // with so many changes the thread goes on
  bool stopping_ = false;
  std::size_t untold_bytes_ = 0;  // that have been read
  std::atomic<std::size_t> waiting_{0};

  bool is_broken_ = false;            // the thread's: it has been said that the disk fails
  std::size_t together_ = 0;          // likewise: changes of the last commit
  std::chrono::nanoseconds took_{0};  // likewise: what it took
  bool dirty_ = false;                // likewise: changes have been made since the last sync
  std::thread thread_;                // last: it uses all of the above
};

}  // namespace wirecall::local_store
