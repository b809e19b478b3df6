// wc_call: a call as its handler in C sees it, in one of two states. A live call is on the stack of whoever runs the
// handler, and is answered at once. A detached one (Detached) has all that it needs of its own, and is answered from
// any thread by way of its loop.
//
// While a handler runs, another thread may have taken over its loop (detail/watchdog_slot.hpp). So whatever touches
// more than the parameters, closes the watchdog scope first, which waits for the loop, and opens it again after that.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "c/entry.hpp"
#include "c/params.hpp"
#include "wirecall.h"
#include "wirecall/bytes.hpp"
#include "wirecall/call.hpp"
#include "wirecall/context.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/detail/off_loop_reply.hpp"
#include "wirecall/detail/watchdog_slot.hpp"

namespace wirecall::c {
class Detached;
}  // namespace wirecall::c

struct wc_call {
  wc_call(std::string_view text, const wirecall::Received* integers, wirecall::Reader* reader,
          wirecall::Call* served) noexcept
      : params(text, integers, reader), call(served) {}
  wc_call(wc_call&&) = delete;

  wirecall::c::Params params;
  wirecall::Call* call;                                  // null for one that is detached
  wirecall::c::Detached* detached = nullptr;             // null for one that is live
  bool answered = false;                                 // of a live one: or deferred
  std::optional<wirecall::detail::WatchdogScope> scope;  // of a live one, while its handler runs
};

namespace wirecall::c {

/// Runs `action` while this thread has the loop of a live call.
template <class F>
[[gnu::always_inline]] inline decltype(auto) on_loop(wc_call& call, F&& action) {
  struct Reopen {
    wc_call& call;
    bool open;
    ~Reopen() {
      if (open) call.scope.emplace(call.call->watchdog_slot(), call.call->method(), call.call);
    }
  };
  const Reopen reopen{call, call.scope.has_value()};
  if (reopen.open) call.scope->close();
  return action();
}

/// What the parameters of a call have failed with, as its answer.
[[nodiscard]] Error failure_of(const Params& params);

/// What any thread may know of a call (detail::detached_context), made when it is first asked for.
[[nodiscard]] const Context& context_of(wc_call& call);

/// A call that has left its handler's stack. Shared by its owner in C and by the loop, while its answer is on the way.
class Detached final : public detail::Executor::Continuation, public std::enable_shared_from_this<Detached> {
 public:
  /// On the loop's thread. The call has no other answer from then on.
  explicit Detached(Call& call);
  ~Detached() override;

  [[nodiscard]] wc_call& call() noexcept { return call_; }
  [[nodiscard]] const Context& context() const noexcept { return context_; }
  /// The owner in C has it until `release`.
  wc_call* give_to_owner() noexcept {
    owner_ = shared_from_this();
    deferred_ = true;
    return &call_;
  }
  /// Whether it has been given to an owner; the thread of the handler.
  [[nodiscard]] bool is_deferred() const noexcept { return deferred_; }
  /// Answers -32603 where there is no answer yet, and gives up the owner's part.
  void release() noexcept;

  /// Answers by `write`, which is given an OffLoopReply, unless there is an answer. Any thread.
  template <class F>
  void answer(F&& write) noexcept {
    if (!begin_answer()) return;
    try {
      if (call_.params.failed || !call_.params.all_asked_for()) [[unlikely]] {
        reply_.error(failure_of(call_.params));
      } else {
        write(reply_);
      }
    } catch (...) {
      reply_.error_in_flight();
    }
    post_answer();
  }
  /// On the loop's thread, where there is no executor: what has no answer by now is cancelled.
  void end_without_executor() noexcept;
  [[nodiscard]] bool has_executor() const noexcept { return executor_ != nullptr; }

 private:
  enum class Answer : std::uint8_t { none, being_written, written };

  void resume() noexcept override;
  /// True for the first to call it.
  bool begin_answer() noexcept {
    Answer none = Answer::none;
    return answer_.compare_exchange_strong(none, Answer::being_written, std::memory_order_acq_rel);
  }
  void post_answer() noexcept;

  Buffer text_;
  std::unique_ptr<Reader> reader_;
  wc_call call_;
  Context context_;
  std::shared_ptr<detail::Executor> executor_;
  detail::OffLoopReply reply_;
  ReplySink sink_;  // the loop's
  std::atomic<Answer> answer_{Answer::none};
  std::shared_ptr<Detached> owner_;
  bool deferred_ = false;
};

/// Answers a live call by `answer`, unless it has an answer. Inline: it is what each call in C costs.
template <class F>
[[gnu::always_inline]] inline void answer_live(wc_call& call, F&& answer) noexcept {
  if (call.answered || call.params.failed) return;
  try {
    if (!call.params.all_asked_for()) [[unlikely]]
      return;
    on_loop(call, [&] {
      call.answered = true;
      try {
        answer(*call.call);
      } catch (...) {
        call.call->error_in_flight();
      }
    });
  } catch (...) {
    call.params.failed = true;  // there was no memory for what is wrong
    fail_in_flight();
  }
}

/// Answers with a result, which `write` writes by the Writer that it is given.
template <class F>
void give_result(wc_call* call, F&& write) noexcept {
  if (call == nullptr) [[unlikely]]
    return static_cast<void>(fail_null());
  const auto write_to = [&](auto& sink) {
    if (Writer* const writer = sink.begin_result()) write(*writer);
    sink.end_result();
  };
  if (call->detached != nullptr) [[unlikely]]
    return call->detached->answer(write_to);
  answer_live(*call, write_to);
}

}  // namespace wirecall::c
