// Streams towards a handler: the client sends items beside the params, as the handler takes them, and may receive a
// stream meanwhile.
#include <iostream>
#include <optional>
#include <ranges>
#include <thread>

#include "wirecall/wirecall.hpp"

wirecall::Task<long> sum_all(wirecall::InputStream<int> numbers) {
  long sum = 0;
  while (const std::optional<int> number = co_await numbers.next()) sum += *number;
  co_return sum;
}

// Both directions at once.
wirecall::Stream<long> running_sum(wirecall::InputStream<int> numbers) {
  long sum = 0;
  while (const std::optional<int> number = co_await numbers.next()) co_yield sum += *number;
}

// Takes what it needs, and leaves the rest where it is.
wirecall::Task<int> first_even(wirecall::InputStream<int> numbers) {
  while (const std::optional<int> number = co_await numbers.next()) {
    if (*number % 2 == 0) co_return *number;
  }
  throw wirecall::Error{-1, "none of them is even"};
}

int main() {
  wirecall::Server server;
  server.method("sum_all", sum_all);
  server.method("running_sum", running_sum);
  server.method("first_even", first_even);
  const wirecall::Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::jthread loop{[&] { server.run(); }};

  wirecall::Client client{endpoint.uri()};
  const long sum = client.request<long>("sum_all").input(std::views::iota(1, 10'001)).call();
  long last = 0;
  for (const long so_far : client.stream<long>("running_sum").input(std::views::iota(1, 101))) last = so_far;
  const int even = client.request<int>("first_even").input(std::views::iota(7)).call();  // of a range without end

  std::cout << sum << " " << last << " " << even << "\n";
  server.stop();
  return sum == 50'005'000 && last == 5050 && even == 8 ? 0 : 1;
}
