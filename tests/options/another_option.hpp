// A value for any option that is not its default, as JSON and as words of a command line: for tests that walk the table
// of options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "options/rows.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net::test {

/// JSON text of a valid value of the option that is not its default in T.
template <class T>
std::string another(const OptionRow& row) {
  T defaults;
  const std::string value = json_of(row, slot_in<T>(row)(defaults, row));
  if (!row.words.empty()) {
    const bool number = value[0] != '"';
    for (const std::string_view word : row.words) {
      const std::string other = number ? std::string{word} : '"' + std::string{word} + '"';
      if (other != value) return other;
    }
  }
  if (value == "false") return "true";
  if (value[0] == '[') return row.max != 0 ? "[1,0]" : R"(["a","b"])";
  if (value[0] == '"') return R"("|")";
  // The next number: so no limit or pause crosses another.
  const std::uint64_t number = std::stoull(value);
  return std::to_string(number != row.max ? number + 1 : number - 1);
}

/// The words behind the flag of an option for that JSON text, one for each element.
inline std::vector<std::string> words_of(const std::string& json) {
  const Value parsed = Value::parse(json).value();
  std::vector<std::string> words;
  for (const Value& word : parsed.is_array() ? parsed.as_array() : Value::Array{parsed}) {
    words.push_back(word.is_string() ? word.as_string() : word.dump());
  }
  return words;
}

}  // namespace wirecall::net::test
