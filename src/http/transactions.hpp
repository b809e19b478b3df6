// HttpTransactions: the transactions of one connection, in the order of their requests. The current one is that whose
// request is being read or dispatched. Those behind it wait: the first of them writes into the output, the others hold
// their responses. Silent ones are answered, while calls of theirs that say nothing go on.
// Owned by an HttpConnection; lives on its loop's thread.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace wirecall::net {

class HttpChannel;
class HttpTransaction;

class HttpTransactions {
 public:
  explicit HttpTransactions(HttpChannel& channel) noexcept;
  ~HttpTransactions();
  HttpTransactions(HttpTransactions&&) = delete;

  [[nodiscard]] HttpTransaction& current() {
    if (current_ == nullptr) [[unlikely]]
      make_current();
    return *current_;
  }
  /// The current request has been dispatched, or refused: its transaction waits, or is free for the next request.
  void finish();
  /// Drops the current one: no request follows it.
  void drop_current() noexcept;
  /// At the end of a turn: sends the responses that are next.
  void release();
  /// Whether the connection may be read again, for all that waits.
  [[nodiscard]] bool has_few() const noexcept;

  [[nodiscard]] bool none_wait() const noexcept { return waiting_.empty(); }
  /// Whether no response is due before that of `transaction`.
  [[nodiscard]] bool is_next(const HttpTransaction& transaction) const noexcept {
    return waiting_.empty() || waiting_.front().get() == &transaction;
  }
  [[nodiscard]] bool has_current() const noexcept { return current_ != nullptr; }
  /// Whether calls are in progress, of those that wait or are silent.
  [[nodiscard]] bool working() const noexcept;
  /// Of responses that wait for those before them.
  [[nodiscard]] std::size_t held_bytes() const noexcept { return held_bytes_; }
  /// So many more of these.
  void hold(std::size_t bytes) noexcept { held_bytes_ += bytes; }

  /// Calls `act` for all whose requests have been dispatched.
  template <class Act>
  void each_dispatched(const Act& act) const {
    for (const auto* transactions : {&waiting_, &silent_}) {
      for (const auto& transaction : *transactions) {
        if (transaction != nullptr) act(*transaction);  // null: where `release` ran out of memory
      }
    }
  }
  /// The same for the current one too, whose handler may be off the loop, or its batch interrupted.
  template <class Act>
  void each(const Act& act) const {
    if (current_ != nullptr) act(*current_);
    each_dispatched(act);
  }

 private:
  [[gnu::noinline]] void make_current();
  void keep_silent(std::unique_ptr<HttpTransaction> transaction);
  void drop_silent();

  HttpChannel* channel_;
  std::unique_ptr<HttpTransaction> current_;
  std::vector<std::unique_ptr<HttpTransaction>> waiting_;
  std::vector<std::unique_ptr<HttpTransaction>> silent_;
  std::size_t held_bytes_ = 0;
};

}  // namespace wirecall::net
