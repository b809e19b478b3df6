// What commands read and write: files named on the command line, and stdout. Errors are texts for the user.
#pragma once

#include <cstddef>
#include <cstdio>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace wirecall::cli {

/// "-" is the standard input.
[[nodiscard]] std::expected<std::string, std::string> read_file(const std::string& path);
/// The same, but that a file of more than `bytes_max` is too large.
[[nodiscard]] std::expected<std::string, std::string> read_small_file(const std::string& path, std::size_t bytes_max);

/// A file that is opened before there is anything to write, so that what cannot be written is known at once. Until then
/// an existing file keeps its content.
class OutputFile {
 public:
  [[nodiscard]] static std::expected<OutputFile, std::string> open(std::string path);
  /// Makes `content` all of it, and closes it.
  [[nodiscard]] std::expected<void, std::string> write(std::string_view content);

 private:
  using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  OutputFile(std::string path, File file) noexcept : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  File file_;
};

/// Writes all of it to stdout, now. The exit status: what was asked for has not been done when it cannot be printed.
int print(std::string_view text);

}  // namespace wirecall::cli
