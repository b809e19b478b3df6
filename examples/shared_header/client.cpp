// Calls what math.hpp declares, at the endpoint that is the argument, else tcp://127.0.0.1:8545. A call that does not
// fit the declaration does not compile.
#include <chrono>
#include <expected>
#include <iostream>

#include "math.hpp"
#include "wirecall/wirecall.hpp"

using namespace std::chrono_literals;

// Awaited, with a time of its own: the variables are written as the coroutine goes on.
wirecall::Task<bool> awaits(wirecall::Client& client) {
  int quotient = 0;
  int remainder = 0;
  co_await client.request<math::divide>(17, 5, quotient, remainder).timeout(10s);
  co_return quotient == 3 && remainder == 2;
}

int main(int argc, char** argv) {
  wirecall::Client client{argc > 1 ? argv[1] : "tcp://127.0.0.1:8545"};
  bool good = true;

  // "math.mean": the result is a double, since the function's is.
  const double mean = client.call<math::mean>(std::vector<double>{1, 2, 6});
  good = good && mean == 3;

  int quotient = 0;
  int remainder = 0;
  client.call<math::divide>(7, 2, quotient, remainder);
  std::cout << "mean " << mean << ", 7 / 2 = " << quotient << " remainder " << remainder << "\n";
  good = good && quotient == 3 && remainder == 1;

  std::vector<int> values{3, 1, 3, 2};
  good = good && client.call<math::sort>(values) == 3 && values == std::vector{1, 2, 3, 3};
  good = good && client.call<&Counter::add>(5) == 5;

  // An error leaves the variables as they were.
  const std::expected<void, wirecall::Error> divided = client.try_call<math::divide>(7, 0, quotient, remainder);
  std::cout << divided.error().what() << "\n";
  good = good && !divided && quotient == 3;

  // Several in one message.
  const auto [sum, halved] = client.batch().call<&Counter::add>(1).call<math::divide>(9, 2, quotient, remainder).send();
  good = good && sum.value() == 6 && halved && quotient == 4 && remainder == 1;

  // Without the header: by the name; std::ref(x) is sent and comes back, Out{x} only comes back.
  client.call("math.divide", 5, 3, wirecall::Out{quotient}, wirecall::Out{remainder});
  good = good && quotient == 1 && remainder == 2;

  good = good && client.run(awaits(client));
  return good ? 0 : 1;
}
