// What awaits a client's answers: a request, a batch, the next item of a stream. An answer comes on the thread that
// drives the client. A task whose executor is that thread, or that has no executor, is resumed at once and reads the
// answer in place. For any other task the answer is copied, and the task is resumed by its executor.
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

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
    if (awaiter != nullptr) awaiter->resume_with(payload);
  }

  Awaiter* awaiter;   // used on the executor's thread; null once it waits no more
  Payload payload{};  // used on the thread that drives until it posts this, then on the executor's
  const std::shared_ptr<Executor> executor;
};

namespace {

// Null where the root is resumed on the thread that drives.
template <class Resumption, class Awaiter>
std::shared_ptr<Resumption> make_resumption(Awaiter& awaiter, const Root& root, const Executor* driver) {
  const std::shared_ptr<Executor>* const executor = root.executor();
  if (executor == nullptr || *executor == nullptr || executor->get() == driver) [[likely]]
    return nullptr;
  return std::make_shared<Resumption>(awaiter, *executor);
}

}  // namespace

// ---- a request ----

bool RequestAwaiterBase::suspend(Root& root) try {
  if (!wait(root)) return false;
  pending_ = make_resumption<Pending>(*this, root, call_.driver());
  waiting_ = true;
  // From here on `this` is not used: the thread that drives may have resumed the coroutine already.
  if (pending_ != nullptr) {
    call_.start([pending = pending_](Answer& answer) {
      pending->payload.emplace(answer);
      Pending::post(pending);
    });
  } else {
    call_.start([this](Answer& answer) {
      waiting_ = false;
      answered(answer);
      wake();
    });
  }
  return true;
} catch (...) {
  // Nothing has been started.
  waiting_ = false;
  wait_no_more();
  throw;
}

void RequestAwaiterBase::resume_with(std::optional<BufferedAnswer>& payload) noexcept {
  waiting_ = false;
  Answer answer = payload->take();
  answered(answer);
  wake();
}

void RequestAwaiterBase::forget() noexcept {
  if (!std::exchange(waiting_, false)) return;
  if (pending_ == nullptr) return call_.forget();
  pending_->awaiter = nullptr;
  static_cast<void>(call_.handle().cancel());
}

// ---- a batch ----

bool BatchAwaiterBase::suspend(Root& root) try {
  if (!wait(root)) return false;
  pending_ = make_resumption<Pending>(*this, root, batch_.driver());
  if (pending_ != nullptr) pending_->payload.reserve(batch_.size());
  waiting_ = true;
  // As above.
  if (pending_ != nullptr) {
    batch_.start(
        [pending = pending_](std::size_t result, Answer& answer) { pending->payload.emplace_back(result, answer); },
        [pending = pending_] { Pending::post(pending); });
  } else {
    batch_.start([this](std::size_t result, Answer& answer) { answered(result, answer); },
                 [this] {
                   waiting_ = false;
                   wake();
                 });
  }
  return true;
} catch (...) {
  // Nothing has been started.
  waiting_ = false;
  wait_no_more();
  throw;
}

void BatchAwaiterBase::resume_with(Answers& payload) noexcept {
  waiting_ = false;
  for (auto& [result, buffered] : payload) {
    Answer answer = buffered.take();
    answered(result, answer);
  }
  wake();
}

void BatchAwaiterBase::forget() noexcept {
  if (!std::exchange(waiting_, false)) return;
  if (pending_ == nullptr) return batch_.forget();
  pending_->awaiter = nullptr;
  batch_.cancel();
}

// ---- the next item of a stream ----

bool ItemAwaiter::suspend(Root& root) try {
  if (!wait(root)) return false;
  pending_ = make_resumption<Pending>(*this, root, stream_->driver());
  waiting_ = true;
  // From poll on, the thread that drives may resume the coroutine.
  ItemReader::Next next;
  if (pending_ != nullptr) {
    next = stream_->poll([pending = pending_] { Pending::post(pending); });
  } else {
    next = stream_->poll([this] { resume(); });
  }
  if (next == ItemReader::Next::none) return true;
  waiting_ = false;
  next_ = next;
  return false;
} catch (...) {
  // Nothing has been started.
  waiting_ = false;
  wait_no_more();
  throw;
}

void ItemAwaiter::resume() noexcept {
  waiting_ = false;
  wake();
}

void ItemAwaiter::forget() noexcept {
  if (!std::exchange(waiting_, false)) return;
  if (pending_ != nullptr) pending_->awaiter = nullptr;
  stream_->forget();
}

}  // namespace wirecall::detail
