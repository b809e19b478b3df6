// The DatagramSocket of xdp://interface:port, an experiment that a build has with WIRECALL_XDP alone: UDP over IPv4
// past the kernel's stack, by AF_XDP. What the interface's program passes on (fragments, other queues) is for an
// ordinary socket at the same address and port, which also keeps the port from others. docs/xdp.md says what it is good
// for.
#pragma once

#include <memory>

#include "transport/datagram_socket.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/stats.hpp"

namespace wirecall::transport {

/// The udp endpoint of that port at the interface's first address of IPv4. Throws std::runtime_error with the cause and
/// the cure, also in a build without AF_XDP.
[[nodiscard]] Endpoint udp_endpoint_of(const Endpoint& xdp);

/// `xdp` has the port that the ordinary socket has been given. What is sent and what is lost is counted in `stats`,
/// which outlives the socket. Throws as udp_endpoint_of does.
[[nodiscard]] std::unique_ptr<DatagramSocket> open_xdp(Loop& loop, const Endpoint& xdp, Stats& stats);

}  // namespace wirecall::transport
