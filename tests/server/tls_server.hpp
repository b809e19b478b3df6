// A broker that speaks TLS on each engine, with certificates that a test may replace, and what its peers say.
#pragma once

#include <cstdint>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server/engines.hpp"
#include "tests/server/tls_socket.hpp"
#include "tests/transport/certificates.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {

struct TlsWay {
  Engine engine;
  std::uint32_t threads;
};

class TlsServer : public testing::TestWithParam<TlsWay> {
 protected:
  static inline const std::string kPing = "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ping\",\"id\":1}\n";
  static inline const std::string kPong = R"({"jsonrpc":"2.0","result":"pong","id":1})";
  static inline const std::string kParseError =
      R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})";
  static inline const std::string kWho = "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.methods\",\"id\":1}\n";
  static inline const std::string kProxy = "PROXY TCP4 203.0.113.9 192.0.2.1 56324 443\r\n";

  static std::string post(std::string_view body, const std::string& fields = {}) {
    return "POST /rpc HTTP/1.1\r\nHost: localhost\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + std::string{body};
  }
  static std::string upgrade(const std::string& fields = {}) {
    return "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
           "13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
           fields + "\r\n";
  }
  // Whose methods an answer to kWho lists; the answer itself where it lists nobody's.
  static std::string one_in(const std::string& answer) {
    const std::size_t at = answer.find("\"who.");
    if (at == std::string::npos) return answer;
    return answer.substr(at + 5, answer.find('"', at + 5) - at - 5);
  }
  static std::string hello(const std::string& token) {
    return R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":")" + token + "\"},\"id\":0}\n";
  }

  void SetUp() override {
    skip_where_refused(GetParam().engine);
    options_ = threads(GetParam().threads);
    options_.engine = GetParam().engine;
    // Copies, which a test replaces.
    cert_ = folder_.write("cert.pem", transport::pem_of(usual_.server));
    key_ = folder_.write("key.pem", transport::key_pem_of(usual_.server));
    options_.tls.cert = {cert_};
    options_.tls.key = {key_};
    options_.log = [this](const LogRecord& record) {
      const std::scoped_lock lock{mutex_};
      log_.emplace_back(format_log(LogFormat::human, record).substr(25));  // without its time
    };
  }
  Endpoint serve() {
    broker_.emplace(options_);
    for (const char* const name : {"ada", "bob", "carol", "zoe"})
      broker_->method(std::string{"who."} + name, [] { return 0; });  // which that one may call, and sees
    broker_->method("echo", [](const std::string& text) { return text; });
    broker_->method("slow", [this] {
      gate_.wait();
      return 1;
    });
    const Endpoint bound = broker_->listen("tcp://127.0.0.1:0");
    running_.emplace(*broker_);
    return bound;
  }
  void ask_clients(ClientAuth how) {
    options_.tls.client_auth = how;
    options_.tls.client_ca = folder_.write("clients.pem", transport::pem_of(usual_.authority));
  }
  // Ada by her certificate or token, Bob by his token alone, Carol by another certificate.
  void let_in() {
    options_.principals = {principal("ada", {"email:ada@example.com"}), principal("bob", {}),
                           principal("carol", {"dns:carol.example", "uri:spiffe://example/carol"})};
  }
  static Principal principal(const std::string& name, std::vector<std::string> certificates) {
    return {.name = name,
            .tokens = {"token-" + name},
            .certificates = std::move(certificates),
            .call = {"who." + name},
            .provide = {},
            .publish = {},
            .subscribe = {}};
  }
  // A client's certificate with these names, and its key.
  [[nodiscard]] transport::TlsFiles client(const std::string& names) const {
    return folder_.write(
        "client-of-test",
        transport::issue({.subject = "client", .names = names, .usage = "clientAuth"}, &usual_.authority));
  }
  std::vector<std::string> log() {
    const std::scoped_lock lock{mutex_};
    return log_;
  }
  [[nodiscard]] std::uint64_t handshakes() const { return stats().tls_1_2_handshakes + stats().tls_1_3_handshakes; }
  [[nodiscard]] Stats stats() const { return broker_->stats(); }

  const transport::UsualCertificates& usual_ = transport::usual_certificates();
  transport::CertificateFolder folder_;
  std::string cert_;
  std::string key_;
  Options options_;
  std::mutex mutex_;
  std::vector<std::string> log_;
  Gate gate_;
  std::optional<Broker> broker_;
  std::optional<RunningServer> running_;
};

inline const auto kEachTlsWay =
    testing::Values(TlsWay{Engine::epoll, 1}, TlsWay{Engine::uring, 1}, TlsWay{Engine::epoll, 3});

inline std::string tls_way_name(const testing::TestParamInfo<TlsWay>& info) {
  return engine_name({info.param.engine, 0}) + std::to_string(info.param.threads);
}

}  // namespace wirecall::net
