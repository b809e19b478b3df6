// See folder.hpp.
#include "local_store/folder.hpp"

#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace wirecall::local_store {

static void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

// Its name, and those of the folders above it that are made with it, outlive a loss of power. What is kept there is
// nobody's but its owner's.
std::error_code make_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::absolute(path, error).lexically_normal();
  fs::path parent = folder;
  while (parent.has_relative_path() && !fs::exists(parent, error)) parent = parent.parent_path();
  if (!fs::create_directories(folder, error) || error) return error;
  fs::permissions(folder, fs::perms::owner_all, error);
  fs::path above;
  for (const fs::path& name : folder) {
    if (above.native().size() >= parent.native().size()) sync_folder(above);
    above /= name;
  }
  return error;
}

// Likewise: SQLite gives the log beside it the same permissions. One that is there is not touched: closing it again
// would end what this process has locked.
void make_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor >= 0) ::close(descriptor);
}

}  // namespace wirecall::local_store
