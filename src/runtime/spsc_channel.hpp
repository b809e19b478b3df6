// SpscChannel: a single-producer, single-consumer queue from one loop to another, each on its own thread. The sender
// collects the records of a turn and hands them over as one batch when its next turn begins; it wakes the receiver only
// when the receiver waits. So a busy pair of loops exchanges batches without a lock and without a system call. Not an
// inbox (inbox.hpp): there is one sender, and it sends records and bytes, not jobs.
//
// A Record needs memory; an IntrusiveRecord does not: the sender owns its storage. All Records of a batch come before
// its IntrusiveRecords.
// Thread: each part belongs to one of the two loops, as said there.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "wirecall/bytes.hpp"

namespace wirecall::runtime {

class SpscChannel;

/// One thing that a loop tells another. What the members mean is between the users at both ends.
struct Record {
  void* about = nullptr;
  std::uint8_t kind = 0;
  std::uint32_t at = 0;  ///< of its bytes in the batch
  std::uint32_t size = 0;
  Buffer buffer;
};

/// A record that cannot fail for want of memory. In one channel at a time, until it has arrived.
struct IntrusiveRecord {
  IntrusiveRecord* next = nullptr;
  void* about = nullptr;
  std::uint8_t kind = 0;
};

/// Receives the records of a channel. Called by its loop, on the loop's thread, where completions are told.
class SpscReceiver {
 public:
  /// The bytes are lent until this returns; kPaddingBytes are readable behind them, the first of them zero, and the
  /// user may write to them.
  virtual void arrived(Record& record, std::span<char> bytes) = 0;
  virtual void arrived(IntrusiveRecord& record) noexcept = 0;
  /// Delivers one thing that is due in this turn and has not come through the channel; false for nothing.
  virtual bool drain_one() { return false; }
  /// What has been lent otherwise stays where it is for as long as this lives; null for none.
  [[nodiscard]] virtual std::shared_ptr<void> lent() const noexcept { return nullptr; }

 protected:
  ~SpscReceiver() = default;
};

class SpscChannel {
 public:
  /// Bytes that one record can have.
  static constexpr std::size_t kBytesMax = 256 * 1024;

  explicit SpscChannel(SpscReceiver& receiver);
  SpscChannel(SpscChannel&&) = delete;
  ~SpscChannel();

  // The sender's.

  /// Throws std::bad_alloc; then nothing has changed.
  Record& add(std::uint8_t kind, void* about, std::span<const char> bytes = {});
  void add(IntrusiveRecord& record) noexcept;
  /// Whether something has not been handed over yet.
  [[nodiscard]] bool pending() const noexcept { return !filling_->empty(); }
  /// Hands over what there is. True when the receiver may be asleep, and is to be woken. What has not been handed over
  /// for want of memory is still pending.
  [[nodiscard]] bool hand_over() noexcept;
  /// Bytes that the receiver has not looked at yet. Any thread.
  [[nodiscard]] std::size_t bytes_ahead() const noexcept {
    return static_cast<std::size_t>(bytes_sent_.load(std::memory_order_relaxed) -
                                    bytes_taken_.load(std::memory_order_relaxed));
  }

  // The receiver's.

  /// It is going to wait: from now on it is to be woken. False when it must not wait, since something has come.
  [[nodiscard]] bool fall_asleep() noexcept;
  void wake_up() noexcept { asleep_.store(false, std::memory_order_relaxed); }
  /// Whether something has come.
  [[nodiscard]] bool waiting() const noexcept { return handed_over_.load(std::memory_order_relaxed) != nullptr; }
  /// Takes in what has come, for `deliver`.
  void collect() noexcept;
  /// Tells the user of one thing; false when there is nothing left. One of which the user did not want to know, because
  /// it threw, is not told again.
  bool deliver();
  /// The bytes lent by the present `deliver` stay where they are for as long as what is added to `kept` lives, which
  /// has room for two more.
  void keep_lent(std::vector<std::shared_ptr<void>>& kept) const noexcept;

 private:
  struct Batch {
    [[nodiscard]] bool empty() const noexcept { return records.empty() && first == nullptr; }

    std::vector<Record> records;
    std::shared_ptr<char[]> bytes;  // kBatchBytes of them; null for none
    std::size_t used = 0;           // of them
    std::size_t at = 0;             // the first record that has not been told
    IntrusiveRecord* first = nullptr;
    IntrusiveRecord* last = nullptr;
    Batch* next = nullptr;
  };
  static constexpr std::size_t kBatchBytes = 2 * kBytesMax;
  static constexpr int kSparesMax = 8;

  [[nodiscard]] bool start_another() noexcept;
  void give_back() noexcept;
  static void destroy(Batch* first) noexcept;

  // The sender's.
  Batch* filling_;
  Batch* spares_ = nullptr;
  bool owes_wake_ = false;  // something was handed over in the middle of a turn

  // Where they meet. Lists of batches, the last one first.
  alignas(64) std::atomic<Batch*> handed_over_ = nullptr;
  std::atomic<std::uint64_t> bytes_sent_ = 0;
  std::atomic<bool> asleep_ = false;
  alignas(64) std::atomic<Batch*> given_back_ = nullptr;
  std::atomic<std::uint64_t> bytes_taken_ = 0;

  // The receiver's.
  alignas(64) SpscReceiver* receiver_;
  Batch* reading_ = nullptr;  // and what follows it, in order
};

}  // namespace wirecall::runtime
