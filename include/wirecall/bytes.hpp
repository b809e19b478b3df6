// Buffer: a growing byte buffer. Replies are encoded into it, and partial input is kept in it.
// A value with one owner (movable, not copyable). Not thread-safe.
//
// Invariant: size <= capacity, and kPaddingBytes writable bytes lie behind capacity, so scanners may load whole
// SIMD blocks past the end and writers may store a few bytes too many.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace wirecall {

/// How many bytes are readable behind every text that the scanner is given; the first of them is zero.
inline constexpr std::size_t kPaddingBytes = 64;

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::string_view text) { append(text); }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      std::free(data_);
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, 0);
    }
    return *this;
  }
  ~Buffer() { std::free(data_); }

  [[nodiscard]] char* data() noexcept { return data_; }
  [[nodiscard]] const char* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::string_view view() const noexcept { return {data_, size_}; }

  /// Makes room for `bytes` more and returns where they go. `set_end` or `grow` then adds them to the size.
  [[nodiscard]] char* reserve(std::size_t bytes) {
    if (capacity_ - size_ < bytes) [[unlikely]]
      enlarge(bytes);
    return data_ + size_;
  }
  /// `end` is what a writer that started at `reserve` returned: the new end of the content.
  void set_end(const char* end) noexcept { size_ = static_cast<std::size_t>(end - data_); }
  void grow(std::size_t bytes) noexcept { size_ += bytes; }

  void append(std::string_view text) {
    char* to = reserve(text.size());
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
    size_ += text.size();
  }
  void push_back(char c) {
    *reserve(1) = c;
    ++size_;
  }
  /// Drops everything behind `size`; `size` must not exceed the present size.
  void truncate(std::size_t size) noexcept { size_ = size; }
  void clear() noexcept { size_ = 0; }
  /// Drops the first `bytes`, moving the rest to the front.
  void drop_front(std::size_t bytes) noexcept {
    size_ -= bytes;
    if (size_ != 0) std::memmove(data_, data_ + bytes, size_);
  }
  /// Writes the zero bytes that the scanner relies on behind the content, and returns the content.
  [[nodiscard]] std::string_view padded() {
    if (data_ == nullptr) enlarge(0);
    std::memset(data_ + size_, 0, kPaddingBytes);
    return view();
  }
  /// Frees the memory.
  void release() noexcept { *this = Buffer{}; }

 private:
  [[gnu::noinline, gnu::cold]] void enlarge(std::size_t bytes) {
    std::size_t capacity = capacity_ < 448 ? 448 : capacity_ * 2;
    if (capacity < size_ + bytes) capacity = size_ + bytes;
    auto* data = static_cast<char*>(std::realloc(data_, capacity + kPaddingBytes));
    if (data == nullptr) throw std::bad_alloc{};
    data_ = data;
    capacity_ = capacity;
  }

  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace wirecall
