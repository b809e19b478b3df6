// The options of provide and subscribe as JSON text, as they are given in C. Pure functions, which throw
// std::invalid_argument that says what is wrong with the text.
#pragma once

#include <string_view>

#include "wirecall/provider.hpp"
#include "wirecall/subscription.hpp"

namespace wirecall::c {

/// {"concurrency", "queue", "policy", "idempotent"}, all optional; empty for none.
[[nodiscard]] ProvideOptions provide_options(std::string_view json);
/// {"group", "echo", "last"}, all optional; empty for none.
[[nodiscard]] SubscribeOptions subscribe_options(std::string_view json);

}  // namespace wirecall::c
