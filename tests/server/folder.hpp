// A temporary folder of a test, removed with its content when the test ends.
#pragma once

#include <filesystem>
#include <stdlib.h>
#include <string>

namespace wirecall::net {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/wirecall-test-XXXXXX";
    path = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  [[nodiscard]] std::string socket() const { return "unix://" + path + "/calls.sock"; }

  std::string path;
};

}  // namespace wirecall::net
