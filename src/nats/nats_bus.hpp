// NatsBus: the bus of a cluster over NATS, by libnats. The connection is made by a thread of its own, and what
// libnats's threads tell is posted to the loop; everything else is on the loop, which watches the socket and never
// blocks. What was not sent before the connection was lost is not sent after it (docs/cluster.md "What fails"). Thread:
// the loop's.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "cluster/bus.hpp"
#include "wirecall/log.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/options.hpp"

namespace wirecall::net {

/// A bus whose messages have headers, as JetStream wants them.
class HeaderBus : public cluster::Bus {
 public:
  struct Header {
    std::string name;
    std::string value;  ///< without line feeds and the like
  };

  /// As `publish`.
  [[nodiscard]] virtual bool publish_with(std::span<const Header> headers, std::string_view subject,
                                          std::string_view reply, std::string_view payload) noexcept = 0;
};

/// Connects, as the options say, from now on and whenever the connection is lost. `log` is told what NATS does not
/// permit, and why it cannot be reached where that is another reason than before. `loop` and `log` outlive it. Throws
/// std::runtime_error where there is no libnats, std::invalid_argument for options that it refuses.
[[nodiscard]] std::unique_ptr<HeaderBus> make_nats_bus(Loop& loop, const ClusterOptions& options, std::string_view node,
                                                       const LogSink& log);

}  // namespace wirecall::net
