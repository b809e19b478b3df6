// See contexts.hpp.
#include "cli/config/contexts.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/core.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "cli/files.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cli {

constexpr std::size_t kFileBytesMax = 1024 * 1024;

static std::unexpected<std::string> cannot_write(const std::string& path, int error) {
  return std::unexpected(fmt::format("cannot write {}: {}", path, std::strerror(error)));
}

static bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(fd) == 0;
}

const SavedContext* SavedContexts::find(const std::string& name) const {
  const auto found = std::ranges::find(contexts, name, &SavedContext::name);
  return found == contexts.end() ? nullptr : &*found;
}

std::vector<std::string> SavedContexts::names() const {
  std::vector<std::string> names;
  for (const SavedContext& context : contexts) names.push_back(context.name);
  return names;
}

std::string contexts_path() {
  constexpr std::string_view kName = "/wirecall/contexts.json";
  // As the XDG Base Directory Specification has it: a path that is not absolute is none.
  if (const char* folder = std::getenv("XDG_CONFIG_HOME"); folder != nullptr && *folder == '/')
    return folder + std::string{kName};
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == '\0' ? std::string{} : home + std::string{"/.config"} + std::string{kName};
}

std::expected<SavedContexts, std::string> load_contexts() {
  const std::string path = contexts_path();
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return SavedContexts{};
  auto text = read_small_file(path, kFileBytesMax);
  if (!text) return std::unexpected(std::move(text.error()));
  auto contexts = from_json<SavedContexts>(*text);
  if (!contexts) {
    return std::unexpected(fmt::format("{} holds no contexts: mend it, or remove it and add them again", path));
  }
  return *std::move(contexts);
}

std::expected<void, std::string> save_contexts(const SavedContexts& contexts) {
  const std::string path = contexts_path();
  if (path.empty()) return std::unexpected("there is nowhere to keep contexts: set HOME or XDG_CONFIG_HOME");
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path{path}.parent_path(), failed);
  if (failed) return cannot_write(path, failed.value());
  // Beside it first: whoever reads it meanwhile, and a full disk, find the old one.
  std::string beside = path + ".XXXXXX";
  const int fd = ::mkostemp(beside.data(), O_CLOEXEC);  // which makes it readable for us alone
  if (fd < 0) return cannot_write(path, errno);
  const bool written = write_all(fd, to_json(contexts) + "\n");
  int error = written ? 0 : errno;
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(beside.c_str());
  return cannot_write(path, error);
}

}  // namespace wirecall::cli
