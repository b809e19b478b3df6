// SparedServer: a simulated system with a server in it, whose memory never fails, for tests of a client whose memory
// does. It answers by the method's name.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/memory/failing_memory.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "tests/runtime/wrapped_backend.hpp"

namespace wirecall::net {

/// A system with a server in it, both not of the memory that fails.
class SparedServer final : public runtime::WrappedBackend {
 public:
  explicit SparedServer(bool speaks_http) : WrappedBackend(simulated), http(speaks_http) {}
  std::span<runtime::Completion> turn(std::span<runtime::Operation> submitted,
                                      std::chrono::nanoseconds until) override {
    const memory::Spared spared;
    process_received();
    if (peer != nullptr) serve();
    return simulated.turn(submitted,
                          std::min<std::chrono::nanoseconds>(until, simulated.now() + std::chrono::milliseconds{1}));
  }
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept override {
    process_received();
    return simulated.now();
  }

  transport::PendingConnection dial() {
    const memory::Spared spared;
    process_received();
    auto [descriptor, end] = simulated.pair();
    peer = end;
    received.clear();
    streams.clear();
    cancelled.clear();
    registered = false;
    return transport::PendingConnection{descriptor};
  }

  // Who goes on until there is memory again waits no longer than this.
  void process_received() const {
    if (failing != nullptr && ++looks == 200) failing->end();
  }

  memory::FailingMemory* failing = nullptr;
  bool registered = false;  // on this connection

 private:
  struct Items {
    int all;
    int sent = 0;
    int credit;
    int granted = 0;
  };

  void serve() {
    received += peer->take();
    while (std::optional<std::string> text = http ? take_post() : take_line()) {
      ASSERT_TRUE(nlohmann::json::accept(*text)) << *text;
      const nlohmann::json message = nlohmann::json::parse(*text);
      nlohmann::json replies = nlohmann::json::array();
      if (text->find("\"anonymous\"") != std::string::npos) {
        replies.push_back(refusal(nullptr));
      } else if (message.is_array()) {
        for (const nlohmann::json& element : message) answer(element, replies);
      } else {
        answer(message, replies);
      }
      if (http && text->find("\"silent\"") == std::string::npos && !peer->reset_by_peer) {
        const std::string body =
            replies.empty() ? "" : (message.is_array() && replies.size() > 1 ? replies : replies[0]).dump();
        peer->send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
      }
      for (const nlohmann::json& reply : replies) {
        if (!http) peer->send(reply.dump() + "\n");
      }
    }
    for (auto& [id, items] : streams) resume(id, items);
    std::erase_if(streams, [](const auto& stream) { return stream.second.sent == stream.second.all; });
  }
  std::optional<std::string> take_line() {
    const std::size_t end = received.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string line = received.substr(0, end);
    received.erase(0, end + 1);
    return line;
  }
  // A request of which a part has been left out would not be found here.
  std::optional<std::string> take_post() {
    const std::size_t head = received.find("\r\n\r\n");
    if (head == std::string::npos) return std::nullopt;
    EXPECT_TRUE(received.starts_with("POST /")) << received;
    EXPECT_EQ(received.find(" HTTP/1.1\r\nHost: place\r\nContent-Type: "), received.find(" HTTP")) << received;
    const std::size_t length = received.find("\r\nContent-Length: ");
    EXPECT_EQ(received.find("\r\nHost: "), received.rfind("\r\nHost: ")) << received;
    const auto size = static_cast<std::size_t>(std::atoi(received.c_str() + length + 18));
    if (received.size() < head + 4 + size) return std::nullopt;
    std::string body = received.substr(head + 4, size);
    received.erase(0, head + 4 + size);
    return body;
  }
  static nlohmann::json refusal(const nlohmann::json& id) {
    return {{"jsonrpc", "2.0"},
            {"id", id},
            {"error", {{"code", 7}, {"message", "a message that is long enough to need memory"}}}};
  }
  // 19, but for what some methods are there for; the items of a stream are that as well.
  void answer(const nlohmann::json& request, nlohmann::json& replies) {
    if (!request.contains("method")) return;
    const std::string method = request["method"];
    if (!request.contains("id")) return notified(method, request.value("params", nlohmann::json::object()));
    const nlohmann::json& id = request["id"];
    if (method == "rpc.register") registered = true;
    if (method == "event")
      peer->send(nlohmann::json{{"jsonrpc", "2.0"}, {"method", "news.a"}, {"params", {19}}}.dump() + "\n");
    if (method == "silent") return;
    if (method == "gone") return peer->reset();
    if (method == "refused") {
      replies.push_back(refusal(id));
    } else if (request.contains("stream")) {
      streams[id] = {.all = method == "many" ? 100 : 2, .credit = request["stream"]};
    } else {
      replies.push_back({{"jsonrpc", "2.0"}, {"id", id}, {"result", 19}});
    }
  }
  // Each is said once.
  void notified(const std::string& method, const nlohmann::json& params) {
    if (!params.is_object()) return;
    if (method == "$/cancelRequest") {
      EXPECT_TRUE(cancelled.insert(params["id"]).second) << params;
      streams.erase(params["id"]);
    } else if (const auto found = streams.find(params.value("id", nlohmann::json{})); found != streams.end()) {
      Items& items = found->second;
      items.credit += params["n"].get<int>();
      items.granted += params["n"].get<int>();
      EXPECT_LE(items.granted, items.sent) << "more items than were sent cannot have been taken";
    }
  }
  void resume(const nlohmann::json& id, Items& items) {
    for (; items.sent != items.all && items.credit != 0; ++items.sent, --items.credit) {
      const nlohmann::json item{
          {"jsonrpc", "2.0"}, {"method", "rpc.item"}, {"params", {{"id", id}, {"seq", items.sent}, {"value", 19}}}};
      peer->send(item.dump() + "\n");
    }
    if (items.sent == items.all)
      peer->send(nlohmann::json{{"jsonrpc", "2.0"}, {"id", id}, {"result", nullptr}}.dump() + "\n");
  }

  runtime::SimulatedBackend simulated{7};
  const bool http;
  std::shared_ptr<runtime::SimulatedPeer> peer;
  std::string received;
  std::map<nlohmann::json, Items> streams;
  std::set<nlohmann::json> cancelled;
  mutable int looks = 0;
};

}  // namespace wirecall::net
