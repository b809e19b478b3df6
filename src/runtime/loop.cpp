// The turn of a loop (see loop.hpp): slots and generations of what is attached, timers, who has output at the turn's
// end, and the pool of buffers. All I/O is the backend's.
#include "wirecall/loop.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "runtime/backend.hpp"
#include "runtime/inbox.hpp"
#include "runtime/timers.hpp"
#include "runtime/turn.hpp"

namespace wirecall {
namespace {

using runtime::Completion;
using runtime::Handle;
using runtime::IoUser;
using runtime::Operation;
using runtime::OperationKind;
using runtime::TurnUser;
using std::chrono::nanoseconds;

// What the pool keeps: enough for every connection that is busy in one turn, little beside what their peers cost the
// kernel. A buffer that one large message has blown up is not kept.
constexpr std::size_t kPooledBytesMax = 4 * 1024 * 1024;
constexpr std::size_t kPooledBufferBytesMax = 256 * 1024;

struct Slot {
  IoUser* user = nullptr;  // null: free, or detached and waiting for its close to complete
  std::uint32_t generation = 0;
};

}  // namespace

struct Loop::State {
  explicit State(std::unique_ptr<runtime::Backend> given)
      : backend(std::move(given)), inbox(std::make_shared<runtime::Inbox>(*backend)) {}

  std::unique_ptr<runtime::Backend> backend;
  std::shared_ptr<runtime::Inbox> inbox;
  std::vector<Operation> submitted;
  std::vector<Slot> slots;
  std::vector<std::uint32_t> free_slots;
  runtime::TimerHeap timers;
  std::vector<TurnUser*> at_turn_end;
  std::vector<TurnUser*> at_next_turn_end;
  std::vector<TurnUser*> at_next_turn;
  std::vector<TurnUser*> going_on;  // those of at_next_turn whose turn has come
  std::size_t going_on_at = 0;      // the first of them that has not been called
  std::span<Completion> completions;
  std::size_t completion_at = 0;            // the first of them that nobody has been told
  std::uint64_t part = 0;                   // of a turn, by one thread
  std::vector<std::shared_ptr<void>> kept;  // what has been lent in this turn, as far as somebody keeps it
  std::vector<Buffer> pool;
  std::size_t pooled_bytes = 0;

  // When a wait of at most `wait_max` is to end.
  nanoseconds until(nanoseconds wait_max) const {
    if (wait_max == nanoseconds{0} || !at_next_turn.empty() || !at_turn_end.empty()) return runtime::kAtOnce;
    nanoseconds end = timers.empty() ? runtime::kForever : timers.first_due();
    if (wait_max > nanoseconds{0}) {
      const nanoseconds now = backend->now();
      if (wait_max < end - now) end = now + wait_max;
    }
    return end;
  }
  void complete(Completion& completion);
  void expire_timers();
};

Loop::Loop() : Loop(runtime::make_epoll_backend()) {}

Loop::Loop(std::unique_ptr<runtime::Backend> backend) : state_(std::make_unique<State>(std::move(backend))) {}

Loop::~Loop() {
  state_->inbox->close();
  // What was detached in the last turn is still to be closed.
  if (!state_->submitted.empty()) (void)state_->backend->turn(state_->submitted, runtime::kAtOnce);
}

void Loop::start(Timer& timer, nanoseconds delay) {
  const nanoseconds start = now();
  const nanoseconds longest = runtime::kForever - start;
  state_->timers.insert(timer, sequence(timer), start + std::clamp(delay, nanoseconds{0}, longest));
}

void Loop::stop(Timer& timer) noexcept { state_->timers.remove(sequence(timer)); }

nanoseconds Loop::now() const noexcept { return state_->backend->now(); }

nanoseconds Loop::recently() const noexcept { return state_->backend->recently(); }

void Loop::turn(nanoseconds wait_max) {
  State& state = *state_;
  state.completions = state.backend->turn(state.submitted, state.until(wait_max));
  state.completion_at = 0;
  if (!state.kept.empty()) [[unlikely]]
    state.kept.clear();
  state.submitted.clear();
  state.going_on.swap(state.at_next_turn);
  if (!state.at_next_turn_end.empty()) {
    state.at_turn_end.insert(state.at_turn_end.end(), state.at_next_turn_end.begin(), state.at_next_turn_end.end());
    state.at_next_turn_end.clear();
  }
  finish_turn();
}

// Everything that is left to do stands in the state, so that another thread can go on where this one got stuck.
void Loop::finish_turn() {
  State& state = *state_;
  const std::uint64_t mine = ++state.part;
  while (state.completion_at != state.completions.size()) {
    state.complete(state.completions[state.completion_at++]);
    if (state.part != mine) [[unlikely]]
      return;
  }
  if (state.inbox->waiting() || state.inbox->interrupted()) [[unlikely]]
    state.inbox->run();
  if (state.part == mine && !state.timers.empty() && state.backend->time_may_be_up()) state.expire_timers();
  while (state.going_on_at != state.going_on.size() && state.part == mine) {
    if (TurnUser* user = state.going_on[state.going_on_at++]) user->next_turn();
  }
  if (state.part != mine) [[unlikely]]
    return;
  state.going_on.clear();
  state.going_on_at = 0;
  for (std::size_t i = 0; i < state.at_turn_end.size(); ++i) {
    if (state.at_turn_end[i] != nullptr) state.at_turn_end[i]->turn_ended();
  }
  state.at_turn_end.clear();
}

// Whoever loses the loop second in a turn may be reading from what the first has kept.
std::vector<std::shared_ptr<void>> Loop::keep_lent() {
  state_->kept.push_back(state_->backend->keep_lent());
  return state_->kept;
}

void Loop::State::complete(Completion& completion) {
  Slot& slot = slots[completion.handle.slot];
  if (slot.generation != completion.handle.generation) return;
  if (completion.kind == OperationKind::close) {
    ++slot.generation;
    free_slots.push_back(completion.handle.slot);
    return;
  }
  if (slot.user != nullptr) {
    slot.user->completed(completion);
  } else if (completion.descriptor >= 0) {
    // A connection that arrived for a listener that has gone: only the backend can close it.
    const Handle handle{static_cast<std::uint32_t>(slots.size()), 0};
    slots.emplace_back();
    submitted.push_back({.kind = OperationKind::open,
                         .handle = handle,
                         .descriptor = std::exchange(completion.descriptor, -1),
                         .buffer = {}});
    submitted.push_back({.kind = OperationKind::close, .handle = handle, .buffer = {}});
  }
}

void Loop::State::expire_timers() {
  const nanoseconds time = backend->now();
  const std::uint64_t order = timers.next_order();  // those started meanwhile wait for the next turn
  while (Timer* timer = timers.take(time, order)) timer->expired();
}

void Loop::wake() noexcept { state_->backend->wake(); }

bool Loop::post(std::move_only_function<void()> job) { return state_->inbox->post(std::move(job)); }

const std::shared_ptr<runtime::Inbox>& Loop::inbox() const noexcept { return state_->inbox; }

Handle Loop::attach(int descriptor, IoUser& user) {
  State& state = *state_;
  if (state.free_slots.empty()) {
    state.free_slots.push_back(static_cast<std::uint32_t>(state.slots.size()));
    state.slots.emplace_back();
  }
  const std::uint32_t at = state.free_slots.back();
  state.free_slots.pop_back();
  state.slots[at].user = &user;
  const Handle handle{at, state.slots[at].generation};
  submit({.kind = OperationKind::open, .handle = handle, .descriptor = descriptor, .buffer = {}});
  return handle;
}

void Loop::detach(Handle handle) {
  Slot& slot = state_->slots[handle.slot];
  if (slot.generation != handle.generation || slot.user == nullptr) return;
  slot.user = nullptr;
  submit({.kind = OperationKind::close, .handle = handle, .buffer = {}});
}

void Loop::submit(Operation operation) { state_->submitted.push_back(std::move(operation)); }

std::size_t Loop::readable(Handle handle) const noexcept { return state_->backend->readable(handle); }

void Loop::at_turn_end(TurnUser& user) { state_->at_turn_end.push_back(&user); }

void Loop::at_next_turn_end(TurnUser& user) { state_->at_next_turn_end.push_back(&user); }

void Loop::at_next_turn(TurnUser& user) { state_->at_next_turn.push_back(&user); }

void Loop::forget(TurnUser& user) noexcept {
  for (auto* list : {&state_->at_turn_end, &state_->at_next_turn_end, &state_->at_next_turn, &state_->going_on}) {
    std::replace(list->begin(), list->end(), &user, static_cast<TurnUser*>(nullptr));
  }
}

Buffer Loop::take_buffer() noexcept {
  if (state_->pool.empty()) return Buffer{};
  Buffer buffer = std::move(state_->pool.back());
  state_->pool.pop_back();
  state_->pooled_bytes -= buffer.capacity();
  return buffer;
}

void Loop::give_buffer(Buffer buffer) noexcept {
  const std::size_t bytes = buffer.capacity();
  if (bytes == 0 || bytes > kPooledBufferBytesMax || state_->pooled_bytes + bytes > kPooledBytesMax) return;
  try {
    buffer.clear();
    state_->pool.push_back(std::move(buffer));
    state_->pooled_bytes += bytes;
  } catch (const std::bad_alloc&) {
    // Then this one is not kept.
  }
}

}  // namespace wirecall
