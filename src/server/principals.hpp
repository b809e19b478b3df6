// The part of reading principals (wirecall/options.hpp) that only a server needs.
#pragma once

#include "base/open_file.hpp"
#include "wirecall/options.hpp"

namespace wirecall::net {

inline void warn_of_open_principals_file(const Options& options) {
  warn_of_open_file(options.log, options.principals_file, "principals_file", "tokens");
}

}  // namespace wirecall::net
