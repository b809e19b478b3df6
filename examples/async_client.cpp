// One client, four ways to make a call, and several calls in one message. The server is in the same program here, on a
// port that the system chooses.
#include <chrono>
#include <expected>
#include <future>
#include <iostream>
#include <string>
#include <thread>

#include "wirecall/wirecall.hpp"

using namespace std::chrono_literals;

wirecall::Task<int> sum_of_two(wirecall::Client& client) {
  // Both are on their way at once; run() below waits for both on its own thread.
  const auto [a, b] = co_await wirecall::when_all(
      [](wirecall::Client& c) -> wirecall::Task<int> { co_return co_await c.request<int>("subtract", 42, 23); }(client),
      [](wirecall::Client& c) -> wirecall::Task<int> { co_return co_await c.request<int>("subtract", 5, 3); }(client));
  co_return a + b;
}

int main() {
  wirecall::Server server;
  server.method("subtract", [](int minuend, int subtrahend) { return minuend - subtrahend; });
  server.method("name", [] { return std::string{"example"}; });
  server.method("sleep", [](wirecall::Context context, int ms) -> wirecall::Task<int> {
    co_await wirecall::sleep_for(context, std::chrono::milliseconds{ms});
    co_return ms;
  });
  const wirecall::Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::jthread loop{[&] { server.run(); }};

  wirecall::Client client{endpoint.uri()};
  const int blocking = client.call<int>("subtract", 42, 23);

  std::promise<int> called_back;
  static_cast<void>(client.request<int>("subtract", 42, 23).then([&](std::expected<int, wirecall::Error> result) {
    called_back.set_value(result.value_or(0));
  }));
  std::future<int> future = client.request<int>("subtract", 42, 23).future();
  const int awaited = client.run(sum_of_two(client));

  // A call that takes too long is given up, and the connection goes on.
  const auto late = client.request<int>("sleep", 10'000).timeout(50ms).try_call();

  // A batch: one message, results in their order.
  const auto [difference, name] = client.batch().call<int>("subtract", 42, 23).call<std::string>("name").send();

  const int callback = called_back.get_future().get();
  const int from_future = future.get();
  std::cout << blocking << " " << callback << " " << from_future << " " << awaited << "; " << late.error().message()
            << "; " << *difference << " " << *name << "\n";
  server.stop();
  return blocking == 19 && callback == 19 && from_future == 19 && awaited == 21 && !late && *name == "example" ? 0 : 1;
}
