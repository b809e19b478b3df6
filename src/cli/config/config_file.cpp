#include "cli/config/config_file.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <sstream>
#include <stdexcept>

#include "base/printable.hpp"

// The parser comes with its compiled library as well; its headers alone leave the command nothing to look for when it
// starts.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace wirecall::cli {
namespace {

using net::OptionRow;

bool is_option(const OptionRow& row) { return row.in_server != nullptr; }

/// Whether JSON has something like it, which dates, times and what is no number are not.
bool is_json(const toml::node& node) {
  if (const auto* const array = node.as_array()) {
    return std::ranges::all_of(*array, [](const toml::node& element) { return is_json(element); });
  }
  if (const auto* const table = node.as_table()) {
    return std::ranges::all_of(*table, [](const auto& member) { return is_json(member.second); });
  }
  if (const auto* const number = node.as_floating_point()) return std::isfinite(number->get());
  return !node.is_date() && !node.is_time() && !node.is_date_time();
}

Value value_of(const toml::node& node) {
  if (const auto* const text = node.as_string()) return Value{text->get()};
  if (const auto* const number = node.as_integer()) return Value{number->get()};
  if (const auto* const number = node.as_floating_point()) return Value{number->get()};
  if (const auto* const truth = node.as_boolean()) return Value{truth->get()};
  if (const auto* const array = node.as_array()) {
    Value::Array elements;
    for (const toml::node& element : *array) elements.push_back(value_of(element));
    return elements;
  }
  Value::Object members;
  if (const auto* const table = node.as_table()) {
    for (const auto& [key, member] : *table) members.emplace_back(std::string{key.str()}, value_of(member));
  }
  return members;
}

std::string shown(const toml::node& node) {
  constexpr std::size_t kShownBytesMax = 64;
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  std::string result = printable(text.str());
  if (result.size() > kShownBytesMax) result = result.substr(0, kShownBytesMax) + "...";
  return result;
}

class TomlOptions {
 public:
  std::expected<Options, std::string> read(std::string_view text) {
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
      const toml::parse_error& error = parsed.error();
      return std::unexpected(
          fmt::format("line {}: this is no TOML: {}", error.source().begin.line, printable(error.description())));
    }
    members(parsed.table(), {});
    if (wrong_.empty()) check_together();
    if (wrong_.empty()) return std::move(options_);
    std::string all;
    for (const auto& [line, why] : wrong_) {
      if (!all.empty()) all += "; ";
      all += why;
    }
    return std::unexpected(std::move(all));
  }

 private:
  /// `prefix` is the way to the table, with a dot at its end.
  void members(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) member(prefix + std::string{key.str()}, key.source().begin.line, node);
  }

  void member(const std::string& name, std::uint32_t line, const toml::node& node) {
    const OptionRow* const row = net::find_option(name);
    if (row != nullptr && is_option(*row)) return option(*row, line, node);
    if (!net::is_group(name, &is_option)) return refuse(line, net::unknown_option(name, &is_option));
    const toml::table* const table = node.as_table();
    if (table == nullptr) return refuse(line, name + " is " + shown(node) + ": give a table of options");
    members(*table, name + '.');
  }

  void option(const OptionRow& row, std::uint32_t line, const toml::node& node) {
    // A name with a dot in quotes is the same as one that leads to a table.
    if (!lines_.emplace(row.name, line).second) return refuse(line, std::string{row.name} + " is given twice");
    if (!is_json(node)) return refuse(line, out_of_range(row.name, shown(node), net::range_of(row)));
    const auto assigned = net::assign(row, row.in_server(options_, row), value_of(node));
    if (!assigned) refuse(line, assigned.error());
  }

  /// What each may be, but not with the others.
  void check_together() {
    try {
      require_valid(options_);
    } catch (const std::invalid_argument& error) {
      const std::string_view why = error.what();
      const auto named = std::ranges::find_if(
          lines_, [&](const auto& given) { return why.starts_with(std::string{given.first} + ' '); });
      refuse(named != lines_.end() ? named->second : 0, error.what());
    }
  }

  /// Line 0 is for what no line of the text says.
  void refuse(std::uint32_t line, const std::string& why) {
    wrong_.emplace(line, line != 0 ? fmt::format("line {}: {}", line, why) : why);
  }

  Options options_;
  std::map<std::string_view, std::uint32_t> lines_;  // of the options that are given
  std::multimap<std::uint32_t, std::string> wrong_;  // by line
};

/// A JSON text as TOML, which has no other words for texts, numbers and lists, but lets no DEL stand for itself, and
/// writes the members of an object as `name = value`.
std::string toml_of_json(std::string_view json) {
  std::string toml;
  std::size_t string_at = 0;  // where the last string begins
  bool in_string = false;
  bool escaped = false;
  for (const char c : json) {
    if (c == '"' && !escaped) {
      in_string = !in_string;
      if (in_string) string_at = toml.size();
    }
    escaped = in_string && !escaped && c == '\\';
    if (c == ':' && !in_string) {
      toml.pop_back();
      toml.erase(string_at, 1);
      toml += " = ";
    } else if (c == '\x7F') {
      toml += "\\u007F";
    } else {
      toml += c;
    }
  }
  return toml;
}

/// The words as lines of a comment.
std::string comment(std::string_view text) {
  constexpr std::size_t kColumns = 100;
  std::string lines;
  std::size_t column = kColumns;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (column + 1 + word.size() > kColumns) {
      lines += lines.empty() ? "#" : "\n#";
      column = 1;
    }
    lines.append(" ").append(word);
    column += 1 + word.size();
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return lines + '\n';
}

std::string sentence(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + '.';
}

std::string entry(const OptionRow& row, Options& options, Options& defaults) {
  const std::string default_json = toml_of_json(net::json_of(row, row.in_server(defaults, row)));
  std::string text = "\n" + comment(sentence(std::string{row.doc}));
  if (row.limit != nullptr) text += comment("Beyond it: " + std::string{row.limit->beyond} + '.');
  text += comment(sentence(net::range_of(row)) + " Default: " + default_json);
  const std::string_view name = row.name.substr(row.name.rfind('.') + 1);
  return text.append(name) + " = " + toml_of_json(net::json_of(row, row.in_server(options, row))) + '\n';
}

std::string_view table_of(const OptionRow& row) {
  const std::size_t dot = row.name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : row.name.substr(0, dot);
}

}  // namespace

std::expected<Options, std::string> options_of_toml(std::string_view toml) { return TomlOptions{}.read(toml); }

std::string toml_of_options(Options options) {
  // What stands below the head of a table belongs to it, so options of none come first.
  std::vector<std::string_view> tables{{}};
  for (const OptionRow& row : net::option_rows()) {
    if (is_option(row) && std::ranges::find(tables, table_of(row)) == tables.end()) tables.push_back(table_of(row));
  }
  Options defaults;
  std::string text =
      "# Options of wirecall serve, with the values in force. SIGHUP makes a server that has them of a file (-c) take "
      "the\n"
      "# limits and log_level of it anew; what else has changed needs a restart.\n";
  for (const std::string_view table : tables) {
    if (!table.empty()) text += fmt::format("\n[{}]\n", table);
    for (const OptionRow& row : net::option_rows()) {
      if (is_option(row) && table_of(row) == table) text += entry(row, options, defaults);
    }
  }
  return text;
}

}  // namespace wirecall::cli
