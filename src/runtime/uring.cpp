// See uring.hpp. A turn, what is done with the descriptors in it, sending, and what is polled.
#include "runtime/uring.hpp"

#include <poll.h>

namespace wirecall::runtime {

// Small buffers that what is deferred may hold.
constexpr std::size_t kSmallDeferred = ReceiveBuffers::kCount * 3 / 4;

// The kernel counts the bytes of one send in 32 bits.
constexpr std::size_t kSendBytesMax = std::size_t{1} << 30;

// Of the calling thread. By what the system calls a thread it may call the next one when that has ended, but its rings
// are no other's.
static std::uint64_t thread_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  thread_local const std::uint64_t number = ++last;
  return number;
}

// For all that can happen in a turn, so that nothing in it fails for want of memory.
void UringBackend::reserve_slots(std::size_t operations) {
  const std::size_t slots = slots_.size() + operations;  // some may open one
  const auto keep = [](auto& list, std::size_t slots) {
    if (list.capacity() < slots) reserve_extra(list, slots - list.size());
  };
  // The user may be looking at those of this turn, which stay where they are.
  const std::size_t completions = 2 * (Ring::kCompletions + operations + slots);
  if (completions_.empty()) {
    keep(completions_, completions);
  } else if (completions_.capacity() < completions) {
    keep(larger_, std::max(completions, 2 * completions_.capacity()));
  }
  keep(lent_, ReceiveBuffers::kNumbers);
  keep(to_arm_, 2 * slots);
  keep(to_watch_, 8 * slots);  // what is left from the last turn included
  keep(sends_, 2 * slots);
  keep(closing_, slots);
  keep(deferred_, ReceiveBuffers::kNumbers + 2 * slots);
  keep(arrived_, 2 * Ring::kCompletions + 8 * slots);
}

std::span<Completion> UringBackend::turn(std::span<Operation> submitted, std::chrono::nanoseconds until) {
  if (std::exchange(returned_, false)) completions_.clear();
  if (completions_.empty() && larger_.capacity() > completions_.capacity()) [[unlikely]]
    completions_ = std::exchange(larger_, {});
  reserve_slots(submitted.size());
  former_memory_.reset();
  // A send that goes on, now that there is room, has kept its user waiting already.
  prompt_ = !sends_.empty();
  if (owner_ != thread_number()) [[unlikely]]
    take_over();
  for (const unsigned buffer : lent_) ring_->give_back(buffer);
  lent_.clear();
  if (!to_arm_.empty()) [[unlikely]]
    arm_those_that_ended();
  for (Operation& operation : submitted) perform(operation);
  if (!to_watch_.empty()) [[unlikely]]
    watch_idle();
  end_part();
  ring_->enter(wait_timer_.limit(prompt_ || !deferred_.empty() || !to_arm_.empty() ? kAtOnce : until));
  arrived_.clear();
  ring_->take(arrived_);
  if (!sends_.empty()) tell_sends();
  take_some();
  begin_part();
  if (!closing_.empty()) finish_closing();
  returned_ = true;
  return completions_;
}

// All that has completed, but for what came from heavy connections: of that, a little. The rest is deferred, and goes
// first in the next turn.
void UringBackend::take_some() {
  ++takes_;
  int heavies = heavies_of_turn();
  const auto serve = [&](Arrived& told) {
    if (entry_of(told.user_data) == Entry::receive) {
      Slot& slot = slots_[slot_of(told.user_data)];
      const std::size_t part = fair_scheduler_.part_of(slot_of(told.user_data));
      const bool large = told.result > 0 && static_cast<std::size_t>(told.result - told.handed_on) > part;
      const int weight = told.result > 0 && !slot.closing && (large || fair_scheduler_.heavy(slot.last_bytes)) ? 1 : 0;
      if (heavies < weight || slot.deferred_in == takes_) {
        slot.deferred_in = takes_;  // whatever else has come for it, has come after that
        return false;
      }
      heavies -= weight;
      if (large && weight != 0) {
        slot.deferred_in = takes_;
        hand_on_part(told, part);
        return false;
      }
    }
    completed(told);
    return true;
  };
  std::size_t kept = 0;
  for (std::size_t i = 0; i < deferred_.size(); ++i) {
    if (!serve(deferred_[i])) deferred_[kept++] = deferred_[i];
  }
  deferred_.resize(kept);
  for (const RingCompletion& completion : arrived_) {
    Arrived told{completion};
    if (!serve(told)) deferred_.push_back(told);
  }
}

// What is deferred keeps its buffer. A part of the small ones is for those who are not heavy: what would take that is
// served.
int UringBackend::heavies_of_turn() {
  const int heavies = fair_scheduler_.begin_turn();
  const auto holds_small = [](const RingCompletion& told) {
    return entry_of(told.user_data) == Entry::receive && (told.flags & IORING_CQE_F_BUFFER) != 0 &&
           !ReceiveBuffers::is_large(told.flags >> IORING_CQE_BUFFER_SHIFT);
  };
  if (deferred_.size() + arrived_.size() <= kSmallDeferred) return heavies;
  const auto held = std::ranges::count_if(deferred_, holds_small) + std::ranges::count_if(arrived_, holds_small);
  return std::max(heavies, static_cast<int>(held) - static_cast<int>(kSmallDeferred));
}

// What has been deferred was received into another thread's ring, and would be lost with its buffers.
void UringBackend::take_all_of_former() {
  if (ring_->buffers().memory() == buffers_.memory()) buffers_ = ReceiveBuffers{};
  former_memory_ = ring_->buffers().memory();
  lent_.clear();
  for (Slot& slot : slots_) slot.armed = false;  // nothing more is asked of it
  for (const Arrived& told : deferred_) received(slot_of(told.user_data), told);
  deferred_.clear();
}

// The kernel ends what an exiting thread has asked for, and takes nothing for its ring from another. So this thread
// gets a ring of its own, and all that stood is asked for again.
void UringBackend::take_over() {
  if (!deferred_.empty()) take_all_of_former();
  if (next_ring_ != nullptr) {
    ring_ = std::move(next_ring_);
  } else if (ring_ == nullptr || ring_->enabled()) {
    owner_ = kNobody;
    ring_.reset();  // first, so that no further descriptor is needed
    ring_ = std::make_unique<Ring>(buffers_);
  }
  ring_->enable();
  owner_ = thread_number();
  lent_.clear();  // the new ring has all buffers
  listen(Entry::wake);
  listen(Entry::wait_timer);
  wait_timer_.expired();
  prompt_ = true;  // in case the former ring took note of a wake, or of the wait timer
  to_arm_.clear();
  to_watch_.clear();
  sends_.clear();
  for (std::uint32_t at = 0; at < slots_.size(); ++at) {
    Slot& slot = slots_[at];
    slot.waiting = false;
    if (slot.fd < 0) continue;
    slot.in_flight = 0;
    slot.armed = slot.watched = false;
    slot.polling = 0;
    if (slot.closing) continue;
    if (slot.cancelling) {
      end_multishot(at, ECANCELED);
    } else if (slot.receiving || slot.accepting || slot.polled != 0) {
      arm_later(at);
    }
    if (slot.accepting) listen_for_arrivals(at);
    if (!slot.unsent.empty()) queue_send(at);
    to_watch_.push_back(at);
  }
}

// The buffers stay with whoever keeps them, and other ones go to a new ring. That is made here, since here the kernel
// may still refuse it; but where there is no descriptor for it, it has to wait for the former's.
std::shared_ptr<void> UringBackend::keep_lent() {
  std::shared_ptr<void> both;
  if (former_memory_ != nullptr)
    both = std::make_shared<std::pair<ReceiveBuffers, std::shared_ptr<char[]>>>(buffers_, former_memory_);
  const ReceiveBuffers former = std::exchange(buffers_, ReceiveBuffers{});
  next_ring_.reset();
  try {
    next_ring_ = std::make_unique<Ring>(buffers_);
  } catch (const std::system_error& refusal) {
    if (refusal.code() != std::errc::too_many_files_open &&
        refusal.code() != std::errc::too_many_files_open_in_system) {
      buffers_ = former;
      throw;
    }
  } catch (...) {
    buffers_ = former;
    throw;
  }
  owner_ = kNobody;
  if (former_memory_ == nullptr) [[likely]]
    return former.memory();
  // What had been deferred when this thread took over is lent as well.
  return both;
}

void UringBackend::perform(Operation& operation) {
  if (operation.kind == OperationKind::open) return open(operation);
  const std::uint32_t at = operation.handle.slot;
  Slot& slot = slot_for(operation);
  WIRECALL_ASSERT(!slot.closing);
  switch (operation.kind) {
    case OperationKind::open: break;
    case OperationKind::accept:
      assert_accepts_or_receives(slot);
      slot.accepting = true;
      arm(at);
      break;
    case OperationKind::receive:
      assert_accepts_or_receives(slot);
      slot.receiving = true;
      arm(at);
      break;
    case OperationKind::poll:
      assert_polls(slot);
      poll_for(at, operation.wanted);
      break;
    case OperationKind::cancel: cancel(at); break;
    case OperationKind::send:
      assert_sends(slot, operation.buffer);
      slot.unsent = std::move(operation.buffer);
      slot.sent = 0;
      queue_send(at);
      prompt_ = prompt_ || operation.prompt;
      break;
    case OperationKind::shut_down:
      if (slot.queued) ring_->submit();
      slot.shut_down = true;
      ::shutdown(slot.fd, SHUT_WR);
      break;
    case OperationKind::close: close(at); break;
  }
}

// ---- the end of a handle ----

// Everything is told to have been cancelled at once, but for a send that is queued behind us; the descriptor is closed
// when the kernel has let go of it, so that its number is nobody else's while it is named in an entry.
void UringBackend::close(std::uint32_t at) {
  Slot& slot = slots_[at];
  end_multishot(at, ECANCELED);
  if (!slot.unsent.empty() && !slot.queued) end_send(at, ECANCELED);
  slot.closing = true;
  slot.polled = 0;
  if (slot.in_flight != 0) {
    io_uring_sqe& entry = ring_->entry();
    ::io_uring_prep_cancel_fd(&entry, slot.fd, IORING_ASYNC_CANCEL_ALL);
    entry.flags |= IOSQE_CQE_SKIP_SUCCESS;
    entry.user_data = key(Entry::cancel, at);
  }
  closing_.push_back(at);
  prompt_ = true;
}

void UringBackend::finish_closing() {
  std::erase_if(closing_, [this](std::uint32_t at) {
    Slot& slot = slots_[at];
    if (slot.in_flight != 0) return false;
    ::close(slot.fd);
    complete(OperationKind::close, at, 0);
    const bool waiting = slot.waiting;
    slot = Slot{};
    slot.waiting = waiting;  // it is listed still
    return true;
  });
}

// ---- sending ----

void UringBackend::queue_send(std::uint32_t at) {
  Slot& slot = slots_[at];
  const std::size_t bytes = std::min(slot.unsent.size() - slot.sent, kSendBytesMax);
  io_uring_sqe& entry = ring_->entry();
  ::io_uring_prep_send(&entry, slot.fd, slot.unsent.data() + slot.sent, bytes,
                       MSG_NOSIGNAL | MSG_DONTWAIT | MSG_WAITALL);
  entry.flags |= IOSQE_CQE_SKIP_SUCCESS;
  entry.user_data = key(Entry::send, at);
  slot.taken = static_cast<std::int32_t>(bytes);  // unless we are told otherwise
  slot.queued = true;
  sends_.push_back(at);
}

// The kernel has tried all sends that were queued, and has told of those that were not taken whole. They are told
// before anything that arrived meanwhile.
void UringBackend::tell_sends() {
  for (const RingCompletion& told : arrived_) {
    if (entry_of(told.user_data) == Entry::send) slots_[slot_of(told.user_data)].taken = told.result;
  }
  for (const std::uint32_t at : sends_) {
    Slot& slot = slots_[at];
    slot.queued = false;
    const bool failed = slot.taken < 0 && slot.taken != -EAGAIN && slot.taken != -EINTR;
    if (slot.taken > 0) slot.sent += static_cast<std::size_t>(slot.taken);
    if (failed) {
      end_send(at, -slot.taken);
    } else if (slot.sent == slot.unsent.size()) [[likely]] {
      end_send(at, 0);
    } else if (slot.closing) {
      end_send(at, ECANCELED);
    } else {
      poll(at, Entry::writable, POLLOUT);
    }
  }
  sends_.clear();
}

void UringBackend::end_send(std::uint32_t at, int error) {
  KernelBackend::end_send(at, error);
  if (!slots_[at].receiving && error == 0) to_watch_.push_back(at);
}

// ---- polls ----

io_uring_sqe& UringBackend::poll(std::uint32_t at, Entry kind, unsigned events) {
  io_uring_sqe& entry = ring_->entry();
  ::io_uring_prep_poll_add(&entry, slots_[at].fd, events);
  entry.user_data = key(kind, at);
  ++slots_[at].in_flight;
  return entry;
}

// A connection on which nothing is in flight breaks unheard unless somebody listens. The kernel says it once, and goes
// on listening: asked for once only, it would answer at once, and for ever, that the peer has ended its half.
void UringBackend::watch_idle() {
  for (const std::uint32_t at : to_watch_) {
    Slot& slot = slots_[at];
    if (slot.fd < 0 || slot.closing || slot.receiving || slot.accepting || slot.polls) continue;
    if (slot.watched) {
      tell_broken(at);
    } else {
      slot.watched = true;
      poll(at, Entry::hang_up, 0).len = IORING_POLL_ADD_MULTI;
    }
  }
  to_watch_.clear();
}

void UringBackend::tell_broken(std::uint32_t at) {
  Slot& slot = slots_[at];
  // Whatever is under way will find out by itself.
  if (slot.hung_up == 0 || slot.broken || slot.closing || slot.receiving || !slot.unsent.empty()) return;
  // A hang-up of which we have seen one half, and not done the other, is a reset as well.
  if ((slot.hung_up & POLLERR) == 0 && (!slot.ended || slot.shut_down)) return;
  slot.broken = true;
  complete(OperationKind::receive, at, error_of_broken(slot.fd));
}

// A poll of the kernel's is over with what it tells, and looks before it waits: asked for again in the next turn, when
// its user has had its say, it is level-triggered. One of several shots is not.
void UringBackend::arm_poll(std::uint32_t at) {
  Slot& slot = slots_[at];
  slot.polling = slot.polled;
  poll(at, Entry::ready, static_cast<unsigned short>(slot.polled));
}

// What is wanted less is found when it comes.
void UringBackend::poll_for(std::uint32_t at, Readiness wanted) {
  Slot& slot = slots_[at];
  slot.polls = true;
  slot.polled = static_cast<short>((wants(wanted, Readiness::readable) ? POLLIN : 0) |
                                   (wants(wanted, Readiness::writable) ? POLLOUT : 0));
  if ((slot.polled & ~slot.polling) == 0) return;
  if (slot.polling == 0) return arm_poll(at);
  io_uring_sqe& entry = ring_->entry();
  ::io_uring_prep_cancel64(&entry, key(Entry::ready, at), 0);
  entry.flags |= IOSQE_CQE_SKIP_SUCCESS;
  entry.user_data = key(Entry::cancel, at);
}

void UringBackend::polled(std::uint32_t at, std::int32_t result) {
  Slot& slot = slots_[at];
  --slot.in_flight;
  slot.polling = 0;
  if (slot.closing || slot.polled == 0) return;
  if (result < 0 && result != -ECANCELED && result != -EINTR && result != -EAGAIN) {
    slot.polled = 0;
    complete(OperationKind::poll, at, -result);
    return;
  }
  const int events = std::max(result, 0);
  const int ready = (events & (POLLERR | POLLHUP)) != 0 ? slot.polled : events & slot.polled;
  if (ready != 0) {
    complete_some(OperationKind::poll, at).ready = ((ready & POLLIN) != 0 ? Readiness::readable : Readiness::none) |
                                                   ((ready & POLLOUT) != 0 ? Readiness::writable : Readiness::none);
  }
  arm_later(at);
}

// ---- completions ----

void UringBackend::completed(const Arrived& told) {
  const std::uint32_t at = slot_of(told.user_data);
  switch (entry_of(told.user_data)) {
    case Entry::receive: return received(at, told);
    case Entry::accept: return accepted(at, told);
    case Entry::arrivals: {
      const bool ended = (told.flags & IORING_CQE_F_MORE) == 0;
      if (ended) --slots_[at].in_flight;
      if (slots_[at].closing) break;
      if (ended) listen_for_arrivals(at);
      if (slots_[at].accepting) accept_arrivals(at);
      break;
    }
    case Entry::writable:
      --slots_[at].in_flight;
      if (!slots_[at].closing) queue_send(at);
      break;
    case Entry::hang_up:
      if ((told.flags & IORING_CQE_F_MORE) == 0) {
        slots_[at].watched = false;
        --slots_[at].in_flight;
      }
      if (told.result > 0) slots_[at].hung_up |= static_cast<short>(told.result & (POLLERR | POLLHUP));
      tell_broken(at);
      break;
    case Entry::ready: return polled(at, told.result);
    case Entry::wait_timer: wait_timer_.expired(); [[fallthrough]];
    case Entry::wake: listen(entry_of(told.user_data)); break;
    case Entry::send:  // told already
    case Entry::cancel: break;
  }
}

std::size_t UringBackend::readable(Handle handle) const noexcept {
  if (find(handle) == nullptr) return 0;
  std::size_t bytes = KernelBackend::readable(handle);
  for (const Arrived& told : deferred_) {
    if (told.user_data == key(Entry::receive, handle.slot))
      bytes += static_cast<std::size_t>(std::max(told.result - told.handed_on, 0));
  }
  return bytes;
}

std::unique_ptr<Backend> make_uring_backend() { return std::make_unique<UringBackend>(); }

}  // namespace wirecall::runtime
