// An endpoint that several servers serve, as processes do: here they are of one process, on each engine.
#include "wirecall/listeners.hpp"

#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "server/replacement.hpp"
#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "tests/server/folder.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

class ListenersTest : public EngineTest {};

// Who has answered as many connections as it took to hear of both.
std::set<std::string> both_answer(const Listeners& listeners, Options options) {
  Server one{options};
  one.method("who", [] { return 1; });
  Server two{std::move(options)};
  two.method("who", [] { return 2; });
  EXPECT_EQ(one.listen(listeners, 0), listeners.endpoint());
  two.listen(listeners, 1);
  const RunningServer first{one};
  const RunningServer second{two};
  std::set<std::string> seen;
  while (seen.size() < 2) {
    RawPeer peer{listeners.endpoint()};
    peer.send("{\"jsonrpc\":\"2.0\",\"method\":\"who\",\"id\":1}\n");
    seen.insert(peer.line());
  }
  return seen;
}

TEST_P(ListenersTest, two_servers_share_a_port) {
  const Listeners listeners{"tcp://127.0.0.1:0", 2};
  EXPECT_EQ(both_answer(listeners, options(1)).size(), 2U);
}

TEST_P(ListenersTest, two_servers_share_a_socket_file) {
  const Folder folder;
  {
    const Listeners listeners{folder.socket(), 2};
    EXPECT_EQ(both_answer(listeners, options(1)).size(), 2U);
    EXPECT_TRUE(std::filesystem::exists(folder.path + "/calls.sock"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path + "/calls.sock"));
}

// Of another process, as this one is given them.
transport::InheritedSockets passed(const Listeners& listeners) {
  return transport::InheritedSockets{Replacement::share(listeners)};
}

TEST_P(ListenersTest, another_process_has_the_sockets_too_by_fewer_servers_or_more) {
  for (const std::size_t count : {2U, 5U}) {
    std::optional<Listeners> before{std::in_place, "tcp://127.0.0.1:0", 3};
    transport::InheritedSockets sockets = passed(*before);
    const Listeners listeners = Replacement::listen_together(before->endpoint().uri(), count, sockets);
    EXPECT_TRUE(sockets.left().empty());
    EXPECT_EQ(listeners.endpoint(), before->endpoint());
    EXPECT_EQ(listeners.count(), count);
    before.reset();
    std::vector<std::unique_ptr<Server>> servers;
    std::vector<std::unique_ptr<RunningServer>> running;
    for (std::size_t i = 0; i < count; ++i) {
      servers.push_back(std::make_unique<Server>(options(1)));
      servers.back()->method("who", [i] { return i; });
      servers.back()->listen(listeners, i);
    }
    for (const auto& server : servers) running.push_back(std::make_unique<RunningServer>(*server));
    std::set<std::string> seen;
    // Each socket has somebody who accepts: else a client would wait.
    for (int i = 0; i < 60 || seen.size() < count; ++i) {
      RawPeer peer{listeners.endpoint()};
      peer.send("{\"jsonrpc\":\"2.0\",\"method\":\"who\",\"id\":1}\n");
      seen.insert(peer.line());
    }
    EXPECT_EQ(seen.size(), count);
  }
}

TEST_P(ListenersTest, the_socket_file_goes_with_whoever_owns_it_last) {
  const Folder folder;
  const auto is_there = [&folder] { return std::filesystem::exists(folder.path + "/calls.sock"); };
  {
    std::optional<Listeners> before{std::in_place, folder.socket(), 2};
    transport::InheritedSockets sockets = passed(*before);
    {
      const Listeners given_up = Replacement::listen_together(folder.socket(), 2, sockets);
    }
    EXPECT_TRUE(is_there());
    sockets = passed(*before);
    Listeners listeners = Replacement::listen_together(folder.socket(), 2, sockets);
    Replacement::own_file(listeners);
    Replacement::keep_file(*before);
    before.reset();
    EXPECT_TRUE(is_there());
    EXPECT_EQ(both_answer(listeners, options(1)).size(), 2U);
  }
  EXPECT_FALSE(is_there());
}

TEST_P(ListenersTest, who_connects_to_a_server_that_has_gone_is_served_by_the_next) {
  const Listeners listeners{"tcp://127.0.0.1:0", 1};
  {
    Server server{options(1)};
    server.listen(listeners, 0);
  }
  RawPeer peer{listeners.endpoint()};
  peer.send("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ping\",\"id\":1}\n");
  Server server{options(1)};
  server.method("who", [] { return 1; });
  server.listen(listeners, 0);
  const RunningServer running{server};
  EXPECT_NE(peer.line().find("\"id\":1"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Engines, ListenersTest, testing::Values(Engine::epoll, Engine::uring),
                         [](const auto& tested) { return engine_name(tested); });

TEST(listeners, a_forked_child_leaves_the_socket_file) {
  const Folder folder;
  Listeners listeners{folder.socket(), 2};
  const pid_t child = ::fork();
  if (child == 0) {
    {
      const Listeners gone = std::move(listeners);
    }
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder.path + "/calls.sock"));
}

TEST(listeners, say_what_cannot_be) {
  EXPECT_THROW(Listeners("stdio:", 2), std::invalid_argument);
  EXPECT_THROW(Listeners("inproc://here", 2), std::invalid_argument);
  EXPECT_THROW(Listeners("tcp://127.0.0.1:0", 0), std::invalid_argument);
  const Listeners listeners{"tcp://127.0.0.1:0", 2};
  EXPECT_THROW(Listeners(listeners.endpoint().uri(), 2), std::runtime_error);
  Server server;
  EXPECT_THROW(server.listen(listeners, 2), std::out_of_range);
}

}  // namespace
}  // namespace wirecall::net
