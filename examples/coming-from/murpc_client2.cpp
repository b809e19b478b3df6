// Calls `add`, which another client of the broker provides, with a callback and waiting for the result, and hears of
// each sum by a subscription. The endpoint is the argument, else tcp://127.0.0.1:8080.
#include <chrono>
#include <expected>
#include <future>
#include <iostream>
#include <vector>

#include "wirecall/wirecall.hpp"

using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  // Calls wait up to 10 s for a client that provides their method.
  wirecall::Client client{argc > 1 ? argv[1] : "tcp://127.0.0.1:8080",
                          R"({"client_id": "client2", "call_timeout_ms": 30000, "wait_ms": 10000})"};

  // The functions that are given to a client run on one thread of its own.
  std::vector<int> heard;
  std::promise<void> heard_both;
  const wirecall::Subscription sums = client.subscribe("sums", [&](const wirecall::Event& event) {
    heard.push_back(event.as<int>());
    if (heard.size() == 2) heard_both.set_value();
  });
  client.connect();  // the broker has the subscription from here on

  std::promise<int> called_back;
  client.request<int>("add", 5, 3).then([&](const std::expected<int, wirecall::Error>& result) {
    called_back.set_value(result.value_or(0));
  });
  const int from_callback = called_back.get_future().get();  // or do something else meanwhile
  const int waited_for = client.call<int>("add", 40, 2);
  std::cout << "5 + 3 = " << from_callback << ", 40 + 2 = " << waited_for << "\n";

  // Parameters are checked before `add` sees them.
  const auto refused = client.try_call<int>("add", "five", 3);
  std::cout << refused.error().what() << " " << refused.error().data() << "\n";

  if (heard_both.get_future().wait_for(10s) != std::future_status::ready) return std::cerr << "no event\n", 1;
  std::cout << "heard of " << heard[0] << " and " << heard[1] << "\n";

  // What the broker has counted.
  struct Stats {
    struct {
      int calls;
    } counters;
  };
  const bool counted = client.call<Stats>("rpc.stats").counters.calls >= 3;
  return from_callback == 8 && waited_for == 42 && refused.error().code() == -32602 && heard == std::vector{8, 42} &&
                 counted
             ? 0
             : 1;
} catch (const wirecall::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
