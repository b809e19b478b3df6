// Streams towards handlers that another client provides at a broker of ours, over sockets: credit end to end, both
// directions at once, and the end of either side.
#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <optional>
#include <ranges>
#include <semaphore>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "tests/client/served.hpp"
#include "tests/server/broker_world.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/input_stream.hpp"
#include "wirecall/result_stream.hpp"
#include "wirecall/task.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {
namespace {

using namespace std::chrono_literals;

// Signals once the handler that has it is gone.
class InputHandlerEnd {
 public:
  explicit InputHandlerEnd(std::binary_semaphore& gone) : gone_(&gone) {}
  InputHandlerEnd(InputHandlerEnd&&) = delete;
  ~InputHandlerEnd() { gone_->release(); }

 private:
  std::binary_semaphore* gone_;
};

class ProvidedInputs : public testing::TestWithParam<Encoding> {
 protected:
  ProvidedInputs() {
    provider_.emplace(uri_, options());
    provider_->provide("sum_all", [](InputStream<int> in) -> Task<int> {
      int sum = 0;
      while (const std::optional<int> value = co_await in.next()) sum += *value;
      co_return sum;
    });
    provider_->provide("running_sum", [](InputStream<int> in) -> Stream<int> {
      int sum = 0;
      while (const std::optional<int> value = co_await in.next()) co_yield sum += *value;
    });
    provider_->provide("bytes", [](InputStream<std::string> in) -> Task<std::size_t> {
      std::size_t bytes = 0;
      while (const auto text = co_await in.next()) bytes += text->size();
      co_return bytes;
    });
    provider_->provide("drain", [this](InputStream<int> in) -> Task<void> {
      const InputHandlerEnd end{gone_};
      while (co_await in.next()) read_.release();
    });
    // Reads nothing until the call ends.
    provider_->provide("idle", [this](Context context, InputStream<int> in) -> Task<void> {
      const InputHandlerEnd end{gone_};
      static_cast<void>(co_await in.next());
      read_.release();
      co_await sleep_for(context, 1h);
    });
    provider_->connect();
  }
  [[nodiscard]] static ClientOptions options() {
    ClientOptions options;
    options.encoding = GetParam();
    return options;
  }

  Broker broker_;
  const std::string uri_ = broker_.listen("tcp://127.0.0.1:0").uri();
  RunningServer running_{broker_};
  std::binary_semaphore gone_{0};      // a handler
  std::counting_semaphore<> read_{0};  // an item
  std::optional<Client> provider_;
};

INSTANTIATE_TEST_SUITE_P(Each, ProvidedInputs,
                         testing::Values(Encoding::json, Encoding::msgpack, Encoding::cbor, Encoding::protobuf));

TEST_P(ProvidedInputs, reach_their_handlers) {
  Client caller{uri_, options()};
  EXPECT_EQ(caller.request<int>("sum_all").input(std::views::iota(1, 5'001)).call(), 12'502'500);
  EXPECT_EQ(caller.request<int>("sum_all").input(std::vector<int>{}).call(), 0);
  EXPECT_EQ(caller.request<int>("sum_all").call(), 0);
  const std::string large(100'000, 'x');
  EXPECT_EQ(caller.request<std::size_t>("bytes").input(std::vector<std::string>(50, large)).call(), 5'000'000U);
}

TEST_P(ProvidedInputs, of_a_caller_with_another_encoding_reach_them_too) {
  ClientOptions other = options();
  for (const Encoding encoding : {Encoding::json, Encoding::msgpack, Encoding::cbor, Encoding::protobuf}) {
    if (encoding == GetParam()) continue;
    other.encoding = encoding;
    Client caller{uri_, other};
    EXPECT_EQ(caller.request<int>("sum_all").input(std::views::iota(0, 200)).call(), 19'900);
    int last = 0;
    for (const int sum : caller.stream<int>("running_sum").input(std::views::iota(0, 200))) last = sum;
    EXPECT_EQ(last, 19'900);
  }
}

TEST_P(ProvidedInputs, run_beside_results_and_beside_each_other) {
  Client caller{uri_, options()};
  const auto last_of = [&caller](int count) -> Task<int> {
    Stream<int> sums = caller.stream<int>("running_sum").input(std::views::iota(0, count)).awaited();
    int last = 0;
    while (const std::optional<int> sum = co_await sums.next()) last = *sum;
    co_return last;
  };
  const auto both = [&]() -> Task<std::tuple<int, int>> { co_return co_await when_all(last_of(1000), last_of(500)); };
  EXPECT_EQ(caller.run(both()), (std::tuple{499'500, 124'750}));
}

TEST_P(ProvidedInputs, are_asked_for_no_more_than_a_handler_that_does_not_read_makes_room_for) {
  Client caller{uri_, options()};
  std::stop_source stop;
  std::atomic<int> asked{0};
  const auto source = [&]() -> std::optional<int> { return ++asked; };
  auto outcome = caller.request("idle").stop(stop.get_token()).input(source).future();
  read_.acquire();
  // What is sent after the items tells when all that had credit has gone out.
  EXPECT_EQ(caller.request<int>("sum_all").input(std::vector{1}).call(), 1);
  EXPECT_LE(asked.load(), 4) << "the first credit";
  stop.request_stop();
  EXPECT_THROW(outcome.get(), Error);
  gone_.acquire();
}

TEST_P(ProvidedInputs, of_a_stopped_call_end_their_handler) {
  Client caller{uri_, options()};
  std::stop_source stop;
  auto outcome = caller.request("drain").stop(stop.get_token()).input(std::views::iota(0)).future();
  read_.acquire();
  stop.request_stop();
  EXPECT_THROW(outcome.get(), Error);
  gone_.acquire();
}

TEST_P(ProvidedInputs, of_a_call_whose_time_is_over_end_their_handler) {
  Client caller{uri_, options()};
  const auto outcome = caller.request("idle").timeout(50ms).input(std::views::iota(0)).try_call();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), static_cast<int>(ErrorCode::timeout));
  gone_.acquire();
}

TEST_P(ProvidedInputs, of_a_caller_that_leaves_end_their_handler) {
  std::optional<Client> caller{std::in_place, uri_, options()};
  auto outcome = caller->request("drain").input(std::views::iota(0)).future();
  read_.acquire();
  caller.reset();
  EXPECT_THROW(outcome.get(), Error);
  gone_.acquire();
}

TEST_P(ProvidedInputs, end_with_their_provider) {
  Client caller{uri_, options()};
  auto outcome = caller.request("drain").input(std::views::iota(0)).future();
  read_.acquire();
  provider_.reset();
  try {
    outcome.get();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), static_cast<int>(ErrorCode::provider_lost));
  }
}

TEST_P(ProvidedInputs, stand_in_discover) {
  Client caller{uri_, options()};
  const std::string document = to_json(caller.call<Value>("rpc.discover"));
  EXPECT_NE(document.find(R"("x-input":{"schema":{"type":"string"}})"), std::string::npos) << document;
}

// ---- where there can be none ----

class InputsByOtherSchemes : public testing::TestWithParam<std::string_view> {};

INSTANTIATE_TEST_SUITE_P(Each, InputsByOtherSchemes, testing::Values("http", "udp"));

TEST_P(InputsByOtherSchemes, are_refused) {
  Broker broker;
  broker.method("sum_all", [](InputStream<int> in) -> Task<int> {
    int sum = 0;
    while (const std::optional<int> value = co_await in.next()) sum += *value;
    co_return sum;
  });
  const std::string tcp = broker.listen("tcp://127.0.0.1:0").uri();
  const std::string uri = GetParam() == "udp" ? broker.listen("udp://127.0.0.1:0").uri() : by(GetParam(), tcp);
  const RunningServer running{broker};
  Client client{uri};
  int asked = 0;
  const auto source = [&]() -> std::optional<int> { return ++asked; };
  const auto outcome = client.request<int>("sum_all").input(source).try_call();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), static_cast<int>(ErrorCode::invalid_request));
  EXPECT_EQ(outcome.error().data(), R"({"reason":"needs_connection"})");
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(client.call<int>("sum_all"), 0) << "without one";
  Client websocket{by("ws", tcp)};
  EXPECT_EQ(websocket.request<int>("sum_all").input(std::views::iota(0, 200)).call(), 19'900);
}

}  // namespace
}  // namespace wirecall::net
