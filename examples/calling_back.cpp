// A handler that calls its caller: the server asks, in the middle of a call, whether it may go on.
#include <iostream>
#include <string>
#include <thread>

#include "wirecall/wirecall.hpp"

// Such a handler is a coroutine, and waits without holding up anybody else.
wirecall::Task<int> clear(wirecall::Context context, std::string folder) {
  const wirecall::Caller caller{context};
  const int files = 3;
  if (!co_await caller.call<bool>("confirm", "clear " + folder + "?", files)) throw wirecall::Error{"not confirmed"};
  for (int i = 1; i <= files; ++i) caller.notify("removed", i);
  co_return files;
}

int main() {
  wirecall::Server server;
  server.method("clear", clear, {"folder"});
  const wirecall::Endpoint endpoint = server.listen("tcp://127.0.0.1:0");
  std::jthread loop{[&] { server.run(); }};

  // What a client offers is served on the thread that drives it: here, while it waits for its call.
  int told = 0;
  wirecall::Client client{endpoint.uri()};
  client.method("confirm", [](std::string question, int files) { return question == "clear old?" && files < 10; });
  client.method("removed", [&told](int) { ++told; });

  const int removed = client.call<int>("clear", "old");
  const auto refused = client.try_call<int>("clear", "new");
  std::cout << removed << " removed, told of " << told << "; " << refused.error().message() << "\n";
  server.stop();
  return removed == 3 && told == 3 && refused.error().message() == "not confirmed" ? 0 : 1;
}
