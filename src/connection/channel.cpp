// See channel.hpp. Two paths matter: `received`, which runs once for each run of bytes, and `flush`, which runs once a
// turn. Everything else is for the rare and the hostile.
#include "connection/channel.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

#include "connection/channel_rare.hpp"

namespace wirecall::session {
namespace {

// Reading goes on when the output has fallen to this share of Limits::soft_output.
constexpr std::size_t kLowOutputDivisor = 4;
// Output that no request waits for fills this share of it at most: what it fills, the peer must be able to cancel, and
// so is still to be read.
constexpr std::size_t kWritableDivisor = 2;
// Who was sent so much at once is likely to be sent as much again.
constexpr std::size_t kLargeOutputBytes = 256 * 1024;
// A message that has begun brings this much within Limits::keepalive_timeout_ms, or its connection counts as idle.
constexpr std::uint32_t kMessageBytesMin = 4096;
// A connection's share of a round: so many slices, and when the first is over no longer than kShareTime. The clock is
// looked at only between slices: what comes in smaller numbers does not pay for it.
constexpr std::int32_t kSliceSteps = 64;
constexpr std::uint32_t kSliceBytes = 16 * 1024;
constexpr std::uint16_t kSlices = 32;
constexpr std::chrono::milliseconds kShareTime{1};
// The counters of `end_if_idle` have four bits.
constexpr std::uint8_t kTimesMax = 15;

}  // namespace

Channel::Channel(Host& host, std::unique_ptr<transport::ByteStream> stream)
    : host_(&host),
      stream_(std::move(stream)),
      weighed_from_(host.limits.hard_output >= kWeighedBytes ? 1 : 0),
      little_output_(static_cast<std::uint8_t>(std::min(host.limits.soft_output, kLittleOutput) / 1024)) {
  stream_->start(*this);
}

Channel::~Channel() {
  if (marked_ || scheduled_ || watching_) host_->loop.forget(*this);
  if (held_) rare_->hold.lock()->outlive();
  give_back(out_);
  give_back(backlog_);
}

void Channel::take_output() noexcept {
  out_ = large_output_ ? host_->loop.take_large_buffer() : host_->loop.take_buffer();
}

void Channel::give_back(Buffer& buffer) noexcept {
  host_->loop.give_buffer(std::move(buffer));
  buffer = Buffer{};
}

void Channel::fail_out_of_memory() noexcept {
  out_of_memory_ = true;
  mark();
}

// The input that is being read counts already.
void Channel::count_into(rpc::ConnectionCounts* counts) noexcept {
  counts_ = counts;
  if (counts_ != nullptr && consuming_) counts_->bytes_in += input_.size();
}

// ---- input ----

void Channel::received(std::span<char> bytes) {
  within_memory([&] { receive(bytes); });
}

void Channel::receive(std::span<char> bytes) {
  host_->loop_context.stats.bytes_in += bytes.size();
  if (counts_ != nullptr) {
    counts_->bytes_in += bytes.size();
    counts_->heard_at = host_->loop.recently();
  }
  moved_ += static_cast<std::uint32_t>(bytes.size());
  if (drain_bytes_left_ != 0) [[unlikely]] {
    drain_bytes_left_ -= std::min(drain_bytes_left_, bytes.size());
    if (drain_bytes_left_ == 0) drain_bytes_left_ = stream_->readable();  // until there is nothing for once
  }
  if (input_ended_ || over_) return;
  if (!backlog_.empty()) {
    backlog_received_at_ = host_->loop.now();
    return backlog_.append({bytes.data(), bytes.size()});
  }
  std::size_t consumed = 0;
  if (!consume_input(bytes, consumed)) return;
  if (consumed != bytes.size() && !input_ended_) [[unlikely]] {
    Buffer rest = buffer_for(bytes.size() - consumed);
    rest.append({bytes.data() + consumed, bytes.size() - consumed});
    defer_input(std::move(rest));
  }
}

// Runs `act` on `input`. False when a handler lost the loop meanwhile, and other threads have served the rest.
template <class Consume>
bool Channel::consume(std::span<char> input, const Consume& act) {
  host_->active_channel = this;
  input_ = input;
  host_->input_received_at.reset();
  consuming_ = true;
  within_memory(act);
  host_->active_channel = nullptr;
  if (consuming_) [[likely]] {
    consuming_ = false;
    if (is_weighed()) [[unlikely]]
      weigh();
    return true;
  }
  --off_loop_;
  handler_rejoined();
  mark();
  return false;
}

// The same for received bytes, of which `read` has `consumed` so many.
bool Channel::consume_input(std::span<char> input, std::size_t& consumed) {
  begin_share();
  if (!consume(input, [&] { consumed = read(input); })) return false;
  slice_ends_ -= static_cast<std::uint32_t>(std::min<std::size_t>(slice_ends_, consumed));
  return true;
}

// The same for the rest of an interrupted message. False when nothing behind it may be dispatched yet.
bool Channel::consume_interrupted() {
  if (blocked_ || held_ || output_waits()) return false;
  interrupted_ = false;
  begin_share();
  consumed_ = 0;
  return consume({}, [&] { resume_message(); }) && !interrupted_;
}

void Channel::begin_share() noexcept {
  const std::uint32_t round = host_->loop.rounds();
  if (round_ == round) return;
  round_ = round;
  share_.steps_left = kSliceSteps;
  slice_ends_ = kSliceBytes;
  slices_left_ = kSlices - 1;
  share_ends_ = std::chrono::nanoseconds{0};
}

bool Channel::next_slice() noexcept {
  if (held_) return false;
  // What a message has cost beyond its slice is taken from those that follow.
  const std::int32_t overdrawn = std::max(-share_.steps_left, 0);
  const std::int32_t slices = 1 + overdrawn / kSliceSteps;
  if (slices > slices_left_) return false;
  const std::chrono::nanoseconds now = host_->loop.now();
  if (share_ends_ == std::chrono::nanoseconds{0}) {
    share_ends_ = now + kShareTime;
  } else if (now >= share_ends_) {
    return false;
  }
  slices_left_ = static_cast<std::uint16_t>(slices_left_ - slices);
  share_.steps_left = kSliceSteps - overdrawn % kSliceSteps;
  return true;
}

bool Channel::next_slice(std::size_t at) noexcept {
  if (!next_slice()) return false;
  slice_ends_ = static_cast<std::uint32_t>(at) + kSliceBytes;
  return true;
}

std::int64_t Channel::steps_used() const noexcept {
  return round_ == host_->loop.rounds() ? (kSlices - slices_left_) * kSliceSteps - share_.steps_left : 0;
}

void Channel::interrupt() {
  if (over_) return;
  interrupted_ = true;
  pause();
  schedule_input();
}

void Channel::leave_handler(std::vector<Buffer>& kept) {
  if (!consuming_) return;
  const std::span<char> unread = input_.subspan(std::min(consumed_, input_.size()));
  // What needs memory comes first: without it the handler keeps the loop, and nothing has changed.
  Buffer rest = buffer_for(unread.size());
  kept.reserve(kept.size() + 2);
  if (leave_rest()) interrupt();
  const bool was_backlog = !backlog_.empty() && !input_.empty();
  consuming_ = false;
  ++off_loop_;
  leave_message(kept);
  rest.append({unread.data(), unread.size()});
  if (was_backlog) kept.push_back(std::exchange(backlog_, Buffer{}));
  if (!rest.empty()) {
    defer_input(std::move(rest));
  } else if (was_backlog) {
    schedule_input();
  }
}

Buffer Channel::buffer_for(std::size_t bytes) {
  if (bytes == 0) return {};
  Buffer buffer = host_->loop.take_buffer();
  static_cast<void>(buffer.reserve(bytes));
  return buffer;
}

void Channel::take(std::span<char> first, bool all) {
  received(first);
  if (all && !over_) ended();
}

void Channel::stop_reading(CloseReason why) {
  why_stopped_ = why;
  finish();
}

void Channel::ended() {
  if (input_ended_) {
    // Nobody is left to whom an answer could matter but by reading it: no need to linger.
    lingers_ = false;
    if (lingering()) end(why_stopped_);
    return;
  }
  if (backlog_.empty() && !interrupted_ && !held_) {
    end_of_stream();
  } else {
    end_is_near_ = true;
  }
}

void Channel::end_of_stream() {
  consumed_ = 0;
  static_cast<void>(consume({}, [&] { input_complete(); }));
  input_ended_ = true;
  lingers_ = false;  // the peer sends nothing more
  mark();
}

// ---- input that waits ----

void Channel::defer_input(Buffer rest) noexcept {
  backlog_ = std::move(rest);
  backlog_at_ = 0;
  backlog_received_at_ = host_->loop.now();
  pause();
  schedule_input();
}

void Channel::pause() noexcept {
  paused_ = true;
  try {
    stream_->pause();
  } catch (const std::bad_alloc&) {
    fail_out_of_memory();
  }
}

// Has the backlog processed in the next turn, unless the output has to drain first.
void Channel::schedule_input() {
  if (scheduled_ || blocked_ || held_ || output_waits()) return;
  scheduled_ = true;
  host_->loop.at_next_turn(*this);
}

void Channel::unblock() {
  blocked_ = false;
  if (paused_ && (interrupted_ || !input_ended_) && !over_) schedule_input();
}

std::shared_ptr<void> Channel::hold_input() {
  if (held_) return rare_->hold.lock();
  auto hold = std::make_shared<InputHold>(*this);
  rare().hold = hold;
  held_ = true;
  share_.steps_left = std::min(share_.steps_left, 0);  // a batch looks at no more of its elements
  return hold;
}

void Channel::release_input() noexcept {
  held_ = false;
  if ((paused_ || end_is_near_) && (interrupted_ || !input_ended_) && !over_) schedule_input();
}

void Channel::next_turn() {
  scheduled_ = false;
  if (!over_) within_memory([&] { process_backlog(); });
}

void Channel::process_backlog() {
  if (interrupted_ && !consume_interrupted()) return;
  if (!backlog_.empty()) {
    static_cast<void>(backlog_.padded());
    const std::span<char> waiting{backlog_.data() + backlog_at_, backlog_.size() - backlog_at_};
    std::size_t consumed = 0;
    if (!consume_input(waiting, consumed)) return;
    backlog_at_ += consumed;
    if (backlog_at_ != backlog_.size() && !input_ended_) return schedule_input();
    give_back(backlog_);
    backlog_at_ = 0;
  }
  if (over_) return;
  if (end_is_near_ && !input_ended_ && !held_) return end_of_stream();
  if (backpressured()) return;
  paused_ = false;
  stream_->resume();
}

// ---- output ----

void Channel::mark() {
  if (marked_) return;
  marked_ = true;
  host_->loop.at_turn_end(*this);
}

void Channel::turn_ended() {
  marked_ = watching_ = false;
  if (over_) return;
  within_memory([&] { finish_turn(); });
}

void Channel::finish_turn() {
  if (turn_end_requested_) [[unlikely]] {
    turn_end_requested_ = false;
    on_turn_end();
  }
  if (out_of_memory_) [[unlikely]]
    return end(CloseReason::lost, ENOMEM);
  if (cut_) [[unlikely]]
    return end_cut();
  flush();
  // What follows a refusal is not even thrown away before the peer has taken that.
  if ((backpressured() || (input_ended_ && has_output())) && !paused_) [[unlikely]] {
    paused_ = true;
    stream_->pause();
  }
  if (input_ended_) [[unlikely]]
    finish_if_done();
}

void Channel::flush() {
  if (sending_ || out_.empty() || over_) return;
  sending_ = true;
  sending_bytes_ = out_.size();
  host_->loop_context.stats.bytes_out += sending_bytes_;
  if (counts_ != nullptr) counts_->bytes_out += sending_bytes_;
  try {
    // Whoever reads on hears of the send with the next input. The others have nothing else to wake them.
    stream_->send(std::move(out_), paused_ || input_ended_ || backpressured() || awaits_writable_);
  } catch (const std::bad_alloc&) {
    fail_out_of_memory();  // not at once, since it may be the owner who calls this
  }
  out_ = Buffer{};
}

void Channel::sent(Buffer buffer) {
  if (over_) return;
  sending_ = false;
  sent_ = true;
  large_output_ = sending_bytes_ > kLargeOutputBytes;
  sending_bytes_ = 0;
  ++moved_;
  host_->loop.give_buffer(std::move(buffer));
  if (is_weighed()) [[unlikely]]
    weigh();
  within_memory([&] { continue_output(); });
}

void Channel::continue_output() {
  const bool low = out_.size() <= host_->limits.soft_output / kLowOutputDivisor;
  if (awaits_writable_ && low) [[unlikely]] {
    awaits_writable_ = false;
    output_drained();  // which may fill it again: reading goes on all the same
  }
  if (!out_.empty() || input_ended_) mark();
  if (!paused_ || (input_ended_ && !interrupted_) || !low) [[likely]]
    return;
  schedule_input();
}

bool Channel::output_writable() noexcept {
  if (output_bytes() <= host_->limits.soft_output / kWritableDivisor) [[likely]]
    return true;
  awaits_writable_ = true;
  return false;
}

// ---- the end ----

void Channel::finish() {
  if (input_ended_) return;
  input_ended_ = lingers_ = true;
  mark();
}

void Channel::message_completed() noexcept { moved_ += kMessageBytesMin; }

// Whether output has waited since the last call, and the peer has taken none of it.
bool Channel::stalled() noexcept {
  const std::uint32_t unsent_before = std::exchange(unsent_, static_cast<std::uint32_t>(stream_->unsent()));
  const bool taken = sent_ || unsent_ != unsent_before;  // while it is one send, there is less and less
  sent_ = false;
  return unsent_ != 0 && !taken;
}

void Channel::end_if_idle(std::uint8_t times) {
  if (over_) return;
  unread_times_ = stalled() ? (unread_times_ + 1) & kTimesMax : 0;
  if (unread_times_ == times) {
    cut_ = true;
    return mark();
  }
  if (input_ended_) return;
  if (idle_exempt()) return end_if_silent();
  // In the part of the time in which it began, a message need not have brought anything yet.
  const bool began_before = was_unfinished_;
  was_unfinished_ = unfinished();
  const std::size_t least = began_before && was_unfinished_ ? kMessageBytesMin / times : 1;
  const bool alive = std::exchange(moved_, 0) >= least || busy() || has_output();
  idle_times_ = alive ? 0 : (idle_times_ + 1) & kTimesMax;
  if (idle_times_ < times) return;
  ++host_->loop_context.stats.connections_timed_out;
  stop_reading(CloseReason::silent);
}

// A peer that is kept though nothing happens is asked from half the time on whether it is still there. One that is not
// read, or takes nothing, cannot be heard.
void Channel::end_if_silent() {
  moved_ = 0;
  idle_times_ = 0;
  const std::chrono::milliseconds time{host_->limits.keepalive_timeout_ms};
  const std::chrono::nanoseconds silent = host_->loop.recently() - counts_->heard_at;
  if (silent < time / 2 || backpressured() || has_output() || !backlog_.empty()) return;
  within_memory([&] {
    if (!send_keepalive()) {
      if (!watched_) stream_->watch_peer(time);
      watched_ = true;
    } else if (silent >= time) {
      ++host_->loop_context.stats.connections_timed_out;
      end(CloseReason::silent);
    }
  });
}

void Channel::finish_if_done() {
  if (sending_ || !out_.empty() || lingering()) return;
  if (working() || off_loop_ != 0 || interrupted_ || held_) {
    // A notification that is done says nothing: so this is asked once a turn.
    if (watching_) return;
    watching_ = true;
    return host_->loop.at_next_turn_end(*this);
  }
  if (!lingers_) return end(CloseReason::finished);
  stream_->shut_down();
  if (paused_) stream_->resume();
  rare().linger = std::make_unique<Linger>(*this);
}

void Channel::failed(int error) {
  if (!over_) end(CloseReason::lost, error);
}

void Channel::end(CloseReason reason, int error) {
  if (over_) return;  // a completion and a timer of one turn may both find the end
  over_ = input_ended_ = true;
  if (counts_ != nullptr) counts_->end = name_of(reason);
  abandon();
  if (off_loop_ != 0) {
    // It stays open until its handler has rejoined the loop, but the peer need not wait for that.
    try {
      stream_->shut_down();
    } catch (const std::bad_alloc&) {
    }
  }
  host_->owner.connection_ended(*this, reason, error);
}

}  // namespace wirecall::session
