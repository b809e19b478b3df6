// A client whose memory fails at the N-th request, for every N until none is made any more: once, or until the calls
// have ended. Each of them has its result, or an error that says so, or throws std::bad_alloc; no process ends, no call
// is answered twice or left to wait beyond its time, and the next one is served as ever. That nothing leaks and nothing
// is used that has gone, AddressSanitizer sees.
#include "wirecall/client.hpp"

#include <cstddef>
#include <expected>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "session/client_core.hpp"
#include "tests/memory/failing_memory.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "tests/runtime/wrapped_backend.hpp"
#include "tests/session/client_access.hpp"
#include "wirecall/task.hpp"

namespace wirecall::session {
namespace {

using memory::Failing;
using memory::FailingMemory;
using memory::Spared;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A system with a server in it, both not of the memory that fails.
class SparedServer final : public runtime::WrappedBackend {
 public:
  SparedServer() : WrappedBackend(simulated) {}
  std::span<runtime::Completion> turn(std::span<runtime::Operation> submitted, nanoseconds until) override {
    const Spared spared;
    look();
    if (peer != nullptr) serve();
    return simulated.turn(submitted, std::min<nanoseconds>(until, simulated.now() + milliseconds{1}));
  }
  [[nodiscard]] nanoseconds now() const noexcept override {
    look();
    return simulated.now();
  }

  int dial() {
    const Spared spared;
    look();
    auto [descriptor, end] = simulated.pair();
    peer = end;
    received.clear();
    return descriptor;
  }

  FailingMemory* memory = nullptr;

 private:
  // Who goes on until there is memory again waits no longer than this.
  void look() const {
    if (memory != nullptr && ++looks == 200) memory->end();
  }
  // Answers each request with 19, but for the method "refused"; a stream with two items.
  void serve() {
    received += peer->take();
    for (std::size_t end; (end = received.find('\n')) != std::string::npos; received.erase(0, end + 1)) {
      const json message = json::parse(received.substr(0, end));
      if (!message.is_array()) {
        answer(message);
        continue;
      }
      for (const json& element : message) answer(element);
    }
  }
  void answer(const json& request) {
    if (!request.contains("id") || !request.contains("method")) return;
    json reply{{"jsonrpc", "2.0"}, {"id", request["id"]}};
    if (request["method"] == "refused") {
      reply["error"] = {{"code", 7}, {"message", "a message that is long enough to need memory"}};
    } else if (request.contains("stream")) {
      for (int seq = 0; seq < 2; ++seq) {
        const json item{{"jsonrpc", "2.0"},
                        {"method", "rpc.item"},
                        {"params", {{"id", request["id"]}, {"seq", seq}, {"value", 19}}}};
        peer->send(item.dump() + "\n");
      }
      reply["result"] = nullptr;
    } else {
      reply["result"] = 19;
    }
    peer->send(reply.dump() + "\n");
  }

  runtime::SimulatedBackend simulated{7};
  std::shared_ptr<runtime::SimulatedPeer> peer;
  std::string received;
  mutable int looks = 0;
};

using Result = std::expected<int, Error>;

// What a call may come to where memory fails.
void expect_sensible(const Result& result) {
  const Spared spared;
  if (result) {
    EXPECT_EQ(*result, 19);
    return;
  }
  const int code = result.error().code();
  EXPECT_TRUE(code == -32603 || code == -32001 || code == -32002) << code << " " << result.error().message();
}

void calls_that_block(Client& client) {
  expect_sensible(client.try_call<int>("a", 1, std::string(300, 'x')));
  expect_sensible(client.request<int>("b").timeout(milliseconds{50}).try_call());
  const Result refused = client.try_call<int>("refused");
  const Spared spared;
  ASSERT_FALSE(refused.has_value());
  if (refused.error().code() != 7) expect_sensible(refused);
}

void a_batch_and_a_notification(Client& client) {
  const auto [first, second] = client.batch().call<int>("a").notify("n", 1).call<int>("b", 2).send();
  expect_sensible(first);
  expect_sensible(second);
  client.notify("n", 1);
}

void a_stream(Client& client) {
  int items = 0;
  for (const int item : client.stream<int>("s")) {
    EXPECT_EQ(item, 19);
    ++items;
  }
  EXPECT_EQ(items, 2);
}

void a_stream_that_is_dropped(Client& client) {
  for (const int item : client.stream<int>("s")) {
    EXPECT_EQ(item, 19);
    break;
  }
}

void tasks(Client& client) {
  const auto call = [](Client& of) -> Task<int> { co_return co_await of.request<int>("a"); };
  const auto all = [&]() -> Task<int> {
    const auto [x, y] = co_await when_all(call(client), call(client));
    co_return x + y;
  };
  EXPECT_EQ(client.run(all()), 38);
}

// Whether the memory still failed.
bool call(const std::function<void(Client&)>& calls, std::size_t number, Failing failing) {
  auto owned = std::make_unique<SparedServer>();
  SparedServer& server = *owned;
  ClientOptions options;
  options.client_id = "a client with a name";
  options.call_timeout_ms = 500;
  Client client = detail::ClientAccess::client(std::make_shared<ClientCore>(
      std::vector{Endpoint{"tcp://place:1"}}, options,
      ClientSeams{.backend = std::move(owned),
                  .dial = [&server](const Endpoint&, milliseconds) { return server.dial(); },
                  .seed = 1,
                  .one_thread = true}));
  {
    FailingMemory memory{number, failing};
    server.memory = &memory;
    try {
      calls(client);
    } catch (const std::bad_alloc&) {
    } catch (const Error& error) {
      expect_sensible(std::unexpected{error});
    }
    server.memory = nullptr;
  }
  const bool failed = FailingMemory::has_failed();
  // The connection may be one that is about to end.
  Result next = client.try_call<int>("next");
  if (!next) next = client.try_call<int>("next");
  EXPECT_EQ(next, 19);
  return failed;
}

struct Way {
  const char* name;
  void (*calls)(Client&);
};
class ClientMemory : public testing::TestWithParam<std::tuple<Way, Failing>> {};

TEST_P(ClientMemory, failing_anywhere_ends_calls_and_not_their_client) {
  const auto [way, failing] = GetParam();
  std::size_t number = 1;
  while (call(way.calls, number, failing) && !HasFailure()) ++number;
  ASSERT_FALSE(HasFailure()) << way.name << ": the request for memory that failed was number " << number;
  EXPECT_GT(number, 10U) << "the memory that is asked for has to pass through the test";
}

INSTANTIATE_TEST_SUITE_P(
    Ways, ClientMemory,
    testing::Combine(testing::Values(Way{"calls that block", &calls_that_block},
                                     Way{"a batch and a notification", &a_batch_and_a_notification},
                                     Way{"a stream", &a_stream}, Way{"a dropped stream", &a_stream_that_is_dropped},
                                     Way{"tasks", &tasks}),
                     testing::Values(Failing::once, Failing::since)));

}  // namespace
}  // namespace wirecall::session
