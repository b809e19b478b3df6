// A server's or broker's part for several connections, over the simulated backend: each with the test's end of it, and
// the reason of its end.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/router.hpp"
#include "connection/protocol_detector.hpp"
#include "framing/json_text.hpp"
#include "http/protocols.hpp"
#include "rpc/access.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "transport/socket.hpp"
#include "wirecall/log.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::net {

class Several : public ConnectionOwner {
 public:
  struct Line {
    std::unique_ptr<Connection> connection;
    std::shared_ptr<runtime::SimulatedPeer> peer;
    std::optional<CloseReason> end;
    std::string heard;

    void send(std::string_view bytes) const { peer->send(bytes); }
    /// The output since the last call.
    [[nodiscard]] std::string hear() { return std::exchange(heard, {}); }
  };

  explicit Several(Limits given = {}, bool broker = true)
      : limits(given), backend(new runtime::SimulatedBackend{3}), loop(std::unique_ptr<runtime::Backend>{backend}) {
    if (broker) loop_context.services.broker = &router;
  }
  ~Several() {
    lines.clear();
    former.clear();
    loop.turn(std::chrono::milliseconds{0});
  }

  Line& connect() {
    auto [descriptor, peer] = backend->pair();
    auto line = std::make_unique<Line>();
    line->peer = peer;
    line->connection = std::make_unique<ProtocolDetector>(host, protocols,
                                                          std::make_unique<transport::SocketStream>(loop, descriptor));
    lines.push_back(std::move(line));
    return *lines.back();
  }
  /// A connection that has shown its token.
  Line& connect(std::string_view token) {
    Line& line = connect();
    line.send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":")" + std::string{token} + R"("},"id":"hi"})");
    turns();
    EXPECT_NE(line.hear().find("\"session\""), std::string::npos);
    return line;
  }
  void turn() {
    loop.turn(std::chrono::milliseconds{1});
    former.clear();
    for (const auto& line : lines) {
      if (line->peer) line->heard += line->peer->take();
      if (line->end) line->connection.reset();
    }
  }
  void turns(int count = 60) {
    for (int i = 0; i < count; ++i) turn();
  }
  [[nodiscard]] int ended() const {
    return static_cast<int>(std::ranges::count_if(lines, [](const auto& line) { return line->end.has_value(); }));
  }
  void let_in(std::vector<Principal> principals) {
    const bool was_open = loop_context.services.authority == nullptr;
    loop_context.services.authority = std::make_shared<const rpc::Authority>(std::move(principals));
    for (const auto& line : lines) {
      if (line->connection) line->connection->authority_changed(was_open);
    }
  }

  void connection_ended(Connection& connection, CloseReason why, int) override { line_of(connection).end = why; }
  void connection_promoted(Connection& detector, std::unique_ptr<Connection> promoted) override {
    former.push_back(std::exchange(line_of(detector).connection, std::move(promoted)));
  }

  std::vector<std::string> log;
  const LogSink sink{[this](const LogRecord& record) { log.emplace_back(record.message); }};
  Limits limits;
  Registry registry;
  runtime::SimulatedBackend* backend;
  Loop loop;
  rpc::LoopContext loop_context{json_codec(), &loop, &sink};
  broker::Router router{registry, limits, loop_context};
  framing::JsonTextSettings text{limits, "\n"};
  HttpSettings http;
  Protocols protocols{text, http};
  Host host{.loop = loop, .registry = registry, .limits = limits, .loop_context = loop_context, .owner = *this};
  std::vector<std::unique_ptr<Line>> lines;
  std::vector<std::unique_ptr<Connection>> former;

 private:
  Line& line_of(const Connection& connection) {
    return **std::ranges::find(lines, &connection,
                               [](const auto& one) -> const Connection* { return one->connection.get(); });
  }
};

}  // namespace wirecall::net
