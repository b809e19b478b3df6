// Provides `add` to the other clients of the broker at the endpoint that is the argument, else tcp://127.0.0.1:8080,
// and notifies whoever subscribes to `sums` of each result. Ends with its standard input, as by Ctrl-D.
#include <iostream>
#include <limits>

#include "wirecall/wirecall.hpp"

int main(int argc, char** argv) try {
  wirecall::Client client{argc > 1 ? argv[1] : "tcp://127.0.0.1:8080", R"({"client_id": "client1"})"};
  const auto add = [&client](int a, int b) {
    client.notify("sums", a + b);
    return a + b;
  };
  client.provide("add", add, {.params = {"a", "b"}});
  client.connect();  // throws if the broker refuses the name or the method
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
} catch (const wirecall::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
