#include "cli/config/flags.hpp"

#include <algorithm>
#include <stdexcept>

namespace wirecall::cli {

using net::OptionRow;

static std::string help_of(const OptionRow& row, const std::string& value) {
  std::string range = net::range_of(row);
  if (range.starts_with("a list")) range += ", the flag once for each";
  std::string help = std::string{row.doc} + ": " + range;
  if (value != "[]" && value != "\"\"") help += " (default: " + value + ")";
  return help;
}

// What stands for the value in the help.
static std::string value_name(const OptionRow& row) {
  const std::string range = net::range_of(row);
  if (range.starts_with("true")) return "true|false";
  if (range.starts_with("one of")) return "WORD";
  if (range.find("number") == std::string::npos) return "TEXT";
  if (row.unit == "ms") return "MS";
  return row.unit == "bytes" ? "BYTES" : "N";
}

template <class T>
OptionFlags<T>::OptionFlags(CLI::App& command) {
  T defaults;
  for (const OptionRow& row : net::option_rows()) {
    const auto in = net::slot_in<T>(row);
    if (in == nullptr) continue;
    Flag& flag = flags_.emplace_back(Flag{&row, {}});
    std::string names = net::flag_of(row);
    if (!row.alias.empty()) names.append(",--").append(row.alias);
    command.add_option(names, flag.values, help_of(row, net::json_of(row, in(defaults, row))))
        ->type_name(value_name(row))
        ->expected(1)
        ->take_all()
        ->group(row.limit != nullptr ? "Limits" : "Options");
  }
}

template <class T>
std::expected<void, std::string> OptionFlags<T>::apply(T& options) const {
  for (const Flag& flag : flags_) {
    if (flag.values.empty()) continue;
    const OptionRow& row = *flag.row;
    auto assigned = net::assign(row, net::slot_in<T>(row)(options, row), net::value_of_words(row, flag.values));
    if (!assigned) return std::unexpected(net::flag_of(row) + ": " + assigned.error());
  }
  try {
    require_valid(options);
  } catch (const std::invalid_argument& error) {
    return std::unexpected(error.what());
  }
  return {};
}

template <class T>
bool OptionFlags<T>::given(std::string_view name) const {
  return std::ranges::any_of(flags_, [&](const Flag& flag) { return flag.row->name == name && !flag.values.empty(); });
}

std::vector<std::string> with_truths(const std::vector<std::string>& args) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i != args.size(); ++i) {
    all.push_back(args[i]);
    if (args[i] == "--")
      return all.insert(all.end(), args.begin() + static_cast<std::ptrdiff_t>(i) + 1, args.end()), all;
    const bool has_value = i + 1 != args.size() && (args[i + 1] == "true" || args[i + 1] == "false");
    if (!has_value && net::is_truth_flag(args[i])) all.emplace_back("true");
  }
  return all;
}

template class OptionFlags<Options>;
template class OptionFlags<ClientOptions>;

}  // namespace wirecall::cli
