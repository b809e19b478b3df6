// The options of a server or client as flags of a command, out of the one table of options. Not the command's own
// flags.
#pragma once

#include <CLI/CLI.hpp>
#include <deque>
#include <expected>

#include "options/rows.hpp"
#include "wirecall/options.hpp"

namespace wirecall::cli {

template <class T>
class OptionFlags {
 public:
  /// Adds a flag for each option of a T, with its unit, default and range in the help.
  explicit OptionFlags(CLI::App& command);
  OptionFlags(OptionFlags&&) = delete;

  /// After parsing: puts what was given into `options`, or says what is wrong with it.
  [[nodiscard]] std::expected<void, std::string> apply(T& options) const;
  /// Whether the flag of the option of that name was given.
  [[nodiscard]] bool given(std::string_view name) const;

 private:
  struct Flag {
    const net::OptionRow* row;
    std::vector<std::string> values;
  };
  std::deque<Flag> flags_;  // the parser holds on to the values
};

/// The arguments of a command line with `true` behind each flag of an option that is true or false and has no value
/// there:
/// --log-calls is --log-calls true. Words behind -- are left alone.
[[nodiscard]] std::vector<std::string> with_truths(const std::vector<std::string>& args);

extern template class OptionFlags<Options>;
extern template class OptionFlags<ClientOptions>;

}  // namespace wirecall::cli
