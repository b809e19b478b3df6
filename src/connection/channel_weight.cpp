// The part of Channel that counts what it holds of the budget of its principal (Limits::principal_bytes).
#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

#include "connection/channel_rare.hpp"
#include "wirecall/log.hpp"

namespace wirecall::session {
namespace {

// What nobody has asked for fills this share of Limits::principal_bytes at most, so that answers stay within the
// budget.
constexpr std::size_t kUnaskedDivisor = 2;
// A message is sent with no more than that around it.
constexpr std::size_t kFramingOverheadMax = 1024;

}  // namespace

Channel::Rare& Channel::rare() {
  if (!rare_) rare_ = std::make_unique<Rare>();
  return *rare_;
}

bool Channel::lingering() const noexcept { return rare_ && rare_->linger; }

bool Channel::holds_much() const noexcept { return rare_->weight != nullptr; }

void Channel::Weight::evict() {
  channel_->evicted_ = channel_->cut_ = true;
  channel_->mark();
  channel_->host_->loop_context.write_log(
      LogLevel::warning, "a connection is closed: those of " + account_->name +
                             " hold more than limits.principal_bytes of messages and answers, and it most of them");
}

void Channel::end_cut() {
  if (evicted_) return end(CloseReason::heaviest);
  ++host_->loop_context.stats.slow_peers_cut;
  end(CloseReason::slow);
}

void Channel::output_is_large(std::size_t waiting) noexcept {
  if (sending_bytes_ + waiting > host_->limits.hard_output) cut_ = true;
  weigh();
}

// What is kept for the connection besides its output is not known to be counted yet: so it is counted here anew. Where
// that is too much, there may be budget once its own output has been sent.
bool Channel::is_within_budget(std::size_t more) noexcept {
  try {
    const std::shared_ptr<rpc::Account> on = account();
    if (!on) return true;
    const std::size_t counted = is_weighed() ? rare_->weight->of(*on) : 0;
    const std::size_t own = output_bytes() + more + kFramingOverheadMax + held_by(backlog_) + kept_bytes();
    if (on->buffers.bytes() - counted + own <= host_->limits.principal_bytes / kUnaskedDivisor) return true;
    if (output_bytes() != 0) awaits_writable_ = true;
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool Channel::is_overfull_beyond_little() noexcept {
  const std::size_t output = output_bytes();
  const bool little = output <= kLittleOutput || is_within_budget(rpc::kBytesUnasked);
  if (output <= host_->limits.soft_output && little) return false;
  awaits_writable_ = true;
  return true;
}

// Of output more is weighed when it has grown by as much as is not weighed at all.
void Channel::weigh() noexcept {
  if (over_ || cut_) return;
  const std::size_t output = output_bytes();
  weighed_from_ =
      static_cast<std::uint16_t>(std::min(output / kWeighedBytes + 1, host_->limits.hard_output / kWeighedBytes));
  const std::size_t bytes = output + held_by(backlog_) + kept_bytes();
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

}  // namespace wirecall::session
