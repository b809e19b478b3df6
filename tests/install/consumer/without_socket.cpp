// A program that links wirecall::core alone: text in, text out.
#include <cstdio>
#include <string_view>
#include <wirecall/bytes.hpp>
#include <wirecall/registry.hpp>

int main() {
  wirecall::Registry registry;
  registry.method("subtract", [](int minuend, int subtrahend) { return minuend - subtrahend; },
                  {"minuend", "subtrahend"});
  wirecall::Buffer reply;
  registry.handle(R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})", reply);
  std::printf("%.*s\n", static_cast<int>(reply.size()), reply.data());
  return reply.view() == R"({"jsonrpc":"2.0","result":19,"id":1})" ? 0 : 1;
}
