// The configuration file of `wirecall serve`: the options of a server as TOML, by the names and ranges of the one table
// of options. Pure: texts in, texts out.
#pragma once

#include <expected>

#include "options/rows.hpp"
#include "wirecall/options.hpp"

namespace wirecall::cli {

/// Bytes of a file that is read: more is none.
inline constexpr std::size_t kConfigBytesMax = 1024 * 1024;

/// The options that the text names have its values, and all others those of a new Options. Else all that is wrong with
/// it: "line 3: port is 70000: give a number from 0 to 65535; line 5: there is no option prot; did you mean port?".
[[nodiscard]] std::expected<Options, std::string> options_of_toml(std::string_view toml);

/// All options of a server with these values, each below its description, range and default.
/// Reading the text gives the same options.
[[nodiscard]] std::string toml_of_options(Options options);

}  // namespace wirecall::cli
