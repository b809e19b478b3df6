// What a broker tells of itself: rpc.stats, rpc.clients, rpc.health, and the same numbers for Prometheus.
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "broker/sessions.hpp"
#include "tests/broker/world.hpp"
#include "wirecall/detail/batch_counts.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::Client;
using test::error_reply;
using test::id_of;
using test::request;
using test::result_reply;
using test::World;

class Inspection : public testing::Test {
 protected:
  json result(std::string_view method) { return json::parse(asks.ask(request(method))).at("result"); }
  void answer(std::string_view json) { provider.send(result_reply(json, id_of(provider.received()))); }
  json method(std::string_view name) {
    const json stats = result("rpc.stats");
    for (const json& one : stats.at("methods")) {
      if (one.at("name") == name) return one;
    }
    return {};
  }
  std::string metrics() {
    const auto text = world.router.metrics({});
    EXPECT_TRUE(text->advance(*asks.sink, ~std::size_t{0}));
    return std::string{text->text()};
  }

  World world;
  Client provider{world};
  Client caller{world};
  Client asks{world};
};

TEST_F(Inspection, latencies_of_each_method_are_from_the_request_to_the_response) {
  provider.provide("add");
  world.advance(1s);
  for (int i = 1; i <= 100; ++i) {
    caller.send(request("add"));
    world.advance(i * 1ms);
    answer("1");
  }
  const json add = method("add");
  EXPECT_EQ(add.at("calls"), 100);
  EXPECT_EQ(add.at("errors"), 0);
  EXPECT_EQ(add.at("providers"), 1);
  EXPECT_NEAR(add.at("p50_us").get<double>(), 50'000, 50'000 / 8.0);
  EXPECT_NEAR(add.at("p90_us").get<double>(), 90'000, 90'000 / 8.0);
  EXPECT_NEAR(add.at("p99_us").get<double>(), 99'000, 99'000 / 8.0);
  EXPECT_EQ(add.at("max_us"), 100'000);
  EXPECT_EQ(result("rpc.stats").at("uptime_ms"), 1000 + 5050);
}

TEST_F(Inspection, each_way_of_failing_is_an_error_once) {
  provider.provide("add", R"(,"concurrency":2)");
  caller.send(request("add", {}, "1"));
  provider.send(error_reply(-1, "no", {}, id_of(provider.received())));
  caller.send(request("add", {}, "2"));
  provider.send(R"({"jsonrpc":"2.0","result":1,"error":1,"id":)" + id_of(provider.received()) + "}");
  EXPECT_EQ(method("add").at("errors"), 2) << "answered with an error, and malformed";
  caller.send(R"({"jsonrpc":"2.0","method":"add","timeout_ms":10,"id":3})");
  caller.send(request("add", {}, "4"));
  caller.send(request("add", {}, "5"));
  EXPECT_EQ(method("add").at("in_flight"), 2);
  EXPECT_EQ(method("add").at("waiting"), 1);
  world.advance(20ms);
  static_cast<void>(caller.ask(request("rpc.cancel", R"({"id":4})")));
  EXPECT_EQ(method("add").at("errors"), 4) << "too late, and cancelled";
  Client other{world};
  other.send(request("rpc.register", R"(["add"])"));
  provider.leave();
  EXPECT_EQ(method("add").at("calls"), 5);
  EXPECT_EQ(method("add").at("errors"), 4) << "the one that waited went elsewhere";
  other.leave();
  EXPECT_TRUE(method("add").is_null());
  Client third{world};
  third.provide("add");
  EXPECT_EQ(method("add").at("calls"), 0) << "nobody provided it in between";
}

TEST_F(Inspection, calls_of_all_are_counted_each) {
  provider.provide("add");
  caller.send(request("rpc.call_all", R"(["add"])"));
  world.advance(5ms);
  answer("1");
  EXPECT_EQ(method("add").at("calls"), 1);
  EXPECT_EQ(method("add").at("max_us"), 5000);
}

TEST_F(Inspection, of_methods_that_are_called_for_many_the_batches_are_told) {
  struct Counts final : detail::BatchCounts {
    [[nodiscard]] std::optional<detail::BatchSpreads> spreads() const override {
      return detail::BatchSpreads{
          .calls = {.count = 2, .sum = 6, .p50 = 2, .p90 = 4, .p99 = 4, .max = 4},
          .waits = {.count = 2, .sum = 3'500, .p50 = 500, .p90 = 3'000, .p99 = 3'000, .max = 3'000}};
    }
    void leave_now() noexcept override {}
  };
  detail::Binding binding = detail::bind([](int number) { return number; });
  binding.batches = std::make_shared<Counts>();
  world.registry.method("double", std::move(binding), {"number"});
  world.registry.method("plain", [] {});
  EXPECT_EQ(method("double").at("batches"), json::parse(R"({"count":2,"calls_mean":3.0,"calls_p50":2,"calls_max":4,)"
                                                        R"("wait_p50_us":0.5,"wait_p99_us":3.0,"wait_max_us":3.0})"));
  EXPECT_FALSE(method("plain").contains("batches"));
  const std::string text = metrics();
  EXPECT_NE(text.find("# TYPE wirecall_method_batch_calls summary\n"
                      "wirecall_method_batch_calls{method=\"double\",quantile=\"0.5\"} 2\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("wirecall_method_batch_calls_sum{method=\"double\"} 6\n"), std::string::npos) << text;
  EXPECT_NE(text.find("wirecall_method_batch_wait_seconds{method=\"double\",quantile=\"0.9\"} 3e-06\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("batch_calls{method=\"plain\""), std::string::npos) << text;
}

TEST_F(Inspection, methods_of_the_process_itself_are_counted_as_well) {
  world.registry.method("now", [this](bool good) {
    world.advance(3ms);
    if (!good) throw Error{7, "no"};
  });
  world.registry.method("later", [](Context context, int ms) -> Task<int> {
    co_await sleep_for(context, ms * 1ms);
    co_return ms;
  });
  EXPECT_EQ(method("now").at("calls"), 0);
  for (const std::string good : {"true", "false", "true"}) {
    ++world.loop_context.stats.loop_turns;
    static_cast<void>(caller.ask(request("now", "[" + good + "]")));
  }
  static_cast<void>(caller.ask(request("now", "[1]")));
  json now = method("now");
  EXPECT_EQ(now.at("calls"), 4);
  EXPECT_EQ(now.at("errors"), 2) << "raised, and params that do not fit";
  EXPECT_EQ(now.at("providers"), 1);
  EXPECT_EQ(now.at("in_flight"), 0);
  EXPECT_EQ(now.at("max_us"), 3000);
  EXPECT_NEAR(now.at("p50_us").get<double>(), 3000, 3000 / 8.0);

  caller.send(request("later", "[50]", "1"));
  caller.send(request("later", "[5000]", "2"));
  EXPECT_EQ(method("later").at("in_flight"), 2);
  world.advance(50ms);
  EXPECT_EQ(method("later").at("in_flight"), 1);
  EXPECT_EQ(method("later").at("errors"), 0);
  EXPECT_EQ(method("later").at("max_us"), 50'000);
  caller.leave();
  EXPECT_EQ(method("later").at("in_flight"), 0);
  EXPECT_EQ(method("later").at("errors"), 1) << "given up";
  EXPECT_EQ(method("later").at("calls"), 2);
}

TEST_F(Inspection, of_calls_of_one_turn_the_first_is_timed) {
  int calls = 0;
  world.registry.method("fast", [&] { world.advance(++calls * 1ms); });
  for (int i = 0; i < 3; ++i) static_cast<void>(caller.ask(request("fast")));
  ++world.loop_context.stats.loop_turns;
  static_cast<void>(caller.ask(request("fast")));
  EXPECT_EQ(method("fast").at("calls"), 4);
  EXPECT_EQ(method("fast").at("max_us"), 4000);
  const std::string numbers = metrics();
  EXPECT_NE(numbers.find("wirecall_method_duration_seconds_count{method=\"fast\"} 2\n"), std::string::npos) << numbers;
  EXPECT_NE(numbers.find("wirecall_method_duration_seconds_sum{method=\"fast\"} 0.005\n"), std::string::npos)
      << numbers;
}

TEST_F(Inspection, counters_have_every_number) {
  const json counters = result("rpc.stats").at("counters");
  for (const StatsField& field : stats_fields()) {
    const json& parent = field.kind.empty() ? counters : counters.at(std::string{field.name});
    EXPECT_TRUE(parent.contains(std::string{field.kind.empty() ? field.name : field.kind})) << field.name;
  }
}

TEST_F(Inspection, discover_describes_what_connections_provide_as_well) {
  world.registry.method("own", [](int n) { return n; }, {"n"});
  EXPECT_EQ(
      provider.ask(request("rpc.register",
                           R"({"method":"add","summary":"adds","params":[{"name":"x","schema":{"type":"integer"}}]})")),
      result_reply("1"));
  const json document = result("rpc.discover");
  EXPECT_EQ(document.at("methods").size(), 2U);
  EXPECT_EQ(document.at("methods").at(0).at("summary"), "adds");
  EXPECT_EQ(document.at("methods").at(0).at("params").at(0).at("name"), "x");
  EXPECT_EQ(document.at("methods").at(1).at("name"), "own");
  EXPECT_FALSE(document.at("methods").at(0).contains("x-input"));
  EXPECT_EQ(provider.ask(request("rpc.register", R"({"method":"sum","input":{"type":"integer"}})")), result_reply("1"));
  EXPECT_EQ(result("rpc.discover").at("methods").at(2).at("x-input"), json::parse(R"({"schema":{"type":"integer"}})"));
  EXPECT_NE(provider.ask(request("rpc.register", R"({"method":"bad","input":[1]})")).find("-32602"), std::string::npos);
  const std::string large = "\"" + std::string(70'000, 'x') + "\"";
  for (const std::string name : {"params", "result", "summary", "input"}) {
    const std::string refused =
        provider.ask(request("rpc.register", R"({"method":"big",")" + name + "\":" + large + "}"));
    EXPECT_NE(refused.find("at most 65536 bytes"), std::string::npos) << refused;
  }
}

TEST_F(Inspection, clients_are_told_with_what_they_do) {
  static_cast<void>(provider.ask(request("rpc.hello", R"({"name":"worker"})")));
  provider.provide("add");
  world.advance(1500ms);
  caller.send(request("add"));
  const json clients = result("rpc.clients");
  ASSERT_EQ(clients.size(), 1U);
  const json& worker = clients.at(0);
  EXPECT_EQ(worker.at("name"), "worker");
  EXPECT_EQ(worker.at("methods"), 1);
  EXPECT_EQ(worker.at("connected_ms"), 1500);
  EXPECT_EQ(worker.at("bytes_in"), 0) << "of a connection that has none";
}

TEST_F(Inspection, a_client_can_be_kicked_by_its_name) {
  static_cast<void>(provider.ask(request("rpc.hello", R"({"name":"worker"})")));
  EXPECT_EQ(asks.ask(request("rpc.kick", R"({"client":"other"})")), result_reply("false"));
  EXPECT_EQ(provider.sink->closes, 0);
  EXPECT_EQ(asks.ask(request("rpc.kick", R"({"client":"worker"})")), result_reply("true"));
  EXPECT_EQ(provider.sink->closes, 1);
  EXPECT_NE(asks.ask(request("rpc.kick")).find("-32602"), std::string::npos);
}

TEST_F(Inspection, the_broker_s_own_methods_have_one_provider_in_all_lists) {
  world.registry.method("own", [] { return 1; });
  EXPECT_EQ(method("own").at("providers"), 1);
  for (const json& listed : result("rpc.methods")) {
    if (listed.at("name") == "own") {
      EXPECT_EQ(listed.at("providers"), 1);
    }
  }
}

class Kicking : public testing::Test {
 protected:
  static std::string hello(std::string_view name, std::string_view resume = {}) {
    std::string params = R"({"name":")" + std::string{name} + '"';
    if (!resume.empty()) params.append(R"(,"resume":")").append(resume).append("\"");
    return request("rpc.hello", params + "}");
  }

  World world{Limits{}, {.kick_time = 60s}};
  Client admin{world};
};

TEST_F(Kicking, who_was_kicked_is_not_let_in_again_for_a_time) {
  Client worker{world};
  const json greeted = json::parse(worker.ask(hello("worker")));
  EXPECT_EQ(admin.ask(request("rpc.kick", R"(["worker"])")), result_reply("true"));
  worker.leave();
  world.advance(1s);
  for (const std::string& again :
       {hello("worker"), hello("another", greeted.at("result").at("session").get<std::string>())}) {
    Client back{world};
    const json refused = json::parse(back.ask(again)).at("error");
    EXPECT_EQ(refused.at("code"), -32003);
    EXPECT_EQ(refused.at("data").at("retry_after_ms"), 59'000);
    EXPECT_EQ(back.sink->closes, 1);
  }
  Client other{world};
  EXPECT_NE(other.ask(hello("other")).find("\"result\""), std::string::npos);
  EXPECT_EQ(other.sink->closes, 0);
  world.advance(59s);
  Client back{world};
  EXPECT_NE(back.ask(hello("worker")).find("\"result\""), std::string::npos);
}

TEST(KickedClients, are_known_by_name_and_principal_or_by_session_and_forgotten_in_time) {
  broker::KickedClients kicked;
  kicked.add({.name = "a", .principal = "p", .session = 7}, 10s);
  EXPECT_EQ(kicked.left({.name = "a", .principal = "p"}, 4s), 6s);
  EXPECT_EQ(kicked.left({.name = "a", .principal = "q"}, 4s), 0s);
  EXPECT_EQ(kicked.left({.name = "", .principal = "p"}, 4s), 0s);
  EXPECT_EQ(kicked.left({.name = "b", .principal = "p", .session = 7}, 4s), 6s);
  EXPECT_EQ(kicked.left({.name = "a", .principal = "p"}, 10s), 0s);
  for (std::size_t i = 0; i <= broker::KickedClients::kClientsMax; ++i)
    kicked.add({.name = "c" + std::to_string(i), .principal = ""}, 20s);
  EXPECT_EQ(kicked.left({.name = "c0", .principal = ""}, 11s), 0s) << "the oldest";
  EXPECT_EQ(kicked.left({.name = "c1", .principal = ""}, 11s), 9s);
}

TEST_F(Inspection, health_says_when_the_broker_is_about_to_leave) {
  EXPECT_EQ(result("rpc.health").at("status"), "ok");
  world.router.drain();
  EXPECT_EQ(result("rpc.health").at("status"), "draining");
  EXPECT_NE(asks.ask(request("rpc.health", "[1]")).find("-32602"), std::string::npos);
}

TEST_F(Inspection, prometheus_reads_the_same_numbers) {
  provider.provide("a\\\"b");
  caller.send(request("a\\\"b"));
  world.advance(1500ms);
  answer("1");
  const std::string text = metrics();
  for (const std::string line :
       {R"(wirecall_calls_relayed_total 1)", R"(wirecall_uptime_seconds 1.5)",
        R"(# TYPE wirecall_method_calls_total counter)", R"(wirecall_method_calls_total{method="a\"b"} 1)",
        R"(wirecall_method_providers{method="a\"b"} 1)",
        R"(wirecall_method_duration_seconds{method="a\"b",quantile="0.99"} 1.5)",
        R"(wirecall_method_duration_seconds_sum{method="a\"b"} 1.5)",
        R"(wirecall_method_duration_seconds_count{method="a\"b"} 1)"})
    EXPECT_NE(text.find(line + "\n"), std::string::npos) << line << "\n" << text;
}

}  // namespace
}  // namespace wirecall
