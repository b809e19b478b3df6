// Memory of coroutine frames and of what starts them: a few free blocks of each size, kept per thread, because a task
// lives briefly and the next one is as large. Measured by bench/coroutine.cpp: starting a task costs 28 ns with it and
// 49 ns with malloc. Not an allocator for anything else: larger blocks and overflow go to operator delete.
// Under AddressSanitizer every block is its own, so that a use after destruction is found.
#include <array>
#include <new>

#include "base/sanitizers.hpp"
#include "wirecall/detail/coroutine.hpp"

namespace wirecall::detail {

#if !WIRECALL_ADDRESS_SANITIZER

namespace {

/// Sizes are rounded up to multiples of this, in bytes.
constexpr std::size_t kStepBytes = 64;
/// Larger blocks are not kept, in bytes.
constexpr std::size_t kKeptBytesMax = 512;
/// Free blocks kept of each size: at most 144 KiB a thread in all.
constexpr unsigned kKeptBlocksMax = 64;

struct FreeBlock {
  FreeBlock* next;
};

struct FreeBlocks {
  FreeBlock* first = nullptr;
  unsigned count = 0;
};

struct Cache {
  std::array<FreeBlocks, kKeptBytesMax / kStepBytes + 1> blocks;
  bool open = false;    ///< it will be emptied when the thread ends
  bool closed = false;  ///< the thread is ending: nothing is kept any more
};

// Without a constructor or destructor, so that it is reached without a guard and outlives all that uses it. The model
// makes it one step in position independent code as well; a module loaded at run time may have so little (152 bytes) of
// it.
[[gnu::tls_model("initial-exec")]] constinit thread_local Cache cache;

struct CacheCloser {
  CacheCloser() noexcept { cache.open = true; }
  ~CacheCloser() {
    cache.closed = true;
    for (FreeBlocks& blocks : cache.blocks) {
      while (blocks.first != nullptr) {
        FreeBlock* block = blocks.first;
        blocks.first = block->next;
        ::operator delete(block);
      }
    }
  }
};

// To be called before the cache has its first block.
[[gnu::noinline]] void close_at_thread_end() { static thread_local CacheCloser closer; }

}  // namespace

void* allocate_frame(std::size_t bytes) {
  if (bytes > kKeptBytesMax) return ::operator new(bytes);
  const std::size_t steps = (bytes + kStepBytes - 1) / kStepBytes;
  FreeBlocks& blocks = cache.blocks[steps];
  if (blocks.first == nullptr) return ::operator new(steps * kStepBytes);
  FreeBlock* block = blocks.first;
  blocks.first = block->next;
  --blocks.count;
  return block;
}

void free_frame(void* frame, std::size_t bytes) noexcept {
  FreeBlocks& blocks = cache.blocks[bytes > kKeptBytesMax ? 0 : (bytes + kStepBytes - 1) / kStepBytes];
  if (bytes > kKeptBytesMax || blocks.count == kKeptBlocksMax || cache.closed) {
    ::operator delete(frame);
    return;
  }
  if (!cache.open) [[unlikely]]
    close_at_thread_end();
  blocks.first = new (frame) FreeBlock{blocks.first};
  ++blocks.count;
}

#else

void* allocate_frame(std::size_t bytes) { return ::operator new(bytes); }
void free_frame(void* frame, std::size_t) noexcept { ::operator delete(frame); }

#endif

}  // namespace wirecall::detail
