// What the third parties' clients call: the demo methods, one that calls its caller, and of Ethereum's API as much as
// its clients need to subscribe.
//
//   served URI...                        serves until a signal comes, and says on stderr, a line each, where it listens
//   served --tls CERTIFICATE KEY URI...  the same, with TLS as well
//   served --broker URI                  the same of a broker at which a client provides them, but for the one that
//                                        calls its caller
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "cli/commands/demo.hpp"
#include "wirecall/wirecall.hpp"

namespace {

// Asks the caller's method `answer` the question.
wirecall::Task<std::string> ask(wirecall::Context context, std::string question) {
  const wirecall::Caller caller{context};
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

const wirecall::SubscriptionNames kEthereum{
    .subscribe = "eth_subscribe", .unsubscribe = "eth_unsubscribe", .notification = "eth_subscription"};

std::string chain_id() { return "0x1"; }
std::string block_number() { return "0x10"; }

void tell(const std::string& uri) { std::fprintf(stderr, "listening %s\n", uri.c_str()); }

wirecall::Options served_options() {
  wirecall::Options options;
  options.http_notification_status = 200;  // jsonrpclib-pelix takes any other for an error
  return options;
}

void serve(char** begin, char** end, const wirecall::Options& options = served_options()) {
  wirecall::Server server{options};
  wirecall::cli::add_demo_methods(server.registry());
  server.method("ask", ask, {"question"});
  server.method("eth_chainId", chain_id);
  server.method("eth_blockNumber", block_number);
  server.subscription(kEthereum, heads, {"kind"});
  for (; begin != end; ++begin) tell(server.listen(*begin).uri());
  server.run();
}

void serve_broker(const char* uri) {
  wirecall::Broker broker{served_options()};
  const std::string endpoint = broker.listen(uri).uri();
  const wirecall::ClientOptions options;
  wirecall::Client provider{endpoint, options};
  provider.provide("subtract", [](std::int64_t minuend, std::int64_t subtrahend) { return minuend - subtrahend; },
                   {.params = {"minuend", "subtrahend"}});
  provider.provide("echo", [](wirecall::Value value) { return value; }, {.params = {"value"}});
  provider.provide("fail", [](int code, const std::string& message) -> int { throw wirecall::Error{code, message}; },
                   {.params = {"code", "message"}});
  provider.provide("eth_chainId", chain_id);
  provider.provide("eth_blockNumber", block_number);
  provider.provide_subscription(kEthereum, heads, {.params = {"kind"}});
  const std::jthread connecting{[&] {
    provider.connect();
    tell(endpoint);
  }};
  broker.run();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view{argv[1]} == "--broker") {
    serve_broker(argv[2]);
  } else if (argc > 4 && std::string_view{argv[1]} == "--tls") {
    wirecall::Options options = served_options();
    options.tls.cert = {argv[2]};
    options.tls.key = {argv[3]};
    serve(argv + 4, argv + argc, options);
  } else {
    serve(argv + 1, argv + argc);
  }
}
