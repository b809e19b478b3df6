// wirecall::load_module (wirecall/module.hpp) and wc_server_load. A module runs with all the rights of the process that
// loads it, so only its operator names one, by a path, and a file that somebody else could have written or replaced is
// refused. It is never unloaded, since handlers and threads of it may be anywhere.
#include "wirecall/module.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "c/entry.hpp"
#include "c/server.hpp"

namespace wirecall {
namespace {

constexpr const char* kSymbol = "wirecall_module";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw std::invalid_argument("the module " + path + " " + why);
}

// ---- the file ----

using FileId = std::pair<dev_t, ino_t>;

FileId id_of(const struct stat& status) noexcept { return {status.st_dev, status.st_ino}; }

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor_ < 0) refuse(path, "cannot be opened: " + std::string{std::strerror(errno)});
  }
  OpenFile(OpenFile&&) = delete;
  ~OpenFile() { ::close(descriptor_); }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

 private:
  int descriptor_;
};

bool is_of_another(const struct stat& status) noexcept { return status.st_uid != 0 && status.st_uid != ::geteuid(); }

FileId require_trusted(const std::string& path, int descriptor) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) refuse(path, "cannot be looked at: " + std::string{std::strerror(errno)});
  if (!S_ISREG(status.st_mode)) refuse(path, "is no file");
  if (is_of_another(status)) refuse(path, "belongs to another user, who may change it: give it to root or to yourself");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) refuse(path, "may be written by others: chmod go-w");
  return id_of(status);
}

// Whoever may write a directory may put another file there. Where it is sticky, as /tmp is, nobody may but the owner of
// what is there, which has been looked at.
void require_trusted_directories(const std::string& path, const std::string& real) {
  for (std::size_t slash = real.rfind('/'); slash != real.npos;
       slash = slash == 0 ? real.npos : real.rfind('/', slash - 1)) {
    const std::string directory = slash == 0 ? "/" : real.substr(0, slash);
    struct stat status{};
    if (::stat(directory.c_str(), &status) != 0)
      refuse(path, "is in " + directory + ", which cannot be looked at: " + std::strerror(errno));
    if (is_of_another(status))
      refuse(path, "is in " + directory + ", which belongs to another user, who may replace it");
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0)
      refuse(path, "is in " + directory + ", which others may write, and so replace it: chmod go-w " + directory);
  }
}

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real{::realpath(path.c_str(), nullptr), &std::free};
  if (!real) refuse(path, "cannot be found: " + std::string{std::strerror(errno)});
  return real.get();
}

// ---- the library ----

// The loader knows a library by its path for as long as the process lives. So which file that was, is kept here.
class LoadedFiles {
 public:
  void require_same(const std::string& path, const std::string& real, const FileId& checked) {
    struct stat status{};
    if (::stat(real.c_str(), &status) != 0 || id_of(status) != checked)
      refuse(path, "was replaced while it was loaded");
    const std::scoped_lock lock{mutex_};
    const auto found = loaded_.find(real);
    if (found != loaded_.end() && found->second != checked)
      refuse(path, "is another file than the one that was loaded from there before: start the program anew");
  }
  void add(const std::string& real, const FileId& checked) {
    const std::scoped_lock lock{mutex_};
    loaded_.emplace(real, checked);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, FileId> loaded_;
};

// Loaded by its path, where $ORIGIN stands for the directory that it is in.
void* load_library(const std::string& path) {
  const OpenFile file{path};
  const FileId checked = require_trusted(path, file.descriptor());
  const std::string real = real_path(path);
  require_trusted_directories(path, real);
  static LoadedFiles loaded;
  loaded.require_same(path, real, checked);
  void* const library = ::dlopen(real.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) refuse(path, "cannot be loaded: " + std::string{::dlerror()});
  loaded.add(real, checked);
  loaded.require_same(path, real, checked);
  return library;
}

const wc_module& module_in(void* library, const std::string& path) {
  const auto* const module = static_cast<const wc_module*>(::dlsym(library, kSymbol));
  if (module == nullptr) refuse(path, "is no module of wirecall: it exports no wirecall_module");
  if (module->size < offsetof(wc_module, load) + sizeof module->load || module->load == nullptr)
    refuse(path, "describes itself by no whole wc_module");
  if (module->abi_version > WC_ABI_VERSION) {
    refuse(path, "is for version " + std::to_string(module->abi_version) + " of wirecall.h, and this is " +
                     std::to_string(WC_ABI_VERSION) + ": take a newer wirecall");
  }
  return *module;
}

}  // namespace

void load_module(Server& server, const std::string& path) {
  if (path.find('/') == path.npos)
    throw std::invalid_argument("a module is named by a path with a slash, as ./" + path +
                                ": others are looked for where the system has its libraries");
  const wc_module& module = module_in(load_library(path), path);
  wc_server adds_to{server};
  c::fail(WC_OK, {});
  if (const int status = module.load(&adds_to); status != WC_OK)
    refuse(path, "has failed with " + std::to_string(status) + ": " + wc_last_error());
}

}  // namespace wirecall

int wc_server_load(wc_server* server, const char* path) {
  if (const int status = wirecall::c::require_owner_before_run(server); status != WC_OK) return status;
  return wirecall::c::guarded([=] { wirecall::load_module(*server->server, std::string{wirecall::c::view_of(path)}); });
}
