// Broker: a server whose clients provide methods to each other (docs/broker.md). A client registers a method by
// rpc.register, and the broker relays calls of that method to it; callers need not know who provides it. Methods of the
// broker's own process are added as to any server, so it can be broker and provider at once.
// Thread: as Server.
#pragma once

#include <string_view>

#include "wirecall/options.hpp"
#include "wirecall/server.hpp"

namespace wirecall {

class Broker : public Server {
 public:
  Broker();
  /// Throws as Server does. The first thread handles all messages and runs the handlers of this process; the further
  /// threads of Options::thread_count receive and send for it.
  explicit Broker(const Options& options);
  explicit Broker(std::string_view options_json) : Broker(Options::from_json(options_json)) {}
};

}  // namespace wirecall
