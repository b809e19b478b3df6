#include "base/edit_distance.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace wirecall {

std::size_t edit_distance(std::string_view from, std::string_view to) noexcept {
  if (std::max(from.size(), to.size()) > kComparedBytesMax) return std::max(from.size(), to.size());
  std::array<std::array<std::uint8_t, kComparedBytesMax + 1>, 3> rows{};
  for (std::size_t j = 0; j <= to.size(); ++j) rows[0][j] = static_cast<std::uint8_t>(j);
  for (std::size_t i = 1; i <= from.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    const auto& two_above = rows[(i + 1) % 3];
    row[0] = static_cast<std::uint8_t>(i);
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const int changed = above[j - 1] + (from[i - 1] != to[j - 1] ? 1 : 0);
      int best = std::min({above[j] + 1, row[j - 1] + 1, changed});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        best = std::min(best, two_above[j - 2] + 1);
      row[j] = static_cast<std::uint8_t>(best);
    }
  }
  return rows[from.size() % 3][to.size()];
}

// Whether more than `count` bits of `bits` are set. A portable popcount is a call.
static bool more_bits_than(std::size_t count, std::uint64_t bits) noexcept {
  for (; bits != 0 && count != 0; --count) bits &= bits - 1;
  return bits != 0;
}

static std::size_t distance_max(std::size_t bytes) noexcept { return bytes <= 3 ? 1 : bytes <= 8 ? 2 : 3; }

Spelling::Spelling(std::string_view name) noexcept : bytes(name.size()), letters(0) {
  for (const char c : name) letters |= std::uint64_t{1} << (static_cast<unsigned char>(c) & 63);
}

NearestName::NearestName(std::string_view word) noexcept
    : word_(word),
      spelling_(word.substr(0, kComparedBytesMax)),
      best_(distance_max(word.size()) + 1),
      left_(word.size() <= kComparedBytesMax ? kComparedBytesTogether : 0) {}

std::size_t NearestName::bytes_min() const noexcept { return word_.size() < best_ ? 1 : word_.size() - best_ + 1; }

std::size_t NearestName::bytes_max() const noexcept {
  return left_ == 0 ? 0 : std::min(word_.size() + best_ - 1, kComparedBytesMax);
}

// Names that differ in more letters than twice the distance cannot be near.
bool NearestName::may_be_near(const Spelling& spelling) const noexcept {
  if (spelling.bytes - spelling_.bytes + (best_ - 1) > 2 * (best_ - 1)) return false;  // the sizes are too far apart
  return !more_bits_than(2 * (best_ - 1), spelling_.letters ^ spelling.letters);
}

void NearestName::consider(std::string_view name) noexcept {
  left_ -= std::min(left_, name.size());
  const std::size_t distance = edit_distance(word_, name);
  if (distance >= best_ || distance >= name.size()) return;
  best_ = distance;
  found_ = name;
}

void SpelledNames::add(SpelledName& known) {
  if (known.name.empty() || known.name.size() > kComparedBytesMax) return;
  std::vector<Spelled>& names = by_size_[known.name.size() - 1];
  names.push_back({Spelling{known.name}, &known});
  known.at = names.size() - 1;
}

void SpelledNames::remove(const SpelledName& known) noexcept {
  if (known.name.empty() || known.name.size() > kComparedBytesMax) return;
  std::vector<Spelled>& names = by_size_[known.name.size() - 1];
  WIRECALL_ASSERT(known.at < names.size() && names[known.at].known == &known);
  names[known.at] = names.back();
  names[known.at].known->at = known.at;
  names.pop_back();
}

}  // namespace wirecall
