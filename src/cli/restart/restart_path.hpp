// By which file `wirecall serve --replace` finds the server that it takes over from. Thread: any.
#pragma once

#include <span>
#include <string>

#include "wirecall/endpoint.hpp"

namespace wirecall::cli {

/// In the folder that is this user's alone, named after the endpoints as they are configured. Empty where one has a
/// port of the system's choice: then nobody can name that server.
[[nodiscard]] std::string restart_path(std::span<const Endpoint> endpoints);

}  // namespace wirecall::cli
