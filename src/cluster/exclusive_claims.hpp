// A method that wants one provider in the realm and has two: registered on two sides of a network that was cut, or at
// two nodes at one moment. The one of the node with the higher (epoch, name) stays, and all nodes decide so once they
// know of both. One thread. Implements docs/cluster.md "Who is asked".
#pragma once

#include "cluster/node.hpp"

namespace wirecall::cluster {

/// Of the node whose methods `claimant` provides here.
struct ExclusiveClaim {
  const broker::Peer* claimant;
  std::uint64_t epoch;
  std::string_view node;
};
/// Whether the node's registration may hold. Then those of others end, if the method is exclusive.
[[nodiscard]] bool admit_exclusive(NodeContext& context, const ExclusiveClaim& claim,
                                   const broker::Registration& registration);

}  // namespace wirecall::cluster
