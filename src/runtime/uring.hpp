// The backend on Linux io_uring: receives and accepts stand in the kernel and complete again and again, and a turn is
// one system call. A connection whose messages would come in parts is received from once a turn instead, by as much as
// a large buffer takes: what is whole is read once and copied nowhere. A send is tried once, inside that call, and is
// only told about by the kernel when it was not taken whole; then the descriptor is polled until there is room. So no
// buffer of ours is the kernel's beyond a turn, and closing or moving to another thread need not wait for one. On the
// loopback it costs what epoll does. Sending without copying and a polling kernel thread cost more there, and are not
// used. Owned by one loop; `wake` alone may be called from elsewhere. The ring belongs to the thread of the last turn:
// when another thread takes the loop over, a new ring is made and what stands is handed to that; the former thread, if
// it is in a system call that waits, sees that interrupted.
#pragma once

#include "base/reserve_extra.hpp"
#include "runtime/kernel_backend.hpp"
#include "runtime/ring.hpp"

namespace wirecall::runtime {

struct UringSlot : KernelSlot {
  std::uint8_t in_flight = 0;  // entries at the kernel, but for sends
  bool armed = false;          // the kernel's: the multishot entry is there
  bool cancelling = false;     // and is to end
  bool watched = false;        // by an entry for hang-ups
  bool queued = false;         // a send goes with the next enter, or has gone with this
  bool closing = false;
  bool broken = false;            // has been told
  bool waiting = false;           // for its multishot entry to be made again; listed in to_arm_
  bool large = false;             // the next receive has a large buffer
  short polled = 0;               // the events that the user waits for
  short polling = 0;              // the kernel does; 0 where it has no such entry
  short hung_up = 0;              // POLLERR and POLLHUP, as far as we have heard of them
  std::uint32_t deferred_in = 0;  // takes_ when something that came for it was last deferred
  std::int32_t taken = 0;         // what the last try gave: bytes, or a negative errno
};

class UringBackend final : public KernelBackend<UringSlot> {
 public:
  UringBackend() : KernelBackend(0, 0), ring_(try_and_make_ring(buffers_)) { reserve_slots(0); }

  void expect(std::size_t slots) override {
    if (slots <= slots_.size()) return;
    reserve_extra(slots_, slots - slots_.size());
    reserve_slots(4 * slots + kOperationsAtOnce);
  }
  std::span<Completion> turn(std::span<Operation> submitted, std::chrono::nanoseconds until) override;
  [[nodiscard]] std::shared_ptr<void> keep_lent() override;
  [[nodiscard]] std::size_t readable(Handle handle) const noexcept override;

 private:
  using Slot = UringSlot;

  // Every entry is known by its slot and one of these. A slot is used again only when nothing of it is in flight.
  enum class Entry : std::uint8_t {
    receive,
    accept,
    arrivals,
    send,
    writable,
    hang_up,
    ready,
    wake,
    wait_timer,
    cancel
  };

  static constexpr std::uint64_t key(Entry entry, std::uint32_t slot) noexcept {
    return static_cast<std::uint64_t>(entry) << 32 | slot;
  }
  static constexpr Entry entry_of(std::uint64_t key) noexcept { return static_cast<Entry>(key >> 32); }
  static constexpr std::uint32_t slot_of(std::uint64_t key) noexcept { return static_cast<std::uint32_t>(key); }

  static constexpr std::uint64_t kNobody = 0;
  // Operations of a turn beyond those of its slots that there is room for from the beginning.
  static constexpr std::size_t kOperationsAtOnce = 64;

  /// What has arrived, perhaps handed on in parts: how many bytes have been, and what was behind them before a zero was
  /// put there.
  struct Arrived : RingCompletion {
    Arrived() = default;
    explicit Arrived(const RingCompletion& told) noexcept : RingCompletion(told) {}

    std::int32_t handed_on = 0;
    char behind = 0;
  };

  void reserve_slots(std::size_t operations);
  void take_over();
  void take_all_of_former();
  void take_some();
  [[nodiscard]] int heavies_of_turn();
  void perform(Operation& operation);
  void close(std::uint32_t at);
  void finish_closing();
  void queue_send(std::uint32_t at);
  void tell_sends();
  void end_send(std::uint32_t at, int error);
  io_uring_sqe& poll(std::uint32_t at, Entry entry, unsigned events);
  void watch_idle();
  void tell_broken(std::uint32_t at);
  void poll_for(std::uint32_t at, Readiness wanted);
  void arm_poll(std::uint32_t at);
  void polled(std::uint32_t at, std::int32_t result);
  void completed(const Arrived& told);

  // Multishot operations (uring_multishot.cpp).
  void arm(std::uint32_t at);
  void arm_later(std::uint32_t at);
  void arm_those_that_ended();
  [[nodiscard]] unsigned free_buffers(bool large) const noexcept;
  void cancel(std::uint32_t at);
  void end_entry(std::uint32_t at);
  void end_multishot(std::uint32_t at, int error);
  bool multishot_completed(std::uint32_t at, const RingCompletion& told);
  void received(std::uint32_t at, const Arrived& told);
  void hand_on_part(Arrived& told, std::size_t bytes);
  std::span<char> rest_of(const Arrived& told) noexcept;
  void size_receives(std::uint32_t at, std::size_t bytes);
  void accepted(std::uint32_t at, const RingCompletion& told);
  void listen_for_arrivals(std::uint32_t at);
  void accept_arrivals(std::uint32_t at);

  void listen(Entry which) {
    io_uring_sqe& entry = ring_->entry();
    const int from = which == Entry::wake ? wake_.get() : wait_timer_.descriptor();
    ::io_uring_prep_read(&entry, from, &ignored_, sizeof ignored_, 0);
    entry.user_data = key(which, 0);
  }

  std::uint64_t ignored_ = 0;  // the kernel writes here how often it was woken; nobody reads it
  ReceiveBuffers buffers_;
  std::unique_ptr<Ring> ring_;
  std::unique_ptr<Ring> next_ring_;      // of the thread that takes the next turn; mostly null
  std::uint64_t owner_ = kNobody;        // the thread whose ring it is
  std::vector<Completion> larger_;       // takes the place of completions_ in the next turn, if it has room for more
  std::vector<unsigned> lent_;           // buffers that the user has until the next turn
  std::vector<std::uint32_t> to_arm_;    // whose multishot entry has ended without their asking, the longest first
  std::vector<std::uint32_t> to_watch_;  // who may have nothing in flight
  std::vector<std::uint32_t> sends_;     // of this turn
  std::vector<std::uint32_t> closing_;
  std::vector<RingCompletion> arrived_;    // in this turn
  std::vector<Arrived> deferred_;          // what heavy connections have sent, in the order in which it came
  std::uint32_t takes_ = 0;                // how often completions have been taken, modulo 2^32
  bool returned_ = true;                   // from the last turn; or that threw, and is tried again
  std::shared_ptr<char[]> former_memory_;  // of a ring whose buffers are lent in this turn
};

}  // namespace wirecall::runtime
