// ThreadPool: threads for what blocks, made when they are first needed. What waits for one is begun in the order in
// which it came. Owned by a server, for all its loops.
// Thread: any for `run`; `stop` and the destructor once nobody runs anything any more.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/assert.hpp"

namespace wirecall::runtime {

class ThreadPool {
 public:
  using Job = std::move_only_function<void()>;

  /// As many threads as `threads_max`, which is at least 1.
  explicit ThreadPool(std::size_t threads_max) : threads_max_(threads_max) { WIRECALL_ASSERT(threads_max != 0); }
  ThreadPool(ThreadPool&&) = delete;
  ~ThreadPool() { stop(); }

  /// Jobs do not throw. Throws std::system_error when there is no thread and none can be made.
  void run(Job job);
  /// Waits for the jobs that have begun and destroys the others.
  void stop();

 private:
  void work();

  const std::size_t threads_max_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::size_t idle_ = 0;  // threads that wait for a job
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace wirecall::runtime
