// Clients whose connection the server has closed while nobody looked: the next call goes over a new one, whichever way
// it is made, since no byte of it has been written.
#include <chrono>
#include <expected>
#include <future>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/core.hpp"
#include "tests/client/access.hpp"
#include "tests/client/held_dialling.hpp"
#include "tests/connection/peer.hpp"
#include "tests/runtime/wrapped_backend.hpp"
#include "wirecall/client.hpp"
#include "wirecall/result_stream.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;

// Its clock may be put forward while nobody drives.
class LaterBackend final : public runtime::WrappedBackend {
 public:
  LaterBackend() : WrappedBackend(runtime::make_epoll_backend()) {}
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept override { return WrappedBackend::now() + passed; }

  std::chrono::nanoseconds passed{0};
};

Task<int> awaited(Client& client) { co_return co_await client.request<int>("number"); }

int call_in_way(int way, Client& client) {
  switch (way) {
    case 0: return client.call<int>("number");
    case 1: return client.request<int>("number").future().get();
    case 2: {
      std::promise<std::expected<int, Error>> done;
      static_cast<void>(client.request<int>("number").then([&](auto result) { done.set_value(std::move(result)); }));
      return done.get_future().get().value_or(-1);
    }
    case 3: return client.run(awaited(client));
    default: {
      int last = -1;
      for (const int item : client.stream<int>("number")) last = item;
      return last;
    }
  }
}

class IdleClient : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Each, IdleClient, testing::Range(0, 5));

TEST_P(IdleClient, makes_its_next_call_on_a_new_connection_when_the_server_has_closed_the_last_one) {
  std::promise<void> closed;
  int connection = 0;
  const ScriptedServer server{2, [&](RawPeer peer) {
                                const bool first = connection++ == 0;
                                {
                                  RawPeer mine = std::move(peer);
                                  mine.line();
                                  mine.send(first || GetParam() != 4 ? R"({"jsonrpc":"2.0","result":7,"id":)" +
                                                                           std::string{first ? "1" : "2"} + "}\n"
                                                                     : R"({"jsonrpc":"2.0","result":[7],"id":2})"
                                                                       "\n");
                                }
                                if (first) closed.set_value();
                              }};
  auto backend = std::make_unique<LaterBackend>();
  LaterBackend& clock = *backend;
  ClientSeams seams;
  seams.backend = std::move(backend);
  Client client = detail::ClientAccess::client(
      std::make_shared<ClientCore>(std::vector<Endpoint>{Endpoint{server.uri()}}, ClientOptions{}, std::move(seams)));
  EXPECT_EQ(client.call<int>("number"), 7);
  closed.get_future().wait();
  clock.passed += 10s;
  EXPECT_EQ(call_in_way(GetParam(), client), 7);
}

TEST(PooledClient, takes_answers_while_a_further_connection_is_being_made) {
  HeldDialling dialling;
  Server server;
  std::promise<void> begun;
  server.method("first", blocking([&] {
                  begun.set_value();
                  dialling.await_second();
                  return 1;
                }));
  server.method("other", [] { return 2; });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  ClientOptions options;
  options.connections = 2;
  ClientSeams seams;
  seams.dial = dialling.to(endpoint);
  Client client = detail::ClientAccess::client(
      std::make_shared<ClientCore>(std::vector<Endpoint>{endpoint}, options, std::move(seams)));
  {
    std::jthread caller{[&] { EXPECT_EQ(client.call<int>("first"), 1); }};
    begun.get_future().wait();
    EXPECT_EQ(client.call<int>("other"), 2);
  }
  dialling.let_go_on();
}

}  // namespace
}  // namespace wirecall::net
