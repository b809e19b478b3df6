// A program that links wirecall::wirecall: a server and a client in one process, on a port that the system chooses.
#include <thread>
#include <wirecall/wirecall.hpp>

int main() {
  wirecall::Server server;
  server.method("subtract", [](int minuend, int subtrahend) { return minuend - subtrahend; },
                {"minuend", "subtrahend"});
  const wirecall::Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::jthread loop{[&] { server.run(); }};
  wirecall::Client client{endpoint.uri()};
  const int difference = client.call<int>("subtract", 42, 23);
  server.stop();
  return difference == 19 ? 0 : 1;
}
