// See array_memory.hpp.
#include "array_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <sys/mman.h>
#include <utility>

namespace wirecall::python {
namespace nb = nanobind;
namespace {

// A smaller array is better off with the C library, which keeps such memory too. A larger one would be more than all
// that is kept.
constexpr std::size_t kArrayBytesMin = std::size_t{8} << 20;
constexpr std::size_t kKeptBytesMax = std::size_t{128} << 20;
// So many arrays later a block that none of them could use is freed.
constexpr std::uint64_t kUnusedTakesMax = 64;

// Its size is a power of two, so that a batch of a few calls more or less takes the same block. What an array does not
// use of it is never touched, and so is no memory. It is aligned to huge pages, of which there are few to clear and to
// free.
class Block {
 public:
  /// Throws std::bad_alloc.
  explicit Block(std::size_t bytes)
      : bytes_(bytes),
        mapped_(::mmap(nullptr, bytes + kAlignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (mapped_ == MAP_FAILED) throw std::bad_alloc{};
    std::size_t space = bytes + kAlignment;
    data_ = mapped_;
    std::align(kAlignment, bytes, data_, space);
#ifdef MADV_HUGEPAGE
    ::madvise(data_, bytes_, MADV_HUGEPAGE);
#endif
  }
  Block(Block&&) = delete;
  ~Block() { ::munmap(mapped_, bytes_ + kAlignment); }

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] void* data() const noexcept { return data_; }

  /// The system may have its pages, where memory is short, until they are written again.
  void offer_to_system() noexcept {
#ifdef MADV_FREE
    ::madvise(data_, bytes_, MADV_FREE);
#endif
  }

  std::uint64_t kept_since = 0;  // the pool's number of takes then

 private:
  static constexpr std::size_t kAlignment = std::size_t{2} << 20;

  const std::size_t bytes_;
  void* const mapped_;
  void* data_;
};

// A block is a node from its making, so that to keep it allocates nothing.
using Blocks = std::list<Block>;

// The blocks that no array has. It keeps no more of one size than have been lent at once, and kKeptBytesMax in all.
class ArrayPool {
 public:
  /// One for the process, which never ends: an array may be the last to go.
  [[nodiscard]] static ArrayPool& instance() {
    static ArrayPool& pool = *new ArrayPool;
    return pool;
  }

  /// One block of these bytes, a power of two.
  [[nodiscard]] Blocks take(std::size_t bytes) {
    Blocks taken;
    Blocks unused;  // freed without the lock
    {
      const std::lock_guard lock{mutex_};
      ++takes_;
      const auto found = std::ranges::find(kept_, bytes, &Block::bytes);
      if (found != kept_.end()) move_to(taken, found);
      while (!kept_.empty() && takes_ - kept_.back().kept_since > kUnusedTakesMax) move_last_to(unused);
    }
    if (taken.empty()) taken.emplace_back(bytes);
    return taken;
  }

  void give_back(Blocks block) noexcept {
    block.front().offer_to_system();
    Blocks excess;  // freed without the lock
    const std::lock_guard lock{mutex_};
    block.front().kept_since = takes_;
    kept_bytes_ += block.front().bytes();
    kept_.splice(kept_.begin(), block);
    while (kept_bytes_ > kKeptBytesMax) move_last_to(excess);
  }

  [[nodiscard]] std::size_t kept_bytes() {
    const std::lock_guard lock{mutex_};
    return kept_bytes_;
  }

 private:
  void move_to(Blocks& blocks, Blocks::iterator kept) noexcept {
    kept_bytes_ -= kept->bytes();
    blocks.splice(blocks.begin(), kept_, kept);
  }
  void move_last_to(Blocks& blocks) noexcept { move_to(blocks, std::prev(kept_.end())); }

  std::mutex mutex_;
  Blocks kept_;  // the one kept last first
  std::size_t kept_bytes_ = 0;
  std::uint64_t takes_ = 0;
};

// The owner of the memory of one array and its views.
class ArrayMemory {
 public:
  explicit ArrayMemory(std::size_t bytes) : bytes_(bytes), block_(ArrayPool::instance().take(std::bit_ceil(bytes))) {}
  ArrayMemory(ArrayMemory&&) = default;
  ~ArrayMemory() {
    if (!block_.empty()) ArrayPool::instance().give_back(std::move(block_));
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] void* data() const noexcept { return block_.front().data(); }

 private:
  std::size_t bytes_;
  Blocks block_;  // one; none where it has been moved from
};

nb::object array_memory(std::size_t bytes) {
  if (bytes < kArrayBytesMin || bytes > kKeptBytesMax) return nb::none();
  std::optional<ArrayMemory> taken;
  try {
    taken.emplace(bytes);
  } catch (const std::bad_alloc&) {
    return nb::none();  // a smaller block may still be had
  }
  const nb::object memory = nb::cast(std::move(*taken));
  const nb::object view = nb::steal(PyMemoryView_FromObject(memory.ptr()));
  if (!view.is_valid()) throw nb::python_error();
  return view;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  if (!nb::inst_ready(self)) {
    PyErr_SetString(PyExc_BufferError, "it has no memory");
    return -1;
  }
  const ArrayMemory& memory = *nb::inst_ptr<ArrayMemory>(self);
  return PyBuffer_FillInfo(view, self, memory.data(), static_cast<Py_ssize_t>(memory.bytes()), 0, flags);
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)}, {0, nullptr}};

}  // namespace

void add_array_memory(nb::module_& module) {
  nb::class_<ArrayMemory>(module, "ArrayMemory", nb::type_slots(slots));
  module.def("array_memory", &array_memory, nb::sig("def array_memory(bytes: int) -> memoryview | None"));
  module.def("kept_array_bytes", [] { return ArrayPool::instance().kept_bytes(); });
}

}  // namespace wirecall::python
