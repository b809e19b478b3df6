// XdpFilter: the program that an interface runs for each frame that it receives (BPF, in the generic mode, which every
// interface can). Whole datagrams of UDP over IPv4 for one address and port, of the first queue, go to a socket of
// AF_XDP; all else goes its usual way. It is detached when this ends, also by the end of the process. Any thread.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/descriptor.hpp"

namespace wirecall::transport {

class XdpFilter {
 public:
  struct For {
    unsigned interface = 0;
    std::array<std::uint8_t, 6> hardware{};  ///< the interface's
    std::array<std::uint8_t, 4> address{};   ///< in the order of the network
    std::uint16_t port = 0;                  ///< in the order of the host
  };

  /// `socket` is bound to that interface. Throws std::system_error, whose text is the call that failed.
  XdpFilter(int socket, const For& what);

 private:
  runtime::Descriptor sockets_;  // a map of the kernel, from queues to sockets
  runtime::Descriptor program_;
  runtime::Descriptor link_;
};

}  // namespace wirecall::transport
