// See inbox.hpp.
#include "runtime/inbox.hpp"

namespace wirecall::runtime {

bool Inbox::put(Job&& job, std::size_t jobs_max) {
  const std::scoped_lock lock{mutex_};
  if (backend_ == nullptr || jobs_.size() >= jobs_max) return false;
  jobs_.push_back(std::move(job));
  // The first to come wakes the loop, which takes all that have come by the time it looks. Under the lock, so that the
  // backend is still there.
  if (!waiting_.exchange(true, std::memory_order_relaxed)) backend_->wake();
  return true;
}

void Inbox::run() {
  if (running_at_ == running_.size()) {
    running_.clear();
    running_at_ = 0;
    const std::scoped_lock lock{mutex_};
    jobs_.swap(running_);
    waiting_.store(false, std::memory_order_relaxed);
  }
  while (running_at_ != running_.size()) {
    Job job = std::move(running_[running_at_++]);
    job();
  }
}

void Inbox::close() noexcept {
  std::vector<Job> left;
  {
    const std::scoped_lock lock{mutex_};
    backend_ = nullptr;
    left.swap(jobs_);
  }
}

}  // namespace wirecall::runtime
