// Changes: the last changes that were committed, in their order, for those who watch. The subscription of one who does
// not read them while they are kept is ended by an error, so that it reads the store anew.
// Thread: `publish` any, one at a time; `watch` the server's, which is one.
#pragma once

#include <deque>
#include <map>
#include <mutex>

#include "database.hpp"

namespace store {

class Changes {
 public:
  /// Called after each commit.
  void publish(std::vector<Write> writes) {
    const std::scoped_lock lock{mutex_};
    if (watchers_ == 0) writes.clear();
    for (Write& write : writes) {
      for (Change& change : write) {
        kept_bytes_ += bytes_of(change);
        kept_.push_back(std::move(change));
      }
    }
    while (kept_bytes_ > (watchers_ == 0 ? 0 : kKeptBytesMax)) {
      kept_bytes_ -= bytes_of(kept_.front());
      kept_.pop_front();
      ++first_;
    }
    if (waiting_.empty() || waking_) return;
    waking_ = loop_->post([this] { wake(); });
  }

  /// The changes of keys that begin with `prefix`, from now on, without end.
  [[nodiscard]] wirecall::Stream<Change> watch(wirecall::Context context, std::string prefix) {
    Watcher watcher{*this, dynamic_cast<wirecall::Loop&>(*context.scheduler())};
    for (;;) {
      while (std::optional<Change> change = next(watcher, prefix)) co_yield std::move(*change);
      const wirecall::Completion<> news;
      if (waits(watcher, news)) co_await news;
    }
  }

 private:
  static constexpr std::size_t kKeptBytesMax = std::size_t{64} << 20;

  class Watcher {
   public:
    Watcher(Changes& changes, wirecall::Loop& loop) : changes_(changes) {
      const std::scoped_lock lock{changes_.mutex_};
      changes_.loop_ = &loop;
      ++changes_.watchers_;
      next = changes_.end();
    }
    Watcher(Watcher&&) = delete;
    ~Watcher() {
      const std::scoped_lock lock{changes_.mutex_};
      --changes_.watchers_;
      changes_.waiting_.erase(this);
    }

    std::uint64_t next = 0;  ///< the number of the change that it looks at next

   private:
    Changes& changes_;
  };

  static std::size_t bytes_of(const Change& change) { return sizeof(Change) + change.key.size() + value_bytes(change); }
  [[nodiscard]] std::uint64_t end() const { return first_ + kept_.size(); }

  [[nodiscard]] std::optional<Change> next(Watcher& watcher, std::string_view prefix) {
    const std::scoped_lock lock{mutex_};
    if (watcher.next < first_) {
      throw wirecall::Error::with_data(
          wirecall::ErrorCode::limit_exceeded,
          R"({"limit":"watch_bytes","reason":"changes were not read in time: watch again, and read the range anew"})");
    }
    while (watcher.next != end()) {
      const Change& change = kept_[watcher.next++ - first_];
      if (change.key.starts_with(prefix)) return change;
    }
    return std::nullopt;
  }
  /// Whether there is nothing new. Then `news` is completed when there is.
  [[nodiscard]] bool waits(const Watcher& watcher, const wirecall::Completion<>& news) {
    const std::scoped_lock lock{mutex_};
    if (watcher.next == end()) waiting_.insert_or_assign(&watcher, news);
    return watcher.next == end();
  }
  void wake() noexcept {
    std::unique_lock lock{mutex_};
    waking_ = false;
    const std::map<const Watcher*, wirecall::Completion<>> waiting = std::exchange(waiting_, {});
    lock.unlock();
    for (const auto& [watcher, news] : waiting) news.set();
  }

  std::mutex mutex_;
  std::deque<Change> kept_;
  std::size_t kept_bytes_ = 0;
  std::uint64_t first_ = 0;  // the number of the first of them
  std::size_t watchers_ = 0;
  std::map<const Watcher*, wirecall::Completion<>> waiting_;
  wirecall::Loop* loop_ = nullptr;  // of those who watch
  bool waking_ = false;
};

}  // namespace store
