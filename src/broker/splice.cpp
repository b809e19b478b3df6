// See splice.hpp.
#include "broker/splice.hpp"

#include "base/ascii.hpp"
#include "base/assert.hpp"

namespace wirecall::broker {
namespace {

const char* skip_space(const char* at) noexcept {
  while (is_space(*at)) ++at;
  return at;
}

// Where the member begins whose value begins at `value`. Envelope names hold no quote, not even an escaped one.
const char* member_of(const char* value) noexcept {
  const char* at = value - 1;
  while (*at != '"') --at;  // behind the name come white space and the colon
  do --at;
  while (*at != '"');
  return at;
}

}  // namespace

void Splice::add(const Change& change) noexcept {
  WIRECALL_ASSERT(count_ < kChangesMax);
  std::size_t at = count_++;
  for (; at != 0 && changes_[at - 1].value.data() > change.value.data(); --at) changes_[at] = changes_[at - 1];
  changes_[at] = change;
}

void Splice::append_to(Buffer& out) const {
  const char* from = text_.data();
  const char* const end = from + text_.size();
  for (std::size_t i = 0; i < count_; ++i) {
    const Change& change = changes_[i];
    const char* const value_end = change.value.data() + change.value.size();
    const char* const to = change.removes ? member_of(change.value.data()) : change.value.data();
    out.append({from, static_cast<std::size_t>(to - from)});
    out.append(change.by);
    from = value_end;
    if (!change.removes) continue;
    // Its comma goes with it: the one behind it, or, of the last member, the one before, if there is one: that is then
    // the last thing that was appended but for white space.
    from = skip_space(value_end);
    if (*from == ',') {
      ++from;
      continue;
    }
    std::size_t size = out.size();
    while (is_space(out.data()[size - 1])) --size;
    if (out.data()[size - 1] == ',') out.truncate(size - 1);
  }
  out.append({from, static_cast<std::size_t>(end - from)});
}

}  // namespace wirecall::broker
