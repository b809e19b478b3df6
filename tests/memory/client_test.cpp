// A client whose memory fails at the N-th request, for every N until none is made any more: once, or until the calls
// have ended. Each of them has its result, or an error that says so, or throws std::bad_alloc; no process ends, no call
// is answered twice or left to wait beyond its time, and the next one is served as ever. That nothing leaks and nothing
// is used that has gone, AddressSanitizer sees.
#include "wirecall/client.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <expected>
#include <future>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "client/core.hpp"
#include "runtime/inbox.hpp"
#include "tests/client/access.hpp"
#include "tests/connection/peer.hpp"
#include "tests/memory/failing_memory.hpp"
#include "tests/memory/spared_server.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "tests/runtime/wrapped_backend.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using memory::Failing;
using memory::FailingMemory;
using memory::Spared;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

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

// Or else it is this error.
void expect_sensible(const Result& result, int code) {
  const Spared spared;
  ASSERT_FALSE(result.has_value());
  if (result.error().code() != code) expect_sensible(result);
}

// Callbacks, and how often each has been called.
class Told {
 public:
  auto callback(std::size_t which) {
    return [this, which](const Result& result) {
      ++times_[which];
      if (result || result.error().code() != -32800) expect_sensible(result);
    };
  }
  /// The call has been made.
  void owe(std::size_t which) { owed_[which] = 1; }
  void expect_each_once() const { EXPECT_EQ(times_, owed_); }

 private:
  std::array<int, 16> times_{};
  std::array<int, 16> owed_{};
};

// What the calls of one run are made with, and have come to.
struct Scene {
  // The call which of those that are told of.
  CallHandle begin(std::size_t which, const char* method) {
    CallHandle handle = client->request<int>(method).timeout(call_timeout).then(told.callback(which));
    told.owe(which);
    return handle;
  }

  std::optional<Client> client;
  const SparedServer* server;
  milliseconds call_timeout;
  Told told;
  bool provides = false;
};

void calls_that_block(Scene& scene) {
  Client& client = *scene.client;
  expect_sensible(client.try_call<int>("a", 1, std::string(300, 'x')));
  expect_sensible(client.request<int>("b").timeout(milliseconds{50}).try_call());
  expect_sensible(client.try_call<int>("refused"), 7);
}

void a_batch_and_a_notification(Scene& scene) {
  const auto [first, second] = scene.client->batch().call<int>("a").notify("n", 1).call<int>("b", 2).send();
  expect_sensible(first);
  expect_sensible(second);
  scene.client->notify("n", 1);
}

void a_stream(Scene& scene) {
  int items = 0;
  for (const int item : scene.client->stream<int>("s")) {
    EXPECT_EQ(item, 19);
    ++items;
  }
  EXPECT_EQ(items, 2);
}

// Who has no memory for the next item, or to ask for more of them, goes on with the one behind.
void a_stream_with_credit(Scene& scene) {
  ResultStream<int> stream = scene.client->stream<int>("many");
  int items = 0;
  int failed = 0;
  for (;;) {
    try {
      const std::optional<int> item = stream.next();
      if (!item) break;
      EXPECT_EQ(item, 19);
      ++items;
    } catch (const std::bad_alloc&) {
      ++failed;
      scene.server->process_received();
    }
  }
  EXPECT_LE(items, 100);
  EXPECT_GE(items + failed, 100);
}

void a_stream_that_is_dropped(Scene& scene) {
  for (const int item : scene.client->stream<int>("s")) {
    EXPECT_EQ(item, 19);
    break;
  }
}

void tasks(Scene& scene) {
  const auto call = [](Client& of) -> Task<int> { co_return co_await of.request<int>("a"); };
  const auto all = [&]() -> Task<int> {
    const auto [x, y] = co_await when_all(call(*scene.client), call(*scene.client));
    co_return x + y;
  };
  EXPECT_EQ(scene.client->run(all()), 38);
}

void errors_that_name_no_call(Scene& scene) {
  Client& client = *scene.client;
  expect_sensible(client.try_call<int>("anonymous"), 7);
  const auto [first, second] = client.batch().call<int>("anonymous").call<int>("b").send();
  expect_sensible(first, 7);
  expect_sensible(second, 7);
}

void calls_that_are_not_answered(Scene& scene) {
  const auto begun = scene.server->now();
  for (int i = 0; i < 2; ++i) {
    expect_sensible(scene.client->request<int>("silent").timeout(milliseconds{20}).try_call(), -32002);
  }
  EXPECT_LE(scene.server->now() - begun, milliseconds{45});
}

void pause(Client& client, milliseconds time) {
  const auto wait = [](Client& of, milliseconds how_long) -> Task<void> {
    co_await sleep_for(of.scheduler(), how_long);
  };
  client.run(wait(client, time));
}

// In flight when `last` is called: one that is answered, one that is not, one that is given up.
void calls_in_flight(Scene& scene, const char* last) {
  scene.begin(0, "a");
  scene.begin(1, "silent");
  const CallHandle given_up = scene.begin(2, "silent");
  try {
    pause(*scene.client, milliseconds{5});
  } catch (const std::bad_alloc&) {
  }
  static_cast<void>(given_up.cancel());
  scene.begin(3, last);
  scene.begin(4, "silent");
  pause(*scene.client, milliseconds{50});
}

void calls_that_are_given_up(Scene& scene) { calls_in_flight(scene, "b"); }
void calls_whose_connection_is_lost(Scene& scene) { calls_in_flight(scene, "gone"); }

// To say so takes more room than to make a few of the calls.
void calls_that_are_given_up_together(Scene& scene) {
  std::array<CallHandle, 12> handles;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    handles[i] = scene.begin(i, "silent");
    if (i % 4 == 3) pause(*scene.client, milliseconds{1});
  }
  for (const CallHandle& handle : handles) static_cast<void>(handle.cancel());
  pause(*scene.client, milliseconds{5});
}

// Some end where the room in the output does, and their lengths have a digit more than the one before.
void notifications_of_many_lengths(Scene& scene) {
  for (std::size_t length = 730; length < 750; ++length) {
    try {
      scene.client->notify("n");
      scene.client->notify("n", std::string(length, 'x'));
    } catch (const std::bad_alloc&) {
    } catch (const Error& error) {
      expect_sensible(std::unexpected{error});
    }
  }
}

void a_client_that_goes(Scene& scene) {
  try {
    calls_in_flight(scene, "silent");
  } catch (const std::bad_alloc&) {
  }
  scene.client.reset();
}

// What is provided and subscribed to is said again, on another connection if need be.
void what_a_broker_is_told(Scene& scene) {
  Client& client = *scene.client;
  client.provide("mine", [](int n) { return n; }, {.summary = "long enough to need memory", .params = {"n"}});
  scene.provides = true;
  Subscription news =
      client.subscribe("news.*", [](const Event& event) { EXPECT_EQ(event.as<int>(), 19) << event.topic; });
  try {
    client.connect();
  } catch (const std::bad_alloc&) {
  }
  expect_sensible(client.try_call<int>("event"));
  news.unsubscribe();
  expect_sensible(client.try_call<int>("a"));
}

// As a handler of a server does: its executor is another loop than the client's.
void a_task_from_elsewhere(Scene& scene) {
  std::optional<Loop> handler_loop;
  TaskScope handlers;
  int ended = 0;
  const auto handle = [](Client& of) -> Task<void> {
    expect_sensible(co_await of.request<int>("a"));
    const auto [first, second] = co_await of.batch().call<int>("a").call<int>("b");
    expect_sensible(first);
    expect_sensible(second);
    Stream<int> items = of.stream<int>("s").awaited();
    while (const std::optional<int> item = co_await items.next()) expect_sensible(*item);
  };
  {
    const Spared spared;
    handler_loop.emplace(std::make_unique<runtime::SimulatedBackend>(3U));
    handlers.set_executor(handler_loop->inbox());
  }
  handlers.start(handle(*scene.client), {}, [&](const TaskResult<void>&) { ++ended; });
  for (int i = 0; i < 1000 && ended == 0; ++i) {
    try {
      pause(*scene.client, milliseconds{1});
    } catch (const std::bad_alloc&) {
      scene.server->process_received();
    }
    const Spared spared;
    handler_loop->turn(nanoseconds{0});
  }
  EXPECT_EQ(ended, 1);
}

struct Way {
  const char* name;
  void (*calls)(Scene&);
  const char* endpoint = "tcp://place:1";
};
// Where the head of a request is longer than a buffer is at first.
const std::string kFarEndpoint = "http://place/" + std::string(400, 'x');

// Whether the memory still failed.
bool call(const Way& way, std::size_t number, Failing failing) {
  const bool http = std::string_view{way.endpoint}.starts_with("http");
  auto owned = std::make_unique<SparedServer>(http);
  SparedServer& server = *owned;
  ClientOptions options;
  options.client_id = "a client with a name";
  options.call_timeout_ms = 500;
  Scene scene{.client = detail::ClientAccess::client(std::make_shared<ClientCore>(
                  std::vector{Endpoint{way.endpoint}}, options,
                  ClientSeams{.backend = std::move(owned),
                              .dial = [&server](const Endpoint&, milliseconds) { return server.dial(); },
                              .seed = 1,
                              .one_thread = true})),
              .server = &server,
              // By HTTP, what is not answered makes others wait; else it is its connection's end that ends it.
              .call_timeout = milliseconds{http ? 100 : 60'000},
              .told = {},
              .provides = false};
  {
    FailingMemory memory{number, failing};
    server.failing = &memory;
    try {
      way.calls(scene);
    } catch (const std::bad_alloc&) {
    } catch (const Error& error) {
      expect_sensible(std::unexpected{error});
    }
    if (scene.client) server.failing = nullptr;
  }
  const bool failed = FailingMemory::has_failed();
  if (scene.client) {
    // The connection may be one that is about to end.
    static_cast<void>(scene.client->try_call<int>("gone"));
    Result next = scene.client->try_call<int>("next");
    if (!next) next = scene.client->try_call<int>("next");
    EXPECT_EQ(next, 19);
    pause(*scene.client, milliseconds{150});
    EXPECT_TRUE(!scene.provides || server.registered);
  }
  scene.told.expect_each_once();
  return failed;
}

class ClientMemoryWays : public testing::TestWithParam<std::tuple<Way, Failing>> {};

TEST_P(ClientMemoryWays, failing_anywhere_ends_calls_and_not_their_client) {
  const auto [way, failing] = GetParam();
  std::size_t number = 1;
  while (call(way, number, failing) && !HasFailure()) ++number;
  ASSERT_FALSE(HasFailure()) << way.name << ": the request for memory that failed was number " << number;
  EXPECT_GT(number, 10U) << "the memory that is asked for has to pass through the test";
}

const Way kWays[] = {
    {"calls that block", &calls_that_block},
    {"a batch and a notification", &a_batch_and_a_notification},
    {"a stream", &a_stream},
    {"a stream with credit", &a_stream_with_credit},
    {"a dropped stream", &a_stream_that_is_dropped},
    {"tasks", &tasks},
    {"errors that name no call", &errors_that_name_no_call},
    {"calls that are not answered", &calls_that_are_not_answered},
    {"calls that are given up", &calls_that_are_given_up},
    {"calls whose connection is lost", &calls_whose_connection_is_lost},
    {"calls that are given up together", &calls_that_are_given_up_together},
    {"a client that goes", &a_client_that_goes},
    {"what a broker is told", &what_a_broker_is_told},
    {"a task from elsewhere", &a_task_from_elsewhere},
    {"calls that block, by HTTP", &calls_that_block, "http://place/"},
    {"a batch and a notification, by HTTP", &a_batch_and_a_notification, "http://place/"},
    {"errors that name no call, by HTTP", &errors_that_name_no_call, "http://place/"},
    {"calls that are not answered, by HTTP", &calls_that_are_not_answered, "http://place/"},
    {"calls that are given up, by HTTP", &calls_that_are_given_up, "http://place/"},
    {"calls whose connection is lost, by HTTP", &calls_whose_connection_is_lost, "http://place/"},
    {"notifications of many lengths, by HTTP", &notifications_of_many_lengths, "http://place/"},
    {"calls that block, by HTTP, far away", &calls_that_block, kFarEndpoint.c_str()},
};

// On threads of its own, as a client is: it is the caller's memory that fails.
TEST(ClientMemory, a_callback_is_called_once_or_whoever_gave_it_is_told_that_it_will_not_be) {
  Server served;
  served.method("a", [] { return 19; });
  const std::string uri = served.listen("tcp://127.0.0.1:0").uri();
  const RunningServer running{served};
  bool failed = true;
  for (std::size_t number = 1; failed && !HasFailure(); ++number) {
    std::promise<Result> answer;
    std::future<Result> answered = answer.get_future();
    Client client{uri};
    bool made = false;
    {
      const FailingMemory memory{number, Failing::once};
      try {
        client.request<int>("a").then([&answer](const Result& result) { answer.set_value(result); });
        made = true;
      } catch (const std::bad_alloc&) {
      }
    }
    failed = FailingMemory::has_failed();
    EXPECT_EQ(client.try_call<int>("a"), 19);
    if (made) {
      ASSERT_EQ(answered.wait_for(std::chrono::minutes{5}), std::future_status::ready);
      EXPECT_EQ(answered.get(), 19);
    } else {
      EXPECT_EQ(answered.wait_for(nanoseconds{0}), std::future_status::timeout);
    }
  }
}

TEST(ClientMemory, a_batch_that_could_not_be_sent_keeps_nothing_and_may_be_sent_again) {
  Server served;
  served.method("a", [] { return 19; });
  const std::string uri = served.listen("tcp://127.0.0.1:0").uri();
  const RunningServer running{served};
  for (const bool again : {false, true}) {
    bool failed = true;
    for (std::size_t number = 1; failed && !HasFailure(); ++number) {
      Client client{uri};
      std::optional<BatchOf<int>> batch{client.batch_of<int>()};
      for (int i = 0; i < 3; ++i) batch->call("a");
      std::promise<std::vector<Result>> answer;
      std::future<std::vector<Result>> answered = answer.get_future();
      auto kept = std::make_shared<int>();
      const std::weak_ptr<int> still_kept = kept;
      bool made = false;
      {
        const FailingMemory memory{number, Failing::once};
        try {
          std::move(*batch).then(
              [&answer, kept = std::move(kept)](std::vector<Result> results) { answer.set_value(std::move(results)); });
          made = true;
        } catch (const std::bad_alloc&) {
        }
      }
      failed = FailingMemory::has_failed();
      if (!made && again) {
        std::move(*batch).then([&](std::vector<Result> results) { answer.set_value(std::move(results)); });
        made = true;
      }
      batch.reset();
      if (!made) {
        kept.reset();
        EXPECT_TRUE(still_kept.expired()) << number;
        EXPECT_EQ(client.try_call<int>("a"), 19);
        continue;
      }
      ASSERT_EQ(answered.wait_for(std::chrono::minutes{5}), std::future_status::ready);
      const std::vector<Result> results = answered.get();
      ASSERT_EQ(results.size(), 3U);
      for (const Result& result : results) EXPECT_EQ(result, 19);
    }
  }
}

// What is left of a call that could not be begun gives up no call that others have begun since, in the same place.
TEST(ClientMemory, who_could_not_begin_to_wait_for_a_call_gives_up_none) {
  Server served;
  Gate gate;
  served.method("a", blocking([&] {
                  gate.wait();
                  return 19;
                }));
  const std::string uri = served.listen("tcp://127.0.0.1:0").uri();
  const RunningServer running{served};
  const auto wait = [](Client& of, std::stop_source& stop, std::future<int>& other) -> Task<void> {
    auto awaiter = of.request<int>("a").operator co_await();
    try {
      co_await awaiter;
    } catch (const std::bad_alloc&) {
      const Spared spared;
      other = of.request<int>("a").future();
      stop.request_stop();
    }
  };
  bool failed = true;
  int refused = 0;
  for (std::size_t number = 1; failed && !HasFailure(); ++number) {
    gate.close();
    Client client{uri};
    std::stop_source stop;
    std::future<int> other;
    std::promise<void> ended;
    std::future<void> has_ended = ended.get_future();
    bool begun = false;
    {
      FailingMemory memory{number, Failing::once};
      try {
        start(wait(client, stop, other), stop.get_token(), [&](const TaskResult<void>&) { ended.set_value(); });
        begun = true;
      } catch (const std::bad_alloc&) {
      }
      memory.end();
    }
    failed = FailingMemory::has_failed();
    gate.open();
    if (begun) has_ended.wait();
    if (!other.valid()) continue;
    ++refused;
    EXPECT_EQ(other.get(), 19);
  }
  EXPECT_GT(refused, 0);
}

TEST(ClientMemory, an_attempt_to_connect_that_cannot_say_why_it_failed_has_failed) {
  const Endpoint endpoint{"tcp://place:1"};
  const DialFunction refuse = [](const Endpoint&, milliseconds) -> transport::PendingConnection {
    throw std::runtime_error("a reason that is long enough to need memory");
  };
  for (std::size_t number = 1; number < 10; ++number) {
    const FailingMemory memory{number, Failing::since};
    const Dialer::Result result = Dialer::attempt(refuse, endpoint, milliseconds{1});
    const Spared spared;
    EXPECT_FALSE(result.connection);
    EXPECT_NE(result.failure, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Each, ClientMemoryWays,
                         testing::Combine(testing::ValuesIn(kWays), testing::Values(Failing::once, Failing::since)));

}  // namespace
}  // namespace wirecall::net
