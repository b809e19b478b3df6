// MissingMethods: whether the calls that a connection has answered with -32601 were delivered to anybody. That code
// alone does not tell, since a handler may answer with it, as one does that has called a method which is missing. So
// the server is asked how many it has answered with itself (rpc.undelivered): when it is as many as have come on the
// connection, all were its own. Guarded by the client's mutex.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

#include "wirecall/error.hpp"

namespace wirecall::net {

[[nodiscard]] inline bool has_code(const Error& error, ErrorCode code) noexcept {
  return error.code() == static_cast<int>(code);
}

class MissingMethods {
 public:
  /// No call has these: their ids are numbers.
  static constexpr std::string_view kId = R"("rpc.undelivered")";
  static constexpr std::string_view kQuestion =
      R"({"jsonrpc":"2.0","method":"rpc.undelivered","id":"rpc.undelivered"})";

  /// An error has come.
  void count(const Error& error) noexcept {
    if (has_code(error, ErrorCode::method_not_found) && unknown_ != kCountMax) ++unknown_;
  }
  /// A batch was sent: its answers come in another order than they are made, so the server cannot be asked any more.
  void batch_sent() noexcept { batched_ = true; }
  [[nodiscard]] bool may_ask() const noexcept { return !batched_; }
  /// The question has been sent, and not been answered.
  [[nodiscard]] bool asked() const noexcept { return asked_; }
  void ask() noexcept { asked_ = true; }
  /// The server's answer, empty for an error: true when it has itself answered all.
  [[nodiscard]] bool answered(std::string_view count) noexcept {
    asked_ = false;
    std::uint8_t number = kCountMax;
    const auto [end, fault] = std::from_chars(count.data(), count.data() + count.size(), number);
    const bool read = fault == std::errc{} && !count.empty() && end == count.data() + count.size();
    return number == std::exchange(unknown_, std::uint8_t{0}) && read && number < kCountMax;
  }
  void reset() noexcept { *this = {}; }

 private:
  static constexpr std::uint8_t kCountMax = std::numeric_limits<std::uint8_t>::max();

  std::uint8_t unknown_ = 0;  // since the last answer; kCountMax for more
  bool asked_ = false;
  bool batched_ = false;
};

}  // namespace wirecall::net
