// Handlers that wait without blocking: coroutines that return Task. All of them run on the server's one thread; while
// one waits, others are served.
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <tuple>

#include "wirecall/wirecall.hpp"

namespace {

using namespace std::chrono_literals;
using wirecall::Context;
using wirecall::Task;

// Stands for anything that takes its time: a database, another server.
Task<int> price_of(Context context, std::string item) {
  co_await wirecall::sleep_for(context, 20ms);
  co_return static_cast<int>(item.size()) * 10;
}

// Tasks nest. These two wait side by side, so this takes 20 ms, not 40.
Task<int> price_of_both(Context context, std::string first, std::string second) {
  const auto [one, other] = co_await wirecall::when_all(price_of(context, first), price_of(context, second));
  co_return one + other;
}

// Whatever is first wins, and the other is cancelled.
Task<std::string> price_within(Context context, std::string item, int ms) {
  const auto first =
      co_await wirecall::when_any(price_of(context, item), wirecall::sleep_for(context, std::chrono::milliseconds{ms}));
  if (first.index == 1) throw wirecall::Error{-40, "no price in time"};
  co_return std::to_string(std::get<0>(first.value));
}

}  // namespace

int main() {
  wirecall::Server server;
  server.method("price_of", price_of, {"item"});
  server.method("price_of_both", price_of_both, {"first", "second"});
  server.method("price_within", price_within, {"item", "ms"});
  const wirecall::Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::jthread loop{[&] { server.run(); }};

  wirecall::Client client{endpoint.uri()};
  const int both = client.call<int>("price_of_both", "tea", "coffee");
  const auto late = client.try_call<std::string>("price_within", "tea", 1);
  std::cout << "both: " << both << ", within 1 ms: " << (late ? *late : late.error().message()) << "\n";
  server.stop();
  return both == 90 && !late && late.error().code() == -40 ? 0 : 1;
}
