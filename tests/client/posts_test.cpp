// Calls by HTTP on a simulated system: what is posted, how calls share connections, what becomes of them when one
// breaks, and giving up.
#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/http/world.hpp"
#include "wirecall/client.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;
using runtime::SimulatedPeer;
using std::chrono::nanoseconds;
using Result = std::expected<int, Error>;

TEST(ClientPosts, a_call_is_posted_to_the_path_with_the_length_of_its_body) {
  HttpWorld world{1};
  world.respond = [](SimulatedPeer& peer, const Post& post) {
    peer.send(with_length("200 OK", result(id_of(post.body))));
  };
  EXPECT_EQ(world.client->call<int>("a"), 19);
  EXPECT_EQ(world.client->call<int>("subtract", std::string(100, 'x')), 19);
  EXPECT_EQ(world.client->call<int>("b"), 19);
  ASSERT_EQ(world.posts.size(), 3U);
  EXPECT_EQ(
      world.posts[0].head,
      "POST /v1?k=1 HTTP/1.1\r\nHost: place:8545\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
      "Content-Length: 37\r\n\r\n");
  EXPECT_EQ(world.posts[0].body, R"({"jsonrpc":"2.0","method":"a","id":1})");
  EXPECT_NE(world.posts[1].head.find("\r\nContent-Length: 158\r\n\r\n"), std::string::npos) << world.posts[1].head;
  EXPECT_NE(world.posts[2].head.find("\r\nContent-Length: 37\r\n\r\n"), std::string::npos) << world.posts[2].head;
  EXPECT_EQ(world.dialed.size(), 1U);
  EXPECT_EQ(world.client->responses_dropped(), 0U);
}

TEST(ClientPosts, a_connection_that_breaks_before_the_response_is_whole_fails_the_call_which_is_not_made_again) {
  for (const std::string& response : {with_length("200 OK", result("1")), in_chunks(result("1"))}) {
    for (const bool in_order : {true, false}) {
      for (std::size_t bytes = 0; bytes < response.size(); ++bytes) {
        SCOPED_TRACE(response.substr(0, bytes));
        HttpWorld world{static_cast<unsigned>(bytes)};
        std::optional<Pieces> pieces;
        world.respond = [&](SimulatedPeer& peer, const Post& post) {
          if (world.posts.size() > 1) return peer.send(with_length("200 OK", result(id_of(post.body))));
          pieces.emplace(peer, response.substr(0, bytes), bytes,
                         [&peer, in_order] { in_order ? peer.finish() : peer.reset(); });
        };
        world.serve = [&] {
          if (pieces) pieces->resume();
        };
        const Result lost = world.client->try_call<int>("a");
        ASSERT_FALSE(lost.has_value());
        EXPECT_EQ(lost.error().code(), -32001);
        EXPECT_NE(lost.error().data().find(R"("delivered":"maybe")"), std::string::npos);
        if (in_order) {
          EXPECT_NE(lost.error().message().find(bytes == 0 ? "the server closed it" : "closed it within a response"),
                    std::string::npos)
              << lost.error().message();
        }
        EXPECT_EQ(world.client->try_call<int>("b"), 19);
        ASSERT_EQ(world.posts.size(), 2U);
        EXPECT_NE(world.posts[1].body.find(R"("method":"b")"), std::string::npos);
      }
    }
  }
}

TEST(ClientPosts, of_calls_side_by_side_one_is_under_way_and_the_others_wait_for_the_next_connection) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    HttpWorld world{seed};
    world.respond = [&](SimulatedPeer& peer, const Post& post) {
      if (world.posts.size() == 1) return peer.reset();
      peer.send(with_length("200 OK", result(id_of(post.body))));
    };
    std::vector<Result> results(4, Result{0});
    const auto call = [&](std::size_t i) -> Task<void> {
      try {
        results[i] = co_await world.client->request<int>("m" + std::to_string(i));
      } catch (const Error& error) {
        results[i] = std::unexpected{error};
      }
    };
    std::vector<Task<void>> calls;
    for (std::size_t i = 0; i < 4; ++i) calls.push_back(call(i));
    world.client->run(when_all(std::move(calls)));
    ASSERT_FALSE(results[0].has_value());
    EXPECT_EQ(results[0].error().code(), -32001);
    for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(results[i], 19) << i;
    ASSERT_EQ(world.posts.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NE(world.posts[i].body.find("\"m" + std::to_string(i) + "\""), std::string::npos) << world.posts[i].body;
    }
  }
}

TEST(ClientPosts, each_connection_of_the_pool_has_one_call_at_a_time) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    ClientOptions options;
    options.connections = 3;
    HttpWorld world{seed, options};
    std::vector<std::pair<SimulatedPeer*, Post>> waiting;
    std::size_t most = 0;
    world.respond = [&](SimulatedPeer& peer, const Post& post) {
      for (const auto& [other, pending] : waiting) EXPECT_NE(other, &peer);
      waiting.emplace_back(&peer, post);
      most = std::max(most, waiting.size());
    };
    int pause = 0;
    world.serve = [&] {
      if (waiting.empty() || ++pause % 8 != 0) return;
      const auto [peer, post] = waiting.front();
      waiting.erase(waiting.begin());
      peer->send(with_length("200 OK", result(id_of(post.body))));
    };
    const auto call = [&]() -> Task<void> { EXPECT_EQ(co_await world.client->request<int>("a"), 19); };
    std::vector<Task<void>> calls;
    for (int i = 0; i < 30; ++i) calls.push_back(call());
    world.client->run(when_all(std::move(calls)));
    EXPECT_EQ(world.posts.size(), 30U);
    EXPECT_EQ(world.dialed.size(), 3U);
    EXPECT_EQ(most, 3U);
  }
}

TEST(ClientPosts, the_time_that_a_call_has_is_told_in_the_head_and_no_member_is_ours) {
  HttpWorld world{1};
  world.respond = [](SimulatedPeer& peer, const Post& post) {
    const std::string answer = result(id_of(post.body));
    peer.send(with_length("200 OK", post.body[0] == '[' ? "[" + answer + "]" : answer));
  };
  EXPECT_EQ(world.client->request<int>("a").timeout(1234ms).call(), 19);
  std::ignore = world.client->batch().call<int>("a").timeout(777ms).notify("b").send();
  EXPECT_EQ(world.client->request<int>("a").timeout(30s).call(), 19);
  ASSERT_EQ(world.posts.size(), 3U);
  EXPECT_NE(world.posts[0].head.find("\r\nWirecall-Timeout-Ms: 1234\r\n"), std::string::npos) << world.posts[0].head;
  EXPECT_EQ(world.posts[0].body, R"({"jsonrpc":"2.0","method":"a","id":1})");
  EXPECT_NE(world.posts[1].head.find("\r\nWirecall-Timeout-Ms: 777\r\n"), std::string::npos) << world.posts[1].head;
  EXPECT_EQ(world.posts[2].head.find("Wirecall-Timeout-Ms"), std::string::npos);
}

TEST(ClientPosts, a_call_that_is_given_up_closes_its_connection_and_leaves_the_client_usable) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    HttpWorld world{seed};
    world.respond = [&](SimulatedPeer& peer, const Post& post) {
      if (post.body.find("\"slow\"") == std::string::npos) {
        peer.send(with_length("200 OK", result(id_of(post.body))));
      }
    };
    const nanoseconds begun = world.backend->now();
    const Result late = world.client->request<int>("slow").timeout(100ms).try_call();
    ASSERT_FALSE(late.has_value());
    EXPECT_EQ(late.error().code(), -32002);
    EXPECT_LE(world.backend->now() - begun, 101ms);
    EXPECT_TRUE(world.peers[0]->closed);
    EXPECT_EQ(world.client->try_call<int>("b"), 19);
    EXPECT_EQ(world.dialed.size(), 2U);

    const auto cancelled = [&]() -> Task<void> {
      Result answer{0};
      const CallHandle handle =
          world.client->request<int>("slow").then([&](const Result& outcome) { answer = outcome; });
      co_await sleep_for(world.client->scheduler(), 10ms);
      EXPECT_TRUE(handle.cancel());
      EXPECT_EQ(co_await world.client->request<int>("b"), 19);
      EXPECT_FALSE(answer.has_value());
      if (!answer.has_value()) {
        EXPECT_EQ(answer.error().code(), -32800);
      }
    };
    world.client->run(cancelled());
    EXPECT_TRUE(world.peers[1]->closed);
    EXPECT_EQ(world.dialed.size(), 3U);
    EXPECT_EQ(world.client->responses_dropped(), 0U);
  }
}

TEST(ClientPosts, a_notification_ends_with_its_response) {
  for (const std::string& response : {
           std::string{"HTTP/1.1 204 No Content\r\n\r\n"},
           with_length("200 OK", ""),
           with_length("202 Accepted", ""),
           with_length("200 OK", "null"),
           std::string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
       }) {
    at_every_byte(response, [&](std::size_t cut) {
      HttpWorld world{static_cast<unsigned>(cut)};
      std::optional<Pieces> pieces;
      world.respond = [&](SimulatedPeer& peer, const Post& post) {
        if (world.posts.size() > 1) return peer.send(with_length("200 OK", result(id_of(post.body))));
        EXPECT_EQ(post.body, R"({"jsonrpc":"2.0","method":"n"})");
        pieces.emplace(peer, response, cut);
      };
      world.serve = [&] {
        if (pieces) pieces->resume();
      };
      EXPECT_NO_THROW(world.client->notify("n"));
      EXPECT_EQ(world.client->try_call<int>("b"), 19);
      EXPECT_EQ(world.dialed.size(), 1U);
      EXPECT_EQ(world.client->responses_dropped(), 0U);
    });
  }
}

TEST(ClientPosts, a_notification_that_is_refused_or_not_responded_to_says_so) {
  const auto code_of = [](const std::string& response, bool ends) {
    HttpWorld world{1};
    world.respond = [&](SimulatedPeer& peer, const Post&) {
      peer.send(response);
      if (ends) peer.finish();
    };
    const auto sent = world.client->notify_raw("n", {});
    return sent ? 0 : sent.error().code();
  };
  EXPECT_EQ(code_of(with_length("404 Not Found", "<html>"), false), -32001);
  EXPECT_EQ(code_of(with_length("403 Forbidden", ""), false), -32003);
  EXPECT_EQ(code_of(with_length("400 Bad Request", refusal("null")), false), -5);
  EXPECT_EQ(code_of(with_length("200 OK", refusal("null")), false), -5);
  EXPECT_EQ(code_of("", true), -32001);
  ClientOptions options;
  options.call_timeout_ms = 50;
  HttpWorld world{1, options};
  EXPECT_EQ(world.client->notify_raw("n", {}).error().code(), -32002);
  EXPECT_TRUE(world.peers[0]->closed);
}

TEST(ClientPosts, a_batch_is_one_post_whose_answers_come_in_any_order) {
  HttpWorld world{1};
  world.respond = [](SimulatedPeer& peer, const Post& post) {
    EXPECT_EQ(
        post.body,
        R"([{"jsonrpc":"2.0","method":"a","id":1},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","method":"b","id":2}])");
    peer.send(with_length("200 OK", "[" + refusal("2") + "," + result("1") + "]"));
  };
  const auto [a, b] = world.client->batch().call<int>("a").notify("n").call<int>("b").send();
  EXPECT_EQ(a, 19);
  ASSERT_FALSE(b.has_value());
  EXPECT_EQ(b.error().code(), -5);
  EXPECT_EQ(world.posts.size(), 1U);
  world.respond = [](SimulatedPeer& peer, const Post&) { peer.send("HTTP/1.1 204 No Content\r\n\r\n"); };
  EXPECT_NO_THROW(std::ignore = world.client->batch().notify("n").notify("m").send());
  EXPECT_EQ(world.dialed.size(), 1U);
}

TEST(ClientPosts, what_a_batch_s_response_leaves_out_has_failed_and_the_rest_has_its_answer) {
  HttpWorld world{1};
  world.respond = [](SimulatedPeer& peer, const Post&) { peer.send(with_length("200 OK", "[" + result("1") + "]")); };
  const auto [a, b] = world.client->batch().call<int>("a").call<int>("b").send();
  EXPECT_EQ(a, 19);
  ASSERT_FALSE(b.has_value());
  EXPECT_EQ(b.error().code(), -32001);
  world.respond = [](SimulatedPeer& peer, const Post&) { peer.send(with_length("400 x", refusal("null"))); };
  const auto [c, d] = world.client->batch().call<int>("a").notify("n").call<int>("b").send();
  ASSERT_FALSE(c.has_value() || d.has_value());
  EXPECT_EQ(c.error().code(), -5);
  EXPECT_EQ(d.error().code(), -5);
}

TEST(ClientPosts, a_call_of_a_batch_that_is_given_up_leaves_the_connection_to_the_others) {
  HttpWorld world{1};
  nanoseconds asked{0};
  world.respond = [&](SimulatedPeer&, const Post& post) {
    EXPECT_EQ(post.head.find("Wirecall-Timeout-Ms"), std::string::npos);
    asked = world.backend->now();
  };
  world.serve = [&, told = false]() mutable {
    if (asked == 0ns || world.backend->now() < asked + 100ms || std::exchange(told, true)) return;
    world.peers[0]->send(with_length("200 OK", "[" + result("1") + "," + result("2") + "]"));
  };
  const auto task = [&]() -> Task<void> {
    const auto [a, b] = co_await world.client->batch().call<int>("a").timeout(50ms).call<int>("b");
    EXPECT_FALSE(a.has_value());
    EXPECT_EQ(b, 19);
  };
  world.client->run(task());
  EXPECT_EQ(world.client->responses_dropped(), 1U);
  EXPECT_FALSE(world.peers[0]->closed);
}

TEST(ClientPosts, a_stream_comes_all_at_once) {
  HttpWorld world{1};
  world.respond = [](SimulatedPeer& peer, const Post& post) {
    EXPECT_EQ(post.body, R"({"jsonrpc":"2.0","method":"count","params":[3],"id":1})");
    peer.send(with_length("200 OK", R"({"jsonrpc":"2.0","result":[0,1,2],"id":1})"));
  };
  std::vector<int> items;
  for (const int item : world.client->stream<int>("count", 3)) items.push_back(item);
  EXPECT_EQ(items, (std::vector<int>{0, 1, 2}));
}

TEST(ClientPosts, bytes_that_nobody_asked_for_close_the_connection_and_harm_no_call) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    HttpWorld world{seed};
    world.respond = [](SimulatedPeer& peer, const Post& post) {
      const std::string answer = with_length("200 OK", result(id_of(post.body)));
      peer.send(answer + with_length("408 Request Timeout", ""));
    };
    for (int i = 0; i < 3; ++i) {
      // What comes behind a response is closed upon, or, when it is late enough, taken for the next call's response.
      const Result outcome = world.client->try_call<int>("a");
      const int code = outcome.has_value() ? 0 : outcome.error().code();
      EXPECT_TRUE(code == 0 || code == -32001 || code == -32002) << code;
    }
  }
}

TEST(ClientPosts, a_response_that_does_not_wait_for_the_whole_request_is_the_call_s_and_ends_the_connection) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    HttpWorld world{seed};
    world.opened = [&](SimulatedPeer& peer) {
      if (world.peers.empty()) peer.window = 300;
    };
    world.serve = [&, told = false]() mutable {
      if (world.inboxes.empty() || world.inboxes[0].size() < 300 || std::exchange(told, true)) return;
      world.peers[0]->send(with_length("413 Content Too Large", refusal("null")));
    };
    world.respond = [](SimulatedPeer& peer, const Post& post) {
      peer.send(with_length("200 OK", result(id_of(post.body))));
    };
    const Result refused = world.client->try_call<int>("a", std::string(1000, 'x'));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), -5);
    EXPECT_EQ(world.client->try_call<int>("b"), 19);
    EXPECT_TRUE(world.peers[0]->closed);
    EXPECT_EQ(world.posts.size(), 1U);
  }
}

TEST(ClientPosts, a_draining_server_s_calls_go_to_another_endpoint_of_whatever_kind) {
  HttpWorld world{4, {}, {Endpoint{"http://first"}, Endpoint{"tcp://second:1"}}};
  world.respond = [](SimulatedPeer& peer, const Post& post) {
    peer.send(with_length("503 Service Unavailable",
                          R"({"jsonrpc":"2.0","error":{"code":-32009,"message":"Draining","data":)"
                          R"({"reason":"r","origin":"local","delivered":"no"}},"id":)" +
                              id_of(post.body) + "}",
                          "Retry-After: 1\r\nConnection: close\r\n"));
  };
  world.serve = [&] {
    if (world.inboxes.size() < 2 || world.inboxes[1].find('\n') == std::string::npos) return;
    world.peers[1]->send(result(id_of(world.inboxes[1])) + "\n");
    world.inboxes[1].clear();
  };
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
  ASSERT_EQ(world.dialed.size(), 2U);
  EXPECT_EQ(world.dialed[1].first, "second");
}

TEST(ClientPosts, methods_of_the_client_s_own_cannot_be_offered_and_other_endpoints_are_tried) {
  {
    HttpWorld world{1};
    world.client->method("mine", [] { return 1; });
    const Result refused = world.client->try_call<int>("a");
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), -32001);
    EXPECT_EQ(refused.error().message(),
              "methods cannot be offered at http://place:8545/v1?k=1: a server does not call its client by HTTP; "
              "connect to tcp://, tls://, ws://, wss:// or unix://, or add no methods");
    EXPECT_TRUE(world.dialed.empty());
    EXPECT_THROW(world.client->connect(), ConnectionError);
  }
  HttpWorld world{1, {}, {Endpoint{"http://first"}, Endpoint{"tcp://second:1"}}};
  world.client->method("mine", [] { return 1; });
  world.serve = [&] {
    if (world.inboxes.empty() || world.inboxes[0].find('\n') == std::string::npos) return;
    world.peers[0]->send(result(id_of(world.inboxes[0])) + "\n");
    world.inboxes[0].clear();
  };
  EXPECT_EQ(world.client->try_call<int>("a"), 19);
  ASSERT_EQ(world.dialed.size(), 1U);
  EXPECT_EQ(world.dialed[0].first, "second");
}

TEST(ClientPosts, a_request_over_the_limit_is_not_sent) {
  ClientOptions options;
  options.limits.max_message_size = 1024;
  HttpWorld world{1, options};
  world.respond = [](SimulatedPeer& peer, const Post& post) {
    peer.send(with_length("200 OK", result(id_of(post.body))));
  };
  const Result large = world.client->try_call<int>("a", std::string(980, 'x'));
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().code(), -32006);
  EXPECT_EQ(world.client->try_call<int>("b"), 19);
  EXPECT_EQ(world.posts.size(), 1U);
  EXPECT_EQ(world.dialed.size(), 1U);
}

}  // namespace
}  // namespace wirecall::net
