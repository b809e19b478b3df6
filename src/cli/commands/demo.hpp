// The methods that `wirecall serve --demo` offers: small, without state, one for each thing that a method can do.
#pragma once

#include "wirecall/registry.hpp"

namespace wirecall::cli {

/// subtract(minuend, subtrahend), sum(any numbers), echo(value), sleep(ms), fail(code, message), count(n).
void add_demo_methods(Registry& registry);

}  // namespace wirecall::cli
