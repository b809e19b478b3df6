// The backend on Linux epoll, level-triggered. Interest is widened at once and narrowed only when an event comes that
// nobody wants: a connection that pauses, resumes, ends or closes without such an event costs no epoll_ctl. A busy
// connection costs one recv and one send a turn.
// Owned by one loop; `wake` alone may be called from elsewhere. Owns its descriptors, those opened to it, and the
// region that all connections are received into.
#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

#include "base/reserve_extra.hpp"
#include "base/sanitizers.hpp"
#include "runtime/kernel_backend.hpp"

namespace wirecall::runtime {
namespace {

using std::chrono::nanoseconds;

// One region for all that is received in a turn: small enough to stay in the processor's cache.
constexpr std::size_t kRegionBytes = 512 * 1024;
// Of one connection in a turn, unless it sends so much at a time that its messages would come in parts: what is whole
// is read once and copied nowhere.
constexpr std::size_t kReceiveBytesMax = 64 * 1024;
constexpr std::size_t kLargeReceiveBytesMax = 256 * 1024;
// Receives are large until so many in a row have brought less than this: parts of large messages may.
constexpr std::size_t kSmallReceiveBytes = 16 * 1024;
constexpr std::uint8_t kSmallInARow = 16;
// With less room than this left in the region, or than a large receive has, the rest of the connections wait for the
// next turn.
constexpr std::size_t kReceiveBytesMin = 8 * 1024;
constexpr int kEventsMax = 256;
// What completes by one operation, or by one event, at most.
constexpr std::size_t kCompletionsOfOne = 4;
// While heavy connections wait, epoll is asked again for light ones after so many of them have been served, or after
// this share of those that wait: it looks at all of these each time.
constexpr int kHeavyDivisor = 4;
// Connections taken from one listener in a turn.
constexpr int kAcceptsMax = 64;
constexpr std::uint64_t kWakeKey = ~std::uint64_t{0};
constexpr std::uint64_t kTimerKey = kWakeKey - 1;

// The calls of a turn. Around each of them the C library lets the thread be cancelled, once there is a second one,
// which costs a turn with one request 2 %; nobody here cancels threads. ThreadSanitizer has to see them.
int wait_for_events(int epoll, std::span<epoll_event> events, int milliseconds) noexcept {
  const auto count = static_cast<int>(events.size());
  if (kThreadSanitizer) return ::epoll_wait(epoll, events.data(), count, milliseconds);
  return static_cast<int>(::syscall(SYS_epoll_pwait, epoll, events.data(), count, milliseconds, nullptr, 0));
}
ssize_t receive_now(int fd, std::span<char> into) noexcept {
  if (kThreadSanitizer) return ::recv(fd, into.data(), into.size(), MSG_DONTWAIT);
  return ::syscall(SYS_recvfrom, fd, into.data(), into.size(), MSG_DONTWAIT, nullptr, nullptr);
}
ssize_t send_now(int fd, std::string_view bytes) noexcept {
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  if (kThreadSanitizer) return ::send(fd, bytes.data(), bytes.size(), kFlags);
  return ::syscall(SYS_sendto, fd, bytes.data(), bytes.size(), kFlags, nullptr, 0);
}

std::uint32_t events_of(Readiness wanted) noexcept {
  return (wants(wanted, Readiness::readable) ? std::uint32_t{EPOLLIN} : 0U) |
         (wants(wanted, Readiness::writable) ? std::uint32_t{EPOLLOUT} : 0U);
}
Readiness readiness_of(std::uint32_t events) noexcept {
  return ((events & EPOLLIN) != 0 ? Readiness::readable : Readiness::none) |
         ((events & EPOLLOUT) != 0 ? Readiness::writable : Readiness::none);
}

struct EpollSlot : KernelSlot {
  bool registered : 1 = false;      // with epoll; HUP and ERR come even when nothing is armed
  bool listed : 1 = false;          // in events_, and not served yet
  bool listens : 1 = false;         // other processes may have the description as well
  std::uint32_t armed = 0;          // the events that epoll watches
  std::uint32_t receive_bytes = 0;  // the next receive takes so many at most; 0 for receive_bytes_
  std::uint32_t polled = 0;         // the events that a poll waits for

  [[nodiscard]] std::uint32_t wanted() const noexcept {
    return (receiving || accepting ? std::uint32_t{EPOLLIN} : 0U) | (unsent.empty() ? 0U : std::uint32_t{EPOLLOUT}) |
           polled;
  }
};
static_assert(sizeof(EpollSlot) <= 64);  // a line of the cache

class EpollBackend final : public KernelBackend<EpollSlot> {
 public:
  explicit EpollBackend(std::size_t receive_bytes);

  void expect(std::size_t slots) override {
    if (slots > slots_.size()) reserve_extra(slots_, slots - slots_.size());
  }
  std::span<Completion> turn(std::span<Operation> submitted, nanoseconds until) override;
  [[nodiscard]] std::shared_ptr<void> keep_lent() override { return std::exchange(region_, make_region()); }

 private:
  using Slot = EpollSlot;

  static std::shared_ptr<char[]> make_region() {
    return std::make_shared_for_overwrite<char[]>(kRegionBytes + kPaddingBytes);
  }
  void perform(Operation& operation);
  void close(std::uint32_t at);
  void send(std::uint32_t at, Operation& operation);
  void go_on_sending(std::uint32_t at);
  void watch(std::uint32_t at);
  bool set_interest(std::uint32_t at);
  void remove(Slot& slot) noexcept;
  [[gnu::noinline]] void tell_ready(std::uint32_t at, std::uint32_t events);
  void end_idle(std::uint32_t at, std::uint32_t events);
  void wait(nanoseconds until);
  void look_for_light();
  void serve_some();
  bool serve(const epoll_event& event);
  [[nodiscard]] Slot& slot_of(const epoll_event& event) noexcept {
    return slots_[static_cast<std::uint32_t>(event.data.u64)];
  }
  [[nodiscard]] bool heavy(const epoll_event& event) noexcept {
    return event.data.u64 < kTimerKey && fair_scheduler_.heavy(slot_of(event).last_bytes);
  }
  bool receive(std::uint32_t at);
  void accept(std::uint32_t at);

  const std::uint32_t receive_bytes_;
  Descriptor epoll_;
  std::array<epoll_event, kEventsMax> events_;
  int events_at_ = 0;  // events_[events_at_, events_end_) did not fit into the region last turn
  int events_end_ = 0;
  std::shared_ptr<char[]> region_ = make_region();
  std::size_t region_used_ = 0;
  int heavy_served_ = 0;  // since epoll was asked
  std::array<epoll_event, kEventsMax> events_again_;
};

EpollBackend::EpollBackend(std::size_t receive_bytes)
    : KernelBackend(EFD_NONBLOCK, TFD_NONBLOCK),
      receive_bytes_(static_cast<std::uint32_t>(std::min(receive_bytes, kReceiveBytesMax))),
      epoll_(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1") {
  reserve_extra(completions_, 4 * kCompletionsOfOne * kEventsMax);
  for (const auto& [key, descriptor] : {std::pair{kWakeKey, wake_.get()}, {kTimerKey, wait_timer_.descriptor()}}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = key;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
      throw std::system_error{errno, std::generic_category(), "epoll_ctl"};
    }
  }
}

std::span<Completion> EpollBackend::turn(std::span<Operation> submitted, nanoseconds until) {
  completions_.clear();
  reserve_extra(completions_, kCompletionsOfOne * (submitted.size() + 2 * kEventsMax));
  region_used_ = 0;
  prompt_ = false;
  for (Operation& operation : submitted) perform(operation);
  end_part();
  // Those for whom there was no room last turn go first, or the same few could have all of it every turn.
  if (events_at_ == events_end_) {
    wait(prompt_ ? kAtOnce : until);
  } else if (heavy_served_ >= std::max(kHeavyInTurn, (events_end_ - events_at_) / kHeavyDivisor)) {
    look_for_light();
  }
  serve_some();
  begin_part();
  return completions_;
}

void EpollBackend::perform(Operation& operation) {
  if (operation.kind == OperationKind::open) return open(operation);
  const std::uint32_t at = operation.handle.slot;
  Slot& slot = slot_for(operation);
  switch (operation.kind) {
    case OperationKind::open: break;
    case OperationKind::accept:
      assert_accepts_or_receives(slot);
      slot.accepting = slot.listens = true;
      watch(at);
      break;
    case OperationKind::receive:
      assert_accepts_or_receives(slot);
      slot.receiving = true;
      watch(at);
      break;
    case OperationKind::poll:
      assert_polls(slot);
      slot.polls = true;
      slot.polled = events_of(operation.wanted);
      watch(at);
      break;
    case OperationKind::cancel:
      end_multishot(at, ECANCELED);
      prompt_ = true;
      break;
    case OperationKind::send: send(at, operation); break;
    case OperationKind::shut_down:
      slot.shut_down = true;
      ::shutdown(slot.fd, SHUT_WR);
      break;
    case OperationKind::close: close(at); break;
  }
}

void EpollBackend::close(std::uint32_t at) {
  Slot& slot = slots_[at];
  end_multishot(at, ECANCELED);
  if (!slot.unsent.empty()) end_send(at, ECANCELED);
  // Closing takes it out of the epoll set, unless somebody else has the description.
  if ((slot.polls || slot.listens) && slot.registered) remove(slot);
  ::close(slot.fd);
  complete(OperationKind::close, at, 0);
  const std::uint32_t next = slot.generation + 1;
  slot = Slot{};
  slot.generation = next;  // events of this turn that are still to be looked at are not for it
  prompt_ = true;
}

void EpollBackend::send(std::uint32_t at, Operation& operation) {
  Slot& slot = slots_[at];
  assert_sends(slot, operation.buffer);
  slot.unsent = std::move(operation.buffer);
  slot.sent = 0;
  go_on_sending(at);
  if (slot.unsent.empty()) {
    prompt_ = prompt_ || operation.prompt;
  } else {
    watch(at);
  }
}

void EpollBackend::go_on_sending(std::uint32_t at) {
  Slot& slot = slots_[at];
  while (slot.sent < slot.unsent.size()) {
    const ssize_t taken = send_now(slot.fd, slot.unsent.view().substr(slot.sent));
    if (taken < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      prompt_ = true;
      return end_send(at, errno);
    }
    slot.sent += static_cast<std::size_t>(taken);
  }
  end_send(at, 0);
}

// Makes epoll watch at least what is wanted.
void EpollBackend::watch(std::uint32_t at) {
  Slot& slot = slots_[at];
  const std::uint32_t wanted = slot.wanted();
  if ((slot.registered || wanted == 0) && (wanted & ~slot.armed) == 0) return;
  if (set_interest(at)) return;
  // The kernel has no memory or no watches left: what waits on this descriptor cannot be waited for.
  prompt_ = true;
  const int error = errno;
  end_multishot(at, error);
  if (!slot.unsent.empty()) end_send(at, error);
  if (std::exchange(slot.polled, 0) != 0) complete(OperationKind::poll, at, error);
}

// Makes epoll watch just what is wanted; false where it refuses.
bool EpollBackend::set_interest(std::uint32_t at) {
  Slot& slot = slots_[at];
  epoll_event event{};
  event.events = slot.wanted();
  event.data.u64 = std::uint64_t{slot.generation} << 32 | at;
  if (::epoll_ctl(epoll_.get(), slot.registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, slot.fd, &event) != 0) return false;
  slot.registered = true;
  slot.armed = event.events;
  return true;
}

void EpollBackend::remove(Slot& slot) noexcept {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, slot.fd, nullptr);
  slot.registered = false;
  slot.armed = 0;
}

// An event that nobody waits for would come again and again.
void EpollBackend::tell_ready(std::uint32_t at, std::uint32_t events) {
  Slot& slot = slots_[at];
  const bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
  const std::uint32_t ready = broken ? slot.polled : events & slot.polled;
  if (ready != 0) {
    complete_some(OperationKind::poll, at).ready = readiness_of(ready);
  } else if (broken) {
    remove(slot);
  } else {
    static_cast<void>(set_interest(at));
  }
}

// The last of a connection on which nothing is in flight, told once: epoll would say it again and again.
void EpollBackend::end_idle(std::uint32_t at, std::uint32_t events) {
  Slot& slot = slots_[at];
  remove(slot);
  // A hang-up of which we have seen one half, and not done the other, is a reset as well.
  if ((events & EPOLLERR) == 0 && (!slot.ended || slot.shut_down)) return;
  complete(OperationKind::receive, at, error_of_broken(slot.fd));
}

void EpollBackend::wait(nanoseconds until) {
  const nanoseconds limit = wait_timer_.limit(until);
  int milliseconds = -1;
  if (limit >= nanoseconds{0}) {
    // Rounded up, or a timer's last millisecond would be spun away.
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
    milliseconds = static_cast<int>(std::min<std::int64_t>(rounded, 1'000'000'000));
  }
  events_at_ = 0;
  events_end_ = std::max(0, wait_for_events(epoll_.get(), events_, milliseconds));
  heavy_served_ = 0;
  if (events_end_ <= kHeavyInTurn) return;
  int lights = 0;
  for (int i = 0; i < events_end_; ++i) {
    epoll_event& event = events_[static_cast<std::size_t>(i)];
    if (event.data.u64 < kTimerKey) slot_of(event).listed = true;
    if (heavy(event)) continue;
    std::swap(event, events_[static_cast<std::size_t>(lights++)]);
  }
}

// Serves light connections that have come while heavy ones are being served; those wait on.
void EpollBackend::look_for_light() {
  heavy_served_ = 0;
  const int count = wait_for_events(epoll_.get(), events_again_, 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events_again_[static_cast<std::size_t>(i)];
    if (event.data.u64 >= kTimerKey || heavy(event) || slot_of(event).listed) continue;
    if (!serve(event)) return;
  }
}

// The light ones, which are in front, and a few of the heavy ones.
void EpollBackend::serve_some() {
  for (int heavies = fair_scheduler_.begin_turn(); events_at_ != events_end_; ++events_at_) {
    const epoll_event& event = events_[static_cast<std::size_t>(events_at_)];
    const int weight = heavy(event) ? 1 : 0;
    if (heavies < weight || !serve(event)) return;
    heavies -= weight;
    heavy_served_ += weight;
  }
}

// False when there is no room left to receive into: the event is to be looked at again next turn.
bool EpollBackend::serve(const epoll_event& event) {
  if (event.data.u64 >= kTimerKey) {
    const bool woken = event.data.u64 == kWakeKey;
    if (!woken) wait_timer_.expired();
    std::uint64_t count;
    [[maybe_unused]] const ssize_t got = ::read(woken ? wake_.get() : wait_timer_.descriptor(), &count, sizeof count);
    return true;
  }
  const auto at = static_cast<std::uint32_t>(event.data.u64);
  Slot& slot = slots_[at];
  slot.listed = false;
  if (slot.fd < 0 || slot.generation != static_cast<std::uint32_t>(event.data.u64 >> 32)) return true;
  const std::uint32_t wanted = slot.wanted();
  const bool sending = (wanted & EPOLLOUT) != 0 && (event.events & ~std::uint32_t{EPOLLIN}) != 0;
  if (slot.receiving) [[likely]] {
    if ((event.events & ~std::uint32_t{EPOLLOUT}) != 0 && !receive(at)) return false;
  } else if (slot.accepting) {
    accept(at);
  } else if (slot.polls) {
    tell_ready(at, event.events);
    return true;
  }
  if (sending) go_on_sending(at);
  const bool sent = sending && slot.unsent.empty();
  if (wanted == 0 && (event.events & (EPOLLERR | EPOLLHUP)) != 0) [[unlikely]] {
    end_idle(at, event.events);
  } else if (sent || (event.events & EPOLLIN & ~wanted) != 0) [[unlikely]] {
    static_cast<void>(set_interest(at));  // input that nobody asks for at present would be told again and again
  }
  return true;
}

bool EpollBackend::receive(std::uint32_t at) {
  Slot& slot = slots_[at];
  char* const to = region_.get() + region_used_;
  std::size_t most = std::max(slot.receive_bytes, receive_bytes_);
  const std::size_t part = fair_scheduler_.part_of(at);
  const bool limited = most > part;
  most = std::min(most, part);
  if (kRegionBytes - region_used_ < (most > kReceiveBytesMax ? most : kReceiveBytesMin)) return false;
  const std::size_t space = std::min(most, kRegionBytes - region_used_);
  const ssize_t got = receive_now(slot.fd, {to, space});
  if (got > 0) [[likely]] {
    const auto bytes = static_cast<std::size_t>(got);
    if (limited) {
      // How much there is, it does not tell.
      parted_ = parted_ || bytes == most;
    } else if (bytes == most) {
      slot.receive_bytes = static_cast<std::uint32_t>(std::min(2 * most, kLargeReceiveBytesMax));
      slot.small = 0;
    } else if (most <= kReceiveBytesMax) {
      if (bytes < space) slot.receive_bytes = 0;
    } else if (bytes >= kSmallReceiveBytes) {
      slot.small = 0;
    } else if (++slot.small == kSmallInARow) {
      slot.small = 0;
      slot.receive_bytes = 0;
    }
    const auto brought = static_cast<std::uint32_t>(bytes);
    fair_scheduler_.brought(at, std::exchange(slot.last_bytes, brought), brought);
    to[bytes] = 0;
    region_used_ = std::min(kRegionBytes, (region_used_ + bytes + kPaddingBytes + 63) / 64 * 64);
    complete_some(OperationKind::receive, at).bytes = {to, bytes};
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
  slot.ended = got == 0;
  end_multishot(at, got == 0 ? 0 : errno);
  return true;
}

void EpollBackend::accept(std::uint32_t at) {
  const int listener = slots_[at].fd;
  for (int accepted = 0; accepted < kAcceptsMax;) {
    // The rest of the room is for the events that follow; the listener stays readable.
    if (completions_.capacity() - completions_.size() <= kCompletionsOfOne * kEventsMax) return;
    const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      ++accepted;
      complete_some(OperationKind::accept, at).descriptor = fd;
      continue;
    }
    if (errno == EAGAIN) return;
    // No descriptors or no memory. The listener stays readable, so going on now would spin: whoever submitted the
    // accept submits it again when it thinks best.
    if (errno != EINTR && !concerns_one_connection(errno)) return end_multishot(at, errno);
    ++accepted;
  }
}

}  // namespace

std::unique_ptr<Backend> make_epoll_backend(std::size_t receive_bytes) {
  return std::make_unique<EpollBackend>(receive_bytes);
}

}  // namespace wirecall::runtime
