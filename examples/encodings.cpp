// One server, and clients of it in each encoding; packed calls between programs that share a header; and all of it
// through shared memory.
#include <iostream>
#include <numeric>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "wirecall/packed_call.hpp"
#include "wirecall/wirecall.hpp"

namespace math {
double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
}  // namespace math

int main() {
  wirecall::Server server;
  server.method<math::mean>({"values"}).packed(wirecall::packing<math::mean>());
  const std::string tcp = server.listen("tcp://127.0.0.1:0").uri();
  const std::string shared_memory = server.listen("shm://encodings-" + std::to_string(::getpid())).uri();
  std::jthread loop{[&] { server.run(); }};

  const std::vector<double> values{1, 2, 6};
  bool as_promised = true;
  for (const std::string& uri : {tcp, shared_memory}) {
    for (const wirecall::Encoding encoding : {wirecall::Encoding::json, wirecall::Encoding::msgpack,
                                              wirecall::Encoding::cbor, wirecall::Encoding::protobuf}) {
      wirecall::ClientOptions options;
      options.encoding = encoding;
      wirecall::Client client{uri, options};
      const double plain = client.call<math::mean>(values);
      const double packed = wirecall::call_packed<math::mean>(client, values);  // in any of them
      as_promised = as_promised && plain == 3 && packed == 3;
    }
  }
  std::cout << (as_promised ? "the mean is 3, in whatever form it is asked for\n" : "another mean\n");
  server.stop();
  return as_promised ? 0 : 1;
}
