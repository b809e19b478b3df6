// See length_prefix.hpp.
#include "framing/length_prefix.hpp"

#include "base/assert.hpp"

namespace wirecall::framing {

Found LengthPrefix::next(std::span<char> bytes) {
  const std::string_view input{bytes.data(), bytes.size()};
  std::uint32_t skip = 0;
  if (prefix_bytes_ < kPrefixBytes) {
    while (prefix_bytes_ < kPrefixBytes && skip < input.size()) {
      left_ = left_ << 8 | static_cast<unsigned char>(input[skip++]);
      ++prefix_bytes_;
    }
    if (prefix_bytes_ == kPrefixBytes && left_ > limits_->max_message_size) return {Find::too_large, skip, 0};
    if (prefix_bytes_ < kPrefixBytes || (skip == input.size() && left_ != 0)) return {Find::nothing, skip, 0};
  }
  const std::size_t here = input.size() - skip;
  if (here < left_) {
    left_ -= static_cast<std::uint32_t>(here);
    return {Find::part, skip, here};
  }
  prefix_bytes_ = 0;
  return {Find::message, skip, std::exchange(left_, 0)};
}

Found LengthPrefix::end_of_stream() { return {prefix_bytes_ != 0 ? Find::malformed : Find::nothing, 0, 0}; }

void LengthPrefix::seal(Buffer& out, std::size_t begin, bool) {
  WIRECALL_ASSERT(begin + kPrefixBytes <= out.size());
  const std::size_t bytes = out.size() - begin - kPrefixBytes;
  for (std::size_t i = 0; i < kPrefixBytes; ++i) out.data()[begin + i] = static_cast<char>(bytes >> (24 - 8 * i));
}

}  // namespace wirecall::framing
