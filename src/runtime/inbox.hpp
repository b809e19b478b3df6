// Inbox: how other threads reach a loop. They leave jobs, which the loop's thread runs in its next turn, in the order
// in which they came; nothing that a call needs goes this way. Not a thread pool: a job that takes long holds up its
// loop.
// Shared by the loop and whoever posts, so that it may be held longer than the loop lives; jobs left then are destroyed
// without being run. A lock is held for as long as it takes to put a job into a list.
// Thread: any for `post` and `post_owed`, the loop's for the rest.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "runtime/backend.hpp"
#include "wirecall/detail/executor.hpp"

namespace wirecall::runtime {

class Inbox final : public detail::Executor {
 public:
  using Job = std::move_only_function<void()>;

  /// Jobs that wait. A loop with so many is not keeping up with its posters, and they have to be told.
  static constexpr std::size_t kJobsMax = 65'536;

  explicit Inbox(Backend& backend) : backend_(&backend) {}
  Inbox(Inbox&&) = delete;
  ~Inbox();

  /// False, and `job` is as it was, when the loop has gone or kJobsMax jobs wait.
  [[nodiscard]] bool post(Job&& job) { return put(std::move(job), kJobsMax); }
  /// For jobs of which something else bounds the number, and which nobody could make up for: one for each connection,
  /// the result of what the loop has asked for. False when the loop has gone.
  bool post_owed(Job&& job) { return put(std::move(job), static_cast<std::size_t>(-1)); }
  /// Resumes a task that has waited for another thread: as post_owed, but it allocates nothing and cannot fail.
  void post(std::shared_ptr<Continuation> continuation) noexcept override;

  /// Whether there is something to run: an ordinary load, for each turn to ask.
  [[nodiscard]] bool waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  /// Runs what waits now; what these post waits for the next turn. Jobs do not throw. May be called from within a job,
  /// by whoever has taken the loop over from it: then it goes on with the rest.
  void run();
  /// Whether `run` has not come back from a job, and there are more.
  [[nodiscard]] bool interrupted() const noexcept { return running_ != nullptr; }
  /// The loop goes: nothing is taken any more.
  void close() noexcept;

 private:
  [[nodiscard]] bool put(Job&& job, std::size_t jobs_max);
  void append(std::shared_ptr<Continuation> continuation) noexcept;

  std::mutex mutex_;
  Backend* backend_;  // null when closed
  // What waits, in the order in which it came: each owns the next.
  std::shared_ptr<Continuation> first_;
  Continuation* last_ = nullptr;  // where there is a first
  std::size_t size_ = 0;
  std::shared_ptr<Continuation> running_;  // the loop's: what is to be run before that
  std::atomic<bool> waiting_{false};
};

}  // namespace wirecall::runtime
