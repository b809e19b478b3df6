// See spsc_channel.hpp.
#include "runtime/spsc_channel.hpp"

#include "base/assert.hpp"
#include "base/reserve_extra.hpp"

namespace wirecall::runtime {

// What a spare batch keeps for its next use.
constexpr std::size_t kSpareRecordsMax = 4096;

SpscChannel::SpscChannel(SpscReceiver& receiver) : filling_(new Batch), receiver_(&receiver) {}

SpscChannel::~SpscChannel() {
  for (Batch* first : {filling_, spares_, reading_, handed_over_.load(), given_back_.load()}) destroy(first);
}

void SpscChannel::destroy(Batch* first) noexcept {
  while (first != nullptr) delete std::exchange(first, first->next);
}

Record& SpscChannel::add(std::uint8_t kind, void* about, std::span<const char> bytes) {
  WIRECALL_ASSERT(bytes.size() <= kBytesMax);
  const std::size_t size = bytes.size() + kPaddingBytes;
  if (!bytes.empty()) {
    if (filling_->used + size > kBatchBytes && !start_another()) throw std::bad_alloc{};
    if (!filling_->bytes) filling_->bytes = std::make_shared_for_overwrite<char[]>(kBatchBytes);
  }
  reserve_extra(filling_->records, 1);
  Record& record = filling_->records.emplace_back(
      Record{.about = about, .kind = kind, .at = static_cast<std::uint32_t>(filling_->used), .size = 0, .buffer = {}});
  if (bytes.empty()) return record;
  char* const to = filling_->bytes.get() + filling_->used;
  std::memcpy(to, bytes.data(), bytes.size());
  std::memset(to + bytes.size(), 0, kPaddingBytes);
  record.size = static_cast<std::uint32_t>(bytes.size());
  filling_->used += size;
  bytes_sent_.store(bytes_sent_.load(std::memory_order_relaxed) + bytes.size(), std::memory_order_relaxed);
  return record;
}

void SpscChannel::add(IntrusiveRecord& record) noexcept {
  WIRECALL_ASSERT(filling_->last != &record);
  record.next = nullptr;
  (filling_->first == nullptr ? filling_->first : filling_->last->next) = &record;
  filling_->last = &record;
}

bool SpscChannel::hand_over() noexcept {
  if (pending()) static_cast<void>(start_another());
  if (!std::exchange(owes_wake_, false)) return false;
  // Either the receiver, who falls asleep, sees what has been handed over, or this sees that it is asleep.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return asleep_.load(std::memory_order_relaxed) && asleep_.exchange(false, std::memory_order_relaxed);
}

// Hands over the batch that is being filled, when there is another one.
bool SpscChannel::start_another() noexcept {
  if (spares_ == nullptr) {
    spares_ = given_back_.exchange(nullptr, std::memory_order_acquire);
    Batch* last = spares_;
    for (int kept = 1; last != nullptr && kept < kSparesMax; ++kept) last = last->next;
    if (last != nullptr) destroy(std::exchange(last->next, nullptr));
  }
  Batch* const empty = spares_ != nullptr ? std::exchange(spares_, spares_->next) : new (std::nothrow) Batch;
  if (empty == nullptr) return false;
  empty->next = nullptr;
  Batch* const full = std::exchange(filling_, empty);
  full->next = handed_over_.load(std::memory_order_relaxed);
  while (!handed_over_.compare_exchange_weak(full->next, full, std::memory_order_release, std::memory_order_relaxed)) {
  }
  owes_wake_ = true;
  return true;
}

bool SpscChannel::fall_asleep() noexcept {
  asleep_.store(true, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!waiting()) return true;
  wake_up();
  return false;
}

void SpscChannel::collect() noexcept {
  if (!waiting()) return;
  Batch* last_first = handed_over_.exchange(nullptr, std::memory_order_acquire);
  Batch* in_order = nullptr;
  while (last_first != nullptr) {
    Batch* const batch = std::exchange(last_first, last_first->next);
    batch->next = std::exchange(in_order, batch);
  }
  Batch** end = &reading_;
  while (*end != nullptr) end = &(*end)->next;
  *end = in_order;
}

bool SpscChannel::deliver() {
  if (receiver_->drain_one()) return true;
  while (reading_ != nullptr) {
    Batch& batch = *reading_;
    if (batch.at != batch.records.size()) {
      Record& record = batch.records[batch.at++];
      bytes_taken_.store(bytes_taken_.load(std::memory_order_relaxed) + record.size, std::memory_order_relaxed);
      receiver_->arrived(record,
                         record.size == 0 ? std::span<char>{} : std::span{batch.bytes.get() + record.at, record.size});
      return true;
    }
    if (batch.first != nullptr) {
      IntrusiveRecord& record = *std::exchange(batch.first, batch.first->next);
      receiver_->arrived(record);
      return true;
    }
    give_back();
  }
  return false;
}

void SpscChannel::keep_lent(std::vector<std::shared_ptr<void>>& kept) const noexcept {
  if (reading_ != nullptr && reading_->bytes) kept.push_back(reading_->bytes);
  if (std::shared_ptr<void> lent = receiver_->lent()) kept.push_back(std::move(lent));
}

// The batch that has been read is the sender's again.
void SpscChannel::give_back() noexcept {
  Batch* const batch = std::exchange(reading_, reading_->next);
  WIRECALL_ASSERT(batch->at == batch->records.size() && batch->first == nullptr);
  batch->records.clear();
  if (batch->records.capacity() > kSpareRecordsMax) batch->records.shrink_to_fit();
  if (batch->bytes.use_count() > 1) batch->bytes.reset();  // somebody still reads from it
  batch->used = batch->at = 0;
  batch->last = nullptr;
  batch->next = given_back_.load(std::memory_order_relaxed);
  while (!given_back_.compare_exchange_weak(batch->next, batch, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

}  // namespace wirecall::runtime
