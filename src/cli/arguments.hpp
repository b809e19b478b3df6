// What the arguments of a command line mean: the params of a call, a duration. Pure: files are read by whom it is told.
// Errors are texts for the user, with the cause and a fix.
#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wirecall::cli {

/// The content of a file, or why it cannot be read.
using FileReader = std::function<std::expected<std::string, std::string>(const std::string& path)>;

/// The JSON text of params, empty for none, from arguments that are all positional or all named:
///
///     ARG              JSON if it is JSON, else a string
///     @file            what the file holds (blobs.hpp)
///     name=value       the same, by name
///     name=@file
///     name:type=value  of that type: int, float, str, bool, json; bytes (of the value); file (the bytes of that file)
///
/// A word that is JSON is never taken for a named one, so '"a=b"' is the string a=b.
[[nodiscard]] std::expected<std::string, std::string> params_of(std::span<const std::string> args,
                                                                const FileReader& read_file);

/// The value of an event from the same arguments, an array or object: of one positional argument alone the value itself
/// if it is one, else [value].
[[nodiscard]] std::expected<std::string, std::string> params_of_event(std::span<const std::string> args,
                                                                      const FileReader& read_file);

/// The params of a call of `method`, which has to be UTF-8 as well.
[[nodiscard]] std::expected<std::string, std::string> params_of_call(const std::string& method,
                                                                     std::span<const std::string> args,
                                                                     const FileReader& read_file);

/// "200ms", "1.5s", "2m": more than 0, at most 49 days (what 32 bits of milliseconds hold), rounded up to whole ones.
[[nodiscard]] std::expected<std::chrono::milliseconds, std::string> duration_of(std::string_view text);

/// Where servers are: the URIs of a list with commas between them, as $WIRECALL_URL is.
[[nodiscard]] std::vector<std::string> urls_of(std::string_view list);

}  // namespace wirecall::cli
