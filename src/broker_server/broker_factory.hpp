// What makes a server a broker: the factory of the router that its loop is given, as the options say.
#pragma once

#include "rpc/broker.hpp"
#include "wirecall/options.hpp"

namespace wirecall::net {

/// Refers to nothing of the options.
[[nodiscard]] rpc::BrokerFactory broker_factory(const Options& options);

}  // namespace wirecall::net
