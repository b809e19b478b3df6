// KernelBackend: what the backends on epoll and on io_uring have in common: the table of what is open, the list of what
// has completed, the clock, and how a wait is ended. Not a backend: which system call does what is for the derived one.
// Its checks are of the loop and of who submits to it; nothing that a peer sends fails one.
// Owned by one loop; `wake` alone may be called from elsewhere.
#pragma once

#include <algorithm>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

#include "base/assert.hpp"
#include "runtime/backend.hpp"
#include "runtime/descriptor.hpp"
#include "runtime/fair_scheduler.hpp"
#include "runtime/system.hpp"
#include "runtime/wait_timer.hpp"

namespace wirecall::runtime {

/// What is open under one handle; the backend's own slot has this as its base.
struct KernelSlot {
  int fd = -1;
  std::uint32_t generation = 0;
  Buffer unsent;                 // of the send in flight; empty when there is none
  std::size_t sent = 0;          // bytes of `unsent` that the kernel has
  std::uint32_t last_bytes = 0;  // that a receive brought
  std::uint8_t small = 0;        // large receives for which a small one would have been enough, the last in a row
  bool receiving = false;        // the user's view
  bool accepting = false;
  bool polls = false;      // the descriptor is polled, and nothing else is done with it
  bool ended = false;      // the peer has ended what it sends
  bool shut_down = false;  // we have
};

template <class Slot>
class KernelBackend : public Backend {
 public:
  [[nodiscard]] bool time_may_be_up() const noexcept final { return wait_timer_.time_may_be_up(); }
  void wake() noexcept final {
    const std::uint64_t one = 1;
    // It can only fail because the counter is full, and then the wait has ended already.
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  }
  [[nodiscard]] std::size_t readable(Handle handle) const noexcept override {
    const Slot* const slot = find(handle);
    int bytes = 0;
    if (slot == nullptr || ::ioctl(slot->fd, FIONREAD, &bytes) != 0) return 0;
    return static_cast<std::size_t>(std::max(bytes, 0));
  }
  [[nodiscard]] std::size_t unsent(Handle handle) const noexcept final {
    const Slot* const slot = find(handle);
    return slot == nullptr || slot->unsent.empty() ? 0 : slot->unsent.size() - slot->sent;
  }
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept final { return monotonic_now(); }
  [[nodiscard]] std::chrono::nanoseconds recently() const noexcept final { return monotonic_recently(); }

 protected:
  // The flag of the eventfd and that of the timer.
  KernelBackend(int wake_flag, int timer_flag)
      : wake_(::eventfd(0, EFD_CLOEXEC | wake_flag), "eventfd"), wait_timer_(timer_flag) {}
  ~KernelBackend() override {
    for (const Slot& slot : slots_) {
      if (slot.fd >= 0) ::close(slot.fd);
    }
    for (const Completion& completion : completions_) {
      if (completion.descriptor >= 0) ::close(completion.descriptor);
    }
  }

  // Null for what is not open.
  [[nodiscard]] const Slot* find(Handle handle) const noexcept {
    if (handle.slot >= slots_.size()) return nullptr;
    const Slot& slot = slots_[handle.slot];
    return slot.fd >= 0 && slot.generation == handle.generation ? &slot : nullptr;
  }
  void open(const Operation& operation) {
    const Handle handle = operation.handle;
    if (handle.slot >= slots_.size()) slots_.resize(handle.slot + 1);
    Slot& slot = slots_[handle.slot];
    WIRECALL_ASSERT(slot.fd < 0);
    WIRECALL_ASSERT(operation.descriptor >= 0);
    slot.fd = operation.descriptor;
    slot.generation = handle.generation;
  }
  [[nodiscard]] Slot& slot_for(const Operation& operation) noexcept {
    WIRECALL_DEBUG_ASSERT(find(operation.handle) != nullptr);
    return slots_[operation.handle.slot];
  }
  // What may begin on it.
  static void assert_accepts_or_receives(const Slot& slot) noexcept {
    WIRECALL_DEBUG_ASSERT(!slot.receiving && !slot.accepting && !slot.polls);
  }
  static void assert_polls(const Slot& slot) noexcept {
    WIRECALL_DEBUG_ASSERT(!slot.receiving && !slot.accepting && slot.unsent.empty());
  }
  static void assert_sends(const Slot& slot, const Buffer& buffer) noexcept {
    WIRECALL_DEBUG_ASSERT(slot.unsent.empty() && !slot.polls);
    WIRECALL_DEBUG_ASSERT(!buffer.empty());
  }

  Completion& complete(OperationKind kind, std::uint32_t at, int error) {
    const Handle handle{at, slots_[at].generation};
    completions_.push_back({.kind = kind, .handle = handle, .error = error, .bytes = {}, .buffer = {}});
    return completions_.back();
  }
  // One that does not end its operation.
  Completion& complete_some(OperationKind kind, std::uint32_t at) {
    Completion& completion = complete(kind, at, 0);
    completion.last = false;
    return completion;
  }
  void end_send(std::uint32_t at, int error) {
    complete(OperationKind::send, at, error).buffer = std::exchange(slots_[at].unsent, Buffer{});
  }
  void end_multishot(std::uint32_t at, int error) {
    Slot& slot = slots_[at];
    if (std::exchange(slot.accepting, false)) complete(OperationKind::accept, at, error);
    if (std::exchange(slot.receiving, false)) complete(OperationKind::receive, at, error);
  }

  // Between two turns of which the first has served a part of what there was, its user looks at that.
  void end_part() noexcept {
    if (std::exchange(parted_, false)) [[unlikely]]
      fair_scheduler_.took(now() - told_at_);
  }
  void begin_part() noexcept {
    if (parted_) [[unlikely]]
      told_at_ = now();
  }

  Descriptor wake_;
  WaitTimer wait_timer_;
  std::vector<Slot> slots_;
  std::vector<Completion> completions_;
  bool prompt_ = false;  // something has completed that is not to wait
  FairScheduler fair_scheduler_;
  bool parted_ = false;                 // the last turn has served a part of what there was
  std::chrono::nanoseconds told_at_{};  // then: when it had
};

}  // namespace wirecall::runtime
