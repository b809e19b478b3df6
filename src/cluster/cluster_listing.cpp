// See cluster_listing.hpp.
#include "cluster/cluster_listing.hpp"

#include "cluster/hexadecimal.hpp"

namespace wirecall::cluster {

namespace {

std::string_view name_of(Node::State state) noexcept {
  switch (state) {
    case Node::State::joining: return "joining";
    case Node::State::up: return "up";
    case Node::State::foreign: return "other version";
    case Node::State::unreachable: return "unreachable";
  }
  return {};
}

struct NodeRow {
  std::string_view node;
  std::string epoch;
  std::string_view state;
  std::uint32_t version;
  std::uint32_t load;
  std::uint32_t methods;
  std::uint64_t calls_sent;
  std::size_t calls_here;
  double latency_us;
  std::int64_t silent_ms;
  std::uint64_t events_lost;
  std::uint64_t sessions_lost;
};

std::string row_of(const Node& node, std::chrono::nanoseconds now) {
  const Heartbeat& last = node.last_heartbeat();
  return to_json(NodeRow{.node = node.name(),
                         .epoch = epoch_text(last.epoch),
                         .state = name_of(node.state()),
                         .version = last.version,
                         .load = last.load,
                         .methods = static_cast<std::uint32_t>(node.methods().size()),
                         .calls_sent = node.calls_sent(),
                         .calls_here = node.calls_here(),
                         .latency_us = std::chrono::duration<double, std::micro>(node.latency()).count(),
                         .silent_ms = std::chrono::floor<std::chrono::milliseconds>(now - node.heard_at()).count(),
                         .events_lost = node.events_lost(),
                         .sessions_lost = node.sessions_lost()});
}

}  // namespace

std::string epoch_text(std::uint64_t epoch) {
  const std::string digits = hexadecimal(epoch);
  return std::string(2 * sizeof epoch - digits.size(), '0') + digits;
}

bool ClusterListing::write_piece() {
  constexpr std::string_view kEnd = "]}";
  if (!std::exchange(begun_, true)) {
    text_.append(cluster_->tell_own());
    text_.truncate(text_.size() - kEnd.size());
    return true;
  }
  const Node* const node = cluster_->next(after_);
  if (node == nullptr) {
    text_.append(kEnd);
    return false;
  }
  if (!after_.empty()) text_.push_back(',');
  text_.append(row_of(*node, cluster_->now()));
  after_ = node->name();
  return true;
}

}  // namespace wirecall::cluster
