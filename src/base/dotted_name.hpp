// Dotted names, as methods and topics have them, and the patterns that stand for many: `*` for one word, `>` for one or
// more at the end. Pure: no allocation, and time in proportion to the bytes.
#pragma once

#include <cstddef>
#include <string_view>

namespace wirecall {

/// Bytes of a name or pattern.
inline constexpr std::size_t kNameBytesMax = 255;

/// A method or topic: 1 to kNameBytesMax bytes, words between dots, none empty, without white space, control and
/// format characters (utf8.hpp), `*` and `>`. UTF-8 is the reader's to check.
[[nodiscard]] bool is_name(std::string_view text) noexcept;
/// A name, or all names behind one: "gpu.>", or ">" for all.
[[nodiscard]] bool is_name_or_prefix(std::string_view text) noexcept;
/// A name whose words may be `*`, and the last one `>`.
[[nodiscard]] bool is_pattern(std::string_view text) noexcept;
/// Whether a valid pattern has a word that is `*` or `>`.
[[nodiscard]] bool has_wildcard(std::string_view pattern) noexcept;
/// The names that are wirecall's own: "rpc." and "$/" begin them.
[[nodiscard]] inline bool is_reserved(std::string_view name) noexcept {
  return name.starts_with("rpc.") || name.starts_with("$/");
}

/// Whether `allowed` stands for every name that `pattern` stands for; both valid. A wildcard as the first word stands
/// for no reserved name.
[[nodiscard]] bool covers(std::string_view allowed, std::string_view pattern) noexcept;
/// Whether the pattern stands for `name`, which is a pattern of one name.
[[nodiscard]] inline bool matches(std::string_view pattern, std::string_view name) noexcept {
  return covers(pattern, name);
}

/// Takes the first word, and its dot, off `rest`.
[[nodiscard]] std::string_view take_word(std::string_view& rest) noexcept;

}  // namespace wirecall
