// The turn of a loop (see loop.hpp): slots and generations of what is attached, timers, who has output at the turn's
// end, and the pool of buffers. All I/O is the backend's.
#include "wirecall/loop.hpp"

#include <algorithm>
#include <atomic>

#include "base/assert.hpp"
#include "base/reserve_extra.hpp"
#include "runtime/backend.hpp"
#include "runtime/fair_scheduler.hpp"
#include "runtime/inbox.hpp"
#include "runtime/spsc_channel.hpp"
#include "runtime/timers.hpp"
#include "runtime/turn.hpp"
#include "wirecall/detail/loop_thread.hpp"

namespace wirecall {
namespace {

using runtime::Completion;
using runtime::Handle;
using runtime::IoUser;
using runtime::Operation;
using runtime::OperationKind;
using runtime::PolledUser;
using runtime::TurnUser;
using std::chrono::nanoseconds;

// What the pool keeps: enough for every connection that is busy in one turn, little beside what their peers cost the
// kernel. A buffer that one large message has blown up is kept for the next large one, if it is not too large, but of
// those few: as many as a connection needs that takes such messages and answers with such.
constexpr std::size_t kPooledBytesMax = 4 * 1024 * 1024;
constexpr std::size_t kPooledBufferBytesMax = 256 * 1024;
constexpr std::size_t kLargeBufferBytesMax = 4 * 1024 * 1024;
constexpr std::size_t kLargeBuffersMax = 2;
// Those that are due besides wait for the next turn: thousands of calls may run out of time at once.
constexpr std::size_t kTimersInTurn = 256;
// How long a loop waits at most that had no memory to hand something over to another one.
constexpr nanoseconds kHandOverPause = std::chrono::milliseconds{1};
constexpr nanoseconds kNobodyIsLate{-1};
// While memory brings what there is to do, the backend, which asks the system, is looked at so often.
constexpr nanoseconds kBackendLook = std::chrono::microseconds{4};
// So often memory is looked at before the clock is, which takes as long as several looks.
constexpr int kLooks = 16;
// So many turns in a row may be ended by memory before the clock and the backend are looked at again.
constexpr int kTurnsWithoutClock = 16;

// Tells the processor that this is a loop which waits for memory to change.
void pause_processor() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Turns that this thread is in: a callback may run a turn of another loop.
constinit thread_local int turns_of_thread = 0;

struct InTurn {
  InTurn() noexcept { ++turns_of_thread; }
  InTurn(InTurn&&) = delete;
  ~InTurn() { --turns_of_thread; }
};

struct Slot {
  IoUser* user = nullptr;  // null: free, or detached and waiting for its close to complete
  std::uint32_t generation = 0;
};

// Another loop, and the ways from and to it.
struct Joined {
  runtime::SpscChannel* in;
  runtime::SpscChannel* out;
  Loop* other;
};

}  // namespace

struct Loop::State {
  explicit State(std::unique_ptr<runtime::Backend> given)
      : backend(std::move(given)), inbox(std::make_shared<runtime::Inbox>(*backend)) {}

  std::unique_ptr<runtime::Backend> backend;
  std::shared_ptr<runtime::Inbox> inbox;
  std::vector<Operation> submitted;
  std::size_t attached = 0;  // handles that have a user
  std::size_t admitted = 0;  // users that have no handle
  std::vector<Slot> slots;
  std::vector<std::uint32_t> free_slots;
  runtime::TimerHeap timers;
  std::vector<TurnUser*> at_turn_end;
  std::vector<TurnUser*> at_next_turn_end;
  std::vector<TurnUser*> ending;  // those of at_next_turn_end whose turn has come
  std::vector<TurnUser*> at_next_turn;
  std::vector<TurnUser*> going_on;  // those of at_next_turn whose turn has come
  std::size_t going_on_at = 0;      // the first of them that has not been called
  int going_on_left = 0;            // of those that may be called in this turn
  std::span<Completion> completions;
  std::size_t completion_at = 0;  // the first of them that nobody has been told
  // When they had come; kNobodyIsLate where no timer can be due. Who is late is late by that time: a turn may last
  // long, and the bytes of those that it makes wait are read in the next one.
  nanoseconds came_at = kNobodyIsLate;
  std::uint32_t rounds = 0;                 // begun
  bool in_turn = false;                     // it has not been finished
  std::uint64_t part = 0;                   // of a turn, by one thread
  std::vector<std::shared_ptr<void>> kept;  // what has been lent in this turn, as far as somebody keeps it
  nanoseconds spin_time{0};
  std::atomic<bool> woken{false};  // since a turn that spins has looked
  nanoseconds backend_due{0};      // when a turn that memory ends has to ask the backend as well
  std::vector<PolledUser*> polled;
  std::vector<PolledUser*> looking;  // those of polled whose turn has come
  std::size_t looking_at = 0;        // the first of them that has not been called
  bool looked = false;               // they have been taken in this turn
  int without_clock = 0;             // turns in a row
  std::vector<Joined> joined;
  std::size_t joined_at = 0;  // the first of them from which not everything has been told in this turn
  std::vector<Buffer> pool;
  std::size_t pooled_bytes = 0;
  std::vector<Buffer> large;

  // When a wait of at most `wait_max` is to end.
  nanoseconds until(nanoseconds wait_max) const {
    if (wait_max == nanoseconds{0} || has_work()) return runtime::kAtOnce;
    nanoseconds end = timers.empty() ? runtime::kForever : timers.first_due();
    if (wait_max > nanoseconds{0}) {
      const nanoseconds now = backend->now();
      if (wait_max < end - now) end = now + wait_max;
    }
    return end;
  }
  [[nodiscard]] bool has_work() const noexcept {
    return !going_on.empty() || !at_next_turn.empty() || !at_turn_end.empty();
  }
  void complete(Completion& completion);
  void expire_timers();
  void end_turn(std::vector<TurnUser*>& users);
  void reserve_slots(std::size_t more);
  Handle take_slot();
  [[nodiscard]] bool brought_by_memory(nanoseconds wait_max) noexcept;
  void wait(nanoseconds until);
  [[nodiscard]] bool hand_over() noexcept;
  [[nodiscard]] bool memory_ready() const noexcept;
  bool spin(nanoseconds until);
  [[nodiscard]] bool may_wait() noexcept;
  void look(std::uint64_t mine);
  void collect() noexcept;
  bool deliver(std::uint64_t mine);
};

Loop::Loop() : Loop(runtime::make_epoll_backend()) {}

Loop::Loop(std::unique_ptr<runtime::Backend> backend) : state_(std::make_unique<State>(std::move(backend))) {}

Loop::~Loop() {
  state_->inbox->close();
  // What was detached in the last turn is still to be closed. Nothing is accepted any more: who waits where another
  // process listens as well is that one's.
  std::erase_if(state_->submitted, [](const Operation& one) { return one.kind == OperationKind::accept; });
  if (!state_->submitted.empty()) (void)state_->backend->turn(state_->submitted, runtime::kAtOnce);
}

void Loop::start(Timer& timer, nanoseconds delay) {
  const nanoseconds start = now();
  const nanoseconds longest = runtime::kForever - start;
  state_->timers.insert(timer, index(timer), start + std::clamp(delay, nanoseconds{0}, longest));
}

void Loop::stop(Timer& timer) noexcept { state_->timers.remove(index(timer)); }

std::uint32_t Loop::rounds() const noexcept { return state_->rounds; }

nanoseconds Loop::now() const noexcept { return state_->backend->now(); }

nanoseconds Loop::recently() const noexcept { return state_->backend->recently(); }

void Loop::turn(nanoseconds wait_max) {
  State& state = *state_;
  // A turn that failed for want of memory goes on where it was.
  if (state.in_turn) [[unlikely]]
    return finish_turn();
  if (!state.brought_by_memory(wait_max)) state.wait(state.until(wait_max));
  state.completion_at = 0;
  if (!state.joined.empty()) [[unlikely]]
    state.collect();
  if (!state.kept.empty()) [[unlikely]]
    state.kept.clear();
  state.submitted.clear();
  if (state.going_on.empty()) {
    ++state.rounds;
    state.going_on.swap(state.at_next_turn);
  }
  state.going_on_left = runtime::kHeavyInTurn;
  state.in_turn = true;
  state.looked = false;
  state.ending.swap(state.at_next_turn_end);
  finish_turn();
}

// The shortest way through a wait, which asks neither the clock nor the system: something has come through memory, or
// comes within a few looks where the loop would spin anyway.
bool Loop::State::brought_by_memory(nanoseconds wait_max) noexcept {
  if (polled.empty() || !joined.empty() || !submitted.empty() || without_clock == kTurnsWithoutClock) {
    without_clock = 0;
    return false;
  }
  int looks = spin_time == nanoseconds{0} || wait_max == nanoseconds{0} || has_work() ? 1 : kLooks;
  for (; looks != 0; --looks) {
    if (memory_ready()) {
      ++without_clock;
      completions = {};
      came_at = kNobodyIsLate;
      return true;
    }
    if (looks != 1) pause_processor();
  }
  without_clock = 0;
  return false;
}

// The part of a turn that waits: what was submitted is performed, and `completions` is what has come.
void Loop::State::wait(nanoseconds until) {
  const bool kept = !joined.empty() && hand_over();
  const bool through_memory = !joined.empty() || !polled.empty();
  if (until != runtime::kAtOnce && (spin_time != nanoseconds{0} || !polled.empty()) && spin(until)) return;
  if (through_memory && until != runtime::kAtOnce) {
    if (!may_wait()) {
      until = runtime::kAtOnce;
    } else if (kept) {
      until = std::min(until, backend->now() + kHandOverPause);
    }
  }
  completions = backend->turn(submitted, until);
  came_at = !timers.empty() && backend->time_may_be_up() ? backend->now() : kNobodyIsLate;
}

// Looks for what there is to do for as long as the loop spins; once if it does not. True when there is something.
// Memory is looked at all the time, the backend now and then; where nothing comes through memory, the backend alone.
bool Loop::State::spin(nanoseconds until) {
  const bool through_memory = !joined.empty() || !polled.empty();
  nanoseconds now = backend->now();
  const nanoseconds end = std::min(until, now + spin_time);
  completions = {};
  for (;;) {
    const bool ready = memory_ready();
    if (!submitted.empty() || now >= backend_due) {
      completions = backend->turn(submitted, runtime::kAtOnce);
      submitted.clear();
      backend_due = through_memory ? now + kBackendLook : now;
    }
    if (ready || !completions.empty() || inbox->waiting() || woken.exchange(false, std::memory_order_acquire)) break;
    if (now >= end) return false;
    for (int i = 0; through_memory && i != kLooks && !memory_ready(); ++i) pause_processor();
    now = backend->now();
  }
  came_at = timers.empty() ? kNobodyIsLate : now;
  return true;
}

bool Loop::State::memory_ready() const noexcept {
  return std::ranges::any_of(polled, [](const PolledUser* user) { return user != nullptr && user->ready(); }) ||
         std::ranges::any_of(joined, [](const Joined& one) { return one.in->waiting(); });
}

bool detail::on_loop_thread() noexcept { return turns_of_thread != 0; }

// Everything that is left to do stands in the state, so that another thread can go on where this one got stuck.
void Loop::finish_turn() {
  State& state = *state_;
  WIRECALL_ASSERT(state.in_turn);
  const InTurn in_turn;
  const std::uint64_t mine = ++state.part;
  while (state.completion_at != state.completions.size()) {
    state.complete(state.completions[state.completion_at++]);
    if (state.part != mine) [[unlikely]]
      return;
  }
  if (state.joined_at != state.joined.size() && !state.deliver(mine)) [[unlikely]]
    return;
  if (state.inbox->waiting() || state.inbox->interrupted()) [[unlikely]]
    state.inbox->run();
  if (state.part == mine && state.came_at != kNobodyIsLate) state.expire_timers();
  if (!state.looked || state.looking_at != state.looking.size()) state.look(mine);
  for (; state.going_on_at != state.going_on.size() && state.going_on_left != 0 && state.part == mine;
       --state.going_on_left) {
    if (TurnUser* user = state.going_on[state.going_on_at++]) user->next_turn();
  }
  if (state.part != mine) [[unlikely]]
    return;
  if (state.going_on_at == state.going_on.size()) {
    state.going_on.clear();
    state.going_on_at = 0;
  }
  if (!state.ending.empty()) [[unlikely]]
    state.end_turn(state.ending);
  state.end_turn(state.at_turn_end);
  state.in_turn = false;
}

// Those who ask to be called once more meanwhile wait for the next turn.
void Loop::State::look(std::uint64_t mine) {
  if (!std::exchange(looked, true)) {
    looking.clear();
    looking.swap(polled);
    looking_at = 0;
  }
  while (looking_at != looking.size() && part == mine) {
    if (PolledUser* const user = looking[looking_at++]) user->polled();
  }
}

void Loop::State::end_turn(std::vector<TurnUser*>& users) {
  for (std::size_t i = 0; i < users.size(); ++i) {
    if (users[i] != nullptr) users[i]->turn_ended();
  }
  users.clear();
}

// What was said in the last turn, or since, leaves for the other loops. True when there was no memory for all of it.
bool Loop::State::hand_over() noexcept {
  bool kept = false;
  for (const Joined& one : joined) {
    if (one.out->hand_over()) one.other->wake();
    kept = kept || one.out->pending();
  }
  return kept;
}

// Whether nothing has come through memory. Whoever brings something wakes this loop from now on.
bool Loop::State::may_wait() noexcept {
  return std::ranges::all_of(joined, [](const Joined& one) { return one.in->fall_asleep(); }) &&
         std::ranges::all_of(polled, [](PolledUser* user) { return user == nullptr || user->fall_asleep(); });
}

void Loop::State::collect() noexcept {
  for (const Joined& joined : this->joined) {
    joined.in->wake_up();
    joined.in->collect();
  }
  joined_at = 0;
}

// False when the loop has been taken over meanwhile.
bool Loop::State::deliver(std::uint64_t mine) {
  for (; joined_at != joined.size(); ++joined_at) {
    while (joined[joined_at].in->deliver()) {
      if (part != mine) [[unlikely]]
        return false;
    }
  }
  return true;
}

void Loop::join(runtime::SpscChannel& in, runtime::SpscChannel& out, Loop& other) {
  WIRECALL_ASSERT(!state_->in_turn);
  state_->joined.push_back({.in = &in, .out = &out, .other = &other});
  state_->joined_at = state_->joined.size();
}

void Loop::leave(const Loop& other) noexcept {
  std::erase_if(state_->joined, [&](const Joined& joined) { return joined.other == &other; });
  state_->joined_at = state_->joined.size();
}

// Whoever loses the loop second in a turn may be reading from what the first has kept.
std::vector<std::shared_ptr<void>> Loop::keep_lent() {
  std::vector<std::shared_ptr<void>>& kept = state_->kept;
  kept.reserve(kept.size() + 1 +
               2 * state_->joined.size());  // what the backend gives must not be lost for want of a slot
  kept.push_back(state_->backend->keep_lent());
  for (const Joined& joined : state_->joined) joined.in->keep_lent(kept);
  return kept;
}

void Loop::State::complete(Completion& completion) {
  WIRECALL_DEBUG_ASSERT(completion.handle.slot < slots.size());
  Slot& slot = slots[completion.handle.slot];
  if (slot.generation != completion.handle.generation) return;
  if (completion.kind == OperationKind::close) {
    WIRECALL_ASSERT(slot.user == nullptr);
    ++slot.generation;
    free_slots.push_back(completion.handle.slot);
    return;
  }
  if (slot.user != nullptr) {
    slot.user->completed(completion);
  } else if (completion.descriptor >= 0) {
    // A connection that arrived for a listener that has gone: only the backend can close it.
    reserve_extra(submitted, 2 + attached);
    const Handle handle = take_slot();
    submitted.push_back({.kind = OperationKind::open,
                         .handle = handle,
                         .descriptor = std::exchange(completion.descriptor, -1),
                         .buffer = {}});
    submitted.push_back({.kind = OperationKind::close, .handle = handle, .buffer = {}});
  }
}

void Loop::State::expire_timers() {
  const std::uint64_t order = timers.next_order();  // those started meanwhile wait for the next turn
  for (std::size_t left = kTimersInTurn; left != 0; --left) {
    Timer* const timer = timers.take(came_at, order);
    if (timer == nullptr) return;
    timer->expired();
  }
}

void Loop::spin_for(nanoseconds time) noexcept { state_->spin_time = time; }

// A turn that spins may have the backend take note of the wake without telling.
void Loop::wake() noexcept {
  state_->woken.store(true, std::memory_order_release);
  state_->backend->wake();
}

bool Loop::post(std::move_only_function<void()> job) { return state_->inbox->post(std::move(job)); }

const std::shared_ptr<runtime::Inbox>& Loop::inbox() const noexcept { return state_->inbox; }

// Whatever needs memory comes first: what fails has then changed nothing, and what is attached can be told, asked to be
// called and closed without any.
void Loop::State::reserve_slots(std::size_t more) {
  const std::size_t users = attached + admitted + more;
  reserve_extra(submitted, 2 + users);
  for (auto* list : {&at_turn_end, &at_next_turn_end, &ending, &at_next_turn, &going_on}) reserve_extra(*list, users);
  for (auto* list : {&polled, &looking}) reserve_extra(*list, users);
}

Handle Loop::State::take_slot() {
  if (free_slots.empty()) {
    reserve_extra(slots, 1);
    reserve_extra(free_slots, slots.size() + 1);
    backend->expect(slots.size() + 1);
    free_slots.push_back(static_cast<std::uint32_t>(slots.size()));
    slots.emplace_back();
  }
  const std::uint32_t at = free_slots.back();
  free_slots.pop_back();
  WIRECALL_ASSERT(slots[at].user == nullptr);
  return {at, slots[at].generation};
}

void Loop::admit(std::size_t users) {
  state_->reserve_slots(users);
  state_->admitted += users;
}

void Loop::release(std::size_t users) noexcept {
  WIRECALL_ASSERT(users <= state_->admitted);
  state_->admitted -= users;
}

Handle Loop::attach(int descriptor, IoUser& user) {
  WIRECALL_ASSERT(descriptor >= 0);
  State& state = *state_;
  state.reserve_slots(1);
  const Handle handle = state.take_slot();
  state.slots[handle.slot].user = &user;
  ++state.attached;
  state.submitted.push_back({.kind = OperationKind::open, .handle = handle, .descriptor = descriptor, .buffer = {}});
  return handle;
}

void Loop::detach(Handle handle) noexcept {
  WIRECALL_ASSERT(handle.slot < state_->slots.size());
  Slot& slot = state_->slots[handle.slot];
  if (slot.generation != handle.generation || slot.user == nullptr) return;
  slot.user = nullptr;
  --state_->attached;
  state_->submitted.push_back({.kind = OperationKind::close, .handle = handle, .buffer = {}});
}

// submitted.size() + attached <= submitted.capacity(): everything attached has the slot in which it is closed.
void Loop::submit(Operation&& operation) {
  // The backend asserts that its handle is open.
  WIRECALL_DEBUG_ASSERT(state_->slots.at(operation.handle.slot).generation == operation.handle.generation);
  WIRECALL_DEBUG_ASSERT(state_->slots.at(operation.handle.slot).user != nullptr);
  reserve_extra(state_->submitted, 1 + state_->attached);
  state_->submitted.push_back(std::move(operation));
}

std::size_t Loop::readable(Handle handle) const noexcept { return state_->backend->readable(handle); }

std::size_t Loop::unsent(Handle handle) const noexcept { return state_->backend->unsent(handle); }

void Loop::at_turn_end(TurnUser& user) { state_->at_turn_end.push_back(&user); }

void Loop::at_next_turn_end(TurnUser& user) { state_->at_next_turn_end.push_back(&user); }

void Loop::at_next_turn(TurnUser& user) { state_->at_next_turn.push_back(&user); }

void Loop::forget(TurnUser& user) noexcept {
  for (auto* list :
       {&state_->at_turn_end, &state_->at_next_turn_end, &state_->ending, &state_->at_next_turn, &state_->going_on}) {
    std::replace(list->begin(), list->end(), &user, static_cast<TurnUser*>(nullptr));
  }
}

void Loop::poll(PolledUser& user) { state_->polled.push_back(&user); }

void Loop::forget(PolledUser& user) noexcept {
  for (auto* list : {&state_->polled, &state_->looking})
    std::replace(list->begin(), list->end(), &user, static_cast<PolledUser*>(nullptr));
}

Buffer Loop::take_buffer() noexcept {
  if (state_->pool.empty()) return Buffer{};
  Buffer buffer = std::move(state_->pool.back());
  state_->pool.pop_back();
  state_->pooled_bytes -= buffer.capacity();
  return buffer;
}

Buffer Loop::take_large_buffer() noexcept {
  if (state_->large.empty()) return take_buffer();
  Buffer buffer = std::move(state_->large.back());
  state_->large.pop_back();
  return buffer;
}

void Loop::give_buffer(Buffer buffer) noexcept {
  const std::size_t bytes = buffer.capacity();
  const bool large = bytes > kPooledBufferBytesMax;
  if (large && (bytes > kLargeBufferBytesMax || state_->large.size() == kLargeBuffersMax)) return;
  if (bytes == 0 || (!large && state_->pooled_bytes + bytes > kPooledBytesMax)) return;
  try {
    buffer.clear();
    if (large) return state_->large.push_back(std::move(buffer));
    state_->pool.push_back(std::move(buffer));
    state_->pooled_bytes += bytes;
  } catch (const std::bad_alloc&) {
    // Then this one is not kept.
  }
}

}  // namespace wirecall
