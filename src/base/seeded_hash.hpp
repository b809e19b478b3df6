// SeededHash: of names that outsiders choose, in tables that outsiders fill. Which names share a bucket depends on a
// secret that each table draws for itself, so nobody can choose names that all do. Pure but for drawing it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace wirecall {

class SeededHash {
 public:
  SeededHash() : SeededHash(std::random_device{}) {}

  [[nodiscard]] std::size_t operator()(std::string_view text) const noexcept {
    std::uint64_t hash = first_;
    const char* at = text.data();
    std::size_t left = text.size();
    for (; left >= sizeof(std::uint64_t); left -= sizeof(std::uint64_t), at += sizeof(std::uint64_t)) {
      std::uint64_t word;
      std::memcpy(&word, at, sizeof word);
      hash = folded(hash ^ word, second_);
    }
    std::uint64_t rest = 0;
    if (left != 0) std::memcpy(&rest, at, left);
    return folded(folded(hash ^ rest, second_), first_ ^ text.size());
  }

 private:
  explicit SeededHash(std::random_device&& random)
      : first_(drawn(random)), second_(drawn(random) | 1) {}  // NOLINT: the device is drawn from

  static std::uint64_t drawn(std::random_device& random) { return std::uint64_t{random()} << 32 | random(); }
  // Both halves of the product, so that each bit of either factor reaches each bit of the hash.
  [[nodiscard]] static std::uint64_t folded(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = Wide{a} * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  std::uint64_t first_;
  std::uint64_t second_;
};

}  // namespace wirecall
