// See refusals.hpp.
#include "rpc/refusals.hpp"

namespace wirecall::rpc {

bool Refusals::wants_reason() noexcept {
  logs_this_ = admits(messages_, LogLevel::debug);
  return logs_this_ || to_sender_;
}

bool Refusals::admits(Budget& budget, LogLevel level) noexcept {
  if (log_ == nullptr || !log_->takes(level)) return false;
  const std::chrono::nanoseconds now = clock_ != nullptr ? clock_->now() : std::chrono::nanoseconds{0};
  if (now - budget.second >= std::chrono::seconds{1}) {
    budget.second = now;
    budget.written = 0;
  }
  if (budget.written == kRecordsASecond) {
    ++budget.left_out;
    return false;
  }
  ++budget.written;
  if (const std::int64_t left_out = std::exchange(budget.left_out, 0); left_out != 0)
    (*log_)(level, budget.left_out_text, {{"records", left_out}});
  return true;
}

void Refusals::log(ErrorCode code, std::string_view reason) const noexcept {
  if (logs_this_)
    (*log_)(LogLevel::debug, "a message was refused", {{"code", static_cast<std::int64_t>(code)}, {"reason", reason}});
}

void Refusals::log_http(std::string_view reason) const noexcept {
  if (logs_this_) (*log_)(LogLevel::debug, "a request of HTTP was refused", {{"status", 400}, {"reason", reason}});
}

void Refusals::log_unauthenticated(const Unauthenticated& peer) noexcept {
  if (!admits(unauthenticated_, LogLevel::warning)) return;
  (*log_)(LogLevel::warning, "a caller is not let in",
          {{"method", peer.what},
           {"about", peer.about},
           {"source", peer.source},
           {"reason", peer.reason},
           {"code", static_cast<std::int64_t>(ErrorCode::unauthenticated)}});
}

}  // namespace wirecall::rpc
