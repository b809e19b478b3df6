// See body_reader.hpp.
#include "http/body_reader.hpp"

#include "base/assert.hpp"

namespace wirecall::net {

using framing::Find;

BodyReader::Found BodyReader::read_part(std::span<char> input, std::size_t bytes_max, Loop& loop) {
  WIRECALL_ASSERT(reading());
  std::span<char> part = input;
  std::size_t used = input.size();
  Step step = Step::more;
  if (ending_ == Ending::length) {
    used = std::min(left_, input.size());
    part = input.first(used);
    left_ -= used;
    if (left_ == 0) step = end();
    bytes_max = ~std::size_t{0};  // the length has been looked at before
  } else if (ending_ == Ending::chunks) {
    const framing::Found found = chunks_.next({input.data(), input.size()});
    used = found.skip + found.size;
    part = input.subspan(found.skip, found.size);
    if (found.find == Find::malformed) return {used, Step::malformed};
    if (found.find == Find::message) step = end();
    if (discards_) left_ += found.size;
  }
  progress_ += static_cast<std::uint32_t>(part.size());
  if (discards_ || step == Step::discarded) return {used, left_ > bytes_max ? Step::too_large : step};
  const Step kept = keep(part, bytes_max, loop);
  return {used, kept == Step::more ? step : kept};
}

BodyReader::Step BodyReader::keep(std::span<char> part, std::size_t bytes_max, Loop& loop) {
  if (part.empty()) return Step::more;
  if (kept_.size() + part.size() > bytes_max) return Step::too_large;
  if (kept_.capacity() == 0) kept_ = loop.take_buffer();
  kept_.append({part.data(), part.size()});
  return Step::more;
}

BodyReader::Step BodyReader::end() noexcept {
  ending_ = Ending::none;
  return std::exchange(discards_, false) ? Step::discarded : Step::complete;
}

}  // namespace wirecall::net
