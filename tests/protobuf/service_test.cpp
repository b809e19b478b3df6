// Services, generated ones and others: served, called by stubs and by coroutines; a call within a call.
#include <array>
#include <atomic>
#include <condition_variable>
#include <future>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "echo.pb.h"
#include "services.pb.h"
#include "tests/connection/peer.hpp"
#include "wirecall/protobuf.hpp"
#include "wirecall/value.hpp"
#include "wirecall/wirecall.hpp"

namespace {

using namespace std::chrono_literals;
using echo::EchoRequest;
using echo::EchoResponse;
using echo::EchoService_Stub;
using google::protobuf::Closure;
using google::protobuf::NewCallback;
using google::protobuf::RpcController;
using wirecall::Client;
using wirecall::ClientOptions;
using wirecall::Error;
using wirecall::Options;
using wirecall::Server;
using wirecall::Task;
using wirecall::net::RunningServer;
using wirecall::protobuf::Channel;
using wirecall::protobuf::Controller;

EchoRequest request_of(std::string message) {
  EchoRequest request;
  request.set_message(std::move(message));
  return request;
}

/// A moment that one thread waits for and another brings.
class Moment {
 public:
  void come() {
    const std::lock_guard lock{mutex_};
    came_ = true;
    condition_.notify_all();
  }
  [[nodiscard]] bool wait() {
    std::unique_lock lock{mutex_};
    return condition_.wait_for(lock, 20s, [this] { return came_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool came_ = false;
};

/// Does what the message says.
class Echoing : public echo::EchoService {
 public:
  void Echo(RpcController* controller, const EchoRequest* request, EchoResponse* response, Closure* done) override {
    const std::string& message = request->message();
    if (message == "fail") {
      controller->SetFailed("it was to fail");
    } else if (message == "code") {
      Controller::of(controller).fail(Error{7, "with a code", R"({"a":1})"});
    } else if (message == "throw") {
      throw Error{8, "thrown"};
    } else if (message == "never" || message == "thread") {
      controller->NotifyOnCancel(NewCallback(this, &Echoing::note_cancel));
      if (message == "thread") {
        thread = std::thread{[done, response] {
          response->set_response("from a thread");
          done->Run();
        }};
      } else {
        held = done;
        held_response = response;
        reached.come();
      }
      return;
    } else {
      response->set_response("echo: " + message);
    }
    done->Run();
  }
  void RelayEcho(RpcController* controller, const EchoRequest* request, EchoResponse* response,
                 Closure* done) override {
    Echo(controller, request, response, done);
  }
  ~Echoing() override {
    if (held != nullptr) held->Run();
    if (thread.joinable()) thread.join();
  }
  void note_cancel() { cancelled.come(); }

  Closure* held = nullptr;
  EchoResponse* held_response = nullptr;
  Moment reached;
  Moment cancelled;
  std::thread thread;
};

Options options() {
  Options options;
  options.takeover_ms = 0;
  return options;
}

/// A server of `Service`, and a client of it.
template <class Service>
struct Pair {
  template <class... Args>
  explicit Pair(wirecall::protobuf::ServiceOptions how, Args&&... args)
      : service(std::forward<Args>(args)...), server(options()) {
    wirecall::protobuf::add_service(server, service, how);
    uri = server.listen("tcp://127.0.0.1:0").uri();
    client.emplace(uri);
    channel.emplace(*client);
    stub.emplace(&*channel);
    running.emplace(server);
  }
  Pair() : Pair(wirecall::protobuf::ServiceOptions{}) {}
  // A server waits a while for clients that are still there.
  ~Pair() { client->close(); }

  Service service;
  Server server;
  std::string uri;
  std::optional<Client> client;
  std::optional<Channel> channel;
  std::optional<EchoService_Stub> stub;
  std::optional<RunningServer> running;
};

TEST(Service, a_stub_without_a_closure_blocks_for_the_response) {
  Pair<Echoing> pair;
  Controller controller;
  EchoResponse response;
  const EchoRequest request = request_of("hi");
  pair.stub->Echo(&controller, &request, &response, nullptr);
  EXPECT_FALSE(controller.Failed()) << controller.ErrorText();
  EXPECT_EQ(controller.ErrorText(), "");
  EXPECT_EQ(response.response(), "echo: hi");
}

TEST(Service, a_closure_runs_when_the_response_is_there) {
  Pair<Echoing> pair;
  Controller controller;
  EchoResponse response;
  Moment done;
  const EchoRequest request = request_of("hi");
  pair.stub->Echo(&controller, &request, &response, NewCallback(&done, &Moment::come));
  ASSERT_TRUE(done.wait());
  EXPECT_EQ(response.response(), "echo: hi");
}

TEST(Service, a_coroutine_awaits_a_stubs_method) {
  Pair<Echoing> pair;
  const auto task = [&]() -> Task<std::string> {
    const EchoRequest request = request_of("hi");
    const EchoResponse response = co_await pair.channel->call<&EchoService_Stub::Echo>(request).timeout(20s);
    co_return response.response();
  };
  EXPECT_EQ(pair.client->run(task()), "echo: hi");
  EXPECT_EQ(pair.channel->call<EchoResponse>("echo.EchoService.Echo", request_of("x")).call().response(), "echo: x");
}

TEST(Service, peers_of_json_call_it_by_name_and_by_position) {
  Pair<Echoing> pair;
  EXPECT_EQ(pair.client->call_raw("echo.EchoService.Echo", R"({"message":"a"})"), R"({"response":"echo: a"})");
  EXPECT_EQ(pair.client->call_raw("echo.EchoService.Echo", R"([{"message":"b"}])"), R"({"response":"echo: b"})");
  EXPECT_EQ(pair.client->call_raw("echo.EchoService.Echo", "[]"), R"({"response":"echo: "})");
  EXPECT_EQ(pair.client->call_raw("echo.EchoService.Echo", ""), R"({"response":"echo: "})");
  const auto unknown = pair.client->call_raw("echo.EchoService.Echo", R"({"mesage":"a"})");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), -32602);
  EXPECT_EQ(unknown.error().data(),
            R"({"loc":["mesage"],"expected":"nothing","got":"\"a\"","did_you_mean":"message"})");
  EXPECT_FALSE(pair.client->call_raw("echo.EchoService.Echo", R"([{},1])"));
}

TEST(Service, messagepack_carries_it_as_well) {
  Pair<Echoing> pair;
  ClientOptions options;
  options.encoding = wirecall::Encoding::msgpack;
  Client client{pair.uri, options};
  Channel channel{client};
  EXPECT_EQ(channel.call<&EchoService_Stub::Echo>(request_of("m")).call().response(), "echo: m");
}

TEST(Service, an_error_of_the_service_is_in_the_callers_controller) {
  Pair<Echoing> pair;
  EchoResponse response;
  const auto error_of = [&](const std::string& message) {
    Controller controller;
    const EchoRequest request = request_of(message);
    pair.stub->Echo(&controller, &request, &response, nullptr);
    EXPECT_TRUE(controller.Failed());
    return controller.error() != nullptr ? *controller.error() : Error{"none"};
  };
  EXPECT_EQ(error_of("fail").message(), "it was to fail");
  EXPECT_EQ(error_of("fail").code(), -32000);
  EXPECT_EQ(error_of("code").code(), 7);
  EXPECT_EQ(error_of("code").data(), R"({"a":1})");
  EXPECT_EQ(error_of("throw").code(), 8);
  EXPECT_EQ(response.response(), "");
  // Without a controller it is thrown.
  const EchoRequest request = request_of("fail");
  EXPECT_THROW(pair.stub->Echo(nullptr, &request, &response, nullptr), Error);
}

TEST(Service, a_closure_may_be_run_later_and_by_another_thread) {
  Pair<Echoing> pair;
  Controller controller;
  EchoResponse response;
  const EchoRequest request = request_of("thread");
  pair.stub->Echo(&controller, &request, &response, nullptr);
  EXPECT_EQ(response.response(), "from a thread") << controller.ErrorText();
  EXPECT_TRUE(pair.service.cancelled.wait()) << "the callback of NotifyOnCancel runs at the end";
}

/// Keeps all its calls.
class Keeping : public echo::EchoService {
 public:
  struct Kept {
    RpcController* controller;
    EchoResponse* response;
    Closure* done;
  };
  void Echo(RpcController* controller, const EchoRequest*, EchoResponse* response, Closure* done) override {
    kept.push_back({controller, response, done});
    if (kept.size() == kCalls) all_kept.come();
  }

  static constexpr std::size_t kCalls = 16;
  std::vector<Kept> kept;  // the loop's, until the server has gone
  Moment all_kept;
};

TEST(Service, closures_may_be_run_by_several_threads_after_the_server_has_gone) {
  Keeping service;
  {
    constexpr std::uint32_t kHourMs = 3'600'000;
    Options of_server = options();
    of_server.limits.call_timeout_ms = kHourMs;
    std::optional<Server> server{std::in_place, of_server};
    wirecall::protobuf::add_service(*server, service);
    std::array<EchoResponse, Keeping::kCalls> responses;
    std::array<Moment, Keeping::kCalls> ended;
    ClientOptions of_client;
    of_client.call_timeout_ms = kHourMs;
    Client client{server->listen("tcp://127.0.0.1:0").uri(), of_client};
    std::optional<RunningServer> running{std::in_place, *server};
    Channel channel{client};
    EchoService_Stub stub{&channel};
    const EchoRequest request = request_of(std::string(2048, 'k'));  // so much is counted until its sink goes
    for (std::size_t at = 0; at != Keeping::kCalls; ++at)
      stub.Echo(nullptr, &request, &responses[at], NewCallback(&ended[at], &Moment::come));
    ASSERT_TRUE(service.all_kept.wait());
    client.close();
    for (Moment& moment : ended) ASSERT_TRUE(moment.wait());
    running.reset();
    server.reset();
  }
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (int thread = 0; thread != 4; ++thread)
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < service.kept.size(); at = next++) {
        const auto& [controller, response, done] = service.kept[at];
        EXPECT_TRUE(controller->IsCanceled());
        EXPECT_GT(Controller::of(controller).context().remaining(), 0ns);
        EXPECT_LE(Controller::of(controller).context().remaining(), 1h);
        response->set_response("too late");
        done->Run();
      }
    });
}

TEST(Service, a_deadline_ends_the_call_at_both_ends) {
  Pair<Echoing> pair;
  Controller controller;
  controller.set_timeout(50ms);
  EchoResponse response;
  const EchoRequest request = request_of("never");
  pair.stub->Echo(&controller, &request, &response, nullptr);
  ASSERT_TRUE(controller.Failed());
  EXPECT_EQ(controller.error()->code(), -32002);
  EXPECT_TRUE(pair.service.cancelled.wait());
}

TEST(Service, a_call_is_cancelled_at_both_ends) {
  Pair<Echoing> pair;
  Controller controller;
  EchoResponse response;
  Moment done;
  const EchoRequest request = request_of("never");
  pair.stub->Echo(&controller, &request, &response, NewCallback(&done, &Moment::come));
  ASSERT_TRUE(pair.service.reached.wait());
  controller.StartCancel();
  ASSERT_TRUE(done.wait());
  EXPECT_EQ(controller.error()->code(), -32800);
  EXPECT_TRUE(controller.IsCanceled());
  EXPECT_TRUE(pair.service.cancelled.wait());
  controller.Reset();
  EXPECT_FALSE(controller.Failed());
  const EchoRequest again = request_of("again");
  pair.stub->Echo(&controller, &again, &response, nullptr);
  EXPECT_EQ(response.response(), "echo: again");
}

// ---- a call within a call ----

/// A client of a server that may be gone.
ClientOptions hurried() {
  ClientOptions options;
  options.connect_attempts = 1;
  return options;
}

/// Asks a second server, by a stub: with a closure, or without one.
class Relay : public echo::EchoService {
 public:
  explicit Relay(const std::string& uri, bool blocks = false)
      : client_(uri, hurried()), channel_(client_), stub_(&channel_), blocks_(blocks) {}

  void RelayEcho(RpcController* controller, const EchoRequest* request, EchoResponse* response,
                 Closure* done) override {
    auto inner = std::make_shared<Controller>(Controller::of(controller).context());
    Controller* const used = inner.get();
    const auto answer = [controller, inner, done] {
      if (inner->Failed()) Controller::of(controller).fail(*inner->error());
      done->Run();
    };
    if (!blocks_) return stub_.Echo(used, request, response, wirecall::protobuf::new_closure(answer));
    stub_.Echo(used, request, response, nullptr);
    answer();
  }

 private:
  Client client_;
  Channel channel_;
  EchoService_Stub stub_;
  bool blocks_;
};

/// A relay, the second server that it asks, and one call to the relay.
class Relayed : public testing::Test {
 protected:
  explicit Relayed(bool blocks = false, wirecall::protobuf::ServiceOptions how = {}) : first(how, second.uri, blocks) {}
  /// The call's error; nullptr for none.
  const Error* call(const std::string& message) {
    begin(message, nullptr);
    return controller.error();
  }
  void begin(const std::string& message, Closure* closure) {
    const EchoRequest request = request_of(message);
    first.stub->RelayEcho(&controller, &request, &response, closure);
  }
  /// Until the second server has the call, which it does not answer. Then `done` comes with its end.
  void begin_held() {
    begin("never", NewCallback(&done, &Moment::come));
    ASSERT_TRUE(second.service.reached.wait());
  }

  Pair<Echoing> second;
  Pair<Relay> first;
  Controller controller;
  EchoResponse response;
  Moment done;
};

TEST_F(Relayed, a_service_calls_a_second_server_within_its_call) {
  EXPECT_EQ(call("hi"), nullptr);
  EXPECT_EQ(response.response(), "echo: hi");
}

TEST_F(Relayed, the_second_servers_error_comes_through) {
  ASSERT_NE(call("fail"), nullptr);
  EXPECT_EQ(controller.ErrorText(), "it was to fail");
  controller.Reset();
  ASSERT_NE(call("code"), nullptr);
  EXPECT_EQ(controller.error()->code(), 7);
  EXPECT_EQ(controller.error()->data(), R"({"a":1})");
}

TEST_F(Relayed, the_deadline_reaches_the_second_server) {
  controller.set_timeout(50ms);
  ASSERT_NE(call("never"), nullptr);
  EXPECT_EQ(controller.error()->code(), -32002);
  EXPECT_TRUE(second.service.cancelled.wait());
}

TEST_F(Relayed, the_cancellation_reaches_the_second_server) {
  ASSERT_NO_FATAL_FAILURE(begin_held());
  controller.StartCancel();
  ASSERT_TRUE(done.wait());
  EXPECT_EQ(controller.error()->code(), -32800);
  EXPECT_TRUE(second.service.cancelled.wait());
}

TEST_F(Relayed, a_caller_that_leaves_ends_the_call_at_the_second_server) {
  ASSERT_NO_FATAL_FAILURE(begin_held());
  first.client->close();
  ASSERT_TRUE(done.wait());
  EXPECT_TRUE(controller.Failed());
  EXPECT_TRUE(second.service.cancelled.wait());
}

class RelayedOnTheLoop : public Relayed {
 protected:
  RelayedOnTheLoop() : Relayed(true) {}
};

TEST_F(RelayedOnTheLoop, a_stub_that_would_block_fails_at_once) {
  ASSERT_NE(call("hi"), nullptr);
  EXPECT_NE(controller.ErrorText().find("on the thread of a loop"), std::string::npos) << controller.ErrorText();
}

class RelayedOnThePool : public Relayed {
 protected:
  RelayedOnThePool() : Relayed(true, {.blocking = true}) {}
};

TEST_F(RelayedOnThePool, a_stub_blocks) {
  EXPECT_EQ(call("hi"), nullptr) << controller.ErrorText();
  EXPECT_EQ(response.response(), "echo: hi");
  controller.Reset();
  ASSERT_NE(call("throw"), nullptr);
  EXPECT_EQ(controller.error()->code(), 8);
}

TEST(Relay, the_second_servers_death_is_an_error) {
  // It has the call, and is gone.
  std::optional<wirecall::net::ScriptedServer> second{[](wirecall::net::RawPeer peer) { peer.line(); }};
  Pair<Relay> first{wirecall::protobuf::ServiceOptions{}, second->uri()};
  const auto code = [&] {
    Controller controller;
    EchoResponse response;
    const EchoRequest request = request_of("hi");
    first.stub->RelayEcho(&controller, &request, &response, nullptr);
    return controller.Failed() ? controller.error()->code() : 0;
  };
  EXPECT_EQ(code(), -32001);
  second.reset();
  EXPECT_EQ(code(), -32001) << "where nobody listens any more";
}

TEST(Relay, a_stub_in_a_callback_of_its_own_client_fails_at_once) {
  Pair<Echoing> pair;
  std::promise<std::string> text;
  pair.channel->call<&EchoService_Stub::Echo>(request_of("a")).then([&](const auto& response) {
    EXPECT_TRUE(response);
    Controller controller;
    EchoResponse second;
    const EchoRequest request = request_of("b");
    pair.stub->Echo(&controller, &request, &second, nullptr);
    text.set_value(controller.ErrorText());
  });
  EXPECT_NE(text.get_future().get().find("on the thread of a loop"), std::string::npos);
}

TEST(Relay, a_stub_in_a_coroutine_fails_at_once) {
  Pair<Echoing> pair;
  const auto blocking = [&]() -> Task<std::string> {
    co_await pair.channel->call<&EchoService_Stub::Echo>(request_of("a"));
    Controller controller;
    EchoResponse response;
    const EchoRequest request = request_of("b");
    pair.stub->Echo(&controller, &request, &response, nullptr);
    co_return controller.ErrorText();
  };
  EXPECT_NE(pair.client->run(blocking()).find("on the thread of a loop"), std::string::npos);
}

// ---- services without generated ones ----

std::string refusal_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

services::Number number(int value) {
  services::Number number;
  number.set_value(value);
  return number;
}

TEST(ServiceOfDescriptor, functions_and_coroutines_are_its_methods) {
  Server server{options()};
  wirecall::protobuf::Service service{server, "services.Two"};
  service.method("First", [](wirecall::Context context, const services::Number& request) -> Task<services::Word> {
    co_await wirecall::sleep_for(context, 1ms);
    services::Word word;
    word.set_value(std::to_string(request.value()));
    co_return word;
  });
  service.method("Second", wirecall::blocking([](const google::protobuf::Int64Value& request) {
                   services::Word word;
                   word.set_value(std::to_string(request.value()));
                   return word;
                 }));
  const std::string uri = server.listen("tcp://127.0.0.1:0").uri();
  const RunningServer running{server};
  Client client{uri};
  Channel channel{client};
  EXPECT_EQ(channel.call<services::Word>("services.Two.First", number(5)).call().value(), "5");
  google::protobuf::Int64Value wrapped;
  wrapped.set_value(6);
  EXPECT_EQ(channel.call<services::Word>("services.Two.Second", wrapped).call().value(), "6");
  EXPECT_EQ(client.call_raw("services.Two.Second", R"(["7"])"), R"({"value":"7"})");
  EXPECT_EQ(client.call_raw("services.Two.Second", R"({"value":8})"), R"({"value":"8"})");
  EXPECT_FALSE(client.call_raw("services.Two.Second", ""));
}

TEST(ServiceOfDescriptor, a_method_may_stream_its_responses) {
  Server server{options()};
  wirecall::protobuf::Service service{server.registry(), "services.Calculator"};
  service.method("Count", [](services::Number up_to) -> wirecall::Stream<services::Number> {
    for (int i = 0; i < up_to.value(); ++i) co_yield number(i);
  });
  EXPECT_EQ(
      server.registry().handle(R"({"jsonrpc":"2.0","method":"services.Calculator.Count","params":{"value":2},"id":1})"),
      R"({"jsonrpc":"2.0","result":[{},{"value":1}],"id":1})");
}

TEST(ServiceOfDescriptor, callers_may_stream_their_requests) {
  using Numbers = wirecall::InputStream<services::Number>;
  Server server{options()};
  wirecall::protobuf::Service service{server, "services.Calculator"};
  service.method("Double", [](services::Number n) { return number(2 * n.value()); });
  service.method("Count", [](services::Number) -> wirecall::Stream<services::Number> { co_return; });
  service.method("Sum", [](Numbers numbers) -> wirecall::Task<services::Number> {
    int sum = 0;
    while (const std::optional<services::Number> one = co_await numbers.next()) sum += one->value();
    co_return number(sum);
  });
  service.method("Running", [](wirecall::Context, Numbers numbers) -> wirecall::Stream<services::Number> {
    int sum = 0;
    while (const std::optional<services::Number> one = co_await numbers.next()) co_yield number(sum += one->value());
  });
  const std::string uri = server.listen("tcp://127.0.0.1:0").uri();
  const RunningServer running{server};
  for (const std::string_view encoding : {"json", "msgpack", "cbor", "protobuf"}) {
    Client client{uri, R"({"encoding":")" + std::string{encoding} + R"("})"};
    const auto numbers = [] { return std::vector{number(1), number(2), number(39)}; };
    EXPECT_EQ(client.request<services::Number>("services.Calculator.Sum").input(numbers()).call().value(), 42);
    std::vector<int> sums;
    for (const services::Number& sum : client.stream<services::Number>("services.Calculator.Running").input(numbers()))
      sums.push_back(sum.value());
    EXPECT_EQ(sums, (std::vector{1, 3, 42})) << encoding;
    EXPECT_EQ(client.request<services::Number>("services.Calculator.Sum").call().value(), 0) << "of an empty stream";
    const auto with_params =
        client.request<services::Number>("services.Calculator.Sum", number(1)).input(numbers()).try_call();
    ASSERT_FALSE(with_params.has_value());
    EXPECT_EQ(with_params.error().code(), -32602);
  }
  const wirecall::Value document = Client{uri}.call<wirecall::Value>("rpc.discover");
  for (const wirecall::Value& method : document.at("methods").as_array()) {
    if (method.at("name").as_string() != "services.Calculator.Sum") continue;
    EXPECT_TRUE(method.at("params").as_array().empty());
    EXPECT_NE(method.dump().find("services.Number"), std::string::npos) << method.dump();
  }
}

TEST(ServiceOfDescriptor, what_does_not_fit_the_descriptor_is_refused) {
  Server server{options()};
  EXPECT_NE(refusal_of([&] { wirecall::protobuf::Service{server, "services.None"}; }), "");
  wirecall::protobuf::Service service{server, "services.Calculator"};
  EXPECT_EQ(refusal_of([&] { service.method("Half", [](services::Number n) { return n; }); }),
            "wirecall: services.Calculator has no method Half");
  EXPECT_EQ(refusal_of([&] { service.method("Double", [](services::Word) { return services::Number{}; }); }),
            "wirecall: services.Calculator.Double takes services.Number, not services.Word");
  EXPECT_EQ(refusal_of([&] { service.method("Double", [](services::Number) { return services::Word{}; }); }),
            "wirecall: services.Calculator.Double returns services.Number, not services.Word");
  EXPECT_NE(refusal_of([&] { service.method("Count", [](services::Number n) { return n; }); }), "");
  EXPECT_EQ(refusal_of([&] { service.method("Sum", [](services::Number n) { return n; }); }),
            "wirecall: services.Calculator.Sum takes an InputStream of messages");
  const auto summed = [](wirecall::InputStream<services::Number>) -> wirecall::Task<services::Number> {
    co_return services::Number{};
  };
  EXPECT_EQ(refusal_of([&] { service.method("Double", summed); }),
            "wirecall: services.Calculator.Double takes one message, not an InputStream");
  EXPECT_EQ(refusal_of([&] { service.method("Running", summed); }),
            "wirecall: services.Calculator.Running returns a Stream of messages");
  service.method("Double", [](services::Number n) { return n; });
  EXPECT_THROW(service.method("Double", [](services::Number n) { return n; }), Error);
}

TEST(ServiceOfDescriptor, listen_names_the_methods_that_are_missing) {
  Server server{options()};
  wirecall::protobuf::Service service{server, "services.Two"};
  EXPECT_EQ(refusal_of([&] { server.listen("tcp://127.0.0.1:0"); }),
            "cannot listen: these methods are declared and have no handler: services.Two.First, services.Two.Second");
  service.method("Second", [](const google::protobuf::Int64Value&) { return services::Word{}; });
  EXPECT_EQ(refusal_of([&] { server.listen("tcp://127.0.0.1:0"); }),
            "cannot listen: these methods are declared and have no handler: services.Two.First");
  service.method("First", [](const services::Number&) { return services::Word{}; });
  EXPECT_EQ(refusal_of([&] { server.listen("tcp://127.0.0.1:0"); }), "");
}

TEST(ServiceOfDescriptor, messages_are_parameters_and_results_of_any_method) {
  Server server{options()};
  server.method("join",
                [](services::Word a, const std::vector<services::Number>& b) {
                  a.set_value(a.value() + std::to_string(b.size()));
                  return a;
                },
                {"a", "b"});
  const std::string uri = server.listen("tcp://127.0.0.1:0").uri();
  const RunningServer running{server};
  Client client{uri};
  services::Word word;
  word.set_value("x");
  EXPECT_EQ(client.call<services::Word>("join", word, std::vector{number(1), number(2)}).value(), "x2");
  EXPECT_EQ(client.call_raw("join", R"({"a":{"value":"y"},"b":[]})"), R"({"value":"y0"})");
}

TEST(ServiceOfDescriptor, rpc_discover_shows_the_fields_as_params) {
  Server server{options()};
  Echoing echo;
  wirecall::protobuf::add_service(server, echo);
  const std::string document = server.registry().handle(R"({"jsonrpc":"2.0","method":"rpc.discover","id":1})");
  EXPECT_NE(document.find(R"("name":"echo.EchoService.Echo","params":[{"name":"message","schema":{"type":"string"},)"
                          R"("required":false}],"result":{"name":"result","schema":{"title":"echo.EchoResponse",)"),
            std::string::npos)
      << document;
}

TEST(ServiceOfDescriptor, rpc_discover_shows_the_schemas_of_messages_of_any_method) {
  Server server{options()};
  server.method("word_of", [](const services::Number&) { return services::Word{}; }, {"number"});
  const std::string document = server.registry().handle(R"({"jsonrpc":"2.0","method":"rpc.discover","id":1})");
  for (const std::string_view schema : {
           R"({"title":"services.Number","type":"object","properties":{"value":{"type":"integer",)",
           R"({"title":"services.Word","type":"object","properties":{"value":{"type":"string"}})",
       })
    EXPECT_NE(document.find(schema), std::string::npos) << document;
}

TEST(ServiceOfDescriptor, without_a_loop_a_closure_that_is_not_run_at_once_is_an_error) {
  Server server{options()};
  Echoing echo;
  wirecall::protobuf::add_service(server, echo);
  EXPECT_EQ(server.registry().handle(
                R"({"jsonrpc":"2.0","method":"echo.EchoService.Echo","params":{"message":"never"},"id":1})"),
            R"({"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":1})");
}

}  // namespace
