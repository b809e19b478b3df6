// See module.hpp.
#include "c/module.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

#include "c/entry.hpp"

namespace wirecall::c {
namespace {

constexpr const char* kSymbol = "wirecall_module";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw std::invalid_argument("the module " + path + " " + why);
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor_ < 0) refuse(path, "cannot be opened: " + std::string{std::strerror(errno)});
  }
  OpenFile(OpenFile&&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// It stays open for as long as the process lives.
  void keep() noexcept { descriptor_ = -1; }

 private:
  int descriptor_;
};

void require_trusted(const std::string& path, int descriptor) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) refuse(path, "cannot be looked at: " + std::string{std::strerror(errno)});
  if (!S_ISREG(status.st_mode)) refuse(path, "is no file");
  if (status.st_uid != 0 && status.st_uid != ::geteuid())
    refuse(path, "belongs to another user, who may change it: give it to root or to yourself");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) refuse(path, "may be written by others: chmod go-w");
}

}  // namespace

void load_module(wc_server& server, const std::string& path) {
  if (path.find('/') == path.npos)
    throw std::invalid_argument("a module is named by a path with a slash, as ./" + path +
                                ": others are looked for where the system has its libraries");
  // What is loaded is the file that was looked at, whatever stands under its name by then.
  OpenFile file{path};
  require_trusted(path, file.descriptor());
  void* const library =
      ::dlopen(("/proc/self/fd/" + std::to_string(file.descriptor())).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  // The loader knows libraries by their names: so no other is to have this descriptor, which is in the name.
  if (library != nullptr) file.keep();
  if (library == nullptr) refuse(path, "cannot be loaded: " + std::string{::dlerror()});
  const auto* const module = static_cast<const wc_module*>(::dlsym(library, kSymbol));
  if (module == nullptr) refuse(path, "is no module of wirecall: it exports no wirecall_module");
  if (module->size < offsetof(wc_module, load) + sizeof module->load || module->load == nullptr)
    refuse(path, "describes itself by no whole wc_module");
  if (module->abi_version > WC_ABI_VERSION) {
    refuse(path, "is for version " + std::to_string(module->abi_version) + " of wirecall.h, and this is " +
                     std::to_string(WC_ABI_VERSION) + ": take a newer wirecall");
  }
  fail(WC_OK, {});
  if (const int status = module->load(&server); status != WC_OK)
    refuse(path, "has failed with " + std::to_string(status) + ": " + wc_last_error());
}

}  // namespace wirecall::c

int wc_server_load(wc_server* server, const char* path) {
  return wirecall::c::guarded([=] {
    if (server == nullptr) throw std::invalid_argument("there is no server");
    wirecall::c::load_module(*server, std::string{wirecall::c::view_of(path)});
  });
}
