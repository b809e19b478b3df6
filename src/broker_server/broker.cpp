// See wirecall/broker.hpp: a server that is given a router, which knows no server.
#include "wirecall/broker.hpp"

#include "broker/router.hpp"
#include "broker_server/broker_factory.hpp"
#include "broker_server/join_cluster.hpp"
#include "jetstream_store/open_jetstream.hpp"
#include "local_store/open.hpp"

namespace wirecall {

static local_store::LocalStoreOptions store_options(const DurableOptions& options) {
  if (options.path.empty() && !options.topics.empty()) {
    throw std::invalid_argument{"durable.topics has topics, and there is no store: name its folder by durable.path"};
  }
  local_store::LocalStoreOptions store{
      .folder = options.path,
      .fsync = options.fsync == Fsync::always ? local_store::Fsync::always : local_store::Fsync::everysec,
      .rules = {},
      .dedup_ms = options.dedup_ms,
      .result_ms = options.result_ms,
      .queue_count = options.queue_count,
      .queue_bytes = options.queue_bytes,
      .principal_bytes = options.principal_bytes,
      .principal_jobs = options.principal_jobs,
      .principal_events = options.principal_events,
      .principal_event_bytes = options.principal_event_bytes};
  for (const DurableTopic& topic : options.topics) {
    store.rules.push_back({.pattern = topic.pattern,
                           .max_age_ms = topic.max_age_ms,
                           .max_bytes = topic.max_bytes,
                           .max_count = topic.max_count});
  }
  return store;
}

rpc::BrokerFactory net::broker_factory(const Options& options, StoreOpens opens) {
  broker::Settings settings{.disclose_callers = options.disclose_callers,
                            .log_calls_every = options.log_calls_every,
                            .kick_time = std::chrono::milliseconds{options.kick_ms}};
  for (const DurableTopic& topic : options.durable.topics) settings.durable_patterns.push_back(topic.pattern);
  if (options.cluster.on()) require_valid_cluster(options.cluster);
  const bool in_jetstream = options.durable.path == jetstream_store::kPath;
  if (in_jetstream) jetstream_store::require_valid(options.cluster);
  if (!in_jetstream && options.durable.replicas != 1) {
    throw std::invalid_argument{
        "durable.replicas is of JetStream: leave it out, or keep durable topics and queues there by durable.path = "
        "\"jetstream\""};
  }
  return [settings, opens, in_jetstream, durable = options.durable, cluster = options.cluster,
          store = store_options(options.durable),
          log = options.log.at_least(options.log_level)](const rpc::BrokerHost& host) -> std::unique_ptr<rpc::Broker> {
    const auto open = [store, executor = host.loop_context.tasks.executor(), log, in_jetstream, durable, cluster,
                       host](local_store::Opening how) {
      if (in_jetstream) return jetstream_store::open_jetstream(durable, cluster, host);
      return local_store::open_local_store(store, executor, log, how);
    };
    const bool has_store = !store.folder.empty();
    std::unique_ptr<durable::Store> opened;
    if (has_store && opens == StoreOpens::at_once) opened = open(local_store::Opening::first);
    auto router =
        std::make_unique<broker::Router>(host.registry, host.limits, host.loop_context, settings, std::move(opened));
    if (has_store && opens == StoreOpens::by_takeover)
      router->open_store_by([open] { return open(local_store::Opening::handed); });
    if (cluster.on()) {
      host.loop_context.services.broker = router.get();  // of which some of the cluster's own are peers at once
      join_cluster(*router, host, cluster);
    }
    return router;
  };
}

Broker::Broker() : Broker(Options{}) {}
Broker::Broker(const Options& options) : Server(options, net::broker_factory(options)) {}

}  // namespace wirecall
