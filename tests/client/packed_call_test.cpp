// Packed params and results: as messages, in every encoding, at a server and through a broker; other layouts, and bytes
// that are none.
#include "wirecall/packed_call.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <expected>
#include <future>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "codec/base64.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/batched.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/packing.hpp"
#include "wirecall/server.hpp"

namespace packed_math {

struct Statistics {
  double mean;
  std::optional<double> deviation;
};

static double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(values.size());
}
static Statistics statistics(const std::vector<double>& values) { return {mean(values), std::nullopt}; }
static std::int16_t add(std::int16_t a, std::int8_t b) { return static_cast<std::int16_t>(a + b); }
static void nothing() {}
static std::string text(std::string_view text) { return std::string{text}; }
static wirecall::Task<std::string> later(wirecall::Context context, std::string text) {
  co_await wirecall::sleep_for(*context.scheduler(), std::chrono::nanoseconds{0});
  co_return text;
}
static std::expected<int, wirecall::Error> refuse(int code) {
  if (code != 0) return std::unexpected(wirecall::Error{code, "refused"});
  return 7;
}

// Not one of ours.
struct Tensor {
  static int layout() { return 7; }
  int size;
};

struct Counter {
  long count = 0;
  long add(long by) { return count += by; }
};

}  // namespace packed_math

namespace wirecall::net {
namespace {

namespace math = packed_math;

template <class... T>
std::string packed_text(const T&... values) {
  const std::vector<std::byte> bytes = to_packed(std::tuple<T...>{values...});
  std::string text(codec::base64_size(bytes.size()), '\0');
  codec::base64_encode(bytes, text.data());
  return R"([{"$packed":")" + text + R"("}])";
}
std::string base64_of(std::string_view bytes) {
  std::string text(codec::base64_size(bytes.size()), '\0');
  codec::base64_encode(std::as_bytes(std::span{bytes}), text.data());
  return text;
}
std::string request(std::string_view method, std::string_view params) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} +
         R"(,"id":1})";
}

void add_methods(Registry& registry) {
  registry.method("mean", math::mean, {"values"}).packed(packing(math::mean));
  registry.method("statistics", math::statistics, {"values"}).packed(packing(math::statistics));
  registry.method("add", math::add, {"a", "b"}).packed(packing(math::add));
  registry.method("nothing", math::nothing).packed(packing(math::nothing));
  registry.method("text", math::text, {"text"}).packed(packing(math::text));
  registry.method("refuse", math::refuse, {"code"}).packed(packing(math::refuse));
  registry.method("plain", math::add, {"a", "b"});
}

class PackedMessages : public testing::Test {
 protected:
  PackedMessages() { add_methods(registry_); }
  nlohmann::json ask(std::string_view method, std::string_view params) {
    return nlohmann::json::parse(registry_.handle(request(method, params)));
  }
  template <class T>
  T result(std::string_view method, std::string_view params) {
    const std::string reply = registry_.handle(request(method, params));
    const nlohmann::json json = nlohmann::json::parse(reply);
    EXPECT_TRUE(json["result"].contains("$packed")) << reply;
    const auto packed = from_json<Packed<T>>(json["result"].dump());
    EXPECT_TRUE(packed.has_value()) << reply;
    return packed ? packed->value : T{};
  }

  Registry registry_;
};

TEST_F(PackedMessages, ParamsAndResultArePackedWhereTheParamsAre) {
  EXPECT_EQ(result<double>("mean", packed_text(std::vector{1.0, 2.0})), 1.5);
  EXPECT_EQ(result<std::int16_t>("add", packed_text(std::int16_t{-300}, std::int8_t{5})), -295);
  EXPECT_EQ(result<std::string>("text", packed_text(std::string{"é"})), "é");
  EXPECT_EQ(result<math::Statistics>("statistics", packed_text(std::vector{4.0})).mean, 4.0);
  EXPECT_EQ(result<int>("refuse", packed_text(0)), 7);
  static_cast<void>(result<std::monostate>("nothing", packed_text()));
  // Beyond what JSON has.
  EXPECT_TRUE(std::isnan(result<double>("mean", packed_text(std::vector<double>{}))));
  EXPECT_EQ(ask("mean", "[[1,2]]")["result"], 1.5);
  EXPECT_EQ(ask("add", R"({"b":1,"a":2})")["result"], 3);
  EXPECT_EQ(ask("add", "[1,2]")["result"], 3);
}

TEST_F(PackedMessages, ErrorsAreAsTheyAreElsewhere) {
  const nlohmann::json refused = ask("refuse", packed_text(-5))["error"];
  EXPECT_EQ(refused["code"], -5);
  EXPECT_EQ(refused["message"], "refused");
}

TEST_F(PackedMessages, AnotherLayoutIsToldTheCallees) {
  const nlohmann::json error = ask("mean", packed_text(std::vector{1.0F}))["error"];
  EXPECT_EQ(error["code"], -32602);
  EXPECT_EQ(error["data"].dump(), R"x({"layout":"([f64])"})x");
  EXPECT_EQ(ask("nothing", packed_text(1))["error"]["data"]["layout"], "()");
  EXPECT_EQ(ask("add", packed_text(std::int16_t{1}))["error"]["data"]["layout"], "(i16,i8)");
}

TEST_F(PackedMessages, BytesThatDoNotFitAreRefusedWithTheParameterTheyAreOf) {
  const std::vector<std::byte> whole = to_packed(std::tuple{std::int16_t{1}, std::int8_t{2}});
  const std::string_view bytes{reinterpret_cast<const char*>(whole.data()), whole.size()};
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const nlohmann::json error = ask("add", R"([{"$packed":")" + base64_of(bytes.substr(0, size)) + R"("}])")["error"];
    EXPECT_EQ(error["code"], -32602) << size;
    if (size < 8) continue;
    EXPECT_EQ(error["data"]["loc"], nlohmann::json::array({size < 10 ? "a" : "b"})) << size;
  }
  const nlohmann::json more = ask("add", R"([{"$packed":")" + base64_of(std::string{bytes} + "x") + R"("}])")["error"];
  EXPECT_EQ(more["data"]["expected"], "the end of the value");
  const std::string no_text = packed_text(std::string{"ab"});
  EXPECT_EQ(ask("text", no_text)["error"], nullptr);
}

TEST_F(PackedMessages, OnlyOnePackedValueAloneIsThat) {
  const std::string one = packed_text(std::vector{1.0});
  const std::string value = one.substr(1, one.size() - 2);
  EXPECT_EQ(ask("mean", "[" + value + ",1]")["error"]["code"], -32602);
  EXPECT_EQ(ask("mean", value)["error"]["code"], -32602);
  EXPECT_EQ(ask("mean", R"([{"$packed":"no base64"}])")["error"]["data"]["loc"][0], "values");
  EXPECT_EQ(ask("mean", R"([{"$npy":"AAAA"}])")["error"]["data"]["loc"][0], "values");
  EXPECT_EQ(ask("plain", packed_text(std::int16_t{1}, std::int8_t{2}))["error"]["code"], -32602);
}

TEST_F(PackedMessages, ValuesThatArePackedDoNotHaveTheResultPacked) {
  registry_.method("any", [](Value first, int) { return first; }).packed(packing([](Value first, int) {
    return first;
  }));
  registry_.method("sum", [](Packed<int> a, int b) { return a.value + b; });
  const std::string one = packed_text(1);
  const std::string value = one.substr(1, one.size() - 2);
  EXPECT_EQ(ask("any", "[" + value + ",1]")["result"], nlohmann::json::parse(value));
  const std::string packed = to_json(Packed<int>{40});
  EXPECT_EQ(ask("sum", "[" + packed + ",2]")["result"], 42);
  EXPECT_EQ(ask("sum", "[40,2]")["result"], 42);
  EXPECT_EQ(ask("sum", "[" + value + ",2]")["error"]["data"]["layout"], "i32");
}

TEST_F(PackedMessages, InBatchesEachCallHasItsOwnForm) {
  const std::string batch = "[" + request("add", packed_text(std::int16_t{1}, std::int8_t{2})) + "," +
                            request("add", "[1,2]") + "," + request("nothing", packed_text()) + "]";
  const nlohmann::json replies = nlohmann::json::parse(registry_.handle(batch));
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_TRUE(replies[0]["result"].contains("$packed"));
  EXPECT_EQ(replies[1]["result"], 3);
  EXPECT_TRUE(replies[2]["result"].contains("$packed"));
  EXPECT_EQ(registry_.handle(R"({"jsonrpc":"2.0","method":"add","params":)" +
                             packed_text(std::int16_t{1}, std::int8_t{2}) + "}"),
            "");
}

TEST_F(PackedMessages, LayoutsStandInTheListOfMethods) {
  const nlohmann::json document = ask("rpc.discover", "[]")["result"];
  std::size_t seen = 0;
  for (const nlohmann::json& method : document["methods"]) {
    const bool has = method["result"].contains("x-packed");
    EXPECT_EQ(has, method["name"] != "plain" && !method["name"].get<std::string>().starts_with("rpc.")) << method;
    if (method["name"] != "statistics") continue;
    ++seen;
    EXPECT_EQ(method["result"]["x-packed"].dump(),
              R"x({"params":"([f64])","result":"{mean:f64,deviation:optional<f64>}"})x");
  }
  EXPECT_EQ(seen, 1U);
}

TEST(Packing, OfAnotherFunctionOrOfKeptResultsIsRefused) {
  Registry registry;
  Method& method = registry.method("add", math::add);
  EXPECT_THROW(method.packed(packing(math::mean)), std::invalid_argument);
  Method& kept = registry.method("kept", math::add, MethodOptions{.params = {}, .cache = {.entries = 10}});
  EXPECT_THROW(kept.packed(packing(math::add)), std::invalid_argument);
}

// ---- by clients ----

class PackedCalls : public testing::TestWithParam<std::string_view> {
 protected:
  [[nodiscard]] static ClientOptions options(std::string_view encoding = GetParam()) {
    return ClientOptions::from_json(R"({"encoding":")" + std::string{encoding} + "\"}");
  }
};
INSTANTIATE_TEST_SUITE_P(Encodings, PackedCalls, testing::Values("json", "msgpack", "cbor", "protobuf"),
                         [](const auto& encoding) { return std::string{encoding.param}; });

TEST_P(PackedCalls, ReachAServer) {
  Server server;
  math::Counter counter;
  server.method<math::mean>({"values"}).packed(packing<math::mean>());
  server.method<math::add>().packed(packing<math::add>());
  server.method<math::nothing>().packed(packing<math::nothing>());
  server.method<math::later>().packed(packing<math::later>());
  server.method<math::refuse>().packed(packing<math::refuse>());
  server.method<&math::Counter::add>(counter).packed(packing<&math::Counter::add>());
  server.method(std::string{method_name<math::text>()}, blocking(math::text)).packed(packing<math::text>());
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  Client client{endpoint.uri(), options()};
  EXPECT_EQ(call_packed<math::mean>(client, std::vector{1.0, 2.0}), 1.5);
  EXPECT_TRUE(std::isnan(call_packed<math::mean>(client, std::vector<double>{})));
  EXPECT_EQ(call_packed<math::add>(client, std::int16_t{-300}, std::int8_t{5}), -295);
  call_packed<math::nothing>(client);
  EXPECT_EQ(call_packed<math::later>(client, "later"), "later");
  EXPECT_EQ(call_packed<&math::Counter::add>(client, 3), 3);
  EXPECT_EQ(call_packed<math::text>(client, "blocks"), "blocks");
  EXPECT_EQ(request_packed<math::add>(client, std::int16_t{1}, std::int8_t{2}).call().value, 3);
  EXPECT_EQ(client.call<math::add>(std::int16_t{1}, std::int8_t{2}), 3);  // and not packed
  // Of so many bytes params are decoded without the loop.
  const std::string large(1'000'000, 'x');
  EXPECT_EQ(call_packed<math::text>(client, large), large);
  EXPECT_EQ(call_packed<math::mean>(client, std::vector<double>(100'000, 2.0)), 2.0);
  try {
    call_packed<math::refuse>(client, -5);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -5);
    EXPECT_STREQ(error.message().c_str(), "refused");
  }
}

TEST_P(PackedCalls, ThatWaitForABatchKeepTheirBytes) {
  Server server;
  const auto texts = [](const std::vector<std::string_view>& views) {
    return std::vector<std::string>(views.begin(), views.end());
  };
  server.method(std::string{method_name<math::text>()}, batched(texts, {.size = 2, .wait = std::chrono::minutes{1}}))
      .packed(packing<math::text>());
  server.method("size", [](std::string_view text) { return text.size(); });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  Client client{endpoint.uri(), options()};
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    const std::string own(100, letter);
    std::promise<std::string> first;
    request_packed<math::text>(client, own).then([&first](const std::expected<Packed<std::string>, Error>& outcome) {
      first.set_value(outcome->value);
    });
    EXPECT_EQ(client.call<std::size_t>("size", std::string(200, '-')), 200U);
    EXPECT_EQ(call_packed<math::text>(client, "second"), "second");
    EXPECT_EQ(first.get_future().get(), own);
  }
}

TEST_P(PackedCalls, GoInBatchesAndAsNotifications) {
  Server server;
  std::promise<std::string> noted;
  const auto note = [&noted](const std::string& text) { noted.set_value(text); };
  server.method<math::mean>({"values"}).packed(packing<math::mean>());
  server.method<math::add>().packed(packing<math::add>());
  server.method("note", note).packed(packing(note));
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  Client client{endpoint.uri(), options()};
  const auto [sum, mean, other, plain] =
      client.batch()
          .call<Packed<std::int16_t>>(method_name<math::add>(), Packed{std::tuple{std::int16_t{-300}, std::int8_t{5}}})
          .call<Packed<double>>(method_name<math::mean>(), Packed{std::tuple{std::vector{1.0, 2.0}}})
          .call<Packed<double>>(method_name<math::mean>(), Packed{std::tuple{1}})
          .call<math::add>(std::int16_t{1}, std::int8_t{2})
          .send();
  EXPECT_EQ(sum.value().value, -295);
  EXPECT_EQ(mean.value().value, 1.5);
  EXPECT_EQ(other.error().data(), R"x({"layout":"([f64])","own":"(i32)"})x");
  EXPECT_EQ(plain.value(), 3);
  client.notify("note", Packed{std::tuple{std::string{"noted"}}});
  EXPECT_EQ(noted.get_future().get(), "noted");
}

TEST_P(PackedCalls, WithoutALayoutAreRefusedAloneAndInABatch) {
  Server server;
  const auto any = [](Value value) { return value; };
  server.method("any", any).packed(packing(any));
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  Client client{endpoint.uri(), options()};
  for (const std::size_t bytes : {1, 4, 7}) {
    const Value value{Extension{kPackedExtension, std::vector<std::byte>(bytes)}};
    const auto [inside, other] = client.batch().call<Value>("any", value).call<Value>("any", 1).send();
    const auto alone = client.request<Value>("any", value).try_call();
    ASSERT_FALSE(alone.has_value());
    ASSERT_FALSE(inside.has_value());
    EXPECT_EQ(alone.error().code(), -32602);
    EXPECT_NE(alone.error().data().find("the hash of a layout"), std::string::npos) << alone.error().data();
    EXPECT_EQ(inside.error().data(), alone.error().data());
    EXPECT_EQ(other.value(), Value{1});
  }
}

TEST_P(PackedCalls, TypesWithALayoutOfTheirOwnAreNotPacked) {
  Server server;
  server.method("size", [](packed_math::Tensor tensor) { return tensor.size; });
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  Client client{endpoint.uri(), options()};
  EXPECT_EQ(client.call<int>("size", packed_math::Tensor{3}), 3);
}

TEST_P(PackedCalls, AreRefusedWithBothLayouts) {
  Server server;
  server.method(std::string{method_name<math::mean>()}, math::add).packed(packing(math::add));
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  Client client{endpoint.uri(), options()};
  try {
    call_packed<math::mean>(client, std::vector{1.0});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), -32602);
    EXPECT_EQ(error.data(), R"x({"layout":"(i16,i8)","own":"([f64])"})x");
  }
  const auto answer = request_packed<math::mean>(client, std::vector{1.0}).try_call();
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().data(), R"x({"layout":"(i16,i8)","own":"([f64])"})x");
  std::promise<std::string> told;
  request_packed<math::mean>(client, std::vector{1.0}).then([&](const std::expected<Packed<double>, Error>& result) {
    told.set_value(std::string{result.error().data()});
  });
  EXPECT_EQ(told.get_future().get(), R"x({"layout":"(i16,i8)","own":"([f64])"})x");
  // What the next call on the same client is refused with, which is not packed, has none.
  const auto plain = client.request<int>(method_name<math::mean>(), Value{"x"}).try_call();
  ASSERT_FALSE(plain.has_value());
  EXPECT_EQ(plain.error().data().find("own"), std::string::npos) << plain.error().data();
}

TEST_P(PackedCalls, AreRefusedByAProviderThatDoesNotPack) {
  Broker broker;
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  for (const std::string_view of_provider : {"json", "msgpack", "cbor", "protobuf"}) {
    Client provider{endpoint.uri(), options(of_provider)};
    provider.provide<math::mean>({.params = {"values"}});
    provider.connect();
    Client client{endpoint.uri(), options()};
    try {
      call_packed<math::mean>(client, std::vector{1.0, 2.0});
      FAIL() << of_provider;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), -32602) << of_provider;
      EXPECT_NE(error.data().find(R"("expected":"array of number")"), std::string::npos) << error.data();
    }
    EXPECT_EQ(client.call<math::mean>(std::vector{1.0, 2.0}), 1.5) << of_provider;
  }
}

TEST_P(PackedCalls, AResultOfAnotherLayoutIsAnErrorOfTheCallers) {
  Server server;
  const auto rounded = [](const std::vector<double>& values) { return static_cast<int>(math::mean(values)); };
  server.method(std::string{method_name<math::mean>()}, rounded).packed(packing(rounded));
  const Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  const RunningServer running{server};
  Client client{endpoint.uri(), options()};
  try {
    call_packed<math::mean>(client, std::vector{1.0, 2.0});
    FAIL();
  } catch (const LocalError& error) {
    EXPECT_EQ(error.code(), -32603);
    EXPECT_NE(error.data().find(R"("layout":"f64")"), std::string::npos) << error.data();
  }
  EXPECT_EQ(client.call<int>(method_name<math::mean>(), std::vector{1.0, 2.0}), 1);  // and the connection goes on
}

TEST_P(PackedCalls, ReachAProviderThroughABroker) {
  Broker broker;
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  const RunningServer running{broker};
  for (const std::string_view of_provider : {"json", "msgpack", "cbor", "protobuf"}) {
    Client provider{endpoint.uri(), options(of_provider)};
    provider.provide<math::mean>({.params = {"values"}, .packed = &packing<math::mean>()});
    provider.connect();
    Client client{endpoint.uri(), options()};
    EXPECT_EQ(call_packed<math::mean>(client, std::vector{1.0, 2.0}), 1.5) << of_provider;
    EXPECT_EQ(client.call<math::mean>(std::vector{1.0, 2.0}), 1.5) << of_provider;
    const std::string document = client.call_raw("rpc.discover", "[]").value();
    EXPECT_NE(document.find(R"x("x-packed":{"params":"([f64])","result":"f64"})x"), std::string::npos) << document;
  }
}

}  // namespace
}  // namespace wirecall::net
