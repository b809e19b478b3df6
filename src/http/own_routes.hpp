// The paths that every server has (docs/wire.md "HTTP"), as entries of HttpRoutes. Handlers are functions of a
// connection; they keep nothing.
#pragma once

#include <vector>

#include "http/routes.hpp"

namespace wirecall::net {

[[nodiscard]] std::vector<HttpRoute> own_routes();

}  // namespace wirecall::net
