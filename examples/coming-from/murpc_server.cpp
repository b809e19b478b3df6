// A broker that is made from a configuration in JSON: that of the file which is the argument, else the one below.
// Prints its endpoint. It has no methods of its own: murpc_client1.cpp brings one.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "wirecall/wirecall.hpp"

int main(int argc, char** argv) try {
  std::string config = R"({
    "port": 8080,
    "thread_count": 4,
    "keepalive_timeout_ms": 5000,
    "registration_timeout_ms": 10000,
    "max_message_size": 4096
  })";
  if (argc > 1) {
    std::ifstream file{argv[1]};
    if (!file) return std::fprintf(stderr, "%s cannot be read\n", argv[1]), 2;
    config.assign(std::istreambuf_iterator{file}, {});
  }
  wirecall::Broker broker{config};
  for (const wirecall::Endpoint& endpoint : broker.listen()) std::cout << endpoint.uri() << std::endl;
  broker.run();  // Ctrl-C finishes what was begun, and returns
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());  // an option that is unknown or out of range, a port that is taken
  return 2;
}
