// See wirecall/detail/spares.hpp.
#include "wirecall/detail/spares.hpp"

#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace wirecall::detail {
namespace {

constexpr std::size_t kBytesMax = 1024;

template <class T>
class Stack {
 public:
  /// Empty for none.
  [[nodiscard]] T take() noexcept { return count_ == 0 ? T{} : std::move(things_[--count_]); }
  void keep(T&& thing) noexcept {
    if (count_ != things_.size()) things_[count_++] = std::move(thing);
  }

 private:
  std::array<T, 128> things_;
  std::size_t count_ = 0;
};

struct Spares {
  Stack<std::unique_ptr<Reader>> json_readers;
  std::unique_ptr<Writer> json_writer;
  Stack<Buffer> buffers;
};

// Made when first used: a module that is loaded has little room for what is the threads' own. Null for want of memory,
// and at the end of the thread, when others of its objects may still be destroyed.
Spares* spares() noexcept {
  static thread_local Spares* own = nullptr;
  static thread_local bool gone = false;
  struct Owner {
    Owner() noexcept { own = new (std::nothrow) Spares; }
    Owner(Owner&&) = delete;
    ~Owner() {
      delete std::exchange(own, nullptr);
      gone = true;
    }
  };
  if (own == nullptr && !gone) [[unlikely]] {
    static thread_local const Owner owner;
  }
  return own;
}

bool is_kept(const Codec& codec) noexcept { return &codec == &json_codec(); }

}  // namespace

std::unique_ptr<Reader> take_reader(const Codec& codec) {
  Spares* const own = is_kept(codec) ? spares() : nullptr;
  std::unique_ptr<Reader> reader = own != nullptr ? own->json_readers.take() : nullptr;
  return reader ? std::move(reader) : codec.reader();
}

std::unique_ptr<Writer> take_writer(const Codec& codec) {
  Spares* const own = is_kept(codec) ? spares() : nullptr;
  return own != nullptr && own->json_writer ? std::move(own->json_writer) : codec.writer();
}

void keep_spare(std::unique_ptr<Reader> reader, std::size_t bytes) noexcept {
  if (bytes > kBytesMax) return;
  Spares* const own = reader && is_kept(reader->codec()) ? spares() : nullptr;
  if (own != nullptr) own->json_readers.keep(std::move(reader));
}

void keep_spare(const Codec& codec, std::unique_ptr<Writer> writer) noexcept {
  Spares* const own = is_kept(codec) ? spares() : nullptr;
  if (own != nullptr) own->json_writer = std::move(writer);
}

Buffer take_buffer() noexcept {
  Spares* const own = spares();
  return own != nullptr ? own->buffers.take() : Buffer{};
}

void keep_spare(Buffer buffer) noexcept {
  if (buffer.capacity() == 0 || buffer.capacity() > kBytesMax) return;
  buffer.clear();
  if (Spares* const own = spares()) own->buffers.keep(std::move(buffer));
}

}  // namespace wirecall::detail
