// ConsumerReads: what consumers of durable topics have in memory of the events that they have read, on whose account,
// and which of them reads next. An event is on the account of the client for which it was read, and then of the one
// that was sent it: so who answers nothing fills his own share, whoever has made the consumer. Those that have to wait
// take turns by account. Owned by DurableTopics. One thread.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace wirecall::broker {

class DurableConsumer;

class ConsumerReads {
 public:
  /// Of the events that all consumers have read, and that are not acknowledged.
  static constexpr std::size_t kHeldBytesMax = std::size_t{256} << 20U;
  /// The same, of one account.
  static constexpr std::size_t kHeldByOneMax = std::size_t{64} << 20U;

  /// What is in memory on one account. It is there as long as it holds bytes, or a consumer waits for it.
  class Share {
   public:
    [[nodiscard]] const std::string& account() const noexcept { return account_; }

   private:
    friend class ConsumerReads;
    [[nodiscard]] bool has_room() const noexcept { return bytes_ < kHeldByOneMax; }

    std::string account_;
    std::size_t bytes_ = 0;
    std::deque<DurableConsumer*> waiting_;
    bool in_turn_ = false;
    Share* next_ = nullptr;  // in turn
  };
  /// The shares for which a consumer waits.
  using Waits = std::vector<Share*>;

  ConsumerReads() = default;
  ConsumerReads(ConsumerReads&&) = delete;
  ~ConsumerReads() = default;

  /// Those of a shared store wait there for events, so how many read says nothing.
  void read_any_number() noexcept { any_number_ = true; }

  [[nodiscard]] bool may_hold(const std::string& account) const noexcept;
  void hold(Share*& share, const std::string& account, std::size_t bytes);
  /// What that share holds of them is on the account from now on.
  void move(Share*& share, const std::string& account, std::size_t bytes);
  void release(Share& share, std::size_t bytes) noexcept;

  /// Whether one more may read now, which ends that by `end`.
  [[nodiscard]] bool may_begin() const noexcept;
  void begin() noexcept { ++reads_; }
  void end() noexcept { --reads_; }
  /// `let` has it fetch once the account has room, and it is its turn.
  void wait(DurableConsumer& consumer, const std::string& account);
  /// The consumer waits no more.
  void forget(DurableConsumer& consumer) noexcept;
  /// Those that may read now, do: of each account one after the other.
  void let();

 private:
  [[nodiscard]] Share& share_of(const std::string& account);
  void take_turn(Share& share) noexcept;
  void free_if_unused(Share& share) noexcept;

  std::unordered_map<std::string, Share> shares_;
  std::size_t held_bytes_ = 0;
  std::size_t reads_ = 0;  // that have begun
  bool any_number_ = false;
  // Shares with room, for which consumers wait: the first, and the last.
  Share* first_ = nullptr;
  Share* last_ = nullptr;
};

}  // namespace wirecall::broker
