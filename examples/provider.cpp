// A client that provides a method to others through a broker, and one that calls it. Broker, provider and caller are
// programs of their own as a rule; here they are one, so that it is complete in itself.
#include <cstdio>
#include <string>
#include <thread>

#include "wirecall/wirecall.hpp"

int main() {
  wirecall::Broker broker;
  const std::string endpoint = broker.listen("tcp://127.0.0.1:0").uri();
  std::thread serving{[&] { broker.run(); }};

  int sum = 0;
  {
    // One call at a time comes here, and up to 100 more wait at the broker.
    wirecall::ClientOptions options;
    options.client_id = "adder";
    wirecall::Client provider{endpoint, options};
    provider.provide("gpu.add", [](int a, int b) { return a + b; },
                     {.concurrency = 1, .queue = 100, .params = {"a", "b"}});
    provider.connect();  // throws if the broker refuses it

    wirecall::Client caller{endpoint};
    sum = caller.call<int>("gpu.add", 42, 23);
    std::printf("42 + 23 = %d\n", sum);
  }
  broker.stop();
  serving.join();
  return sum == 65 ? 0 : 1;
}
