// The ring of shared memory by which one process sends bytes to another: ShmWriter at one end, ShmReader at the other.
// Pure memory: no descriptor, no waiting.
// The other end may be hostile, and may write anywhere in the memory at any time. So each end keeps its own counter to
// itself and only ever writes it there; the counter of the peer is read once, checked, and used from a register; and
// bytes are copied out before anybody looks at them. The worst that a peer can do is send what it likes.
// Counters are of all bytes since the beginning, modulo 2^64: 0 <= written - read <= capacity, always.
// A value that refers to memory which outlives it. Thread: one at a time for each end.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace wirecall::transport {

/// What both ends share of one ring, besides its bytes. Each line is written by one of them, but for `waits`, which
/// says that somebody is asleep: the other one takes it back when it wakes him.
struct ShmRingHeader {
  alignas(128) std::atomic<std::uint64_t> written{0};  ///< by the writer
  std::atomic<std::uint32_t> ended{0};                 ///< by the writer: nothing more is written
  alignas(128) std::atomic<std::uint64_t> read{0};     ///< by the reader
  alignas(128) std::atomic<std::uint32_t> reader_waits{0};
  alignas(128) std::atomic<std::uint32_t> writer_waits{0};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(ShmRingHeader) == 512);

/// Says that this end is going to sleep. Whatever the peer has done before it could see that, is seen by this end now.
inline void shm_wait(std::atomic<std::uint32_t>& waits) noexcept { waits.store(1, std::memory_order_seq_cst); }
inline void shm_wait_no_more(std::atomic<std::uint32_t>& waits) noexcept {
  if (waits.load(std::memory_order_relaxed) != 0) waits.store(0, std::memory_order_relaxed);
}
/// Whether the peer sleeps, and is to be woken. Once for each time that it has fallen asleep.
[[nodiscard]] inline bool shm_wakes(std::atomic<std::uint32_t>& waits) noexcept {
  return waits.load(std::memory_order_seq_cst) != 0 && waits.exchange(0, std::memory_order_relaxed) != 0;
}

class ShmWriter {
 public:
  /// `capacity` is a power of two.
  ShmWriter(ShmRingHeader& header, char* bytes, std::size_t capacity) noexcept
      : header_(&header), bytes_(bytes), capacity_(capacity) {}

  /// Bytes that can be written now. None when the peer's counter is one that cannot be: the peer is not to be trusted.
  [[nodiscard]] std::optional<std::size_t> room() const noexcept {
    const std::uint64_t unread = written_ - header_->read.load(std::memory_order_seq_cst);
    if (unread > capacity_) return std::nullopt;
    return capacity_ - static_cast<std::size_t>(unread);
  }
  /// Writes as much of `bytes` as there is room for, and returns how much that was; none as room(). The peer's counter
  /// is looked at only where there may be too little room by what it was before: its line of the cache is the peer's.
  [[nodiscard]] std::optional<std::size_t> write(std::string_view bytes) noexcept {
    if (known_room_ < bytes.size()) {
      const std::optional<std::size_t> space = room();
      if (!space) return std::nullopt;
      known_room_ = *space;
    }
    const std::size_t count = std::min(bytes.size(), known_room_);
    if (count == 0) return 0;
    known_room_ -= count;
    const std::size_t at = static_cast<std::size_t>(written_) & (capacity_ - 1);
    const std::size_t first = std::min(count, capacity_ - at);
    std::memcpy(bytes_ + at, bytes.data(), first);
    std::memcpy(bytes_, bytes.data() + first, count - first);
    written_ += count;
    header_->written.store(written_, std::memory_order_seq_cst);
    return count;
  }
  /// Nothing is written any more.
  void end() noexcept { header_->ended.store(1, std::memory_order_seq_cst); }
  /// After `write` and `end`: whether the reader is to be woken.
  [[nodiscard]] bool wakes_reader() noexcept { return shm_wakes(header_->reader_waits); }
  /// This end is going to wait for room; it looks at room() once more before it does.
  void wait() noexcept { shm_wait(header_->writer_waits); }
  void wait_no_more() noexcept { shm_wait_no_more(header_->writer_waits); }

 private:
  ShmRingHeader* header_;
  char* bytes_;
  std::size_t capacity_;
  std::size_t known_room_ = 0;  // there is at least so much
  std::uint64_t written_ = 0;
};

class ShmReader {
 public:
  ShmReader(ShmRingHeader& header, const char* bytes, std::size_t capacity) noexcept
      : header_(&header), bytes_(bytes), capacity_(capacity) {}

  /// Bytes that can be read now. None when the peer's counter is one that cannot be: the peer is not to be trusted.
  [[nodiscard]] std::optional<std::size_t> available() const noexcept {
    const std::uint64_t unread = header_->written.load(std::memory_order_seq_cst) - read_;
    if (unread > capacity_) return std::nullopt;
    return static_cast<std::size_t>(unread);
  }
  /// Fetches the lines of the cache that a short message would be in, for who waits for it: so they come together with
  /// the counter and not after it.
  void prefetch() const noexcept {
    const std::size_t at = static_cast<std::size_t>(read_) & (capacity_ - 1);
    __builtin_prefetch(bytes_ + at);
    __builtin_prefetch(bytes_ + ((at + 64) & (capacity_ - 1)));
  }
  /// Copies `count` bytes out, no more than available() has said.
  void read(char* to, std::size_t count) noexcept {
    const std::size_t at = static_cast<std::size_t>(read_) & (capacity_ - 1);
    const std::size_t first = std::min(count, capacity_ - at);
    std::memcpy(to, bytes_ + at, first);
    std::memcpy(to + first, bytes_, count - first);
    read_ += count;
    header_->read.store(read_, std::memory_order_seq_cst);
  }
  /// Whether the peer writes no more. What it has written before is available by then.
  [[nodiscard]] bool ended() const noexcept { return header_->ended.load(std::memory_order_acquire) != 0; }
  /// After `read`: whether the writer is to be woken.
  [[nodiscard]] bool wakes_writer() noexcept { return shm_wakes(header_->writer_waits); }
  /// This end is going to wait for bytes; it looks at available() and ended() once more before it does.
  void wait() noexcept { shm_wait(header_->reader_waits); }
  void wait_no_more() noexcept { shm_wait_no_more(header_->reader_waits); }

 private:
  ShmRingHeader* header_;
  const char* bytes_;
  std::size_t capacity_;
  std::uint64_t read_ = 0;
};

}  // namespace wirecall::transport
