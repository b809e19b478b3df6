#include "cli/files.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/core.h>
#include <memory>

#include "cli/terminal.hpp"

namespace wirecall::cli {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

}  // namespace

std::expected<std::string, std::string> read_file(const std::string& path) {
  const File file{std::fopen(path.c_str(), "rb"), &std::fclose};
  std::string content;
  if (file != nullptr) {
    char block[64 * 1024];
    while (const std::size_t bytes = std::fread(block, 1, sizeof block, file.get())) content.append(block, bytes);
    if (std::ferror(file.get()) == 0) return content;
  }
  return std::unexpected(fmt::format("cannot read the file {}: {}", path, std::strerror(errno)));
}

std::expected<void, std::string> write_file(const std::string& path, std::string_view content) {
  File file{std::fopen(path.c_str(), "wb"), &std::fclose};
  if (file != nullptr && std::fwrite(content.data(), 1, content.size(), file.get()) == content.size() &&
      std::fclose(file.release()) == 0) {
    return {};
  }
  return std::unexpected(fmt::format("cannot write the file {}: {}", path, std::strerror(errno)));
}

int print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) == 0) return kSuccess;
  complain(fmt::format("cannot write to stdout: {}", std::strerror(errno)));
  return kRpcError;
}

}  // namespace wirecall::cli
