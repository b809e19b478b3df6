#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace wirecall::detail {

void assertion_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "wirecall: %s:%d: assertion failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace wirecall::detail
