// See user_folder.hpp.
#include "transport/user_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace wirecall::transport {

constexpr mode_t kOthers = 077;

std::string user_folder() {
  const char* const runtime = ::secure_getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') return std::string{runtime} + "/wirecall";
  return "/tmp/wirecall-" + std::to_string(::geteuid());
}

std::optional<FolderFault> user_folder_fault(const std::string& folder) {
  struct stat status{};
  if (::lstat(folder.c_str(), &status) != 0) {
    const int error = errno;
    return FolderFault{folder + ": " + std::strerror(error),
                       error == ENOENT ? "nothing listens there: start the server as this user, with the same "
                                         "XDG_RUNTIME_DIR"
                                       : "see to it that this user may enter it, or set XDG_RUNTIME_DIR"};
  }
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & kOthers) != 0)
    return FolderFault{folder + " is not a folder of this user's alone",
                       "remove it, or chmod 700, or set XDG_RUNTIME_DIR to a folder of this user"};
  return std::nullopt;
}

std::optional<FolderFault> make_user_folder() {
  const std::string folder = user_folder();
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return FolderFault{folder + ": " + std::strerror(errno), "set XDG_RUNTIME_DIR to a folder of this user"};
  return user_folder_fault(folder);
}

}  // namespace wirecall::transport
