#include "runtime/thread_pool.hpp"

#include <system_error>
#include <utility>

namespace wirecall::runtime {

void ThreadPool::run(Job job) {
  {
    const std::scoped_lock lock{mutex_};
    WIRECALL_ASSERT(!stopping_);
    if (idle_ <= waiting_.size() && threads_.size() < threads_max_) {
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        if (threads_.empty()) throw;  // else it waits for one of those
      }
    }
    waiting_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void ThreadPool::work() {
  std::unique_lock lock{mutex_};
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    --idle_;
    if (stopping_) return;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job();
    job = nullptr;  // what it holds goes before it is said to be done
    lock.lock();
  }
}

void ThreadPool::stop() {
  {
    const std::scoped_lock lock{mutex_};
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  WIRECALL_ASSERT(idle_ == 0);
  threads_.clear();
  waiting_.clear();
}

}  // namespace wirecall::runtime
