// JsonCounts: how many elements or members each array and object of a JSON text has, in the order of their opening
// brackets. Encodings say so at the beginning, JSON only at the end; and an object of one member may be a $-object
// (docs/wire.md, "Values beyond JSON"), which is known by its bracket then, without looking ahead.
// It keeps its memory from text to text. One owner, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace wirecall::codec {

class JsonCounts {
 public:
  /// Counts those of one valid text, in linear time.
  void read(std::string_view json);
  /// Of the next array or object.
  [[nodiscard]] std::uint32_t peek() const noexcept { return counts_[next_]; }
  [[nodiscard]] std::uint32_t take() noexcept { return counts_[next_++]; }

 private:
  std::vector<std::uint32_t> counts_;
  std::vector<std::size_t> opened_;  ///< positions in counts_
  std::size_t next_ = 0;
};

}  // namespace wirecall::codec
