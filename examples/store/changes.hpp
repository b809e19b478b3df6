// Changes: the last changes that were committed, 64 MiB of them and in their order, for those who watch. Who does not
// read them while they are kept is told so, and reads the store anew.
// Thread: `publish` any; `watch` the server's, which is one.
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
    for (Write& write : writes) {
      for (Change& change : write) {
        kept_bytes_ += bytes_of(change);
        kept_.push_back(std::move(change));
      }
    }
    while (kept_bytes_ > (watchers_ != 0 ? kKeptBytesMax : 0)) {
      kept_bytes_ -= bytes_of(kept_.front());
      kept_.pop_front();
      ++first_;
    }
    if (!waiting_.empty() && !waking_) waking_ = loop_->post([this] { wake(); });
  }

  /// The changes of keys that begin with `prefix`, from now on, without end.
  [[nodiscard]] wirecall::Stream<Change> watch(wirecall::Context context, std::string prefix) {
    Watcher watcher{*this, context};
    for (;;) {
      const wirecall::Completion<> news;
      if (std::optional<Change> change = next(watcher, prefix, news)) {
        co_yield std::move(*change);
      } else {
        co_await news;
      }
    }
  }

 private:
  static constexpr std::size_t kKeptBytesMax = std::size_t{64} << 20;

  struct Watcher {
    Watcher(Changes& of, const wirecall::Context& context) : changes(of) {
      const std::scoped_lock lock{changes.mutex_};
      // The timers of a call are those of the loop on which it runs, and to which other threads can post.
      changes.loop_ = &dynamic_cast<wirecall::Loop&>(*context.scheduler());
      ++changes.watchers_;
      next = changes.first_ + changes.kept_.size();
    }
    Watcher(Watcher&&) = delete;
    ~Watcher() {
      const std::scoped_lock lock{changes.mutex_};
      --changes.watchers_;
      changes.waiting_.erase(this);
    }

    Changes& changes;
    std::uint64_t next;  // the number of the change that it looks at next
  };

  static std::size_t bytes_of(const Change& change) {
    return sizeof(Change) + change.key.size() + change.value_bytes();
  }

  /// The next change with that prefix. Where there is none yet, `news` is completed after the next commit.
  [[nodiscard]] std::optional<Change> next(Watcher& watcher, std::string_view prefix, wirecall::Completion<> news) {
    const std::scoped_lock lock{mutex_};
    if (watcher.next < first_)
      throw wirecall::Error::with_data(
          wirecall::ErrorCode::limit_exceeded,
          R"({"limit":"watch_bytes","reason":"changes were not read in time: watch again, and read what is there"})");
    while (watcher.next != first_ + kept_.size()) {
      const Change& change = kept_[watcher.next++ - first_];
      if (change.key.starts_with(prefix)) return change;
    }
    waiting_.emplace(&watcher, std::move(news));
    return std::nullopt;
  }

  /// On the thread of the loop, where those who wait are resumed.
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
  bool waking_ = false;             // it has been told to wake those who wait
};

}  // namespace store
