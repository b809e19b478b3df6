// Echoes by HTTP, for any client: curl -d '{"jsonrpc":"2.0","method":"echo","params":["hello"],"id":0}' 127.0.0.1:4000
// The endpoint is the argument, else http's at port 4000; it is printed.
#include <iostream>
#include <string>

#include "wirecall/wirecall.hpp"

int main(int argc, char** argv) {
  wirecall::Server server;
  server.method("echo", [](std::string text) { return text; }, {"text"});
  std::cout << server.listen(argc > 1 ? argv[1] : "tcp://127.0.0.1:4000").uri() << std::endl;
  server.run();
}
