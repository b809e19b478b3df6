// Uses wirecall::protobuf: a message of protobuf's own as a parameter and result.
#include <cstdlib>
#include <google/protobuf/duration.pb.h>
#include <wirecall/protobuf.hpp>

int main() {
  wirecall::Server server;
  server.method("twice", [](google::protobuf::Duration duration) {
    duration.set_seconds(2 * duration.seconds());
    return duration;
  });
  const std::string reply = server.registry().handle(R"({"jsonrpc":"2.0","method":"twice","params":["2s"],"id":1})");
  return reply == R"({"jsonrpc":"2.0","result":"4s","id":1})" ? EXIT_SUCCESS : EXIT_FAILURE;
}
