// See refusals.hpp.
#include "rpc/refusals.hpp"

#include <utility>

namespace wirecall::rpc {

bool Refusals::wants_reason() noexcept {
  logs_this_ = admits();
  return logs_this_ || to_sender_;
}

bool Refusals::admits() noexcept {
  if (log_ == nullptr || !log_->takes(LogLevel::debug)) return false;
  const std::chrono::nanoseconds now = clock_ != nullptr ? clock_->now() : std::chrono::nanoseconds{0};
  if (now - second_ >= std::chrono::seconds{1}) {
    second_ = now;
    written_ = 0;
  }
  if (written_ == kRecordsASecond) {
    ++left_out_;
    return false;
  }
  ++written_;
  if (const std::int64_t left_out = std::exchange(left_out_, 0); left_out != 0)
    (*log_)(LogLevel::debug, "refused messages are left out", {{"records", left_out}});
  return true;
}

void Refusals::log(ErrorCode code, std::string_view reason) const noexcept {
  if (logs_this_)
    (*log_)(LogLevel::debug, "a message was refused", {{"code", static_cast<std::int64_t>(code)}, {"reason", reason}});
}

void Refusals::log_http(std::string_view reason) const noexcept {
  if (logs_this_) (*log_)(LogLevel::debug, "a request of HTTP was refused", {{"status", 400}, {"reason", reason}});
}

}  // namespace wirecall::rpc
