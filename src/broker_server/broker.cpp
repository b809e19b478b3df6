// See wirecall/broker.hpp: a server that is given a router, which knows no server.
#include "wirecall/broker.hpp"

#include "broker/router.hpp"
#include "broker_server/broker_factory.hpp"

namespace wirecall {

rpc::BrokerFactory net::broker_factory(const Options& options) {
  const broker::Settings settings{.disclose_callers = options.disclose_callers,
                                  .log_calls_every = options.log_calls_every,
                                  .kick_time = std::chrono::milliseconds{options.kick_ms}};
  return [settings](const rpc::BrokerHost& host) -> std::unique_ptr<rpc::Broker> {
    return std::make_unique<broker::Router>(host.registry, host.limits, host.loop_context, settings);
  };
}

Broker::Broker() : Broker(Options{}) {}
Broker::Broker(const Options& options) : Server(options, net::broker_factory(options)) {}

}  // namespace wirecall
