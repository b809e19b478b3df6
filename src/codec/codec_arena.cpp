// The blocks behind Arena: each at least twice as large as the one before, so their number stays small.
#include "codec/codec_arena.hpp"

#include <algorithm>

namespace wirecall::codec {

void Arena::next_block(std::size_t bytes) {
  while (current_ < blocks_.size() && blocks_[current_].size < bytes) ++current_;
  if (current_ == blocks_.size()) {
    const std::size_t least = blocks_.empty() ? kFirstBlockBytes : blocks_.back().size * 2;
    const std::size_t size = std::max(bytes, std::min(least, kKeptBytesMax));
    blocks_.push_back({std::make_unique_for_overwrite<char[]>(size), size});
  }
  next_ = blocks_[current_].bytes.get();
  left_ = blocks_[current_].size;
  ++current_;
}

void Arena::start_over() {
  std::size_t kept = 0;
  std::erase_if(blocks_, [&](const Block& block) {
    kept += block.size;
    return kept > kKeptBytesMax;
  });
  current_ = 0;
  next_ = nullptr;
  left_ = 0;
  used_ = false;
  if (!blocks_.empty()) next_block(0);
}

}  // namespace wirecall::codec
