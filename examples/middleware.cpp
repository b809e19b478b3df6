// Middleware: code around every call, written once for single calls and batches. Here one that times each call, and
// one that refuses some.
#include <chrono>
#include <iostream>
#include <string>

#include "wirecall/registry.hpp"

namespace {

using Clock = std::chrono::steady_clock;

// What is to happen once the answer is known goes into on_reply: that is now for a plain function, and later for a
// handler that waits.
void timed(wirecall::Call& call, wirecall::Next next) {
  call.on_reply([name = call.method().name(), start = Clock::now()](const wirecall::Outcome& outcome) {
    const std::chrono::duration<double, std::micro> passed = Clock::now() - start;
    std::cout << name << ": " << (outcome.ok() ? "ok" : "error " + std::to_string(outcome.code)) << " after "
              << passed.count() << " us\n";
  });
  next(call);
}

// A middleware that answers itself does not go on to what comes after it.
void read_only(wirecall::Call& call, wirecall::Next next) {
  if (call.method().name().starts_with("set_")) return call.error(wirecall::Error{-20, "read-only"});
  next(call);
}

}  // namespace

int main() {
  int number = 19;
  wirecall::Registry registry;
  registry.use(timed);  // the first is the outermost: it also times what read_only refuses
  registry.use(read_only);
  registry.method("get_number", [&] { return number; });
  registry.method("set_number", [&](int value) { number = value; }, {"value"});

  const std::string reply = registry.handle(R"([{"jsonrpc":"2.0","method":"set_number","params":[42],"id":1},)"
                                            R"({"jsonrpc":"2.0","method":"get_number","id":2}])");
  std::cout << reply << "\n";
  const bool as_promised = reply == R"([{"jsonrpc":"2.0","error":{"code":-20,"message":"read-only"},"id":1},)"
                                    R"({"jsonrpc":"2.0","result":19,"id":2}])";
  return as_promised ? 0 : 1;
}
