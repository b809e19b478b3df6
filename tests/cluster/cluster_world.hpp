// Several brokers without sockets on one simulated bus, each with clients of its own.
#pragma once

#include "cluster/cluster.hpp"
#include "tests/broker/world.hpp"
#include "tests/cluster/simulated_bus.hpp"
#include "tests/cluster/stoppable_scheduler.hpp"

namespace wirecall::test {

/// One broker of a realm.
class BrokerNode {
 public:
  BrokerNode(SimulatedNetwork& network, VirtualScheduler& scheduler, std::string name, std::uint64_t epoch,
             const broker::Settings& settings = {}, const Limits& given = {}, const cluster::PlainSettings& plain = {})
      : timers(scheduler),
        limits(given),
        loop_context(json_codec(), &timers),
        router(registry, limits, loop_context, settings) {
    loop_context.services.broker = &router;
    auto own_bus = std::make_unique<SimulatedBus>(network);
    bus = own_bus.get();
    auto own_cluster = std::make_unique<cluster::Cluster>(
        rpc::BrokerHost{.registry = registry, .limits = limits, .loop_context = loop_context}, router,
        std::move(own_bus),
        cluster::ClusterSettings{.realm = "shop", .node = std::move(name), .epoch = epoch, .plain = plain});
    cluster = own_cluster.get();
    router.join(std::move(own_cluster));
  }
  BrokerNode(BrokerNode&&) = delete;

  /// As SIGSTOP and SIGCONT do. Timers are late then before anything is read.
  void stop() {
    timers.stop_process();
    bus->hold();
  }
  void go_on() {
    timers.go_on();
    bus->release();
  }
  [[nodiscard]] bool is_stopped() const noexcept { return timers.is_stopped(); }

  StoppableScheduler timers;
  Registry registry;
  Limits limits;
  rpc::LoopContext loop_context;
  broker::Router router;
  SimulatedBus* bus;
  cluster::Cluster* cluster;
};

/// A client of one of them.
class NodeClient {
 public:
  explicit NodeClient(BrokerNode& node)
      : node_(&node),
        dispatcher(std::make_unique<rpc::Dispatcher>(node.registry, sink, node.limits, node.loop_context)) {}
  NodeClient(NodeClient&&) = delete;

  void send(std::string_view text) {
    const PaddedText frame{text};
    Received message;
    ASSERT_EQ(read_message(frame.view(), node_->limits, true, message).status, ScanStatus::complete) << text;
    if (message.kind == MessageKind::response) {
      if (!dispatcher->response(message)) ++dropped;
    } else {
      dispatcher->handle(message);
    }
    EXPECT_FALSE(sink.open());
  }
  [[nodiscard]] std::string received() { return sink.take(); }
  [[nodiscard]] std::string ask(std::string_view text) {
    send(text);
    return received();
  }
  void provide(std::string_view method, std::string_view terms = {}) {
    EXPECT_EQ(ask(request("rpc.register", R"({"method":")" + std::string{method} + '"' + std::string{terms} + "}")),
              result_reply("1"));
  }
  void leave() { dispatcher.reset(); }

 private:
  BrokerNode* node_;

 public:
  RecordingSink sink;
  std::unique_ptr<rpc::Dispatcher> dispatcher;
  std::size_t dropped = 0;
};

}  // namespace wirecall::test
