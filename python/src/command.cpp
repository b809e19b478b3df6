// See command.hpp.
#include "command.hpp"

#include <algorithm>
#include <csignal>
#include <map>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <stdexcept>
#include <sys/prctl.h>

#include "base/edit_distance.hpp"
#include "cli/config/config_file.hpp"
#include "options/rows.hpp"
#include "wirecall/options.hpp"

namespace wirecall::python {
namespace nb = nanobind;

using net::OptionRow;

static const OptionRow* row_of_flag(const std::string& flag) {
  for (const OptionRow& row : net::option_rows()) {
    const bool alias = !row.alias.empty() && flag == "--" + std::string{row.alias};
    if (row.in_server != nullptr && (alias || flag == net::flag_of(row))) return &row;
  }
  return nullptr;
}

static bool is_boolean(const OptionRow& row) { return net::is_truth_flag(net::flag_of(row)); }

/// Whether that is the flag of a boolean option, which needs no value.
static bool is_boolean_flag(const std::string& flag) {
  const OptionRow* const row = row_of_flag(flag);
  return row != nullptr && is_boolean(*row);
}

static std::string unknown_flag(const std::string& flag) {
  if (flag == "--demo")
    return "--demo is for the broker: wirecall serve --demo serves methods of its own, and no program";
  std::vector<std::string> names{"--config", "--insecure", "--listen", "--print-config", "--workers"};
  for (const OptionRow& row : net::option_rows()) {
    if (row.in_server == nullptr) continue;
    names.push_back(net::flag_of(row));
    if (!row.alias.empty()) names.push_back("--" + std::string{row.alias});
  }
  const std::string nearest{nearest_of(flag, names)};
  return "there is no option " + flag +
         (nearest.empty() ? "; wirecall serve --help lists them all" : "; did you mean " + nearest + "?");
}

// The options that such words name, each with its value as JSON text. Throws std::invalid_argument.
static std::vector<std::pair<std::string, std::string>> options_of_flags(const std::vector<std::string>& words) {
  std::map<const OptionRow*, std::vector<std::string>> given;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = std::min(words[i].find('='), words[i].size());
    const std::string flag = words[i].substr(0, equals);
    const OptionRow* const row = row_of_flag(flag);
    if (row == nullptr) throw std::invalid_argument{unknown_flag(flag)};
    if (equals != words[i].size()) {
      given[row].push_back(words[i].substr(equals + 1));
    } else if (is_boolean(*row) && (i + 1 == words.size() || (words[i + 1] != "true" && words[i + 1] != "false"))) {
      given[row].emplace_back("true");
    } else if (++i < words.size()) {
      given[row].push_back(words[i]);
    } else {
      throw std::invalid_argument{flag + " needs a value: " + net::range_of(*row)};
    }
  }
  std::vector<std::pair<std::string, std::string>> options;
  for (const auto& [row, values] : given) {
    Options assigned;
    const net::OptionSlot slot = row->in_server(assigned, *row);
    if (const auto done = net::assign(*row, slot, net::value_of_words(*row, values)); !done)
      throw std::invalid_argument{net::flag_of(*row) + ": " + done.error()};
    options.emplace_back(row->name, net::json_of(*row, slot));
  }
  return options;
}

// What is wrong with such a file; empty for nothing.
static std::string wrong_with_toml(nb::bytes text) {
  const auto options = cli::options_of_toml({text.c_str(), text.size()});
  return options ? std::string{} : options.error();
}

static std::string toml_of_options(const std::string& json) { return cli::toml_of_options(Options::from_json(json)); }

void add_command(nb::module_& module) {
  module.def("options_of_flags", &options_of_flags);
  module.def("is_boolean_flag", &is_boolean_flag);
  module.def("nearest", [](const std::string& word, const std::vector<std::string>& names) {
    return std::string{nearest_of(word, names)};
  });
  module.def("wrong_with_toml", &wrong_with_toml);
  module.def("toml_of_options", &toml_of_options);
  module.def("end_with_parent", [] { ::prctl(PR_SET_PDEATHSIG, SIGTERM); });
}

}  // namespace wirecall::python
