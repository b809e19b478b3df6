#include "cli/files.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/core.h>
#include <limits>
#include <unistd.h>

#include "cli/terminal.hpp"

namespace wirecall::cli {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

static std::string cannot_write(const std::string& path) {
  return fmt::format("cannot write the file {}: {}", path, std::strerror(errno));
}

static int leave_open(std::FILE*) { return 0; }

std::expected<std::string, std::string> read_file(const std::string& path) {
  return read_small_file(path, std::numeric_limits<std::size_t>::max());
}

std::expected<std::string, std::string> read_small_file(const std::string& path, std::size_t bytes_max) {
  const bool standard = path == "-";
  const File file{standard ? stdin : std::fopen(path.c_str(), "rb"), standard ? &leave_open : &std::fclose};
  std::string content;
  if (file != nullptr) {
    char block[64 * 1024];
    while (const std::size_t bytes = std::fread(block, 1, sizeof block, file.get())) {
      content.append(block, bytes);
      if (content.size() > bytes_max) {
        return std::unexpected(fmt::format("the file {} is too large: more than {} bytes", path, bytes_max));
      }
    }
    if (std::ferror(file.get()) == 0) return content;
  }
  return std::unexpected(fmt::format("cannot read the file {}: {}", path, std::strerror(errno)));
}

std::expected<OutputFile, std::string> OutputFile::open(std::string path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  File file{descriptor < 0 ? nullptr : ::fdopen(descriptor, "wb"), &std::fclose};
  if (file == nullptr) return std::unexpected(cannot_write(path));
  return OutputFile{std::move(path), std::move(file)};
}

std::expected<void, std::string> OutputFile::write(std::string_view content) {
  std::FILE* const file = file_.get();
  // What cannot be cut, as a pipe, holds nothing that is older.
  const bool cut = ::ftruncate(::fileno(file), 0) == 0 || errno == EINVAL;
  if (cut && std::fwrite(content.data(), 1, content.size(), file) == content.size() &&
      std::fclose(file_.release()) == 0) {
    return {};
  }
  return std::unexpected(cannot_write(path_));
}

int print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return kSuccess;
  print_error(fmt::format("cannot write to stdout: {}", std::strerror(errno)));
  return kRpcError;
}

}  // namespace wirecall::cli
