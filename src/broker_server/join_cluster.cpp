// See join_cluster.hpp.
#include "broker_server/join_cluster.hpp"

#include <algorithm>
#include <chrono>
#include <random>
#include <stdexcept>
#include <unistd.h>

#include "base/dotted_name.hpp"
#include "cluster/cluster.hpp"
#include "nats/nats_bus.hpp"

namespace wirecall::net {

// The machine's name as a word: "web-1.example" is "web-1-example".
static std::string name_of_machine() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0) return "node";
  std::string word{name};
  for (char& c : word) {
    if (!cluster::is_word({&c, 1})) c = '-';
  }
  if (word.size() > cluster::kWordBytesMax) word.resize(cluster::kWordBytesMax);
  return word.empty() ? "node" : word;
}

// Larger than those before it on the same machine, so that a broker takes the place of the one that it replaces, and
// told from others of the same millisecond.
static std::uint64_t new_epoch() {
  constexpr unsigned kRandomBits = 22;
  std::random_device random;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(now.count(), 1));
  return count << kRandomBits | random() % (1U << kRandomBits);
}

void require_valid_cluster(const ClusterOptions& options) {
  constexpr std::string_view kWord = ": give 1 to 63 letters, digits, - and _";
  if (!cluster::is_word(options.realm))
    throw std::invalid_argument{"cluster.realm is \"" + options.realm + '"' + std::string{kWord}};
  if (!options.node.empty() && !cluster::is_word(options.node))
    throw std::invalid_argument{"cluster.node is \"" + options.node + '"' + std::string{kWord}};
  if (options.nkey_seed.empty() != options.nkey.empty())
    throw std::invalid_argument{"cluster.nkey_seed and cluster.nkey are given together, or not at all"};
  if (options.cert.empty() != options.key.empty())
    throw std::invalid_argument{"cluster.cert and cluster.key are given together, or not at all"};
  for (const std::string& pattern : options.plain_topics) {
    if (!is_pattern(pattern) || is_reserved(pattern))
      throw std::invalid_argument{"cluster.plain_topics has \"" + pattern +
                                  "\", which is no topic, nor pattern of topics"};
  }
}

void join_cluster(broker::Router& router, const rpc::BrokerHost& host, const ClusterOptions& options) {
  require_valid_cluster(options);
  const std::string node = options.node.empty() ? name_of_machine() : options.node;
  router.join(std::make_unique<cluster::Cluster>(
      host, router, make_nats_bus(*host.loop, options, node, *host.loop_context.log),
      cluster::ClusterSettings{.realm = options.realm,
                               .node = node,
                               .epoch = new_epoch(),
                               .plain = {.principal = options.plain_principal, .topics = options.plain_topics}}));
}

}  // namespace wirecall::net
