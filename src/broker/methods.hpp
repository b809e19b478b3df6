// The broker's own methods, by which peers say what they provide, publish and subscribe, and ask what there is; and
// rpc.item, by which a provider's stream comes back.
// Implements docs/wire.md "Built-in methods".
#pragma once

#include "broker/registrar.hpp"
#include "rpc/reserved.hpp"

namespace wirecall::broker {

[[nodiscard]] std::span<const rpc::ReservedMethod> broker_methods() noexcept;
/// The one of that name; null for none.
[[nodiscard]] const rpc::ReservedMethod* find_broker_method(std::string_view name) noexcept;

/// Reads the params of rpc.register with one method, padded JSON. Throws Error -32602.
[[nodiscard]] Registration read_registration(std::string_view params, Reader& reader);

}  // namespace wirecall::broker
