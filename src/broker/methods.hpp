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
/// The same of one method or many.
[[nodiscard]] std::vector<Registration> read_registrations(const BrokerContext& context, std::string_view params);
/// What rpc.register does with them. Returns how many they are. Throws Error -32003, -32005, -32007 and -32009.
std::size_t add_registrations(Peer& peer, std::vector<Registration> registrations);

}  // namespace wirecall::broker
