// The folder in which programs of one user find each other's sockets: nothing in it can be replaced by others. Thread:
// any.
#pragma once

#include <optional>
#include <string>

namespace wirecall::transport {

/// $XDG_RUNTIME_DIR/wirecall, or /tmp/wirecall-UID.
[[nodiscard]] std::string user_folder();

/// What is wrong with the folder, for an error.
struct FolderFault {
  std::string cause;
  std::string cure;
};

/// Nothing for a folder that is there and this user's alone.
[[nodiscard]] std::optional<FolderFault> user_folder_fault(const std::string& folder);
/// The same of the user's own, which is made where it is not there.
[[nodiscard]] std::optional<FolderFault> make_user_folder();

}  // namespace wirecall::transport
