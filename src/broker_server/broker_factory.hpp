// What makes a server a broker: the factory of the router that its loop is given, as the options say.
#pragma once

#include <cstdint>

#include "rpc/broker.hpp"
#include "wirecall/options.hpp"

namespace wirecall::net {

/// When a broker's durable store is opened: at once, or by Broker::open_store, when it takes over from another process.
enum class StoreOpens : std::uint8_t { at_once, by_takeover };

/// Refers to nothing of the options.
[[nodiscard]] rpc::BrokerFactory broker_factory(const Options& options, StoreOpens opens = StoreOpens::at_once);

}  // namespace wirecall::net
