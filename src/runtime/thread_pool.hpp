// ThreadPool: threads for what blocks, made when they are first needed. What waits for one is begun in the order in
// which it came. Owned by a server, for all its loops, or by a client.
// Thread: any for `run`; `stop` and the destructor once nobody runs anything any more, or within a job.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
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

  /// Jobs do not throw. Throws std::system_error when there is no thread and none can be made. Once the pool is being
  /// stopped the job is destroyed.
  void run(Job job);
  /// Waits for the jobs that have begun and destroys the others. Within a job it does not wait for that one, whose
  /// thread ends with it. A second call has no effect.
  void stop();

 private:
  // The threads' own, since one of them may outlive the pool.
  struct Shared {
    void work();

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Job> waiting;
    std::size_t idle = 0;  // threads that wait for a job
    bool stopping = false;
  };

  const std::size_t threads_max_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::vector<std::thread> threads_;  // guarded by the same mutex
};

}  // namespace wirecall::runtime
