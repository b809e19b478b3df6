// See consumer_reads.hpp.
#include "broker/consumer_reads.hpp"

#include <algorithm>

#include "broker/durable_consumer.hpp"

namespace wirecall::broker {

// Reads of consumers at once: what each has read may be one event too many.
constexpr std::size_t kReadsMax = 8;

ConsumerReads::Share& ConsumerReads::share_of(const std::string& account) {
  const auto [found, made] = shares_.try_emplace(account);
  if (!made) return found->second;
  try {
    found->second.account_ = account;
  } catch (...) {
    shares_.erase(found);
    throw;
  }
  return found->second;
}

void ConsumerReads::free_if_unused(Share& share) noexcept {
  if (share.bytes_ != 0 || !share.waiting_.empty() || share.in_turn_) return;
  shares_.erase(shares_.find(share.account_));
}

// ---- what is held ----

bool ConsumerReads::may_hold(const std::string& account) const noexcept {
  const auto found = shares_.find(account);
  return held_bytes_ < kHeldBytesMax && (found == shares_.end() || found->second.has_room());
}

void ConsumerReads::hold(Share*& share, const std::string& account, std::size_t bytes) {
  share = &share_of(account);
  share->bytes_ += bytes;
  held_bytes_ += bytes;
}

void ConsumerReads::move(Share*& share, const std::string& account, std::size_t bytes) {
  if (share->account_ == account) return;
  Share& before = *share;
  hold(share, account, bytes);
  release(before, bytes);
}

void ConsumerReads::release(Share& share, std::size_t bytes) noexcept {
  held_bytes_ -= bytes;
  share.bytes_ -= bytes;
  if (share.has_room() && !share.waiting_.empty()) take_turn(share);
  free_if_unused(share);
}

// ---- who reads ----

bool ConsumerReads::may_begin() const noexcept {
  return (reads_ < kReadsMax || any_number_) && held_bytes_ < kHeldBytesMax;
}

void ConsumerReads::take_turn(Share& share) noexcept {
  if (std::exchange(share.in_turn_, true)) return;
  share.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : first_) = &share;
  last_ = &share;
}

void ConsumerReads::wait(DurableConsumer& consumer, const std::string& account) {
  Share& share = share_of(account);
  if (std::ranges::find(consumer.waits, &share) != consumer.waits.end()) return;
  consumer.waits.push_back(&share);
  try {
    share.waiting_.push_back(&consumer);
  } catch (...) {
    consumer.waits.pop_back();
    free_if_unused(share);
    throw;
  }
  if (share.has_room()) take_turn(share);
}

void ConsumerReads::forget(DurableConsumer& consumer) noexcept {
  for (Share* const share : std::exchange(consumer.waits, {})) {
    std::erase(share->waiting_, &consumer);
    free_if_unused(*share);
  }
}

void ConsumerReads::let() {
  while (first_ != nullptr && may_begin()) {
    Share& share = *first_;
    first_ = share.next_;
    if (first_ == nullptr) last_ = nullptr;
    share.in_turn_ = false;
    // One without room has its turn again once it has some.
    DurableConsumer* next = nullptr;
    if (share.has_room() && !share.waiting_.empty()) {
      next = share.waiting_.front();
      share.waiting_.pop_front();
      std::erase(next->waits, &share);
      if (!share.waiting_.empty()) take_turn(share);
    }
    free_if_unused(share);
    if (next != nullptr) next->fetch();
  }
}

}  // namespace wirecall::broker
