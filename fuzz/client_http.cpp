// A client of HTTP that is sent anything as the response to its call: the call ends, whatever came, and once there is a
// new connection the client is as good as ever. The first byte of an input chooses how the rest is cut up.
#include <chrono>
#include <string>
#include <vector>

#include "fuzz/texts.hpp"
#include "http/client.hpp"
#include "tests/client/world.hpp"

namespace {

using wirecall::Endpoint;
using wirecall::net::World;

std::string good_answer(const std::string& posted) {
  const std::size_t at = posted.rfind("\"id\":") + 5;
  const std::string body = R"({"jsonrpc":"2.0","result":19,"id":)" + posted.substr(at);
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string response{fuzz::text_of(data + 1, size - 1)};
  wirecall::ClientOptions options;
  options.call_timeout_ms = 1000;
  options.limits.max_message_size = 4096;
  options.limits.header_bytes = 512;
  World world{data[0], options, std::vector{Endpoint{"http://place/rpc"}}};
  std::size_t told = 0;  // connections that have been sent the input
  world.serve = [&] {
    if (!world.received.ends_with('}')) return;
    if (told == 0) {
      told = world.peers.size();
      world.peers.back()->send(response);
      world.peers.back()->finish();
    } else if (world.peers.size() > told) {
      world.peers.back()->send(good_answer(world.received));
    }
    world.received.clear();
  };
  static_cast<void>(world.client->try_call<int>("a"));  // an answer or an error, but not for ever
  // The bytes behind the response, if they are late, may be taken for that of the next call; then they are used up.
  bool usable = false;
  for (int i = 0; i < 3 && !usable; ++i) usable = world.client->try_call<int>("b") == 19 && world.peers.size() > 1;
  fuzz::require(usable, "the client is not usable any more", response);
  return 0;
}
