// What commands read and write: files named on the command line, and stdout. Errors are texts for the user.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace wirecall::cli {

[[nodiscard]] std::expected<std::string, std::string> read_file(const std::string& path);
[[nodiscard]] std::expected<void, std::string> write_file(const std::string& path, std::string_view content);

/// Writes all of it to stdout, now. The exit status: what was asked for has not been done when it cannot be printed.
int print(std::string_view text);

}  // namespace wirecall::cli
