// Results that a client takes as they come: blocking, in a coroutine, and only some of them.
#include <iostream>
#include <optional>
#include <thread>

#include "wirecall/wirecall.hpp"

wirecall::Stream<int> count(int n) {
  for (int i = 0; i < n; ++i) co_yield i;
}

wirecall::Task<int> sum(wirecall::Client& client) {
  int total = 0;
  wirecall::Stream<int> items = client.stream<int>("count", 5).awaited();
  while (const std::optional<int> item = co_await items.next()) total += *item;
  co_return total;
}

int main() {
  wirecall::Server server;
  server.method("count", count);
  const wirecall::Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::jthread loop{[&] { server.run(); }};

  wirecall::Client client{endpoint.uri()};
  int blocking = 0;
  for (const int item : client.stream<int>("count", 5)) blocking += item;
  const int awaited = client.run(sum(client));

  // Whoever stops taking items, or drops the stream, stops the server.
  wirecall::ResultStream<int> many = client.stream<int>("count", 1000);
  const std::optional<int> first = many.next();

  std::cout << blocking << " " << awaited << " " << first.value_or(-1) << "\n";
  server.stop();
  return blocking == 10 && awaited == 10 && first == 0 ? 0 : 1;
}
