// A broker for clients of any scheme, and options of both, for tests over real sockets.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "tests/connection/peer.hpp"
#include "tests/transport/certificates.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/stream.hpp"

namespace wirecall::net {

/// The endpoint of a server at `tcp`, by another scheme.
inline std::string by(std::string_view scheme, const std::string& tcp, std::string_view host = "127.0.0.1") {
  return std::string{scheme} + "://" + std::string{host} + tcp.substr(tcp.rfind(':'));
}

/// A server that shows the certificate of `files`.
inline Options serving(const transport::TlsFiles& files = transport::usual_certificates().server_files) {
  Options options;
  options.tls.cert = {files.certificate};
  options.tls.key = {files.key};
  options.takeover_ms = 0;
  return options;
}
/// A client of such a server that gives up at once.
inline ClientOptions trusting() {
  ClientOptions options;
  options.cafile = transport::usual_certificates().cafile;
  options.connect_attempts = 1;
  options.reconnect_min_ms = 1;
  return options;
}

/// A broker that serves until the end of its scope.
struct Served {
  explicit Served(const Options& options = serving(), const std::string& at = "tcp://127.0.0.1:0") : broker(options) {
    broker.method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"});
    broker.method("echo", [](std::string text) { return text; });
    broker.method("note", [this] { ++notes; });
    broker.method("notes", [this] { return notes.load(); });
    broker.method("count", [](int n) -> Stream<int> {
      for (int i = 0; i < n; ++i) co_yield i;
    });
    tcp = broker.listen(at).uri();
    running.emplace(broker);
  }
  Broker broker;
  std::string tcp;
  std::atomic<int> notes{0};
  std::optional<RunningServer> running;
};

}  // namespace wirecall::net
