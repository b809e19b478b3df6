// What the third parties' clients call: the demo methods, one that calls its caller, and of Ethereum's API as much as
// its clients need to subscribe.
//
//   served URI...     serves until a signal comes, and says on stderr, a line each, where it listens
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include "cli/demo.hpp"
#include "wirecall/wirecall.hpp"

namespace {

// Asks the caller's method `answer` the question.
wirecall::Task<std::string> ask(wirecall::Context context, std::string question) {
  const wirecall::Peer caller{context};
  co_return co_await caller.call<std::string>("answer", question);
}

struct Head {
  std::string number;
  std::string hash;
};

std::string hexadecimal(int number) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", static_cast<unsigned>(number));
  return text;
}

// Block after block.
wirecall::Stream<Head> heads(wirecall::Context context, std::string kind) {
  if (kind != "newHeads") throw wirecall::Error{wirecall::ErrorCode::invalid_params, "no such kind: " + kind};
  for (int number = 1;; ++number) {
    Head head{.number = hexadecimal(number), .hash = "0x" + std::string(64, 'a')};
    co_yield std::move(head);
    if (number % 3 == 0) co_await wirecall::sleep_for(context, std::chrono::milliseconds{5});
  }
}

}  // namespace

int main(int argc, char** argv) {
  wirecall::Options options;
  options.http_notification_status = 200;  // jsonrpclib-pelix takes any other for an error
  wirecall::Server server{options};
  wirecall::cli::add_demo_methods(server.registry());
  server.method("ask", ask, {"question"});
  server.method("eth_chainId", [] { return std::string{"0x1"}; });
  server.method("eth_blockNumber", [] { return std::string{"0x10"}; });
  server.subscription(
      {.subscribe = "eth_subscribe", .unsubscribe = "eth_unsubscribe", .notification = "eth_subscription"}, heads,
      {"kind"});
  for (int i = 1; i < argc; ++i) std::fprintf(stderr, "listening %s\n", server.listen(argv[i]).uri().c_str());
  server.run();
}
