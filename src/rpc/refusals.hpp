// Refusals: who is told why a message was answered -32700 or -32600: its sender, where the option explain_errors is
// set, and the log, at level debug; who is not let in is in the log at level warning. Senders cause these records, so
// it writes a few a second and counts the rest. One thread. Implements docs/errors.md "Why a message was refused".
#pragma once

#include "message/explain.hpp"
#include "wirecall/context.hpp"
#include "wirecall/error.hpp"
#include "wirecall/log.hpp"

namespace wirecall::rpc {

class Refusals {
 public:
  /// Both may be null, and outlive it.
  Refusals(const LogSink* log, const Scheduler* clock) noexcept : log_(log), clock_(clock) {}

  /// Options::explain_errors.
  void explain(bool to_sender) noexcept { to_sender_ = to_sender; }
  /// Whether anybody wants the reason of one that comes now. Asked before a reason is looked for; counts it.
  [[nodiscard]] bool wants_reason() noexcept;
  /// The error's data: `limit`, where one was exceeded, and what `why` says, which is asked only where somebody is
  /// told. Logs the refusal.
  template <class Why>
  [[nodiscard]] std::string data(ErrorCode code, std::string_view limit, const Why& why) {
    std::string reason;
    if (wants_reason()) {
      reason = why();
      log(code, reason);
      if (!to_sender_) reason.clear();
    }
    return message::refusal_data(reason, limit);
  }
  /// After wants_reason.
  void log(ErrorCode code, std::string_view reason) const noexcept;
  /// The same of a request of HTTP that is answered 400.
  void log_http(std::string_view reason) const noexcept;
  /// A peer that is not known, or no longer, and what it has asked for. At level warning.
  struct Unauthenticated {
    std::string_view what;    ///< a method, or a method of HTTP with a path
    std::string_view about;   ///< what its params name (request_subject.hpp)
    std::string_view source;  ///< MessageSink::peer_source
    std::string_view reason;
  };
  static constexpr std::string_view kNoToken = "no token";
  static constexpr std::string_view kUnknownToken = "a token that is not known";
  static constexpr std::string_view kRemovedToken = "a token that is no longer known, or grants less";
  static constexpr std::string_view kRemovedCertificate = "a certificate that is no longer known, or grants less";
  static constexpr std::string_view kOtherPrincipal = "a token of another principal than before";
  void log_unauthenticated(const Unauthenticated& peer) noexcept;

 private:
  static constexpr std::uint32_t kRecordsASecond = 10;

  struct Budget {
    std::string_view left_out_text;
    std::chrono::nanoseconds second{};  // when the present one began
    std::uint32_t written = 0;          // in this second
    std::int64_t left_out = 0;          // since the last one that was written
  };

  [[nodiscard]] bool admits(Budget& budget, LogLevel level) noexcept;

  const LogSink* log_;
  const Scheduler* clock_;
  Budget messages_{.left_out_text = "refused messages are left out"};
  Budget unauthenticated_{.left_out_text = "callers that are not let in are left out"};
  bool logs_this_ = false;
  bool to_sender_ = false;
};

}  // namespace wirecall::rpc
