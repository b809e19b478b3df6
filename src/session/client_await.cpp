// What awaits a client's answers: a request, a batch, the next item of a stream. An answer comes on the thread that
// drives the client. A task that has its home there, or none, goes on at once, and reads the answer in place; any other
// is sent for, and what it was waiting for is kept for it until then.
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "session/client_core.hpp"
#include "wirecall/batch.hpp"
#include "wirecall/detail/home.hpp"
#include "wirecall/request.hpp"
#include "wirecall/result_stream.hpp"

namespace wirecall::detail {

/// An answer that outlives its receiver; -32603 where there is no memory for it.
struct KeptAnswer {
  explicit KeptAnswer(Answer& answer) noexcept {
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

/// A task away from its home: shared by the awaiter, which is at home, and by whoever brings it news.
template <class Awaiter, class News>
struct Absence final : Home::Arrival {
  Absence(Awaiter& who, std::shared_ptr<Home> where) : awaiter(&who), home(std::move(where)) {}

  /// On the thread that drives: all news has come.
  static void send_for(const std::shared_ptr<Absence>& away) noexcept { away->home->go_on(away); }
  void arrive() noexcept override {
    if (awaiter != nullptr) awaiter->come_home(news);
  }

  Awaiter* awaiter;  // for the home's thread; null once it waits no more
  News news{};       // first for the thread that drives, then for the home's
  const std::shared_ptr<Home> home;
};

namespace {

// Null where the root goes on on the thread that drives.
template <class Absence, class Awaiter>
std::shared_ptr<Absence> absence_of(Awaiter& awaiter, const Root& root, const Home* driver) {
  const std::shared_ptr<Home>* const home = root.home();
  if (home == nullptr || *home == nullptr || home->get() == driver) [[likely]]
    return nullptr;
  return std::make_shared<Absence>(awaiter, *home);
}

}  // namespace

// ---- a request ----

bool RequestAwaiterBase::suspend(Root& root) try {
  if (!wait(root)) return false;
  away_ = absence_of<Away>(*this, root, call_.driver());
  waiting_ = true;
  // Nothing of this is looked at afterwards: the coroutine may be going on already, on the thread that drives.
  if (away_ != nullptr) {
    call_.start([away = away_](Answer& answer) {
      away->news.emplace(answer);
      Away::send_for(away);
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
  // Nothing has been begun.
  waiting_ = false;
  wait_no_more();
  throw;
}

void RequestAwaiterBase::come_home(std::optional<KeptAnswer>& news) noexcept {
  waiting_ = false;
  Answer answer = news->take();
  answered(answer);
  wake();
}

void RequestAwaiterBase::forget() noexcept {
  if (!std::exchange(waiting_, false)) return;
  if (away_ == nullptr) return call_.forget();
  away_->awaiter = nullptr;
  static_cast<void>(call_.handle().cancel());
}

// ---- a batch ----

bool BatchAwaiterBase::suspend(Root& root) try {
  if (!wait(root)) return false;
  away_ = absence_of<Away>(*this, root, batch_.driver());
  if (away_ != nullptr) away_->news.reserve(batch_.size());
  waiting_ = true;
  // As above.
  if (away_ != nullptr) {
    batch_.start([away = away_](std::size_t result, Answer& answer) { away->news.emplace_back(result, answer); },
                 [away = away_] { Away::send_for(away); });
  } else {
    batch_.start([this](std::size_t result, Answer& answer) { answered(result, answer); },
                 [this] {
                   waiting_ = false;
                   wake();
                 });
  }
  return true;
} catch (...) {
  // Nothing has been begun.
  waiting_ = false;
  wait_no_more();
  throw;
}

void BatchAwaiterBase::come_home(Answers& news) noexcept {
  waiting_ = false;
  for (auto& [result, kept] : news) {
    Answer answer = kept.take();
    answered(result, answer);
  }
  wake();
}

void BatchAwaiterBase::forget() noexcept {
  if (!std::exchange(waiting_, false)) return;
  if (away_ == nullptr) return batch_.forget();
  away_->awaiter = nullptr;
  batch_.cancel();
}

// ---- the next item of a stream ----

bool ItemAwaiter::suspend(Root& root) try {
  if (!wait(root)) return false;
  away_ = absence_of<Away>(*this, root, stream_->driver());
  waiting_ = true;
  // Once it is to be woken, the coroutine may be going on already, on the thread that drives.
  IncomingStream::Next next;
  if (away_ != nullptr) {
    next = stream_->poll([away = away_] { Away::send_for(away); });
  } else {
    next = stream_->poll([this] { come_home(); });
  }
  if (next == IncomingStream::Next::none) return true;
  waiting_ = false;
  next_ = next;
  return false;
} catch (...) {
  // Nothing has been begun.
  waiting_ = false;
  wait_no_more();
  throw;
}

void ItemAwaiter::come_home() noexcept {
  waiting_ = false;
  wake();
}

void ItemAwaiter::forget() noexcept {
  if (!std::exchange(waiting_, false)) return;
  if (away_ != nullptr) away_->awaiter = nullptr;
  stream_->forget();
}

}  // namespace wirecall::detail
