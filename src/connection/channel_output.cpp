// See channel_output.hpp. One path matters: `send_output`, once a turn.
#include "connection/channel_output.hpp"

#include "connection/channel_rare.hpp"

namespace wirecall::net {

// Reading goes on when the output has fallen to this share of Limits::soft_output.
constexpr std::size_t kLowOutputDivisor = 4;
// Output that no request waits for fills this share of it at most: what it fills, the peer must be able to cancel, and
// so is still to be read.
constexpr std::size_t kWritableDivisor = 2;
// Who was sent so much at once is likely to be sent as much again.
constexpr std::size_t kLargeOutputBytes = 256 * 1024;
// What nobody has asked for fills this share of Limits::principal_bytes at most, so that answers stay within the
// budget.
constexpr std::size_t kUnaskedDivisor = 2;
// A message is sent with no more than that around it.
constexpr std::size_t kFramingOverheadMax = 1024;

ChannelOutput::ChannelOutput(Host& host, std::unique_ptr<transport::ByteStream> stream)
    : ChannelLife(host, std::move(stream)),
      weighed_from_(host.limits.hard_output >= kWeighedBytes ? 1 : 0),
      little_output_(static_cast<std::uint8_t>(std::min(host.limits.soft_output, kLittleOutput) / 1024)) {}

void ChannelOutput::take_output() noexcept {
  out_ = large_output_ ? host_->loop.take_large_buffer() : host_->loop.take_buffer();
}

void ChannelOutput::send_output(bool prompt) {
  WIRECALL_ASSERT(!is_sending());
  sending_bytes_ = out_.size();
  host_->loop_context.stats.bytes_out += sending_bytes_;
  if (counts_ != nullptr) counts_->bytes_out += sending_bytes_;
  try {
    stream_->send(std::move(out_), prompt);
  } catch (const std::bad_alloc&) {
    fail_out_of_memory();  // not at once, since it may be the owner who calls this
  }
  out_ = Buffer{};
}

void ChannelOutput::output_sent(Buffer&& buffer) noexcept {
  large_output_ = sending_bytes_ > kLargeOutputBytes;
  sending_bytes_ = 0;
  host_->loop.give_buffer(std::move(buffer));
  if (is_weighed()) [[unlikely]]
    weigh();
}

bool ChannelOutput::continue_output() {
  const bool low = out_.size() <= host_->limits.soft_output / kLowOutputDivisor;
  if (awaits_writable_ && low) [[unlikely]] {
    awaits_writable_ = false;
    output_drained();  // which may fill it again: reading goes on all the same
  }
  return low;
}

bool ChannelOutput::output_writable() noexcept {
  if (output_bytes() <= host_->limits.soft_output / kWritableDivisor) [[likely]]
    return true;
  awaits_writable_ = true;
  return false;
}

// ---- the budget ----

bool ChannelOutput::holds_much() const noexcept { return rare_->weight != nullptr; }

void ChannelOutput::Weight::evict() {
  channel_->cut_with_turn(Cut::evicted);
  channel_->host_->loop_context.write_log(
      LogLevel::warning, "a connection is closed: those of " + account_->name +
                             " hold more than limits.principal_bytes of messages and answers, and it most of them");
}

void ChannelOutput::output_is_large(std::size_t waiting) noexcept {
  if (sending_bytes_ + waiting > host_->limits.hard_output) cut_with_turn(Cut::slow);
  weigh();
}

// What is kept for the connection besides its output is not known to be counted yet: so it is counted here anew. Where
// that is too much, there may be budget once its own output has been sent.
bool ChannelOutput::is_within_budget(std::size_t more) noexcept {
  try {
    const std::shared_ptr<rpc::Account> on = account();
    if (!on) return true;
    const std::size_t counted = is_weighed() ? rare_->weight->of(*on) : 0;
    const std::size_t own = output_bytes() + more + kFramingOverheadMax + backlog_bytes() + kept_bytes();
    if (on->buffers.bytes() - counted + own <= host_->limits.principal_bytes / kUnaskedDivisor) return true;
    if (output_bytes() != 0) awaits_writable_ = true;
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool ChannelOutput::is_overfull_beyond_little() noexcept {
  const std::size_t output = output_bytes();
  const bool little = output <= kLittleOutput || is_within_budget(rpc::kBytesUnasked);
  if (output <= host_->limits.soft_output && little) return false;
  awaits_writable_ = true;
  return true;
}

// Of output more is weighed when it has grown by as much as is not weighed at all.
void ChannelOutput::weigh() noexcept {
  if (over() || cut_reason() != Cut::none) return;
  const std::size_t output = output_bytes();
  weighed_from_ =
      static_cast<std::uint16_t>(std::min(output / kWeighedBytes + 1, host_->limits.hard_output / kWeighedBytes));
  const std::size_t bytes = output + backlog_bytes() + kept_bytes();
  if (bytes <= kWeighedBytes) {
    if (rare_) rare_->weight.reset();
    return;
  }
  try {
    std::shared_ptr<rpc::Account> on = account();
    if (!on) return;
    if (!rare().weight) rare_->weight = std::make_unique<Weight>(*this);
    rare_->weight->set(std::move(on), bytes);
  } catch (const std::bad_alloc&) {
    fail_out_of_memory();
  }
}

void ChannelOutput::assert_output() const noexcept {
  WIRECALL_ASSERT(little_output_ * std::size_t{1024} <= host_->limits.soft_output);
  // What is weighed is on the account until there is little of it; what is not counted is not much.
  WIRECALL_ASSERT(over() || out_.empty() || marked_ || is_sending());
}

}  // namespace wirecall::net
