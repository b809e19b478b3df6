// See inbox.hpp.
#include "runtime/inbox.hpp"

#include "base/assert.hpp"

namespace wirecall::runtime {
namespace {

using Continuation = detail::Executor::Continuation;

struct Posted final : Continuation {
  explicit Posted(Inbox::Job&& given) noexcept : job(std::move(given)) {}
  void resume() noexcept override { job(); }

  Inbox::Job job;
};

std::shared_ptr<Continuation> take(std::shared_ptr<Continuation>& first) noexcept {
  std::shared_ptr<Continuation> taken = std::move(first);
  first = std::move(taken->next);
  return taken;
}

// One by one: as many as may wait are too many to destroy each other.
void drop(std::shared_ptr<Continuation> first) noexcept {
  while (first != nullptr) static_cast<void>(take(first));
}

}  // namespace

Inbox::~Inbox() {
  drop(std::move(first_));
  drop(std::move(running_));
}

bool Inbox::put(Job&& job, std::size_t jobs_max) {
  const std::scoped_lock lock{mutex_};
  if (backend_ == nullptr || size_ >= jobs_max) return false;
  append(std::make_shared<Posted>(std::move(job)));
  return true;
}

void Inbox::post(std::shared_ptr<Continuation> continuation) noexcept {
  const std::scoped_lock lock{mutex_};
  if (backend_ != nullptr) append(std::move(continuation));
}

void Inbox::append(std::shared_ptr<Continuation> continuation) noexcept {
  WIRECALL_ASSERT(continuation->next == nullptr);  // it is in no other queue
  Continuation* const last = continuation.get();
  (first_ == nullptr ? first_ : last_->next) = std::move(continuation);
  last_ = last;
  ++size_;
  // The first to come wakes the loop, which takes all that have come by the time it looks. Under the lock, so that the
  // backend is still there.
  if (!waiting_.exchange(true, std::memory_order_relaxed)) backend_->wake();
}

void Inbox::run() {
  if (running_ == nullptr) {
    const std::scoped_lock lock{mutex_};
    running_ = std::move(first_);
    size_ = 0;
    waiting_.store(false, std::memory_order_relaxed);
  }
  while (running_ != nullptr) take(running_)->resume();
}

void Inbox::close() noexcept {
  std::shared_ptr<Continuation> left;
  {
    const std::scoped_lock lock{mutex_};
    backend_ = nullptr;
    left = std::move(first_);
  }
  drop(std::move(left));
}

}  // namespace wirecall::runtime
