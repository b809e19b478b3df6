// HttpSettings: what the HTTP connections of a server have in common. A value that its server makes before it runs; it
// outlives the connections that refer to it.
#pragma once

#include <functional>

#include "http/routes.hpp"
#include "rpc/rendering.hpp"

namespace wirecall::net {

struct HttpSettings {
  /// Options::allow_hosts and Options::allow_origins.
  std::vector<std::string> allow_hosts;
  std::vector<std::string> allow_origins;
  /// Hosts that are listened on. One that means all addresses makes every address literal a Host of ours.
  std::vector<std::string> bound_hosts;
  /// Where calls are made by HTTP, one for each TCP port: for who has not come by a Host of ours.
  std::vector<std::string> urls;
  /// Paths of the unix sockets that are listened on.
  std::vector<std::string> unix_paths;
  /// Options::http_notification_status.
  std::uint16_t notification_status = 204;
  /// The text of /metrics, as who asks may see it.
  std::function<std::unique_ptr<rpc::Rendering>(rpc::Asker)> metrics;
  /// The text of /openrpc.json, likewise. The loop_context is the connection's, and `urls` are where this is called.
  std::function<std::unique_ptr<rpc::Rendering>(rpc::LoopContext&, rpc::Asker, std::span<const std::string> urls)>
      openrpc;
  /// What is served at which path.
  HttpRoutes routes = {};
};

}  // namespace wirecall::net
