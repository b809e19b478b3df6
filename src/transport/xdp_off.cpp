// What xdp.hpp declares, in a build without it.
#include "transport/setup.hpp"
#include "transport/xdp.hpp"

namespace wirecall::transport {

Endpoint udp_endpoint_of(const Endpoint& xdp) {
  throw failure("cannot listen on", xdp, "this build has no AF_XDP",
                "configure it with -D WIRECALL_XDP=ON, or listen on udp://");
}

std::unique_ptr<DatagramSocket> open_xdp(Loop&, const Endpoint& xdp, Stats&) {
  static_cast<void>(udp_endpoint_of(xdp));
  return nullptr;
}

}  // namespace wirecall::transport
