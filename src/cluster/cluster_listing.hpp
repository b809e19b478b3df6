// ClusterListing: what rpc.cluster answers, node by node, since there may be a thousand. One thread.
// Implements docs/cluster.md "What it looks like".
#pragma once

#include "cluster/cluster.hpp"
#include "rpc/rendering.hpp"

namespace wirecall::cluster {

class ClusterListing final : public rpc::Rendering {
 public:
  /// `cluster` outlives it.
  explicit ClusterListing(const Cluster& cluster) noexcept : cluster_(&cluster) {}

 private:
  [[nodiscard]] bool write_piece() override;

  const Cluster* cluster_;
  std::string after_;  // the node that was written last; empty before the first
  bool begun_ = false;
};

/// As people are shown it.
[[nodiscard]] std::string epoch_text(std::uint64_t epoch);

}  // namespace wirecall::cluster
