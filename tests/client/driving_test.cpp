// Who drives a client, and what must not happen meanwhile: callbacks beside blocking calls, calls inside callbacks,
// methods that the server calls, several connections, and the end of a client with calls on their way.
#include <atomic>
#include <chrono>
#include <cmath>
#include <expected>
#include <functional>
#include <future>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/client/access.hpp"
#include "tests/client/held_dialling.hpp"
#include "tests/connection/peer.hpp"
#include "tests/runtime/wrapped_backend.hpp"
#include "transport/endpoint_socket.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;
using Result = std::expected<int, Error>;

// What epoll is, with something that is called once at the beginning of a turn, on the thread that drives.
class HookedBackend final : public runtime::WrappedBackend {
 public:
  HookedBackend() : WrappedBackend(runtime::make_epoll_backend()) {}
  std::span<runtime::Completion> turn(std::span<runtime::Operation> submitted,
                                      std::chrono::nanoseconds until) override {
    if (in_turn) std::exchange(in_turn, nullptr)();
    return WrappedBackend::turn(submitted, until == runtime::kForever ? until : until - passed);
  }
  void wake() noexcept override {
    WrappedBackend::wake();
    woken.release();
  }
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept override { return WrappedBackend::now() + passed; }

  std::counting_semaphore<> woken{0};
  std::function<void()> in_turn;
  std::chrono::nanoseconds passed{0};  // without anybody having waited
};

// What epoll is, but that there is no memory for one turn when `fails` says so.
class FailingBackend final : public runtime::WrappedBackend {
 public:
  FailingBackend() : WrappedBackend(runtime::make_epoll_backend()) {}
  std::span<runtime::Completion> turn(std::span<runtime::Operation> submitted,
                                      std::chrono::nanoseconds until) override {
    if (fails.exchange(false)) throw std::bad_alloc{};
    return WrappedBackend::turn(submitted, until);
  }

  std::atomic<bool> fails{false};
};

class ClientDriving : public testing::Test {
 protected:
  ClientDriving() {
    server_.method("subtract", [](int a, int b) { return a - b; });
    server_.method("wait", [](Context context) -> Task<int> {
      co_await sleep_for(context, 60s);
      co_return 1;
    });
    uri_ = server_.listen("tcp://127.0.0.1:0").uri();
    running_.emplace(server_);
  }
  Server server_;
  std::string uri_;
  std::optional<RunningServer> running_;
};

TEST_F(ClientDriving, a_blocking_call_inside_a_callback_is_refused_with_the_cure_and_an_awaited_one_is_made) {
  Client client{uri_};
  std::promise<Error> refused;
  std::promise<Result> made;
  static_cast<void>(client.request<int>("subtract", 42, 23).then([&](const Result&) {
    refused.set_value(client.try_call<int>("subtract", 1, 2).error());
    client.notify("subtract", 1, 2);
    static_cast<void>(
        client.request<int>("subtract", 5, 3).then([&](Result result) { made.set_value(std::move(result)); }));
  }));
  const Error error = refused.get_future().get();
  EXPECT_EQ(error.code(), -32603);
  EXPECT_NE(error.message().find("co_await"), std::string::npos) << error.message();
  EXPECT_EQ(made.get_future().get(), 2);
}

TEST_F(ClientDriving, a_notification_inside_a_callback_that_json_cannot_hold_or_that_is_too_large_is_refused) {
  ClientOptions options;
  options.limits.max_message_size = 1000;
  Client client{uri_, options};
  std::promise<std::pair<int, int>> refused;
  client.request<int>("subtract", 42, 23).then([&](const Result&) {
    const auto code_of = [&](const auto& param) {
      try {
        client.notify("subtract", param);
        return 0;
      } catch (const LocalError& error) {
        return error.code();
      }
    };
    const int not_a_number = code_of(std::nan(""));
    refused.set_value({not_a_number, code_of(std::string(1000, 'x'))});
  });
  EXPECT_EQ(refused.get_future().get(), (std::pair{-32602, -32006}));
}

TEST_F(ClientDriving, run_inside_run_is_refused_with_the_cure) {
  Client client{uri_};
  const auto outer = [](Client& of) -> Task<std::string> {
    static_cast<void>(co_await of.request<int>("subtract", 1, 2));
    try {
      of.run([](Client& inner) -> Task<void> { co_await inner.request<int>("subtract", 1, 2); }(of));
    } catch (const std::logic_error& error) {
      co_return error.what();
    }
    co_return "";
  };
  EXPECT_NE(client.run(outer(client)).find("co_await"), std::string::npos);
}

TEST_F(ClientDriving, callbacks_futures_blocking_calls_and_run_work_beside_each_other) {
  Client client{uri_};
  std::atomic<int> called_back{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        static_cast<void>(client.request<int>("subtract", i, t).then([&, i, t](const Result& result) {
          EXPECT_EQ(result, i - t);
          ++called_back;
        }));
        ASSERT_EQ(client.call<int>("subtract", i, t), i - t);
        ASSERT_EQ(client.request<int>("subtract", t, i).future().get(), t - i);
      }
    });
  }
  const auto awaiting = [](Client& of) -> Task<void> {
    for (int i = 0; i < 200; ++i) {
      const int difference = co_await of.request<int>("subtract", i, 1);
      EXPECT_EQ(difference, i - 1);
    }
  };
  for (int i = 0; i < 5; ++i) client.run(awaiting(client));
  threads.clear();
  EXPECT_TRUE(comes_true([&] { return called_back == 800; }));
}

TEST(ClientDrivers, one_that_has_no_memory_leaves_the_driving_to_the_next) {
  auto backend = std::make_unique<FailingBackend>();
  FailingBackend& failing = *backend;
  std::promise<void> begun;
  std::promise<void> ended;
  const ScriptedServer server{[&](RawPeer peer) {
    peer.line();
    begun.set_value();
    peer.line();  // what the first thread has sent for the second, which waits
    failing.fails = true;
    peer.send(R"({"jsonrpc":"2.0","result":0,"id":99})"
              "\n");
    ended.get_future().wait();
    peer.send(R"({"jsonrpc":"2.0","result":19,"id":2})"
              "\n");
    peer.line();
  }};
  Client client = detail::ClientAccess::client(std::make_shared<ClientCore>(
      std::vector{Endpoint{server.uri()}}, ClientOptions{}, ClientSeams{.backend = std::move(backend), .dial = {}}));
  std::jthread first{[&] {
    EXPECT_THROW(client.call<int>("a"), std::bad_alloc);
    ended.set_value();
  }};
  begun.get_future().wait();
  EXPECT_EQ(client.request<int>("b").timeout(kWatchdog).try_call(), 19);
}

// The first blocking call looks whether its connection is still there, and drives for that moment.
TEST_F(ClientDriving, who_begins_while_a_connection_is_looked_at_is_not_forgotten) {
  for (int i = 0; i < 20; ++i) {
    auto backend = std::make_unique<HookedBackend>();
    HookedBackend& hooked = *backend;
    ClientOptions options;
    options.call_timeout_ms = 10'000;
    Client client = detail::ClientAccess::client(std::make_shared<ClientCore>(
        std::vector{Endpoint{uri_}}, options, ClientSeams{.backend = std::move(backend), .dial = {}}));
    client.connect();
    std::future<int> begun;
    hooked.in_turn = [&] { std::thread{[&] { begun = client.request<int>("subtract", 5, 3).future(); }}.join(); };
    ASSERT_EQ(client.try_call<int>("subtract", 42, 23), 19);
    ASSERT_EQ(begun.get(), 2);
  }
}

// The connection is found to be gone, and the next one takes until the test lets it be made.
TEST(ClientDrivers, a_wake_that_comes_while_a_connection_is_looked_at_does_not_stand_for_later_ones) {
  HeldDialling dialling;
  std::promise<void> closed;
  bool first_connection = true;
  const ScriptedServer server{2, [&](RawPeer accepted) {
                                const bool closes = std::exchange(first_connection, false);
                                {
                                  RawPeer peer = std::move(accepted);
                                  for (const int id : closes ? std::vector{1} : std::vector{2, 3}) {
                                    peer.line();
                                    peer.send(R"({"jsonrpc":"2.0","result":19,"id":)" + std::to_string(id) + "}\n");
                                  }
                                  if (!closes) peer.line();
                                }
                                if (closes) closed.set_value();
                              }};
  auto backend = std::make_unique<HookedBackend>();
  HookedBackend& hooked = *backend;
  ClientOptions options;
  options.connect_timeout_ms = options.call_timeout_ms = 3'600'000;
  ClientSeams seams{.backend = std::move(backend), .dial = dialling.to(Endpoint{server.uri()})};
  // Not by the thread that drives, since a name has to be resolved.
  Client client = detail::ClientAccess::client(
      std::make_shared<ClientCore>(std::vector{Endpoint{"tcp://slow.example:1"}}, options, std::move(seams)));
  EXPECT_EQ(client.try_call<int>("a"), 19);
  closed.get_future().wait();
  hooked.passed += 10s;
  while (hooked.woken.try_acquire()) {
  }
  std::jthread second;
  hooked.in_turn = [&] {
    second = std::jthread{[&] { EXPECT_EQ(client.try_call<int>("b"), 19); }};
    hooked.woken.acquire();
  };
  const std::jthread first{[&] { EXPECT_EQ(client.try_call<int>("c"), 19); }};
  dialling.await_second();
  std::future<int> late = client.request<int>("d").timeout(1ms).future();
  EXPECT_EQ(late.wait_for(kWatchdog), std::future_status::ready) << "the first thread does not know of it";
  dialling.let_go_on();
  EXPECT_THROW(late.get(), Error);
}

// While that moment lasts it calls nobody back: what run has left behind is the background thread's.
TEST_F(ClientDriving, callbacks_that_run_leaves_behind_are_not_called_by_a_blocking_call) {
  for (int i = 0; i < 20; ++i) {
    auto backend = std::make_unique<HookedBackend>();
    HookedBackend& hooked = *backend;
    Client client = detail::ClientAccess::client(std::make_shared<ClientCore>(
        std::vector{Endpoint{uri_}}, ClientOptions{}, ClientSeams{.backend = std::move(backend), .dial = {}}));
    ASSERT_EQ(client.call<int>("subtract", 42, 23), 19);
    hooked.passed += 1s;
    std::promise<std::thread::id> called_back;
    client.run([](Client& of, std::promise<std::thread::id>& on) -> Task<void> {
      static_cast<void>(
          of.request<int>("subtract", 5, 3).then([&on](const Result&) { on.set_value(std::this_thread::get_id()); }));
      co_return;
    }(client, called_back));
    ASSERT_EQ(client.call<int>("subtract", 42, 23), 19);
    EXPECT_NE(called_back.get_future().get(), std::this_thread::get_id());
  }
}

TEST_F(ClientDriving, an_awaited_call_that_is_not_wanted_any_more_is_cancelled_at_once) {
  std::promise<std::string> told;
  const ScriptedServer server{[&](RawPeer peer) {
    peer.line();
    told.set_value(peer.line());
    peer.all();
  }};
  Client client{server.uri()};
  client.connect();
  const auto request = [](Client& of) -> Task<void> { co_await of.request<int>("a"); };
  const auto moment = [](Client& of) -> Task<void> { co_await sleep_for(of.scheduler(), 1ms); };
  const auto first = [&](Client& of) -> Task<void> { co_await when_any(request(of), moment(of)); };
  client.run(first(client));
  std::future<std::string> heard = told.get_future();
  ASSERT_EQ(heard.wait_for(kWatchdog), std::future_status::ready) << "although nothing else is called";
  EXPECT_EQ(heard.get(), R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}})");
}

TEST_F(ClientDriving, what_a_destroyed_client_has_asked_is_cancelled) {
  std::promise<void> asked;
  std::string told;
  ScriptedServer server{[&](RawPeer peer) {
    peer.line();
    peer.line();
    asked.set_value();
    told = peer.all();
  }};
  std::optional<Client> client{server.uri()};
  std::vector<int> codes;
  const auto failed = [&codes](const Result& result) { codes.push_back(result ? 0 : result.error().code()); };
  client->request<int>("a").then(failed);
  client->batch().call<int>("b").call<int>("c").then([&](auto results) {
    failed(std::get<0>(results));
    failed(std::get<1>(results));
  });
  asked.get_future().wait();
  client.reset();
  server.join();
  EXPECT_EQ(codes, (std::vector{-32001, -32001, -32001}));
  std::string all;
  for (const char* id : {"1", "2", "3"})
    all.append(R"({"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":)").append(id).append("}}\n");
  EXPECT_EQ(told, all);
}

TEST_F(ClientDriving, a_timeout_may_be_as_long_as_can_be_said) {
  Client client{uri_};
  EXPECT_EQ(client.request<int>("subtract", 42, 23).timeout(std::chrono::milliseconds::max()).try_call(), 19);
  EXPECT_EQ(client.request<int>("subtract", 42, 23).timeout(std::chrono::hours{24 * 365 * 300}).try_call(), 19);
}

TEST_F(ClientDriving, a_call_of_json_text_may_have_a_time_of_its_own) {
  Client client{uri_};
  const auto late = client.call_for_response("wait", "[]", 20ms);
  // Either side may be the first to notice.
  EXPECT_EQ(late ? late->result.error().code() : late.error().code(), -32002);
  EXPECT_EQ(client.call_for_response("subtract", "[42,23]", kWatchdog)->result, "19");
  // Also behind a response that was kept whole.
  EXPECT_TRUE(client.notify_raw("subtract", "[42,23]", kWatchdog));
}

TEST_F(ClientDriving, a_server_that_is_leaving_is_left_for_the_next_endpoint_although_it_keeps_the_connection) {
  const ScriptedServer leaving{[](RawPeer peer) {
    peer.line();
    peer.send(
        R"({"jsonrpc":"2.0","error":{"code":-32009,"message":"Draining","data":{"origin":"local","delivered":"no"}},"id":1})");
    peer.send("\n");
    EXPECT_EQ(peer.all(), "") << "the client closes";
  }};
  Client client{std::vector{Endpoint{leaving.uri()}, Endpoint{uri_}}};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
}

// It says so on one of two connections. What is in flight on the other is answered there, and nothing more comes.
TEST_F(ClientDriving, a_server_that_is_leaving_is_left_by_all_connections) {
  for (const bool refuses : {true, false}) {
    std::promise<void> first_came;
    std::vector<RawPeer> peers;
    const ScriptedServer leaving{2, [&](RawPeer peer) {
                                   const std::string call = peer.line();
                                   peers.push_back(std::move(peer));
                                   if (peers.size() == 1) return first_came.set_value();
                                   const auto answer = [](RawPeer& to, int id) {
                                     to.send(R"({"jsonrpc":"2.0","result":19,"id":)" + std::to_string(id) + "}\n");
                                     EXPECT_EQ(to.all(), "") << "the client closes";
                                   };
                                   if (refuses) {
                                     peers[0].send(R"({"jsonrpc":"2.0","error":{"code":-32009,"message":"Draining",)"
                                                   R"("data":{"origin":"local","delivered":"no"}},"id":1})"
                                                   "\n");
                                     EXPECT_EQ(peers[0].all(), "");
                                   } else {
                                     peers[0].send("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.draining\"}\n");
                                     answer(peers[0], 1);
                                   }
                                   answer(peers[1], 2);
                                 }};
    ClientOptions options;
    options.connections = 2;
    options.limits.in_flight = 1;
    Client client{std::vector{Endpoint{leaving.uri()}, Endpoint{uri_}}, options};
    std::jthread caller{[&] { EXPECT_EQ(client.call<int>("subtract", 42, 23), 19); }};
    first_came.get_future().wait();
    EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
    caller.join();
    EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  }
}

TEST_F(ClientDriving, a_handle_gives_a_call_up_once) {
  Client client{uri_};
  std::promise<Result> ended;
  const CallHandle handle =
      client.request<int>("wait").then([&](Result result) { ended.set_value(std::move(result)); });
  EXPECT_TRUE(handle.cancel());
  EXPECT_EQ(ended.get_future().get().error().code(), -32800);
  EXPECT_FALSE(handle.cancel());
  EXPECT_FALSE(CallHandle{}.cancel());
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
}

TEST_F(ClientDriving, run_stops_its_task_when_asked_to_on_another_thread) {
  Client client{uri_};
  std::stop_source stop;
  const auto task = [](Client& of, std::stop_source& source) -> Task<void> {
    static_cast<void>(co_await of.request<int>("subtract", 1, 2));
    std::thread{[&source] { source.request_stop(); }}.join();
    co_await of.request<int>("wait");
  };
  EXPECT_THROW(client.run(task(client, stop), stop.get_token()), Cancelled);
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
}

TEST_F(ClientDriving, a_client_that_goes_ends_its_calls) {
  std::promise<Result> ended;
  std::future<int> future;
  {
    Client client{uri_};
    static_cast<void>(client.request<int>("wait").then([&](Result result) { ended.set_value(std::move(result)); }));
    future = client.request<int>("wait").future();
  }
  EXPECT_EQ(ended.get_future().get().error().code(), -32001);
  EXPECT_THROW(future.get(), ConnectionError);
}

// Attempts to connect that last until the test ends, as long as a name is being resolved; to other endpoints, real
// ones.
struct Resolving {
  DialFunction dial() {
    return [resolving = resolving_](const Endpoint& endpoint, std::chrono::milliseconds timeout) {
      if (endpoint.host() != "slow.example") return transport::connect_to(endpoint, timeout);
      ++resolving->begun;
      resolving->over.wait_for(kWatchdog);
      throw std::runtime_error{"resolved too late"};
    };
  }
  ~Resolving() { over_.set_value(); }
  [[nodiscard]] int begun() const { return resolving_->begun; }

 private:
  struct State {
    std::shared_future<void> over;
    std::atomic<int> begun{0};
  };
  std::promise<void> over_;
  std::shared_ptr<State> resolving_ = std::make_shared<State>(over_.get_future().share());
};

TEST_F(ClientDriving, a_name_that_is_not_resolved_takes_no_call_more_than_its_time) {
  Resolving resolving;
  Client client = detail::ClientAccess::client(std::make_shared<ClientCore>(
      std::vector{Endpoint{"tcp://slow.example:1"}}, ClientOptions{}, ClientSeams{.dial = resolving.dial()}));
  const Result late = client.request<int>("a").timeout(50ms).try_call();
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code(), -32002);
  EXPECT_NE(late.error().data().find(R"("delivered":"no")"), std::string::npos);
  EXPECT_EQ(client.request<int>("a").timeout(1ms).try_call().error().code(), -32002);
  EXPECT_LE(resolving.begun(), 1) << "the next call waits for the same attempt";
}

TEST_F(ClientDriving, after_a_name_that_is_not_resolved_the_next_endpoint_is_tried) {
  Resolving resolving;
  ClientOptions options;
  options.connect_timeout_ms = 50;
  options.call_timeout_ms = 20'000;
  Client client = detail::ClientAccess::client(std::make_shared<ClientCore>(
      std::vector{Endpoint{"tcp://slow.example:1"}, Endpoint{uri_}}, options, ClientSeams{.dial = resolving.dial()}));
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  EXPECT_GE(resolving.begun(), 1);
}

TEST_F(ClientDriving, several_connections_are_made_when_there_is_work_for_them) {
  ClientOptions options;
  options.connections = 3;
  Client client{uri_, options};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) ASSERT_EQ(client.call<int>("subtract", i, t), i - t);
    });
  }
}

TEST(ClientMethods, are_served_on_the_connection_of_the_client_s_calls) {
  const ScriptedServer server{[](RawPeer peer) {
    peer.send("{\"jsonrpc\":\"2.0\",\"method\":\"twice\",\"params\":[21],\"id\":\"s\"}\n");
    // The answer and the call come in either order.
    const std::string lines = peer.line() + peer.line();
    EXPECT_NE(lines.find(R"({"jsonrpc":"2.0","result":42,"id":"s"})"), std::string::npos) << lines;
    EXPECT_NE(lines.find(R"({"jsonrpc":"2.0","method":"a","id":1})"), std::string::npos) << lines;
    peer.send("{\"jsonrpc\":\"2.0\",\"method\":\"back\",\"id\":\"t\"}\n");
    const std::string refused = peer.line();
    EXPECT_NE(refused.find("-32603"), std::string::npos) << refused;
    peer.send("{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":1}\n");
    peer.line();
  }};
  Client client{server.uri()};
  client.method("twice", [](int n) { return 2 * n; });
  client.method("back", [&client]() -> std::expected<int, Error> { return client.try_call<int>("b"); });
  client.connect();
  EXPECT_EQ(client.call<int>("a"), 19);
}

}  // namespace
}  // namespace wirecall::net
