// Subjects: where the brokers of a realm send what: `wc.<realm>.hb` is for all, `wc.<realm>.n.<node>.call` for one.
// Names of realms and nodes are one word each. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace wirecall::cluster {

inline constexpr std::size_t kWordBytesMax = 63;

/// Whether a realm or node may be called that: 1 to 63 letters, digits, `-` and `_`.
[[nodiscard]] constexpr bool is_word(std::string_view text) noexcept {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= kWordBytesMax && std::ranges::all_of(text, fits);
}

/// Of one realm, whose name is a word.
class Subjects {
 public:
  explicit Subjects(std::string_view realm) : prefix_("wc." + std::string{realm} + '.') {}

  /// Each node tells all that it is there.
  [[nodiscard]] std::string heartbeat() const { return prefix_ + "hb"; }
  /// What others send to the node.
  [[nodiscard]] std::string call(std::string_view node) const { return of_node(node) + ".call"; }
  /// Where `node` learns that `other` is not there any more; `*` for any.
  [[nodiscard]] std::string gone(std::string_view node, std::string_view other) const {
    return of_node(node) + ".gone." + std::string{other};
  }

 private:
  [[nodiscard]] std::string of_node(std::string_view node) const { return prefix_ + "n." + std::string{node}; }

  std::string prefix_;
};

}  // namespace wirecall::cluster
