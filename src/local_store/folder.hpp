// The folder of a store, and its file, as nobody but their owner may read them. Any thread.
#pragma once

#include <string>
#include <system_error>

namespace wirecall::local_store {

/// Makes the folder, with those above it, where it is not there: their names outlive a loss of power.
[[nodiscard]] std::error_code make_folder(const std::string& path);
/// Makes the file, empty, where it is not there.
void make_file(const std::string& path);

}  // namespace wirecall::local_store
