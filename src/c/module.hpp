// Modules: shared libraries that add methods to a server, written against wirecall.h alone. A module runs with all the
// rights of the process that loads it, so only its operator names one, by a path, and a file that somebody else could
// have written is refused. It is never unloaded, since handlers and threads of it may be anywhere.
#pragma once

#include <string>

#include "wirecall.h"

namespace wirecall::c {

/// Loads the module at `path`, which has a slash, and has it add its methods. Throws std::invalid_argument, whose text
/// has the cause and a fix. Before the server runs.
void load_module(wc_server& server, const std::string& path);

}  // namespace wirecall::c
