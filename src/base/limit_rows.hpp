// The table of limits: what limits.hpp says of each in words, for code. It is walked by require_valid, and is part of
// the table of options (options/rows.hpp).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "wirecall/limits.hpp"

namespace wirecall {

struct LimitRow {
  std::string_view name;  ///< as an option: "limits.batch"; those that are users' old acquaintances have no prefix
  std::string_view unit;  ///< "bytes", "ms", …
  std::uint64_t min;
  std::uint64_t max;
  std::string_view doc;     ///< what it limits
  std::string_view beyond;  ///< what happens beyond it
  std::variant<std::size_t Limits::*, std::uint32_t Limits::*> member;
  bool of_listeners = false;  ///< only who accepts connections has it
};

[[nodiscard]] std::span<const LimitRow> limit_rows() noexcept;
[[nodiscard]] std::uint64_t limit_value(const LimitRow& row, const Limits& limits) noexcept;

/// Why limits that are each within their range cannot be together; empty when they can.
[[nodiscard]] std::string conflict_of(const Limits& limits);

/// "max_message_size is 0: give a number from 1 to 4294967295 (bytes)".
[[nodiscard]] std::string out_of_range(std::string_view name, std::string_view value, const std::string& range);
[[nodiscard]] std::string number_range(std::uint64_t min, std::uint64_t max, std::string_view unit);

}  // namespace wirecall
