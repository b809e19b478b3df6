// OffLoopReply: what a handler answers while its thread does not have the loop, or may not. It is encoded into memory
// of its own, and given to the call when the thread, or another one, has the loop. To give it is to copy its bytes. Not
// for answers at the usual pace: those are written straight into the connection's output. It is moved at most once all
// is written. Thread: any to write, one at a time, which ends the result that it begins; the loop's to give.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"

namespace wirecall {

class Call;
class Method;
class ReplySink;

namespace detail {

class OffLoopReply {
 public:
  OffLoopReply() = default;
  /// `call` is used now only.
  explicit OffLoopReply(const Call& call) noexcept;
  OffLoopReply(OffLoopReply&&) noexcept = default;
  OffLoopReply& operator=(OffLoopReply&&) noexcept = default;
  ~OffLoopReply();

  /// As Call::use_own_form, of a call of that method.
  void use_own_form(const Method& method) noexcept;
  /// As ReplySink's.
  [[nodiscard]] Writer* begin_result();
  void end_result();
  void error(const Error& error) { error_ = error; }
  /// The call fails with that exception.
  void error(std::exception_ptr exception) noexcept { exception_ = std::move(exception); }
  /// Keeps the exception in flight; only in a catch block.
  void error_in_flight() noexcept { exception_ = std::current_exception(); }
  [[nodiscard]] bool has_failed() const noexcept { return error_.has_value() || exception_ != nullptr; }

  void give(Call& call) const noexcept;
  void give(ReplySink& sink) const noexcept;

 private:
  template <class Sink>
  void give_to(Sink& sink) const noexcept;

  const Codec* codec_ = nullptr;         // null for a notification, which has no result
  const Method* own_form_of_ = nullptr;  // the method of a result that goes so
  Buffer value_;
  std::unique_ptr<Writer> writer_;  // while a result is written
  std::string failure_;             // of that; empty for none
  std::optional<Error> error_;
  std::exception_ptr exception_;
};

}  // namespace detail
}  // namespace wirecall
