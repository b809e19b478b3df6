// A first server. Call it with `wirecall call subtract 42 23`, or with any JSON-RPC client on port 8545.
#include <iostream>

#include "wirecall/wirecall.hpp"

int subtract(int minuend, int subtrahend) { return minuend - subtrahend; }

int main(int argc, char** argv) {
  wirecall::Server server;
  server.method("subtract", subtract, {"minuend", "subtrahend"});
  const wirecall::Endpoint endpoint = server.listen(argc > 1 ? argv[1] : "tcp://127.0.0.1:8545");
  std::cout << endpoint.uri() << std::endl;
  server.run();  // Ctrl-C finishes what was begun, and returns
}
