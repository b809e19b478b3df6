// Files of secrets that others may read: a server and a client warn of them. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "wirecall/log.hpp"

namespace wirecall {

/// Writes a warning to the log where other users of the machine may read or change a file of secrets, `content`, that
/// `option` names. A file that cannot be asked for its mode is passed over.
void warn_of_open_file(const LogSink& log, const std::string& path, std::string_view option, std::string_view content);

}  // namespace wirecall
