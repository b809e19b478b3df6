#include "wirecall/detail/awaited.hpp"

#include <utility>

namespace wirecall::detail {

void AwaitedWaiter::join() {
  joined_ = true;
  awaited_->waiting_ = this;
  awaited_->wait_begins();
}

void AwaitedWaiter::forget() noexcept {
  if (!std::exchange(joined_, false)) return;
  awaited_->waiting_ = nullptr;
  awaited_->wait_ends();
}

void Awaited::wake() noexcept {
  AwaitedWaiter& waiter = *waiting_;
  waiter.forget();
  waiter.wake();
}

}  // namespace wirecall::detail
