#include "runtime/thread_pool.hpp"

#include <system_error>
#include <utility>

namespace wirecall::runtime {

void ThreadPool::run(Job job) {
  {
    const std::scoped_lock lock{shared_->mutex};
    if (shared_->stopping) return;
    if (shared_->idle <= shared_->waiting.size() && threads_.size() < threads_max_) {
      try {
        threads_.emplace_back([shared = shared_] { shared->work(); });
      } catch (const std::system_error&) {
        if (threads_.empty()) throw;  // else it waits for one of those
      }
    }
    shared_->waiting.push_back(std::move(job));
  }
  shared_->changed.notify_one();
}

void ThreadPool::Shared::work() {
  std::unique_lock lock{mutex};
  for (;;) {
    ++idle;
    changed.wait(lock, [this] { return stopping || !waiting.empty(); });
    --idle;
    if (stopping) return;
    Job job = std::move(waiting.front());
    waiting.pop_front();
    lock.unlock();
    job();
    job = nullptr;  // what it holds goes before it is said to be done
    lock.lock();
  }
}

void ThreadPool::stop() {
  {
    const std::scoped_lock lock{shared_->mutex};
    shared_->stopping = true;
  }
  shared_->changed.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
  threads_.clear();
  shared_->waiting.clear();  // of which nobody takes any more
}

}  // namespace wirecall::runtime
