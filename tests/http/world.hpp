// A client on a simulated system (client_world.hpp) whose endpoints speak HTTP, and the test's responses.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/client/world.hpp"

namespace wirecall::net {

struct Post {
  std::string head;  // with its empty line
  std::string body;
};

// A world whose endpoints speak HTTP: `respond` receives each whole POST, and its connection.
struct HttpWorld : World {
  explicit HttpWorld(unsigned seed, ClientOptions options = {}, std::vector<Endpoint> endpoints = {Endpoint{kEndpoint}})
      : World(seed, std::move(options), std::move(endpoints)) {
    backend->before_turn = [this] {
      inboxes.resize(peers.size());
      for (std::size_t i = 0; i < peers.size(); ++i) {
        inboxes[i] += peers[i]->take();
        while (std::optional<Post> post = take_post(inboxes[i])) {
          posts.push_back(*post);
          if (respond) respond(*peers[i], *post);
        }
      }
      if (serve) serve();
    };
  }
  ~HttpWorld() { backend->before_turn = nullptr; }

  static std::optional<Post> take_post(std::string& inbox) {
    const std::size_t head = inbox.find("\r\n\r\n");
    const std::size_t length = inbox.find("Content-Length: ");
    if (head == std::string::npos || length == std::string::npos) return std::nullopt;
    const auto size = static_cast<std::size_t>(std::atoi(inbox.c_str() + length + 16));
    if (inbox.size() < head + 4 + size) return std::nullopt;
    Post post{.head = inbox.substr(0, head + 4), .body = inbox.substr(head + 4, size)};
    inbox.erase(0, head + 4 + size);
    return post;
  }

  static constexpr std::string_view kEndpoint = "http://place:8545/v1?k=1";
  std::vector<std::string> inboxes;
  std::vector<Post> posts;
  std::function<void(runtime::SimulatedPeer&, const Post&)> respond;
};

inline std::string id_of(const std::string& request) {
  const std::size_t at = request.find("\"id\":") + 5;
  return request.substr(at, request.find_first_of(",}", at) - at);
}
inline std::string result(const std::string& id) { return R"({"jsonrpc":"2.0","result":19,"id":)" + id + "}"; }
inline std::string refusal(const std::string& id) {
  return R"({"jsonrpc":"2.0","error":{"code":-5,"message":"no"},"id":)" + id + "}";
}
inline std::string with_length(std::string_view status, const std::string& body, std::string_view fields = {}) {
  return "HTTP/1.1 " + std::string{status} + "\r\n" + std::string{fields} +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
inline std::string in_chunks(const std::string& body) {
  const std::string half = body.substr(0, 20);
  const std::string rest = body.substr(20);
  char sizes[2][8];
  std::snprintf(sizes[0], sizeof sizes[0], "%zx", half.size());
  std::snprintf(sizes[1], sizeof sizes[1], "%zX", rest.size());
  return std::string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"} + sizes[0] + ";x=1\r\n" + half + "\r\n" +
         sizes[1] + "\r\n" + rest + "\r\n0\r\nTrailer: y\r\n\r\n";
}

// Sends two pieces, the second after the client can have read the first, and then calls `behind`.
class Pieces {
 public:
  Pieces(runtime::SimulatedPeer& peer, const std::string& text, std::size_t cut, std::function<void()> behind = nullptr)
      : peer_(&peer), rest_(text.substr(cut)), behind_(std::move(behind)) {
    peer.send(text.substr(0, cut));
  }
  void resume() {
    if (!peer_->to_us.empty() || ++turns_ < 3) return;
    peer_->send(std::exchange(rest_, {}));
    if (behind_) std::exchange(behind_, nullptr)();
  }

 private:
  runtime::SimulatedPeer* peer_;
  std::string rest_;
  std::function<void()> behind_;
  int turns_ = 0;
};

template <class Check>
void at_every_byte(const std::string& response, const Check& check) {
  for (std::size_t cut = 0; cut <= response.size(); ++cut) {
    SCOPED_TRACE(response + "\ncut at " + std::to_string(cut));
    check(cut);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace wirecall::net
