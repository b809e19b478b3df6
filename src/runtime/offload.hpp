// Offload: runs what blocks on threads of a pool, and what comes of it on a loop. It outlives neither. Thread: the
// loop's.
#pragma once

#include <memory>
#include <utility>

#include "runtime/inbox.hpp"
#include "runtime/thread_pool.hpp"
#include "wirecall/detail/blocking_pool.hpp"

namespace wirecall::runtime {

class Offload final : public detail::BlockingPool {
 public:
  Offload(ThreadPool& threads, std::shared_ptr<Inbox> inbox) noexcept : threads_(&threads), inbox_(std::move(inbox)) {}

  void run(Work work) override {
    threads_->run([work = std::move(work), inbox = inbox_]() mutable { inbox->post_owed(work()); });
  }

 private:
  ThreadPool* threads_;
  std::shared_ptr<Inbox> inbox_;
};

}  // namespace wirecall::runtime
