// Controller: wirecall's google::protobuf::RpcController. Who calls makes one for a call, sets its deadline, and asks
// it for the error. A service is given one, and is told by it of the deadline and the cancellation. Thread: one at a
// time; StartCancel and IsCanceled any.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <google/protobuf/service.h>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "wirecall/context.hpp"
#include "wirecall/error.hpp"

namespace wirecall::detail {
class OutgoingCall;
}

namespace wirecall::protobuf {

class Controller final : public google::protobuf::RpcController {
 public:
  /// For a call by itself.
  Controller() = default;
  /// For a call that belongs to the one that a handler serves (`controller.context()`, or the handler's Context): it
  /// has the time that is left of that one, is cancelled with it, and counts as one hop further.
  explicit Controller(const Context& within);
  ~Controller() override;

  /// The controller that a service has been given by wirecall. Throws std::invalid_argument for any other.
  [[nodiscard]] static Controller& of(google::protobuf::RpcController* controller);

  // ---- who calls ----

  /// Bounds the time of the next call; in a call that belongs to another one, what is left of that one still bounds it.
  /// The default is ClientOptions::call_timeout_ms.
  void set_timeout(std::chrono::milliseconds timeout) noexcept { timeout_ = timeout; }
  /// Makes this ready for the next call, without timeout and error. Not while a call is in progress.
  void Reset() override;
  [[nodiscard]] bool Failed() const override { return error_.has_value(); }
  /// The message of the error; empty where there is none.
  [[nodiscard]] std::string ErrorText() const override { return error_ ? error_->message() : std::string{}; }
  /// The whole error, with its code and data; null where there is none.
  [[nodiscard]] const Error* error() const noexcept { return error_ ? &*error_ : nullptr; }
  /// Cancels the call: it ends with -32800, and the server is told. Any thread.
  void StartCancel() override { stop_.request_stop(); }

  // ---- a service ----

  /// Answers the call with an error of code -32000, when its closure runs.
  void SetFailed(const std::string& reason) override { error_.emplace(reason); }
  /// The same with a code and data, as the error of a call that the service has made itself.
  void fail(Error error) { error_ = std::move(error); }
  /// Whether nobody waits for the answer any more: the call is cancelled, its time is over, or its caller has left.
  [[nodiscard]] bool IsCanceled() const override;
  /// Has `callback` run once: at the cancellation, on the thread of the call's loop, or else when the call is answered.
  void NotifyOnCancel(google::protobuf::Closure* callback) override;
  /// The call that the service serves: deadline, caller's name, id, on any thread and as long as there is the
  /// controller. It has no scheduler, since the service may go on after its server.
  [[nodiscard]] const Context& context() const noexcept { return context_; }

 private:
  friend class Channel;
  friend class ServedCall;
  struct ServedTag {};

  // Of a call that is served.
  Controller(ServedTag, Context context) noexcept : context_(std::move(context)), served_(true) {}
  void apply_to(wirecall::detail::OutgoingCall& call);
  void answered();
  void run_on_cancel();

  Context context_;
  bool served_ = false;
  bool within_ = false;
  std::optional<std::chrono::milliseconds> timeout_;
  std::optional<Error> error_;
  std::stop_source stop_;
  std::optional<std::stop_callback<std::function<void()>>> outer_;  // of the call within which this one is made
  std::atomic<google::protobuf::Closure*> on_cancel_{nullptr};
  std::optional<std::stop_callback<std::function<void()>>> cancelled_;  // runs on_cancel_
};

/// A closure that runs `function` once and then deletes itself: what NewCallback is for, of any callable.
template <class F>
[[nodiscard]] google::protobuf::Closure* new_closure(F function) {
  struct Once final : google::protobuf::Closure {
    explicit Once(F&& run) : function(std::move(run)) {}
    void Run() override {
      const std::unique_ptr<Once> self{this};
      function();
    }
    F function;
  };
  return new Once{std::move(function)};
}

}  // namespace wirecall::protobuf
