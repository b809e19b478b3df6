// What the third parties' clients call: the demo methods, and one that calls its caller.
//
//   served URI...     serves until a signal comes, and says on stderr, a line each, where it listens
#include <cstdio>
#include <string>

#include "cli/demo.hpp"
#include "wirecall/wirecall.hpp"

namespace {

// Asks the caller's method `answer` the question.
wirecall::Task<std::string> ask(wirecall::Context context, std::string question) {
  const wirecall::Peer caller{context};
  co_return co_await caller.call<std::string>("answer", question);
}

}  // namespace

int main(int argc, char** argv) {
  wirecall::Options options;
  options.http_notification_status = 200;  // jsonrpclib-pelix takes any other for an error
  wirecall::Server server{options};
  wirecall::cli::add_demo_methods(server.registry());
  server.method("ask", ask, {"question"});
  for (int i = 1; i < argc; ++i) std::fprintf(stderr, "listening %s\n", server.listen(argv[i]).uri().c_str());
  server.run();
}
