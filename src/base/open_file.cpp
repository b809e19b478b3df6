#include "base/open_file.hpp"

#include <sys/stat.h>

namespace wirecall {

void warn_of_open_file(const LogSink& log, const std::string& path, std::string_view option, std::string_view content) {
  constexpr mode_t kOpen = S_IROTH | S_IWOTH | S_IWGRP;
  struct stat status{};
  if (path.empty() || ::stat(path.c_str(), &status) != 0 || (status.st_mode & kOpen) == 0) return;
  std::string line{"other users of this machine can read or change the "};
  line.append(option).append(", which holds ").append(content).append("; chmod 600 keeps it to its owner");
  log(LogLevel::warning, line, {{"file", path}});
}

}  // namespace wirecall
