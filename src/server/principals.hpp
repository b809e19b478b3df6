// The part of reading principals (wirecall/options.hpp) that only a server needs.
#pragma once

#include "wirecall/options.hpp"

namespace wirecall::net {

/// Writes a warning to the log where other users of the machine may read or change a file of secrets, `content`, that
/// `option` names. A file that cannot be asked for its mode is passed over.
void warn_of_open_file(const LogSink& log, const std::string& path, std::string_view option, std::string_view content);
inline void warn_of_open_principals_file(const Options& options) {
  warn_of_open_file(options.log, options.principals_file, "principals_file", "tokens");
}

}  // namespace wirecall::net
