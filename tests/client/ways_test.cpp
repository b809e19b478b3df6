// The four ways to make a call, each with all that can come of it, over real sockets: a result, an error, a timeout,
// a cancellation, a lost connection, a malformed answer, a late one.
#include <array>
#include <atomic>
#include <chrono>
#include <expected>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/sanitizers.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

#if WIRECALL_THREAD_SANITIZER
// An exception that a future carries to another thread is counted inside the system's libstdc++, where the sanitizer
// does not see the counter's order and takes the last release for a race.
extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__exception_ptr::exception_ptr::_M_release\n";
}
#endif

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;
using Result = std::expected<int, Error>;

Task<int> awaited(Request<int> request) { co_return co_await std::move(request); }

// Every way comes to the same: a value, or the error.
struct Way {
  const char* name;
  std::function<Result(Client&, Request<int>)> call;
};

Result caught(const std::function<int()>& call) {
  try {
    return call();
  } catch (const ConnectionError& error) {
    EXPECT_EQ(error.code(), -32001);
    return std::unexpected{Error{error}};
  } catch (const Error& error) {
    EXPECT_NE(error.code(), -32001) << "a lost connection is told by its type";
    return std::unexpected{error};
  }
}

const std::vector<Way>& ways() {
  static const std::vector<Way> all{
      {"blocking", [](Client&, Request<int> request) { return caught([&] { return std::move(request).call(); }); }},
      {"blocking, expected", [](Client&, Request<int> request) { return std::move(request).try_call(); }},
      {"callback",
       [](Client&, Request<int> request) {
         std::promise<Result> done;
         static_cast<void>(std::move(request).then([&](Result result) { done.set_value(std::move(result)); }));
         return done.get_future().get();
       }},
      {"future",
       [](Client&, Request<int> request) { return caught([&] { return std::move(request).future().get(); }); }},
      {"co_await inside run",
       [](Client& client, Request<int> request) {
         return caught([&] { return client.run(awaited(std::move(request))); });
       }},
      {"co_await in the background", [](Client&, Request<int> request) {
         std::promise<int> done;
         start(awaited(std::move(request)), {}, [&](TaskResult<int> result) {
           if (result) {
             done.set_value(*result);
           } else {
             done.set_exception(result.error());
           }
         });
         return caught([&] { return done.get_future().get(); });
       }}};
  return all;
}

std::string answer(std::string_view id) { return R"({"jsonrpc":"2.0","result":19,"id":)" + std::string{id} + "}\n"; }

class ClientWays : public testing::TestWithParam<std::size_t> {
 protected:
  Result call(Client& client, Request<int> request) { return ways()[GetParam()].call(client, std::move(request)); }
};

INSTANTIATE_TEST_SUITE_P(Each, ClientWays, testing::Range<std::size_t>(0, 6));

TEST_P(ClientWays, come_to_a_result_and_to_an_error) {
  Server server;
  server.method("subtract", [](int a, int b) { return a - b; });
  server.method("fail", [](int code) -> int { throw Error{code, "no", R"({"a":1})"}; });
  const std::string uri = server.listen("tcp://127.0.0.1:0").uri();
  const RunningServer running{server};
  Client client{uri};
  EXPECT_EQ(call(client, client.request<int>("subtract", 42, 23)), 19);
  EXPECT_EQ(call(client, client.request<int>("subtract", arg("arg0") = 1, arg("arg1") = 2)), -1);
  const Result failed = call(client, client.request<int>("fail", 7));
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code(), 7);
  EXPECT_EQ(failed.error().data(), R"({"a":1})");
  const Result unknown = call(client, client.request<int>("none"));
  EXPECT_EQ(unknown.error().code(), -32601);
  const Result other = call(client, client.request<int>("\xFF"));
  EXPECT_EQ(other.error().code(), -32600);
  EXPECT_EQ(call(client, client.request<int>("subtract", "x", 2)).error().code(), -32602);
}

TEST_P(ClientWays, time_out_tell_the_server_and_leave_the_connection_usable) {
  const ScriptedServer server{[](RawPeer peer) {
    const std::string held = peer.line();
    EXPECT_EQ(held.find(R"({"jsonrpc":"2.0","method":"held","id":1,"timeout_ms":)"), 0U) << held;
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})");
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"next","id":2})");
    peer.send(answer("1") + answer("2"));  // the first is late
    peer.line();
  }};
  Client client{server.uri()};
  const Result late = call(client, client.request<int>("held").timeout(400ms));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code(), -32002);
  EXPECT_NE(late.error().data().find(R"("delivered":"maybe")"), std::string::npos) << late.error().data();
  EXPECT_EQ(call(client, client.request<int>("next")), 19);
  EXPECT_EQ(client.responses_dropped(), 1U);
}

TEST_P(ClientWays, are_stopped_by_a_token) {
  std::stop_source stop;
  const ScriptedServer server{[&stop](RawPeer peer) {
    peer.line();
    stop.request_stop();
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})");
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"next","id":2})");
    peer.send(answer("2"));
    peer.line();
  }};
  Client client{server.uri()};
  const Result stopped = call(client, client.request<int>("held").stop(stop.get_token()));
  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().code(), -32800);
  EXPECT_EQ(call(client, client.request<int>("next")), 19);
  // One that has been requested already leaves nothing to send.
  const Result never = call(client, client.request<int>("held").stop(stop.get_token()));
  EXPECT_EQ(never.error().code(), -32800);
  EXPECT_NE(never.error().data().find(R"("delivered":"no")"), std::string::npos);
}

TEST_P(ClientWays, within_a_handler_are_given_up_with_the_call_that_it_serves) {
  std::stop_source stop;
  const ScriptedServer server{[&stop](RawPeer peer) {
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"held","id":1,"hops":4})");
    stop.request_stop();
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})");
    peer.line();
  }};
  Client client{server.uri()};
  const Context context{"outer", "7", stop.get_token(), &client.scheduler(), {.hops = 3}};
  std::stop_source other;
  const Result stopped = call(client, client.request<int>("held").stop(other.get_token()).within(context));
  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().code(), -32800);
}

TEST_P(ClientWays, within_a_handler_have_the_time_that_is_left_unless_they_say_another_behind_it) {
  const ScriptedServer server{[](RawPeer peer) {
    const auto timeout_of = [](const std::string& line) {
      const std::size_t at = line.find(R"("timeout_ms":)");
      EXPECT_NE(at, line.npos) << line;
      return at == line.npos ? 0 : std::stoi(line.substr(at + 13));
    };
    EXPECT_LE(timeout_of(peer.line()), 100);
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})");
    EXPECT_LE(timeout_of(peer.line()), 90'000) << "its own time is less";
    peer.send(answer("2"));
    EXPECT_GT(timeout_of(peer.line()), 100'000) << "its own time was said behind";
    peer.send(answer("3"));
    peer.line();
  }};
  Client client{server.uri()};
  const auto ending_in = [&](std::chrono::nanoseconds time) {
    return Context{"outer", "7", {}, &client.scheduler(), {.deadline = client.scheduler().now() + time}};
  };
  const Result late = call(client, client.request<int>("held").within(ending_in(100ms)));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code(), -32002);
  EXPECT_EQ(call(client, client.request<int>("a").timeout(90s).within(ending_in(100s))), 19);
  EXPECT_EQ(call(client, client.request<int>("a").within(ending_in(100s)).timeout(200s)), 19);
}

TEST_P(ClientWays, end_with_the_connection_and_are_not_made_again) {
  const std::string request = R"({"jsonrpc":"2.0","method":"a","params":[1],"id":1})";
  for (std::size_t read = 1; read <= request.size() + 1; ++read) {
    std::atomic<int> connections{0};
    ScriptedServer server{2, [&](RawPeer peer) {
                            if (++connections == 1) {
                              EXPECT_EQ(peer.bytes(read), (request + "\n").substr(0, read));
                              return;  // closes, or resets where something was not read
                            }
                            // The connection for the next call has that call on it, and not the first one.
                            EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"b","id":2})");
                            peer.send(answer("2"));
                            peer.line();
                          }};
    Client client{server.uri()};
    const Result lost = call(client, client.request<int>("a", 1));
    ASSERT_FALSE(lost.has_value());
    EXPECT_EQ(lost.error().code(), -32001) << read;
    EXPECT_NE(lost.error().data().find(R"("delivered":"maybe")"), std::string::npos) << lost.error().data();
    EXPECT_EQ(call(client, client.request<int>("b")), 19) << read;
  }
}

TEST_P(ClientWays, take_no_malformed_answer) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.line();
    peer.send("{\"result\":19,\"id\":1}\n");
    peer.line();
    peer.send("{\"jsonrpc\":\"2.0\",\"result\":\"text\",\"id\":2}\n");
    peer.line();
    peer.send(answer("3"));
    peer.line();
    peer.send("HTTP/1.1 400 Bad Request\r\n\r\n");
    peer.all();
  }};
  ClientOptions options;
  options.connect_attempts = 1;
  Client client{server.uri(), options};
  EXPECT_EQ(call(client, client.request<int>("a")).error().code(), -32600);
  EXPECT_EQ(call(client, client.request<int>("a")).error().code(), -32603);
  EXPECT_EQ(call(client, client.request<int>("a")), 19);
  const Result nonsense = call(client, client.request<int>("a"));
  EXPECT_EQ(nonsense.error().code(), -32001);
  EXPECT_NE(nonsense.error().message().find("no JSON-RPC"), std::string::npos) << nonsense.error().message();
}

TEST_P(ClientWays, wait_for_a_server_that_is_not_there_yet) {
  const Endpoint endpoint = [] {
    Server server;
    return server.listen("tcp://127.0.0.1:0");
  }();
  ClientOptions options;
  options.reconnect_max_ms = 50;
  Client client{endpoint.uri(), options};
  std::jthread later{[&] {
    ScriptedServer server{endpoint, 1, [](RawPeer peer) {
                            peer.line();
                            peer.send(answer("1"));
                            peer.line();
                          }};
    server.join();
  }};
  EXPECT_EQ(call(client, client.request<int>("a").timeout(kWatchdog)), 19);
  client = Client{endpoint.uri()};  // closes the connection, so that the server ends
}

TEST_P(ClientWays, that_find_no_server_in_their_time_say_why) {
  const std::string uri = [] {
    Server server;
    return server.listen("tcp://127.0.0.1:0").uri();
  }();
  Client client{uri};
  Result nobody = call(client, client.request<int>("a").timeout(120ms));
  // On a busy machine that may be over before anything was tried.
  for (auto longer = 1s; !nobody && nobody.error().code() == -32002 && longer < kWatchdog; longer *= 4)
    nobody = call(client, client.request<int>("a").timeout(longer));
  ASSERT_FALSE(nobody.has_value());
  EXPECT_EQ(nobody.error().code(), -32001);
  EXPECT_NE(nobody.error().message().find("start the server"), std::string::npos) << nobody.error().message();
  EXPECT_NE(nobody.error().data().find(R"("delivered":"no")"), std::string::npos);
}

TEST_P(ClientWays, make_a_call_that_was_not_delivered_once_more) {
  const ScriptedServer server{[](RawPeer peer) {
    const auto refuse = [](std::string_view id, std::string_view delivered) {
      return R"({"jsonrpc":"2.0","error":{"code":-32005,"message":"Limit exceeded",)"
             R"("data":{"reason":"r","origin":"remote","delivered":")" +
             std::string{delivered} + R"(","retry_after_ms":1}},"id":)" + std::string{id} + "}\n";
    };
    peer.line();
    peer.send(refuse("1", "no"));
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"a","id":2})");
    peer.send(answer("2"));
    peer.line();
    peer.send(refuse("3", "no"));
    peer.line();
    peer.send(refuse("4", "no"));  // a second time is enough
    peer.line();
    peer.send(refuse("5", "maybe"));
    peer.line();
  }};
  Client client{server.uri()};
  EXPECT_EQ(call(client, client.request<int>("a")), 19);
  EXPECT_EQ(call(client, client.request<int>("b")).error().code(), -32005);
  EXPECT_EQ(call(client, client.request<int>("c")).error().code(), -32005);
}

TEST(ClientRetry, tells_of_a_provider_that_was_lost_and_not_that_it_is_missed_later) {
  const ScriptedServer server{[](RawPeer peer) {
    const auto refuse = [](std::string_view id, std::string_view code) {
      return R"({"jsonrpc":"2.0","error":{"code":)" + std::string{code} +
             R"(,"message":"m","data":{"reason":"r","origin":"remote","delivered":"no"}},"id":)" + std::string{id} +
             "}\n";
    };
    peer.line();
    peer.send(refuse("1", "-32001"));
    peer.line();
    peer.send(refuse("2", "-32601"));
    peer.line();
    peer.send(refuse("3", "-32001"));
    peer.line();
    peer.send(answer("4"));
    peer.line();
    peer.send(refuse("5", "-32601"));
    peer.line();
  }};
  Client client{server.uri()};
  EXPECT_EQ(client.try_call<int>("a").error().code(), -32001);
  EXPECT_EQ(client.try_call<int>("b"), 19) << "another one has come";
  EXPECT_EQ(client.try_call<int>("c").error().code(), -32601) << "of a call that was not refused before";
}

// Handlers have run by the time that they raise an error, be its data what it may.
TEST_P(ClientWays, make_no_call_again_for_what_its_handler_writes_into_an_error) {
  struct Raised {
    int code;
    const char* data;
  };
  static constexpr std::array kRaised{
      Raised{100, R"({"reason":"r","origin":"local","delivered":"no"})"},
      Raised{-32000, R"({"reason":"r","origin":"local","delivered":"no"})"},
      Raised{-32603, R"({"reason":"r","origin":"local","delivered":"no"})"},
      Raised{-32010, R"({"reason":"r","origin":"local","delivered":"no"})"},
      Raised{-32005, R"({"reason":"r","delivered":"no"})"},
      Raised{-32005, R"({"reason":"r","origin":"mine","delivered":"no"})"},
      Raised{-32005, R"({"reason":"r","origin":1,"delivered":"no"})"},
      Raised{-32005, R"(["origin","local","delivered","no"])"},
      Raised{-32005, R"({"reason":"r","origin":"local","delivered":"no","retry_after_ms":-1})"},
  };
  const ScriptedServer server{[](RawPeer peer) {
    for (std::size_t i = 0; i < kRaised.size(); ++i) {
      const std::string id = std::to_string(i + 1);
      EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"a","id":)" + id + "}");
      peer.send(R"({"jsonrpc":"2.0","error":{"code":)" + std::to_string(kRaised[i].code) + R"(,"message":"m","data":)" +
                kRaised[i].data + R"(},"id":)" + id + "}\n");
    }
    EXPECT_EQ(peer.line(), "");
  }};
  Client client{server.uri()};
  for (const Raised& raised : kRaised) {
    const Result refused = call(client, client.request<int>("a"));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), raised.code);
    EXPECT_EQ(refused.error().data(), raised.data);
  }
}

}  // namespace
}  // namespace wirecall::net
