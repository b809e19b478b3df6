// The paths that every server has (docs/wire.md "HTTP"), as entries of HttpRoutes. Handlers are functions of a session;
// they keep nothing.
#pragma once

#include <vector>

#include "http/routes.hpp"

namespace wirecall::session {

[[nodiscard]] std::vector<HttpRoute> own_routes();

}  // namespace wirecall::session
