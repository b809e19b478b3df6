// See open_jetstream.hpp.
#include "jetstream_store/open_jetstream.hpp"

#include <stdexcept>

#include "base/random_id.hpp"
#include "jetstream_store/jetstream_store.hpp"
#include "local_store/options.hpp"

namespace wirecall::jetstream_store {

void require_valid(const ClusterOptions& cluster) {
  if (!cluster.on()) {
    throw std::invalid_argument{
        "durable.path is \"jetstream\", which is that of a cluster: name NATS servers by cluster.url, or write "
        "./jetstream for a folder of that name"};
  }
}

std::unique_ptr<durable::Store> open_jetstream(const DurableOptions& durable, const ClusterOptions& cluster,
                                               const rpc::BrokerHost& host) {
  JetStreamStoreOptions options{
      .realm = cluster.realm,
      .rules = {},
      .dedup_ms = durable.dedup_ms,
      .replicas = durable.replicas,
      .node = cluster.node,
      .accounts = {.events = durable.principal_events, .bytes = durable.principal_event_bytes},
      .jobs = {.dedup_ms = durable.dedup_ms,
               .result_ms = durable.result_ms,
               .queue_count = durable.queue_count,
               .queue_bytes = durable.queue_bytes,
               .principal_bytes = durable.principal_bytes,
               .principal_jobs = durable.principal_jobs}};
  for (const DurableTopic& topic : durable.topics) {
    options.rules.push_back({.pattern = topic.pattern,
                             .max_age_ms = topic.max_age_ms,
                             .max_bytes = topic.max_bytes,
                             .max_count = topic.max_count});
  }
  options.rules.push_back(local_store::default_rule());
  // No other process has it, nor the next of this node.
  const std::string inbox = "wc." + cluster.realm + ".js." + random_id();
  return std::make_unique<JetStreamStore>(
      std::move(options), net::make_nats_bus(*host.loop, cluster, "durable store", *host.loop_context.log), inbox,
      *host.loop_context.scheduler, *host.loop_context.log);
}

}  // namespace wirecall::jetstream_store
