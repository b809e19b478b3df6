// See join_cluster.hpp.
#include "broker_server/join_cluster.hpp"

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

static std::uint64_t new_epoch() {
  std::random_device random;
  const std::uint64_t number = std::uint64_t{random()} << 32 | random();
  // What is added for sessions leaves it a number that is not 0.
  return (number >> 1 | std::uint64_t{1} << 40) & ~std::uint64_t{0xFFFFF};
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
