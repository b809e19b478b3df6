// See channel_input.hpp. One path matters: `receive`, once for each run of bytes.
#include "connection/channel_input.hpp"

#include "connection/channel_rare.hpp"

namespace wirecall::net {

static Buffer buffer_for(Loop& loop, std::size_t bytes) {
  if (bytes == 0) return {};
  Buffer buffer = loop.take_buffer();
  static_cast<void>(buffer.reserve(bytes));
  return buffer;
}

ChannelInput::~ChannelInput() {
  if (is_held(Hold::message)) rare_->hold.lock()->outlive();
  give_back(backlog_);
}

// The input that is being read counts already.
void ChannelInput::count_into(rpc::ConnectionCounts* counts) noexcept {
  counts_ = counts;
  if (counts_ != nullptr && consuming_) counts_->bytes_in += input_.size();
}

void ChannelInput::receive(std::span<char> bytes) {
  host_->loop_context.stats.bytes_in += bytes.size();
  if (counts_ != nullptr) {
    counts_->bytes_in += bytes.size();
    counts_->heard_at = host_->loop.recently();
  }
  if (drain_bytes_left_ != 0) [[unlikely]] {
    drain_bytes_left_ -= std::min(drain_bytes_left_, bytes.size());
    if (drain_bytes_left_ == 0) drain_input();  // until there is nothing for once
  }
  if (input_ended()) return;
  if (!backlog_.empty()) {
    backlog_received_at_ = host_->loop.now();
    return backlog_.append({bytes.data(), bytes.size()});
  }
  std::size_t consumed = 0;
  if (!consume_input(bytes, consumed)) return;
  if (consumed != bytes.size() && !input_ended()) [[unlikely]] {
    Buffer rest = buffer_for(host_->loop, bytes.size() - consumed);
    rest.append({bytes.data() + consumed, bytes.size() - consumed});
    defer_input(std::move(rest));
  }
}

// Runs `act` on `input`. False when a handler lost the loop meanwhile, and other threads have served the rest.
template <class Consume>
bool ChannelInput::consume(std::span<char> input, const Consume& act) {
  WIRECALL_ASSERT(!consuming_);
  host_->active_channel = static_cast<Channel*>(this);
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
  WIRECALL_ASSERT(off_loop_ != 0);
  --off_loop_;
  handler_rejoined();
  mark();
  return false;
}

// The same for received bytes, of which `read` has `consumed` so many.
bool ChannelInput::consume_input(std::span<char> input, std::size_t& consumed) {
  share_.begin(host_->loop);
  if (!consume(input, [&] { consumed = read(input); })) return false;
  WIRECALL_ASSERT(consumed <= input.size());
  share_.consumed(consumed);
  return true;
}

// The same for the rest of an interrupted message. False when nothing behind it may be dispatched yet.
bool ChannelInput::consume_interrupted() {
  if (is_held(Hold::message) || is_held(Hold::protocol) || output_waits()) return false;
  holds_ = 0;
  share_.begin(host_->loop);
  consumed_ = 0;
  return consume({}, [&] { resume_message(); }) && !is_held(Hold::interrupted);
}

bool ChannelInput::next_slice(std::size_t at) noexcept {
  if (!next_slice()) return false;
  share_.begin_bytes(at);
  return true;
}

void ChannelInput::leave_input(std::vector<Buffer>& kept) {
  if (!consuming_) return;
  const std::span<char> unread = input_.subspan(std::min(consumed_, input_.size()));
  // What needs memory comes first: without it the handler keeps the loop, and nothing has changed.
  Buffer rest = buffer_for(host_->loop, unread.size());
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

void ChannelInput::receive_end() {
  switch (state()) {
    case State::open:
    case State::ending:
      if (backlog_.empty() && !is_within_message()) return end_of_stream();
      if (state() == State::open) enter(State::ending);
      return;
    case State::finishing: return enter(State::ended);
    case State::lingering:
      // Nobody is left to whom an answer could matter but by reading it.
      return end_linger();
    case State::ended:
    case State::over: return;
  }
}

void ChannelInput::end_of_stream() {
  consumed_ = 0;
  static_cast<void>(consume({}, [&] { input_complete(); }));
  if (!over() && state() != State::ended) enter(State::ended);
  mark();
}

// ---- input that waits ----

void ChannelInput::interrupt() {
  if (over()) return;
  hold(Hold::interrupted);
  pause_input();
  schedule_input();
}

void ChannelInput::defer_input(Buffer rest) noexcept {
  backlog_ = std::move(rest);
  backlog_at_ = 0;
  backlog_received_at_ = host_->loop.now();
  pause_input();
  schedule_input();
}

void ChannelInput::pause_input() noexcept {
  paused_ = true;
  try {
    stream_->pause();
  } catch (const std::bad_alloc&) {
    fail_out_of_memory();
  }
}

void ChannelInput::schedule_input() noexcept {
  if (scheduled_ || is_held(Hold::protocol) || is_held(Hold::message) || output_waits()) return;
  schedule();
}

std::shared_ptr<void> ChannelInput::hold_input() {
  if (is_held(Hold::message)) return rare_->hold.lock();
  auto made = std::make_shared<InputHold>(*this);
  rare().hold = made;
  hold(Hold::message);
  share_.end_slice();
  return made;
}

void ChannelInput::release(Hold why) noexcept {
  holds_ = static_cast<std::uint8_t>(holds_ & ~static_cast<std::uint8_t>(why));
  const bool waits = paused_ || state() == State::ending;
  if (waits && (is_held(Hold::interrupted) || !input_ended()) && !over()) schedule_input();
}

void ChannelInput::process_backlog() {
  if (is_held(Hold::interrupted) && !consume_interrupted()) return;
  if (!backlog_.empty()) {
    static_cast<void>(backlog_.padded());
    const std::span<char> waiting{backlog_.data() + backlog_at_, backlog_.size() - backlog_at_};
    std::size_t consumed = 0;
    if (!consume_input(waiting, consumed)) return;
    backlog_at_ += consumed;
    if (backlog_at_ != backlog_.size() && !input_ended()) return schedule_input();
    give_back(backlog_);
    backlog_at_ = 0;
  }
  if (over()) return;
  if (state() == State::ending && !is_held(Hold::message)) return end_of_stream();
  if (backpressured()) return;
  paused_ = false;
  stream_->resume();
}

Buffer ChannelInput::take_backlog() {
  Buffer rest{backlog_.view().substr(backlog_at_)};
  give_back(backlog_);
  backlog_at_ = 0;
  return rest;
}

void ChannelInput::assert_input() const noexcept {
  WIRECALL_ASSERT(backlog_at_ <= backlog_.size());
  WIRECALL_ASSERT(!is_held(Hold::message) || (rare_ && !rare_->hold.expired()));
  WIRECALL_ASSERT(!consuming_ || host_->active_channel == this);
  if (over()) return;
  WIRECALL_ASSERT(paused_ || backlog_.empty());
  WIRECALL_ASSERT(paused_ || !is_held(Hold::interrupted));
}

}  // namespace wirecall::net
