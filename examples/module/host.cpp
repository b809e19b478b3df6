// Calls a module (math.c) in this process, as any client calls a server, and serves it to others:
//     host ./libmath.so
#include <cstdio>
#include <exception>
#include <thread>
#include <vector>

#include "wirecall/client.hpp"
#include "wirecall/module.hpp"
#include "wirecall/server.hpp"

int main(int count, char** words) try {
  if (count < 2) return std::fputs("usage: host ./MODULE.so\n", stderr), 2;
  wirecall::Module math{words[1]};
  const int four = math.call<int>("math.add", 2, 2);

  wirecall::Server server;
  wirecall::load_module(server, words[1]);
  const wirecall::Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::jthread serving{[&server] { server.run(wirecall::OnSignals::leave); }};
  wirecall::Client client{endpoint.uri()};
  const double six = client.try_call<double>("math.sum", std::vector{1.0, 2.0, 3.0}).value_or(0);
  server.stop();

  std::printf("math.add in this process: %d; math.sum by TCP: %g\n", four, six);
  return four == 4 && six == 6 ? 0 : 1;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
