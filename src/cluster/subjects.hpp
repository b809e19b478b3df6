// Subjects: where the brokers of a realm send what: `wc.<realm>.hb` is for all, `wc.<realm>.n.<node>.call` for one; and
// where those who are no brokers reach them. Names of realms and nodes are one word each. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/hexadecimal.hpp"

namespace wirecall::cluster {

inline constexpr std::size_t kWordBytesMax = 63;

/// Whether a realm or node may be called that: 1 to 63 letters, digits, `-` and `_`.
[[nodiscard]] constexpr bool is_word(std::string_view text) noexcept {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  };
  return !text.empty() && text.size() <= kWordBytesMax && std::ranges::all_of(text, fits);
}

/// A method or topic as words of a subject: it is split at its dots as it is; bytes that are not visible ASCII, and
/// `%`, `*` and `>`, are %XX. Throws std::bad_alloc.
[[nodiscard]] inline std::string subject_of_name(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string subject;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7F && c != '%' && c != '*' && c != '>') {
      subject += c;
    } else {
      subject += '%';
      subject += kDigits[byte >> 4];
      subject += kDigits[byte & 15];
    }
  }
  return subject;
}
/// The name of such words; nothing for a `%` without two hexadecimal digits.
[[nodiscard]] inline std::optional<std::string> name_of_subject(std::string_view subject) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string name;
  for (std::size_t at = 0; at != subject.size(); ++at) {
    if (subject[at] != '%') {
      name += subject[at];
      continue;
    }
    if (subject.size() - at < 3) return std::nullopt;
    const int high = digit(subject[at + 1]);
    const int low = digit(subject[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    name += static_cast<char>(high << 4 | low);
    at += 2;
  }
  return name;
}

/// Of one realm, whose name is a word.
class Subjects {
 public:
  explicit Subjects(std::string_view realm) : prefix_("wc." + std::string{realm} + '.') {}

  /// Each node tells all that it is there.
  [[nodiscard]] std::string heartbeat() const { return prefix_ + "hb"; }
  /// What others send to the node.
  [[nodiscard]] std::string call(std::string_view node) const { return of_node(node) + ".call"; }
  /// What others send to that process alone, which is the node, or has been.
  [[nodiscard]] std::string process(std::string_view node, std::uint64_t epoch) const {
    return call(node) + '.' + hexadecimal(epoch);
  }
  /// Where `node` learns that `other` is not there any more, a node or a word of `process_word`; `*` for any.
  [[nodiscard]] std::string gone(std::string_view node, std::string_view other) const {
    return of_node(node) + ".gone." + std::string{other};
  }
  /// Before the words of a method: where those who are no brokers call it.
  [[nodiscard]] std::string methods() const { return prefix_ + "m."; }
  /// Before the words of a topic: where they are told its events.
  [[nodiscard]] std::string topics() const { return prefix_ + "t."; }

  /// A process that has been the node `name`, as one word that no node is called.
  [[nodiscard]] static std::string process_word(std::string_view name, std::uint64_t epoch) {
    return std::string{name} + ':' + hexadecimal(epoch);
  }

 private:
  [[nodiscard]] std::string of_node(std::string_view node) const { return prefix_ + "n." + std::string{node}; }

  std::string prefix_;
};

}  // namespace wirecall::cluster
