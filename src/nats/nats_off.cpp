// See nats_bus.hpp: of a build without NATS.
#include <stdexcept>

#include "nats/nats_bus.hpp"

namespace wirecall::net {

std::unique_ptr<HeaderBus> make_nats_bus(Loop&, const ClusterOptions&, std::string_view, const LogSink&) {
  throw std::invalid_argument{
      "cluster.url: this wirecall was built without NATS; build it where Debian's libnats-dev is installed"};
}

}  // namespace wirecall::net
