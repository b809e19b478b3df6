// Accounts: what all connections of one principal use together. Where nobody has to authenticate, or as long as a peer
// has not, it is those of one source: an address, or a user of a unix socket. An account outlasts its connections for
// as long as its rate remembers them, so that a new connection brings no new burst. One thread (the loop's). Pure: time
// is what it is told.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/assert.hpp"
#include "base/seeded_hash.hpp"
#include "rpc/memory_budget.hpp"

namespace wirecall::rpc {

class BrokerPeer;

struct Account {
  std::string name;                      ///< of a principal, or a source; never both the same
  std::size_t calls = 0;                 ///< of its connections, as PeerLoad counts them
  std::chrono::nanoseconds rate_due{0};  ///< as PeerLoad::rate_due, at Limits::principal_rate
  MemoryBudget buffers;  ///< what its connections hold, those that hold little left out (Limits::principal_bytes)
  BrokerPeer* heaviest = nullptr;  ///< the one of its connections that had most calls at `looked_at`; null for none
  std::chrono::nanoseconds looked_at = std::chrono::nanoseconds::min() / 2;
};

/// How many calls of one connection are in progress. Its account is told.
class CallCount {
 public:
  CallCount() = default;
  CallCount(CallCount&&) = delete;
  ~CallCount() {
    if (account_) account_->calls -= count_;
  }

  operator std::size_t() const noexcept { return count_; }  // NOLINT: it is a number
  CallCount& operator+=(std::size_t more) noexcept {
    count_ += more;
    if (account_) account_->calls += more;
    return *this;
  }
  CallCount& operator-=(std::size_t fewer) noexcept {
    WIRECALL_ASSERT(fewer <= count_ && (!account_ || count_ <= account_->calls));
    count_ -= fewer;
    if (account_) account_->calls -= fewer;
    return *this;
  }
  CallCount& operator++() noexcept { return *this += 1; }
  CallCount& operator--() noexcept { return *this -= 1; }

  [[nodiscard]] const std::shared_ptr<Account>& account() const noexcept { return account_; }
  [[nodiscard]] std::size_t of_account() const noexcept { return account_ ? account_->calls : count_; }
  /// From now on the calls, with those in progress, are on that account; on none where it is null.
  void use(std::shared_ptr<Account> account) noexcept {
    if (account_) {
      account_->calls -= count_;
      account_->heaviest = nullptr;
    }
    account_ = std::move(account);
    if (account_) account_->calls += count_;
  }

 private:
  std::size_t count_ = 0;
  std::shared_ptr<Account> account_;
};

class Accounts {
 public:
  /// The account of that name. Throws std::bad_alloc.
  [[nodiscard]] std::shared_ptr<Account> of(std::string_view name, std::chrono::nanoseconds now) {
    const auto found = accounts_.find(name);
    if (found != accounts_.end()) return found->second;
    if (accounts_.size() >= swept_at_) sweep(now);
    auto made = std::make_shared<Account>();
    made->name = name;
    accounts_.emplace(made->name, made);
    return made;
  }
  [[nodiscard]] std::size_t size() const noexcept { return accounts_.size(); }

 private:
  static constexpr std::size_t kSweptAtMin = 64;

  // Those that nobody uses, and whose rate remembers nothing, are as good as new ones.
  void sweep(std::chrono::nanoseconds now) noexcept {
    for (auto at = accounts_.begin(); at != accounts_.end();) {
      const bool unused = at->second.use_count() == 1 && at->second->rate_due <= now;
      const auto next = std::next(at);
      if (unused) static_cast<void>(accounts_.extract(at));  // the key is a view into the account: it goes first
      at = next;
    }
    swept_at_ = std::max(kSweptAtMin, 2 * accounts_.size());
  }

  std::unordered_map<std::string_view, std::shared_ptr<Account>, SeededHash> accounts_;  // by Account::name
  std::size_t swept_at_ = kSweptAtMin;
};

}  // namespace wirecall::rpc
