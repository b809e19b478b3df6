// The one table of options: name, unit, range, a line of documentation, and the member that holds each. JSON, the flags
// of the command, its help, its configuration file, the check of what a program has put into the struct, and
// docs/options.md all come of it: what is read from anywhere is brought to a Value and given to `assign`.
//
// An option is a number, true or false, a string, one of some words, or a list of strings or numbers. Its default is
// what a new struct holds. Names with a dot are members of an object: "limits.batch".
#pragma once

#include <expected>
#include <type_traits>
#include <variant>

#include "base/limit_rows.hpp"
#include "wirecall/options.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {

/// Where an option's value is. An enumeration is its position among the words of its row.
using OptionSlot = std::variant<bool*, std::uint16_t*, std::uint32_t*, std::size_t*, std::uint8_t*, std::string*,
                                std::vector<std::string>*, std::vector<std::uint32_t>*, std::vector<DurableTopic>*>;

struct OptionRow {
  std::string_view name;
  std::string_view unit = {};
  std::uint64_t min = 0;  ///< of numbers, also of those in a list
  std::uint64_t max = 0;
  std::span<const std::string_view> words = {};  ///< of an option that is one of them, or a number's only values
  std::string_view doc = {};
  OptionSlot (*in_server)(Options&, const OptionRow&) = nullptr;  ///< null: a server has no such option
  OptionSlot (*in_client)(ClientOptions&, const OptionRow&) = nullptr;
  const LimitRow* limit = nullptr;
  std::string_view alias = {};  ///< another name for its flag
  bool live = false;            ///< a server can be given another one while it runs
};

/// Where a T has the option, of Options or ClientOptions; null: it has no such option.
template <class T>
[[nodiscard]] auto slot_in(const OptionRow& row) noexcept {
  if constexpr (std::is_same_v<T, Options>) {
    return row.in_server;
  } else {
    return row.in_client;
  }
}

/// All options, in the order in which they are told of.
[[nodiscard]] std::span<const OptionRow> option_rows();
[[nodiscard]] const OptionRow* find_option(std::string_view name);

/// What the option can be, for people: "a number from 0 to 65535", "one of auto, epoll, uring", "a list of strings".
[[nodiscard]] std::string range_of(const OptionRow& row);
/// The value in the slot, as JSON text.
[[nodiscard]] std::string json_of(const OptionRow& row, const OptionSlot& slot);
/// Whether that is the flag, "--log-calls", of an option that is true or false.
[[nodiscard]] bool is_truth_flag(std::string_view flag);

/// Puts the value there, or says what is wrong with it: "port is 70000: give a number from 0 to 65535".
[[nodiscard]] std::expected<void, std::string> assign(const OptionRow& row, const OptionSlot& slot, const Value& value);
/// The value that words on a command line mean: several are only for lists. What is no number stays a string, for
/// `assign` to refuse.
[[nodiscard]] Value value_of_words(const OptionRow& row, std::span<const std::string> words);

/// The name of the flag: "--limits-batch".
[[nodiscard]] std::string flag_of(const OptionRow& row);

/// Whether there are options below that name, as there are below "limits".
[[nodiscard]] bool is_group(std::string_view name, bool (*is_option)(const OptionRow&));
/// What is said of a name that no option has, with the nearest that one has.
[[nodiscard]] std::string unknown_option(std::string_view name, bool (*is_option)(const OptionRow&));

}  // namespace wirecall::net
