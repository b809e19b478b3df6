// Provides `add` to the other clients of the broker at the endpoint that is the argument, else tcp://127.0.0.1:8080,
// and notifies whoever subscribes to `sums` of each result, until Ctrl-C.
#include <csignal>
#include <iostream>

#include "wirecall/wirecall.hpp"

int main(int argc, char** argv) try {
  sigset_t stopping;
  sigemptyset(&stopping);
  sigaddset(&stopping, SIGINT);
  sigaddset(&stopping, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &stopping, nullptr);  // in the threads of the client as well

  wirecall::Client client{argc > 1 ? argv[1] : "tcp://127.0.0.1:8080", R"({"client_id": "client1"})"};
  const auto add = [&client](int a, int b) {
    client.notify("sums", a + b);
    return a + b;
  };
  client.provide("add", add, {.params = {"a", "b"}});
  client.connect();  // throws if the broker refuses the name or the method

  int signal = 0;
  sigwait(&stopping, &signal);
} catch (const wirecall::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
