// Calls of functions that both sides know from a shared header: what is sent, what comes back, in each way.
#include <expected>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/client/shared_header.hpp"
#include "tests/connection/peer.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"

namespace shared {

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}
void divide(int a, int b, int& quotient, wirecall::Out<int> remainder) {
  if (b == 0) throw wirecall::Error{-50, "division by zero"};
  quotient = a / b;
  remainder = a % b;
}
int larger(int a, int b) { return a > b ? a : b; }
std::string larger(std::string a, std::string b) { return a > b ? a : b; }
std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }
wirecall::Task<int> append(wirecall::Context, std::vector<int>& to, int value, wirecall::Out<std::string> text) {
  to.push_back(value);
  text = std::to_string(value);
  co_return static_cast<int>(to.size());
}
wirecall::Stream<int> count(int n, int& total, wirecall::Out<std::string> last) {
  for (int i = 1; i <= n; ++i) {
    total += i;
    last = std::to_string(i);
    co_yield i;
  }
}
std::expected<int, wirecall::Error> positive(int value, wirecall::Out<int> doubled) {
  doubled = 2 * value;
  if (value < 0) return std::unexpected{wirecall::Error{-51, "negative"}};
  return value;
}
int sum(wirecall::Rest<int> numbers) {
  int sum = 0;
  for (const int number : numbers) sum += number;
  return sum;
}
inline namespace v2 {
int current(int a) { return a + 2; }
}  // namespace v2

}  // namespace shared

namespace wirecall::net {
namespace {

constexpr auto* kLargerInt = overload<int(int, int)>(shared::larger);

// In each encoding.
class SharedCall : public testing::TestWithParam<Encoding> {
 protected:
  static ClientOptions options() {
    ClientOptions options;
    options.encoding = GetParam();
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Each, SharedCall,
                         testing::Values(Encoding::json, Encoding::msgpack, Encoding::cbor, Encoding::protobuf));

struct SharedServer {
  SharedServer() {
    server.method<shared::mean>({"values"});
    server.method<shared::divide>({"a", "b", "quotient", "remainder"});
    server.method<kLargerInt>();
    server.method<kLargerText>();
    server.method<shared::first_word>();
    server.method<shared::append>({"to", "value", "text"});
    server.method<shared::count>();
    server.method<shared::positive>();
    server.method<shared::sum>();
    server.method<shared::current>();
    server.method<&shared::Counter::add>(counter, {"amount"});
    server.method<&shared::Counter::drain>(counter);
    server.method<&shared::Meter::read>(meter);
    uri = server.listen("tcp://127.0.0.1:0").uri();
    running.emplace(server);
  }
  shared::Counter counter;
  shared::Meter meter;
  Server server;
  std::string uri;
  std::optional<RunningServer> running;
};

TEST_P(SharedCall, calls_functions_by_their_own_names_and_returns_what_they_return) {
  const SharedServer served;
  Client client{served.uri, options()};
  const std::vector<double> values{1, 2, 6};
  const double mean = client.call<shared::mean>(values);
  EXPECT_EQ(mean, 3);
  EXPECT_EQ(client.call<double>("shared.mean", values), 3);
  EXPECT_EQ(client.call<kLargerInt>(2, 3), 3);
  EXPECT_EQ((client.call<static_cast<int (*)(int, int)>(shared::larger)>(2, 3)), 3);
  EXPECT_EQ(client.call<kLargerText>("a", "b"), "b");
  EXPECT_EQ(client.call<std::string>("shared.larger_text", "a", "b"), "b");
  EXPECT_EQ(client.call<shared::current>(1), 3);
  EXPECT_EQ(client.call<&shared::Counter::add>(5), 5);
  EXPECT_EQ(client.call<&shared::Counter::add>(2), 7);
  EXPECT_EQ(client.call<&shared::Meter::read>(), 7);
  // What the function borrows, the caller owns.
  const std::string word = client.call<shared::first_word>("good day");
  EXPECT_EQ(word, "good");
}

TEST(SharedCallText, converts_arguments_as_a_direct_call_does) {
  const ScriptedServer server{[](RawPeer peer) {
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"shared.larger","params":[2,65],"id":1})");
    peer.send("{\"jsonrpc\":\"2.0\",\"result\":65,\"id\":1}\n");
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"shared.sum","params":[1,2,3],"id":2})");
    peer.send("{\"jsonrpc\":\"2.0\",\"result\":6,\"id\":2}\n");
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"shared.append","params":[[],4],"id":3})");
    peer.send(R"({"jsonrpc":"2.0","result":{"return":1,"out":{"to":[4],"text":"4"}},"id":3})"
              "\n");
    EXPECT_EQ(peer.line(), R"({"jsonrpc":"2.0","method":"shared.mean","params":[[1.5]]})");
    peer.line();
  }};
  Client client{server.uri()};
  EXPECT_EQ(client.call<kLargerInt>(2.9, 'A'), 65);
  Rest<int> numbers;
  for (const int number : {1, 2, 3}) numbers.push_back(number);
  EXPECT_EQ(client.call<shared::sum>(numbers), 6);
  // The Context is the server's.
  std::vector<int> to;
  std::string text;
  EXPECT_EQ(client.call<shared::append>(to, 4L, text), 1);
  client.notify<shared::mean>(std::vector{1.5});
}

TEST_P(SharedCall, has_the_errors_of_other_calls) {
  const SharedServer served;
  Client client{served.uri, options()};
  int doubled = 1;
  const std::expected<int, Error> negative = client.try_call<shared::positive>(-4, doubled);
  EXPECT_EQ(negative.error().code(), -51);
  EXPECT_EQ(doubled, 1);
  EXPECT_EQ(client.call<shared::positive>(4, doubled), 4);
  EXPECT_EQ(doubled, 8);
}

TEST_P(SharedCall, goes_to_a_provider_of_a_broker) {
  Broker broker;
  const std::string uri = broker.listen("tcp://127.0.0.1:0").uri();
  const RunningServer running{broker};
  Client provider{uri};
  shared::Counter counter{.value = 10};
  provider.provide<shared::divide>({.params = {"a", "b", "quotient", "remainder"}});
  provider.provide<&shared::Counter::drain>(counter, {.params = {"amount", "left"}});
  provider.provide<shared::count>();
  provider.connect();
  Client client{uri, options()};
  int quotient = 0;
  int remainder = 0;
  client.call<shared::divide>(7, 2, quotient, remainder);
  EXPECT_EQ(quotient, 3);
  EXPECT_EQ(remainder, 1);
  int left = 0;
  EXPECT_EQ(client.call<&shared::Counter::drain>(4, left), 4);
  EXPECT_EQ(left, 6);
  int total = 1;
  std::string last;
  std::vector<int> items;
  for (const int item : client.stream<shared::count>(3, total, last)) items.push_back(item);
  EXPECT_EQ(items, (std::vector{1, 2, 3}));
  EXPECT_EQ(total, 7);
  EXPECT_EQ(last, "3");
}

// In the other direction: methods of a client that its server's handlers call, by their names.
TEST_P(SharedCall, may_be_made_to_a_client) {
  Server server;
  server.method("ask", [](Context context) -> Task<int> {
    const std::vector<double> values{2, 4};
    const int added = co_await Caller{context}.call<int>("shared.Counter.add", 5);
    co_return added + static_cast<int>(co_await Caller{context}.call<double>("shared.mean", values));
  });
  const std::string uri = server.listen("tcp://127.0.0.1:0").uri();
  const RunningServer running{server};
  shared::Counter counter;
  Client client{uri, options()};
  client.method<shared::mean>({"values"});
  client.method<&shared::Counter::add>(counter);
  EXPECT_EQ(client.call<int>("ask"), 8);
}

TEST_P(SharedCall, is_part_of_a_batch) {
  const SharedServer served;
  Client client{served.uri, options()};
  int quotient = 0;
  int remainder = 0;
  int kept = 9;
  int also_kept = 9;
  const auto [mean, divided, failed, larger] = client.batch()
                                                   .call<shared::mean>(std::vector<double>{1, 2})
                                                   .call<shared::divide>(7, 2, quotient, remainder)
                                                   .call<shared::divide>(7, 0, kept, also_kept)
                                                   .call<kLargerInt>(4, 3)
                                                   .send();
  EXPECT_EQ(mean.value(), 1.5);
  EXPECT_TRUE(divided);
  EXPECT_EQ(quotient, 3);
  EXPECT_EQ(remainder, 1);
  EXPECT_EQ(failed.error().code(), -50);
  EXPECT_EQ(kept, 9);
  EXPECT_EQ(also_kept, 9);
  EXPECT_EQ(larger.value(), 4);
  auto means = client.batch_of<double>();
  for (int i = 1; i <= 3; ++i) means.call<shared::mean>(std::vector<double>(3, i));
  const std::vector<std::expected<double, Error>> results = std::move(means).send();
  EXPECT_EQ(results.at(2).value(), 3);
}

TEST_P(SharedCall, streams) {
  const SharedServer served;
  Client client{served.uri, options()};
  int total = 100;
  std::string last;
  std::vector<int> items;
  ResultStream<int> counted = client.stream<shared::count>(3, total, last);
  while (const std::optional<int> item = counted.next()) {
    items.push_back(*item);
    EXPECT_EQ(total, 100);
  }
  EXPECT_EQ(items, (std::vector{1, 2, 3}));
  EXPECT_EQ(total, 106);
  EXPECT_EQ(last, "3");
  // All at once.
  EXPECT_EQ(client.call<shared::count>(2, total, last), (std::vector{1, 2}));
  EXPECT_EQ(total, 109);
}

}  // namespace
}  // namespace wirecall::net
