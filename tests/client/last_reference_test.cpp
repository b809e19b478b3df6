// What a user gives a client (functions, streams, what they capture) may call that client as it is destroyed, and may
// wait for a thread that is about to: so a client destroys nothing of the user's while it holds its mutex.
#include <chrono>
#include <exception>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <semaphore>
#include <stop_token>
#include <utility>

#include "tests/connection/peer.hpp"
#include "wirecall/client.hpp"
#include "wirecall/result_stream.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;

// Something of the user's: the last of it asks the client for what its mutex guards.
class Captured {
 public:
  std::shared_ptr<void> share(Client& client) {
    return {&client, [this](Client* asked) {
              EXPECT_EQ(asked->responses_dropped(), 0U);
              destroyed_.release();
            }};
  }
  bool destroyed() { return destroyed_.try_acquire_for(10s); }

 private:
  std::binary_semaphore destroyed_{0};
};

TEST(ClientLastReference, to_what_waits_for_an_item_goes_without_the_mutex) {
  std::binary_semaphore waits{0};
  const ScriptedServer server{[&](RawPeer peer) {
    peer.line();
    waits.acquire();
    peer.send(R"({"jsonrpc":"2.0","result":null,"id":1})"
              "\n");
    peer.line();
  }};
  Captured captured;
  Client client{server.uri()};
  detail::ItemReader reader{client.outgoing("count"), kStreamCredit};
  EXPECT_EQ(reader.poll([share = captured.share(client)] {}), detail::ItemReader::Next::none);
  waits.release();
  EXPECT_TRUE(captured.destroyed());
}

TEST(ClientLastReference, to_a_waiting_function_that_another_replaces_or_that_is_forgotten_goes_without_the_mutex) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.line();
  }};
  Captured replaced;
  Captured forgotten;
  Client client{server.uri()};
  detail::ItemReader reader{client.outgoing("count"), kStreamCredit};
  EXPECT_EQ(reader.poll([share = replaced.share(client)] {}), detail::ItemReader::Next::none);
  EXPECT_EQ(reader.poll([share = forgotten.share(client)] {}), detail::ItemReader::Next::none);
  EXPECT_TRUE(replaced.destroyed());
  reader.forget();
  EXPECT_TRUE(forgotten.destroyed());
}

TEST(ClientLastReference, to_a_function_whose_name_is_taken_goes_without_the_mutex) {
  Captured captured;
  Client client{"tcp://127.0.0.1:1"};
  client.method("add", [](int a, int b) { return a + b; });
  EXPECT_THROW(client.method("add", [share = captured.share(client)](int a) { return a; }), std::exception);
  EXPECT_TRUE(captured.destroyed());
}

TEST(ClientLastReference, to_the_input_of_a_call_that_ends_as_an_item_is_made_goes_without_the_mutex) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send(R"({"jsonrpc":"2.0","method":"rpc.credit","params":{"id":"i1","n":1}})"
              "\n");
    peer.line();
  }};
  Captured captured;
  std::stop_source stop;
  Client client{server.uri()};
  auto make_item = [&stop, share = captured.share(client)]() -> std::optional<int> {
    stop.request_stop();
    return 5;
  };
  EXPECT_THROW(client.request<int>("sum").stop(stop.get_token()).input(std::move(make_item)).call(), Error);
  EXPECT_TRUE(captured.destroyed());
}

TEST(ClientLastReference, to_a_function_that_another_replaces_as_it_is_called_goes_without_the_mutex) {
  const ScriptedServer server{[](RawPeer peer) { peer.line(); }};
  Captured captured;
  Client client{server.uri()};
  client.on_connection([&client, share = captured.share(client)](const ConnectionEvent&) { client.on_connection({}); });
  client.connect();
  EXPECT_TRUE(captured.destroyed());
}

}  // namespace
}  // namespace wirecall::net
