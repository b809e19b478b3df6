// A client on a simulated system: connections in memory whose other ends the test holds, virtual time, one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "client/core.hpp"
#include "tests/client/access.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "tests/runtime/wrapped_backend.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {

// A simulated system with a server: `before_turn` runs before each turn, and plays the server.
class ServedBackend final : public runtime::WrappedBackend {
 public:
  explicit ServedBackend(unsigned seed) : WrappedBackend(inner), inner(seed) {}
  std::span<runtime::Completion> turn(std::span<runtime::Operation> submitted,
                                      std::chrono::nanoseconds until) override {
    if (before_turn) before_turn();
    // Time passes in small steps, so that the server's next action is not late already.
    return inner.turn(submitted, std::min<std::chrono::nanoseconds>(until, inner.now() + std::chrono::milliseconds{1}));
  }

  runtime::SimulatedBackend inner;
  std::function<void()> before_turn;
};

struct World {
  explicit World(unsigned seed, ClientOptions options = {}, std::size_t endpoints = 1)
      : World(seed, std::move(options), tcp_endpoints(endpoints)) {}
  World(unsigned seed, ClientOptions options, std::vector<Endpoint> endpoints) {
    auto owned = std::make_unique<ServedBackend>(seed);
    backend = owned.get();
    ClientSeams seams{.backend = std::move(owned),
                      .dial = [this](const Endpoint& endpoint, std::chrono::milliseconds) { return dial(endpoint); },
                      .seed = seed + 1,
                      .one_thread = true};
    client.emplace(detail::ClientAccess::client(
        std::make_shared<ClientCore>(std::move(endpoints), std::move(options), std::move(seams))));
    backend->before_turn = [this] {
      if (!peers.empty()) received += peers.back()->take();
      if (serve) serve();
    };
  }
  // The client's loop runs its last turn after the objects behind `serve` are gone. The backend is the client's.
  ~World() {
    if (client) backend->before_turn = nullptr;
  }

  static std::vector<Endpoint> tcp_endpoints(std::size_t count) {
    std::vector<Endpoint> endpoints;
    for (std::size_t i = 0; i < count; ++i) endpoints.emplace_back("tcp://place" + std::to_string(i) + ":1");
    return endpoints;
  }
  transport::PendingConnection dial(const Endpoint& endpoint) {
    dialed.emplace_back(endpoint.host(), backend->now());
    if (refuse && refuse(endpoint)) throw std::runtime_error("cannot connect to " + endpoint.uri() + ": refused");
    auto [descriptor, peer] = backend->inner.pair();
    if (opened) opened(*peer);
    peers.push_back(peer);
    received.clear();
    return transport::PendingConnection{descriptor};
  }
  // The next line received by the server on its present connection; empty without one.
  std::string line() {
    const std::size_t end = received.find('\n');
    if (end == std::string::npos) return {};
    std::string line = received.substr(0, end);
    received.erase(0, end + 1);
    return line;
  }

  ServedBackend* backend;
  std::vector<std::pair<std::string, std::chrono::nanoseconds>> dialed;
  std::vector<std::shared_ptr<runtime::SimulatedPeer>> peers;
  std::string received;  // on the last connection
  std::function<bool(const Endpoint&)> refuse;
  std::function<void(runtime::SimulatedPeer&)> opened;
  std::function<void()> serve;
  std::optional<Client> client;
};

}  // namespace wirecall::net
