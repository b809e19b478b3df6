// What awaits a client's answers: a request, a batch, the next item of a stream. An answer comes on the thread that
// drives the client. A task whose executor is that thread, or that has no executor, is resumed at once and reads the
// answer in place. For any other task the answer is copied, and the task is resumed by its executor.
#include <new>

#include "client/core.hpp"
#include "wirecall/batch.hpp"
#include "wirecall/detail/executor.hpp"
#include "wirecall/request.hpp"
#include "wirecall/result_stream.hpp"

namespace wirecall::detail {

/// A copy of an answer, which lasts longer than the receiver; -32603 where there is no memory for the copy.
struct BufferedAnswer {
  explicit BufferedAnswer(Answer& answer) noexcept {
    if (!answer.ok()) {
      failed.emplace(std::move(answer));
      return;
    }
    try {
      reader = answer.codec().reader();
      text.append(answer.result());
      static_cast<void>(text.padded());
    } catch (const std::bad_alloc&) {
      failed.emplace(Error{ErrorCode::internal_error});
    }
  }
  [[nodiscard]] Answer take() noexcept {
    if (failed) return std::move(*failed);
    return {*reader, text.padded()};
  }

  Buffer text;
  std::unique_ptr<Reader> reader;
  std::optional<Answer> failed;
};

/// A task that waits for an answer on another thread than its own: shared by the awaiter and by the thread that drives
/// the client, which fills in the payload and then posts this to the task's executor.
template <class Awaiter, class Payload>
struct PendingResumption final : Executor::Continuation {
  PendingResumption(Awaiter& who, std::shared_ptr<Executor> where) : awaiter(&who), executor(std::move(where)) {}

  /// On the thread that drives: the payload is complete.
  static void post(const std::shared_ptr<PendingResumption>& pending) noexcept { pending->executor->post(pending); }
  void resume() noexcept override {
    if (awaiter == nullptr) return;
    awaiter->take(payload);
    awaiter->resume();
  }

  Awaiter* awaiter;   // used on the executor's thread; null once it waits no more
  Payload payload{};  // used on the thread that drives until it posts this, then on the executor's
  const std::shared_ptr<Executor> executor;
};

template <class Awaiter, class Payload>
bool DrivenAwaiter<Awaiter, Payload>::suspend(Root& root) try {
  if (!wait(root)) return false;
  Awaiter& awaiter = static_cast<Awaiter&>(*this);
  const std::shared_ptr<Executor>* const executor = root.executor();
  if (executor != nullptr && *executor != nullptr && executor->get() != awaiter.driver()) [[unlikely]]
    pending_ = std::make_shared<Pending>(awaiter, *executor);
  waiting_ = true;
  // Where it waits, `this` is not used any more: the thread that drives may have resumed the coroutine already.
  if (awaiter.begin(pending_)) return true;
  waiting_ = false;
  return false;
} catch (...) {
  // Nothing has been started.
  waiting_ = false;
  wait_no_more();
  throw;
}

template <class Awaiter, class Payload>
void DrivenAwaiter<Awaiter, Payload>::forget() noexcept {
  if (!std::exchange(waiting_, false)) return;
  if (pending_ != nullptr) pending_->awaiter = nullptr;
  static_cast<Awaiter&>(*this).give_up(pending_ != nullptr);
}

template class DrivenAwaiter<RequestAwaiterBase, std::optional<BufferedAnswer>>;
template class DrivenAwaiter<BatchAwaiterBase, BatchAnswers>;
template class DrivenAwaiter<ItemAwaiter, NoPayload>;

// ---- a request ----

bool RequestAwaiterBase::begin(const std::shared_ptr<Pending>& pending) {
  if (pending != nullptr) {
    call_.start([pending = pending](Answer& answer) {
      pending->payload.emplace(answer);
      Pending::post(pending);
    });
  } else {
    call_.start([this](Answer& answer) {
      answered(answer);
      resume();
    });
  }
  return true;
}

void RequestAwaiterBase::take(std::optional<BufferedAnswer>& payload) noexcept {
  Answer answer = payload->take();
  answered(answer);
}

void RequestAwaiterBase::give_up(bool elsewhere) noexcept {
  if (!elsewhere) return call_.forget();
  static_cast<void>(call_.handle().cancel());
}

// ---- a batch ----

bool BatchAwaiterBase::begin(const std::shared_ptr<Pending>& pending) {
  if (pending != nullptr) {
    pending->payload.reserve(batch_.size());
    batch_.start(
        [pending = pending](std::size_t result, Answer& answer) { pending->payload.emplace_back(result, answer); },
        [pending = pending] { Pending::post(pending); });
  } else {
    batch_.start([this](std::size_t result, Answer& answer) { answered(result, answer); }, [this] { resume(); });
  }
  return true;
}

void BatchAwaiterBase::take(BatchAnswers& payload) noexcept {
  for (auto& [result, buffered] : payload) {
    Answer answer = buffered.take();
    answered(result, answer);
  }
}

void BatchAwaiterBase::give_up(bool elsewhere) noexcept { elsewhere ? batch_.cancel() : batch_.forget(); }

// ---- the next item of a stream ----

bool ItemAwaiter::begin(const std::shared_ptr<Pending>& pending) {
  // From poll on, the thread that drives may resume the coroutine.
  const ItemReader::Next next = pending != nullptr ? stream_->poll([pending = pending] { Pending::post(pending); })
                                                   : stream_->poll([this] { resume(); });
  if (next == ItemReader::Next::none) return true;
  next_ = next;
  return false;
}

}  // namespace wirecall::detail
