// Arena: memory for strings that a reader had to unescape. What it hands out does not move and lasts until `rewind`,
// after which the same memory is handed out again, so a warm reader does not allocate.
// One owner, one thread.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace wirecall::codec {

class Arena {
 public:
  [[nodiscard]] char* allocate(std::size_t bytes) {
    if (bytes > left_) [[unlikely]]
      next_block(bytes);
    left_ -= bytes;
    used_ = true;
    return std::exchange(next_, next_ + bytes);
  }
  /// Everything handed out is free again.
  void rewind() {
    if (used_) [[unlikely]]
      start_over();
  }

 private:
  struct Block {
    std::unique_ptr<char[]> bytes;
    std::size_t size;
  };
  static constexpr std::size_t kFirstBlockBytes = 4096;
  /// Memory kept for the next value; what one huge value needed beyond it is given back.
  static constexpr std::size_t kKeptBytesMax = std::size_t{1} << 20;

  void next_block(std::size_t bytes);
  void start_over();

  std::vector<Block> blocks_;
  std::size_t current_ = 0;  ///< blocks_[0 .. current_) are in use
  char* next_ = nullptr;
  std::size_t left_ = 0;
  bool used_ = false;
};

}  // namespace wirecall::codec
