// A server's part for one accepted connection, over the simulated backend.
#pragma once

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "connection/protocol_detector.hpp"
#include "http/protocols.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "transport/socket.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::net {

class Accepting : public ConnectionOwner {
 public:
  explicit Accepting(unsigned seed, Limits given = {})
      : limits(given), backend(new runtime::SimulatedBackend{seed}), loop(std::unique_ptr<runtime::Backend>{backend}) {
    registry.method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"});
    auto [descriptor, end] = backend->pair();
    peer = end;
    connection = std::make_unique<ProtocolDetector>(host, protocols,
                                                    std::make_unique<transport::SocketStream>(loop, descriptor));
  }
  ~Accepting() {
    connection.reset();
    former.reset();
    loop.turn(std::chrono::milliseconds{0});
  }
  void turn() {
    loop.turn(std::chrono::milliseconds{1});
    former.reset();
    if (end) connection.reset();
  }
  void turns(int count = 40) {
    for (int i = 0; i < count; ++i) turn();
  }
  void pass(std::chrono::milliseconds time) {
    for (const auto until = loop.now() + time; loop.now() < until;) {
      loop.turn(until - loop.now());
      if (end) connection.reset();
    }
  }

  void connection_ended(Connection&, CloseReason why, int code) override {
    EXPECT_FALSE(end.has_value());
    end = why;
    error = code;
  }
  void connection_promoted(Connection& detector, std::unique_ptr<Connection> promoted) override {
    EXPECT_EQ(&detector, connection.get());
    former = std::exchange(connection, std::move(promoted));
  }

  Limits limits;
  Registry registry;
  runtime::SimulatedBackend* backend;
  Loop loop;
  rpc::LoopContext loop_context{json_codec(), &loop, nullptr};
  framing::JsonTextSettings text{limits, "\n"};
  HttpSettings http;
  Protocols protocols{text, http};
  Host host{.loop = loop, .registry = registry, .limits = limits, .loop_context = loop_context, .owner = *this};
  std::unique_ptr<Connection> connection;
  std::unique_ptr<Connection> former;
  std::shared_ptr<runtime::SimulatedPeer> peer;
  std::optional<CloseReason> end;
  int error = 0;
};

}  // namespace wirecall::net
