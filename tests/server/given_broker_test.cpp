// A server is given its broker by a factory: here one that answers every name with one method of its own, and says of
// itself what the server asks for.
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "rpc/broker.hpp"
#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

class ToyPeer final : public rpc::BrokerPeer {
 public:
  ToyPeer(const Method& method, std::shared_ptr<rpc::PeerLoad> load) : method_(&method), load_(std::move(load)) {}

  void leave() noexcept override { delete this; }
  const Method* find(std::string_view, const Received&) override { return method_; }
  std::string_view nearest(std::string_view) const override { return {}; }
  const rpc::ReservedMethod* find_reserved(std::string_view) const noexcept override { return nullptr; }
  void identify(const Principal*) noexcept override {}
  const std::string& name_given() const noexcept override { return name_; }
  rpc::HelloResult hello(std::string_view, std::string_view) override { return {}; }
  bool takes_encoded(const Received&) const noexcept override { return false; }
  bool response(const Received&) override { return false; }
  bool awaits_responses() const noexcept override { return false; }
  bool provides_any() const noexcept override { return false; }
  bool subscribes_any() const noexcept override { return false; }
  void notified(const Received&, std::string_view) override {}
  void tapped(Call&, std::string_view) override {}
  void refused(std::string_view, EncodedText, const Error&) noexcept override {}
  void not_granted(std::string_view) noexcept override {}
  void on_writable() override {}
  std::shared_ptr<rpc::Rendering> take_answer() noexcept override { return nullptr; }
  void reserved_answered() override {}
  std::size_t cancel(std::string_view) override { return 0; }
  bool grant(std::string_view, std::uint64_t) override { return false; }
  const std::shared_ptr<rpc::PeerLoad>& shared_load() const noexcept override { return load_; }
  std::size_t in_flight() const noexcept override { return 0; }
  bool shed_call() noexcept override { return false; }
  void end_calls(const Error&) noexcept override {}
  void limit_calls(std::size_t, std::chrono::nanoseconds, const Error&) noexcept override {}
  bool release() noexcept override { return true; }
  bool is_replaced() const noexcept override { return false; }
  void peer_ended() noexcept override {}

 private:
  const Method* method_;
  std::shared_ptr<rpc::PeerLoad> load_;
  std::string name_;
};

class ToyBroker final : public rpc::Broker {
 public:
  explicit ToyBroker(bool& drained) : drained_(&drained) {
    methods_.method("any", [] { return "toy"; });
  }
  rpc::RetainedPosition retained_position() override { return {}; }
  rpc::JoinedPeer attach_peer(rpc::MessageSink&, std::shared_ptr<rpc::PeerLoad> load) override {
    return rpc::JoinedPeer{new ToyPeer{*methods_.find("any"), std::move(load)}};
  }
  bool next_method(std::string_view, const Principal*, rpc::DescribedMethod&) const override { return false; }
  void drain() noexcept override { *drained_ = true; }
  std::string hand_over() override { return {}; }
  void replaced() noexcept override {}
  void link_to_successor(rpc::BrokerPeer&) override {}
  void nobody_left() noexcept override {}
  void take_over(std::string_view, rpc::BrokerPeer&) override {}
  std::unique_ptr<rpc::Rendering> metrics(rpc::Asker) const override {
    return std::make_unique<rpc::PlainText>("toys " + std::to_string(counters_().connections_open) + "\n");
  }
  void count_by(std::function<Stats()> counters) override { counters_ = std::move(counters); }

 private:
  Registry methods_;
  std::function<Stats()> counters_;
  bool* drained_;
};

TEST(GivenBroker, ServesNamesThatTheServerHasNotAndTellsItsMetrics) {
  bool drained = false;
  Server server{Options{}, [&drained](const rpc::BrokerHost&) { return std::make_unique<ToyBroker>(drained); }};
  server.method("own", [] { return 1; });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  {
    RunningServer running{server};
    RawPeer peer{endpoint};
    peer.send(R"({"jsonrpc":"2.0","method":"whatever","id":1})"
              "\n"
              R"({"jsonrpc":"2.0","method":"own","id":2})"
              "\n");
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":"toy","id":1})");
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","result":1,"id":2})");
    RawPeer http{endpoint};
    http.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    std::string body;
    while (body.find("toys") == body.npos) body = http.line();
    EXPECT_EQ(body, "toys 2");
  }
  EXPECT_TRUE(drained);
}

}  // namespace
}  // namespace wirecall::net
