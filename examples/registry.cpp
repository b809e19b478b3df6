// The engine without a socket: text in, text out. Whatever brings the text (a file, a queue, a pipe, a transport of
// your own) is none of its business. Links wirecall::core alone.
#include "wirecall/registry.hpp"

#include <iostream>
#include <string>

int main() {
  wirecall::Registry registry;
  registry.method("subtract", [](int minuend, int subtrahend) { return minuend - subtrahend; },
                  {"minuend", "subtrahend"});

  // Each line of the input is a message or a batch; a notification gets no reply.
  const std::string lines[] = {
      R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})",
      R"({"jsonrpc":"2.0","method":"subtract","params":{"subtrahend":23,"minuend":42},"id":2})",
      R"({"jsonrpc":"2.0","method":"subtract","params":[42,23]})",
      R"([{"jsonrpc":"2.0","method":"subtract","params":[1,2],"id":3},1])",
      R"({"jsonrpc":"2.0","method":"substract","id":4})",
  };
  std::string replies;
  std::string reply;  // kept, so that its memory is used again
  for (const std::string& line : lines) {
    registry.handle(line, reply);
    if (!reply.empty()) replies += reply + '\n';
  }
  std::cout << replies;

  const std::string expected = R"({"jsonrpc":"2.0","result":19,"id":1})"
                               "\n"
                               R"({"jsonrpc":"2.0","result":19,"id":2})"
                               "\n"
                               R"([{"jsonrpc":"2.0","result":-1,"id":3},)"
                               R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request"},"id":null}])"
                               "\n"
                               R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found",)"
                               R"("data":{"did_you_mean":"subtract"}},"id":4})"
                               "\n";
  return replies == expected ? 0 : 1;
}
