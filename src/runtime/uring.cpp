// The backend on Linux io_uring: receives and accepts stand in the kernel and complete again and again, and a turn is
// one system call. A send is tried once, inside that call, and is only told about by the kernel when it was not taken
// whole; then the descriptor is polled until there is room. So no buffer of ours is the kernel's beyond a turn, and
// closing or moving to another thread need not wait for one.
// On the loopback it costs what epoll does. Sending without copying and a polling kernel thread cost more there, and
// are not used.
// Owned by one loop; `wake` alone may be called from elsewhere. The ring belongs to the thread of the last turn: when
// another thread takes the loop over, a new ring is made and what stands is handed to that; the former thread, if it is
// in a system call that waits, sees that interrupted.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include "base/room.hpp"
#include "runtime/alarm.hpp"
#include "runtime/backend.hpp"
#include "runtime/ring.hpp"
#include "runtime/system.hpp"

namespace wirecall::runtime {
namespace {

using std::chrono::nanoseconds;

// Operations of a turn beyond those of its slots that there is room for from the beginning.
constexpr std::size_t kOperationsAtOnce = 64;
// The kernel counts the bytes of one send in 32 bits.
constexpr std::size_t kSendBytesMax = std::size_t{1} << 30;

// Of the calling thread. By what the system calls a thread it may call the next one when that has ended, but its rings
// are no other's.
std::uint64_t thread_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  thread_local const std::uint64_t number = ++last;
  return number;
}
constexpr std::uint64_t kNobody = 0;

// Every entry is known by its slot and one of these. A slot is used again only when nothing of it is in flight.
enum class Entry : std::uint8_t { receive, accept, arrivals, send, room, hang_up, wake, alarm, cancel };

constexpr std::uint64_t key(Entry entry, std::uint32_t slot) noexcept {
  return static_cast<std::uint64_t>(entry) << 32 | slot;
}
constexpr Entry entry_of(std::uint64_t key) noexcept { return static_cast<Entry>(key >> 32); }
constexpr std::uint32_t slot_of(std::uint64_t key) noexcept { return static_cast<std::uint32_t>(key); }

class UringBackend final : public Backend {
 public:
  UringBackend() : wake_(::eventfd(0, EFD_CLOEXEC), "eventfd"), alarm_(0), ring_(try_and_make_ring(buffers_)) {
    keep_places(0);
  }
  ~UringBackend() override;

  void expect(std::size_t slots) override {
    if (slots <= slots_.size()) return;
    make_room(slots_, slots - slots_.size());
    keep_places(4 * slots + kOperationsAtOnce);
  }
  std::span<Completion> turn(std::span<Operation> submitted, nanoseconds until) override;
  [[nodiscard]] bool time_may_be_up() const noexcept override { return alarm_.time_may_be_up(); }
  void wake() noexcept override {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
  }
  [[nodiscard]] std::shared_ptr<void> keep_lent() override;
  [[nodiscard]] std::size_t readable(Handle handle) const noexcept override;
  [[nodiscard]] std::size_t unsent(Handle handle) const noexcept override;
  [[nodiscard]] nanoseconds now() const noexcept override { return monotonic_now(); }
  [[nodiscard]] nanoseconds recently() const noexcept override { return monotonic_recently(); }

 private:
  struct Slot {
    int fd = -1;
    std::uint32_t generation = 0;
    std::uint8_t in_flight = 0;  // entries at the kernel, but for sends
    bool receiving = false;      // the user's view
    bool accepting = false;
    bool armed = false;       // the kernel's: the standing entry is there
    bool cancelling = false;  // and is to end
    bool watched = false;     // by an entry for hang-ups
    bool queued = false;      // a send goes with the next enter, or has gone with this
    bool ended = false;       // the peer has ended what it sends
    bool shut_down = false;   // we have
    bool closing = false;
    bool broken = false;     // has been told
    short hung_up = 0;       // POLLERR and POLLHUP, as far as we have heard of them
    Buffer unsent;           // of the send in flight; empty when there is none
    std::size_t sent = 0;    // bytes of `unsent` that the kernel has
    std::int32_t taken = 0;  // what the last try gave: bytes, or a negative errno
  };

  void keep_places(std::size_t operations);
  void take_over();
  void listen_for_arrivals(std::uint32_t at);
  void accept_arrivals(std::uint32_t at);
  void perform(Operation& operation);
  void arm(std::uint32_t at);
  void arm_those_that_ended();
  void cancel(std::uint32_t at);
  void close(std::uint32_t at);
  void finish_closing();
  void queue_send(std::uint32_t at);
  void tell_sends();
  void watch_idle();
  io_uring_sqe& poll(std::uint32_t at, Entry entry, unsigned events);
  void end_send(std::uint32_t at, int error);
  void end_standing(std::uint32_t at, int error);
  void completed(const io_uring_cqe& result);
  void received(std::uint32_t at, const io_uring_cqe& result);
  void accepted(std::uint32_t at, const io_uring_cqe& result);
  void tell_broken(std::uint32_t at);
  bool standing_completed(std::uint32_t at, const io_uring_cqe& result);

  Completion& complete(OperationKind kind, std::uint32_t at, int error) {
    const Handle handle{at, slots_[at].generation};
    completions_.push_back({.kind = kind, .handle = handle, .error = error, .bytes = {}, .buffer = {}});
    return completions_.back();
  }
  void listen(Entry which) {
    io_uring_sqe& entry = ring_->entry();
    const int from = which == Entry::wake ? wake_.get() : alarm_.descriptor();
    ::io_uring_prep_read(&entry, from, &ignored_, sizeof ignored_, 0);
    entry.user_data = key(which, 0);
  }

  Descriptor wake_;
  Alarm alarm_;
  std::uint64_t ignored_ = 0;  // the kernel writes here how often it was woken; nobody reads it
  ReceiveBuffers buffers_;
  std::unique_ptr<Ring> ring_;
  std::unique_ptr<Ring> next_ring_;  // of the thread that takes the next turn; mostly null
  std::uint64_t owner_ = kNobody;    // the thread whose ring it is
  std::vector<Slot> slots_;
  std::vector<Completion> completions_;
  std::vector<Completion> larger_;       // takes the place of completions_ in the next turn, if it has room for more
  bool prompt_ = false;                  // something has completed that is not to wait
  std::vector<unsigned> lent_;           // buffers that the user has until the next turn
  std::vector<std::uint32_t> to_arm_;    // whose standing entry has ended without their asking, the longest first
  std::vector<std::uint32_t> to_watch_;  // who may have nothing in flight
  std::vector<std::uint32_t> sends_;     // of this turn
  std::vector<std::uint32_t> closing_;
};

UringBackend::~UringBackend() {
  ring_.reset();
  for (const Slot& slot : slots_) {
    if (slot.fd >= 0) ::close(slot.fd);
  }
  for (const Completion& completion : completions_) {
    if (completion.descriptor >= 0) ::close(completion.descriptor);
  }
}

// For all that can happen in a turn, so that nothing in it fails for want of memory.
void UringBackend::keep_places(std::size_t operations) {
  const std::size_t slots = slots_.size() + operations;  // some may open one
  const auto keep = [](auto& list, std::size_t places) {
    if (list.capacity() < places) make_room(list, places - list.size());
  };
  // The user may be looking at those of this turn, which stay where they are.
  const std::size_t completions = 2 * (Ring::kCompletions + operations + slots);
  if (completions_.empty()) {
    keep(completions_, completions);
  } else if (completions_.capacity() < completions) {
    keep(larger_, std::max(completions, 2 * completions_.capacity()));
  }
  keep(lent_, ReceiveBuffers::kCount);
  keep(to_arm_, 2 * slots);
  keep(to_watch_, 8 * slots);  // what is left from the last turn included
  keep(sends_, 2 * slots);
  keep(closing_, slots);
}

std::span<Completion> UringBackend::turn(std::span<Operation> submitted, nanoseconds until) {
  completions_.clear();
  if (larger_.capacity() > completions_.capacity()) [[unlikely]]
    completions_ = std::exchange(larger_, {});
  keep_places(submitted.size());
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
  ring_->enter(alarm_.limit(prompt_ || !to_arm_.empty() ? kAtOnce : until));
  if (!sends_.empty()) tell_sends();
  ring_->take_completions([this](const io_uring_cqe& result) { completed(result); });
  if (!closing_.empty()) finish_closing();
  return completions_;
}

// The kernel ends what an exiting thread has asked for, and takes nothing for its ring from another. So this thread
// gets a ring of its own, and all that stood is asked for again.
void UringBackend::take_over() {
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
  listen(Entry::alarm);
  alarm_.went_off();
  prompt_ = true;  // in case the former ring took note of a wake, or of the alarm
  to_arm_.clear();
  to_watch_.clear();
  sends_.clear();
  for (std::uint32_t at = 0; at < slots_.size(); ++at) {
    Slot& slot = slots_[at];
    if (slot.fd < 0) continue;
    slot.in_flight = 0;
    slot.armed = slot.watched = false;
    if (slot.closing) continue;
    if (slot.cancelling) {
      end_standing(at, ECANCELED);
    } else if (slot.receiving || slot.accepting) {
      to_arm_.push_back(at);
    }
    if (slot.accepting) listen_for_arrivals(at);
    if (!slot.unsent.empty()) queue_send(at);
    to_watch_.push_back(at);
  }
}

// Until the kernel has taken down the former ring, which it does when it likes, that one's accept stands first in a row
// of which only the first is told of a connection; and nobody hears it any more. A poll is told in any case.
void UringBackend::listen_for_arrivals(std::uint32_t at) {
  poll(at, Entry::arrivals, POLLIN).len = IORING_POLL_ADD_MULTI;
}

void UringBackend::accept_arrivals(std::uint32_t at) {
  for (;;) {
    const int fd = ::accept4(slots_[at].fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;  // what is wrong, the accept that stands says
    Completion& completion = complete(OperationKind::accept, at, 0);
    completion.last = false;
    completion.descriptor = fd;
  }
}

// The buffers stay with whoever keeps them, and other ones go to a new ring. That is made here, since here the kernel
// may still refuse it; but where there is no descriptor for it, it has to wait for the former's.
std::shared_ptr<void> UringBackend::keep_lent() {
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
  return former.memory();
}

void UringBackend::perform(Operation& operation) {
  const std::uint32_t at = operation.handle.slot;
  if (operation.kind == OperationKind::open) {
    if (at >= slots_.size()) slots_.resize(at + 1);
    slots_[at].fd = operation.descriptor;
    slots_[at].generation = operation.handle.generation;
    return;
  }
  Slot& slot = slots_[at];
  switch (operation.kind) {
    case OperationKind::open:
      break;
    case OperationKind::accept:
      slot.accepting = true;
      arm(at);
      break;
    case OperationKind::receive:
      slot.receiving = true;
      arm(at);
      break;
    case OperationKind::cancel:
      cancel(at);
      break;
    case OperationKind::send:
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
    case OperationKind::close:
      close(at);
      break;
  }
}

// ---- what stands ----

void UringBackend::arm(std::uint32_t at) {
  Slot& slot = slots_[at];
  io_uring_sqe& entry = ring_->entry();
  if (slot.receiving) {
    Ring::receive(entry, slot.fd);
    entry.user_data = key(Entry::receive, at);
  } else {
    ::io_uring_prep_multishot_accept(&entry, slot.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    entry.user_data = key(Entry::accept, at);
  }
  slot.armed = true;
  ++slot.in_flight;
}

// A receive ends when there is no buffer left. No more of them are begun again at once than there are buffers, or most
// would end for the same reason; who has waited longest is first.
void UringBackend::arm_those_that_ended() {
  const std::size_t count = std::min<std::size_t>(to_arm_.size(), ReceiveBuffers::kCount);
  for (std::size_t i = 0; i < count; ++i) {
    const Slot& slot = slots_[to_arm_[i]];
    if ((slot.receiving || slot.accepting) && !slot.armed) arm(to_arm_[i]);
  }
  to_arm_.erase(to_arm_.begin(), to_arm_.begin() + static_cast<std::ptrdiff_t>(count));
}

void UringBackend::cancel(std::uint32_t at) {
  Slot& slot = slots_[at];
  if (!slot.armed) {
    end_standing(at, ECANCELED);
    prompt_ = true;
    return;
  }
  slot.cancelling = true;
  io_uring_sqe& entry = ring_->entry();
  ::io_uring_prep_cancel64(&entry, key(slot.receiving ? Entry::receive : Entry::accept, at), 0);
  entry.flags |= IOSQE_CQE_SKIP_SUCCESS;
  entry.user_data = key(Entry::cancel, at);
}

void UringBackend::end_standing(std::uint32_t at, int error) {
  Slot& slot = slots_[at];
  if (std::exchange(slot.accepting, false)) complete(OperationKind::accept, at, error);
  if (std::exchange(slot.receiving, false)) complete(OperationKind::receive, at, error);
  slot.cancelling = false;
  if (error == 0 || error == ECANCELED) to_watch_.push_back(at);
}

// ---- the end of a handle ----

// Everything is told to have been cancelled at once, but for a send that is queued behind us; the descriptor is closed
// when the kernel has let go of it, so that its number is nobody else's while it is named in an entry.
void UringBackend::close(std::uint32_t at) {
  Slot& slot = slots_[at];
  end_standing(at, ECANCELED);
  if (!slot.unsent.empty() && !slot.queued) end_send(at, ECANCELED);
  slot.closing = true;
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
    slot = Slot{};
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
  ring_->each_completion([this](const io_uring_cqe& result) {
    if (entry_of(result.user_data) == Entry::send) slots_[slot_of(result.user_data)].taken = result.res;
  });
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
      poll(at, Entry::room, POLLOUT);
    }
  }
  sends_.clear();
}

void UringBackend::end_send(std::uint32_t at, int error) {
  Slot& slot = slots_[at];
  complete(OperationKind::send, at, error).buffer = std::exchange(slot.unsent, Buffer{});
  if (!slot.receiving && error == 0) to_watch_.push_back(at);
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
    if (slot.fd < 0 || slot.closing || slot.receiving || slot.accepting) continue;
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

// ---- completions ----

void UringBackend::completed(const io_uring_cqe& result) {
  const std::uint32_t at = slot_of(result.user_data);
  switch (entry_of(result.user_data)) {
    case Entry::receive:
      return received(at, result);
    case Entry::accept:
      return accepted(at, result);
    case Entry::arrivals: {
      const bool ended = (result.flags & IORING_CQE_F_MORE) == 0;
      if (ended) --slots_[at].in_flight;
      if (slots_[at].closing) break;
      if (ended) listen_for_arrivals(at);
      if (slots_[at].accepting) accept_arrivals(at);
      break;
    }
    case Entry::room:
      --slots_[at].in_flight;
      if (!slots_[at].closing) queue_send(at);
      break;
    case Entry::hang_up:
      if ((result.flags & IORING_CQE_F_MORE) == 0) {
        slots_[at].watched = false;
        --slots_[at].in_flight;
      }
      if (result.res > 0) slots_[at].hung_up |= static_cast<short>(result.res & (POLLERR | POLLHUP));
      tell_broken(at);
      break;
    case Entry::alarm:
      alarm_.went_off();
      [[fallthrough]];
    case Entry::wake:
      listen(entry_of(result.user_data));
      break;
    case Entry::send:  // told already
    case Entry::cancel:
      break;
  }
}

// Notes whether the entry still stands. False when the user is to hear no more of it.
bool UringBackend::standing_completed(std::uint32_t at, const io_uring_cqe& result) {
  Slot& slot = slots_[at];
  if ((result.flags & IORING_CQE_F_MORE) == 0) {
    slot.armed = false;
    --slot.in_flight;
  }
  return !slot.closing;
}

void UringBackend::received(std::uint32_t at, const io_uring_cqe& result) {
  const unsigned buffer = result.flags >> IORING_CQE_BUFFER_SHIFT;
  if ((result.flags & IORING_CQE_F_BUFFER) != 0) lent_.push_back(buffer);
  if (!standing_completed(at, result)) return;
  Slot& slot = slots_[at];
  if (result.res > 0) [[likely]] {
    Completion& completion = complete(OperationKind::receive, at, 0);
    completion.last = false;
    completion.bytes = {buffers_.at(buffer), static_cast<std::size_t>(result.res)};
    *(completion.bytes.data() + completion.bytes.size()) = 0;
    if (slot.armed) [[likely]]
      return;
  }
  slot.ended = result.res == 0;
  if (slot.ended) return end_standing(at, 0);
  if (slot.cancelling) return end_standing(at, ECANCELED);
  if (result.res > 0 || result.res == -ENOBUFS || result.res == -EINTR || result.res == -EAGAIN) {
    return to_arm_.push_back(at);
  }
  end_standing(at, -result.res);
}

void UringBackend::accepted(std::uint32_t at, const io_uring_cqe& result) {
  if (!standing_completed(at, result)) {
    if (result.res >= 0) ::close(result.res);
    return;
  }
  if (result.res >= 0) {
    Completion& completion = complete(OperationKind::accept, at, 0);
    completion.last = false;
    completion.descriptor = result.res;
  }
  if (slots_[at].armed) return;
  if (slots_[at].cancelling) return end_standing(at, ECANCELED);
  if (result.res >= 0 || result.res == -EINTR || result.res == -EAGAIN || concerns_one_connection(-result.res)) {
    return to_arm_.push_back(at);
  }
  // No descriptors or no memory: whoever submitted the accept submits it again when it thinks best.
  end_standing(at, -result.res);
}

std::size_t UringBackend::readable(Handle handle) const noexcept {
  if (handle.slot >= slots_.size()) return 0;
  const Slot& slot = slots_[handle.slot];
  int bytes = 0;
  if (slot.fd < 0 || slot.generation != handle.generation || ::ioctl(slot.fd, FIONREAD, &bytes) != 0) return 0;
  return static_cast<std::size_t>(std::max(bytes, 0));
}

std::size_t UringBackend::unsent(Handle handle) const noexcept {
  if (handle.slot >= slots_.size() || slots_[handle.slot].generation != handle.generation) return 0;
  const Slot& slot = slots_[handle.slot];
  return slot.unsent.empty() ? 0 : slot.unsent.size() - slot.sent;
}

}  // namespace

std::unique_ptr<Backend> make_uring_backend() { return std::make_unique<UringBackend>(); }

}  // namespace wirecall::runtime
