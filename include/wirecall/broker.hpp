// Broker: a server whose clients provide methods for each other (docs/broker.md). A client says by rpc.register what it
// provides; who calls that is answered by it, and need not know who that is. Methods of the broker's own process are
// added as to any server: it can be broker and provider at once.
// Thread: as Server.
#pragma once

#include <string_view>

#include "wirecall/options.hpp"
#include "wirecall/server.hpp"

namespace wirecall {

class Broker : public Server {
 public:
  Broker();
  /// Throws as Server does. All messages are the first thread's, and so are the handlers of this process; the others of
  /// Options::thread_count receive and send for it.
  explicit Broker(Options options);
  explicit Broker(std::string_view options_json) : Broker(Options::from_json(options_json)) {}
};

}  // namespace wirecall
