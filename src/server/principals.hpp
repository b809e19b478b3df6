// The part of reading principals (wirecall/options.hpp) that only a server needs.
#pragma once

#include "wirecall/options.hpp"

namespace wirecall::net {

/// Writes a warning to the log where other users of the machine may read or change the principals_file, which holds
/// tokens. A file that cannot be asked for its mode is passed over.
void warn_of_open_principals_file(const Options& options);

}  // namespace wirecall::net
