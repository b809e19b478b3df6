// See failing_memory.hpp. The linker sends the program's calls of malloc, calloc and realloc here (--wrap), those of
// the libraries it is linked with included. Those of the C library's own stay as they are: what fails there fails as
// the system's does, and is not ours.
#include "tests/memory/failing_memory.hpp"

#include <cstdlib>
#include <new>

extern "C" {
void* __real_malloc(std::size_t bytes);
void* __real_calloc(std::size_t count, std::size_t bytes);
void* __real_realloc(void* block, std::size_t bytes);
}

namespace wirecall::memory {
namespace {

struct State {
  std::size_t left = 0;  // requests up to and with the one that fails; 0 when none does
  Failing failing = Failing::once;
  bool failed = false;
  int spared = 0;
  std::size_t requested_bytes = 0;
};
constinit thread_local State state;

// Counts each request.
bool fails(std::size_t bytes) noexcept {
  if (state.spared != 0) return false;
  state.requested_bytes += bytes;
  if (state.left == 0) return false;
  if (state.left != 1) {
    --state.left;
    return false;
  }
  state.failed = true;
  if (state.failing == Failing::once) state.left = 0;
  return true;
}

}  // namespace

FailingMemory::FailingMemory(std::size_t number, Failing failing) noexcept {
  state.left = number;
  state.failing = failing;
  state.failed = false;
}
void FailingMemory::end() noexcept { state.left = 0; }
bool FailingMemory::has_failed() noexcept { return state.failed; }

std::size_t requested_bytes() noexcept { return state.requested_bytes; }

Spared::Spared() noexcept { ++state.spared; }
Spared::~Spared() { --state.spared; }

namespace {

void* allocate(std::size_t bytes) {
  if (void* const block = fails(bytes) ? nullptr : __real_malloc(bytes == 0 ? 1 : bytes)) return block;
  throw std::bad_alloc{};
}
void* allocate(std::size_t bytes, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  if (void* const block = fails(bytes) ? nullptr : std::aligned_alloc(align, (bytes + align - 1) / align * align))
    return block;
  throw std::bad_alloc{};
}

}  // namespace
}  // namespace wirecall::memory

using wirecall::memory::allocate;

extern "C" {
void* __wrap_malloc(std::size_t bytes) { return wirecall::memory::fails(bytes) ? nullptr : __real_malloc(bytes); }
void* __wrap_calloc(std::size_t count, std::size_t bytes) {
  return wirecall::memory::fails(count * bytes) ? nullptr : __real_calloc(count, bytes);
}
void* __wrap_realloc(void* block, std::size_t bytes) {
  return wirecall::memory::fails(bytes) ? nullptr : __real_realloc(block, bytes);
}
}

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return allocate(bytes, alignment); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return allocate(bytes, alignment); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocate(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept { return operator new(bytes, nothrow); }

void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete[](void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { std::free(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { std::free(block); }
