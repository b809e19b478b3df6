// Where `wirecall serve` has its options from: a file (-c) and the flags, which override it.
#pragma once

#include <CLI/CLI.hpp>
#include <expected>

#include "cli/config/flags.hpp"
#include "wirecall/options.hpp"

namespace wirecall::cli {

class ServeConfig {
 public:
  /// Adds -c and a flag for each option.
  explicit ServeConfig(CLI::App& command);
  ServeConfig(ServeConfig&&) = delete;

  /// After parsing: reads the file, if there is one, each time anew. Any thread.
  [[nodiscard]] std::expected<Options, std::string> load() const;
  /// Empty for none.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  OptionFlags<Options> flags_;
};

}  // namespace wirecall::cli
