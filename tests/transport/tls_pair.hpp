// Two TLS sessions of ours in memory, or one and an OpenSSL peer, and what goes between them.
#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>

#include "tests/transport/certificates.hpp"
#include "tests/transport/tls_peer.hpp"
#include "transport/tls_session.hpp"

namespace wirecall::transport {

inline const Endpoint kByName{"tls://localhost:8545"};
inline const Endpoint kByAddress{"tls://127.0.0.1:8545"};

using ServerContext = std::shared_ptr<const TlsServerContext>;
using ClientContext = std::shared_ptr<const TlsClientContext>;

inline ServerContext server_context(const TlsServerSettings& settings, const ServerContext& former = nullptr) {
  return std::make_shared<const TlsServerContext>(settings, former.get());
}
/// One that shows `files` and asks nobody.
inline ServerContext server_context(const TlsFiles& files = usual_certificates().server_files) {
  return server_context(TlsServerSettings{.identities = {files}});
}
inline ClientContext client_context(const TlsClientSettings& settings = {.cafile = usual_certificates().cafile}) {
  return std::make_shared<const TlsClientContext>(settings);
}

/// One of ours, and what it has said.
struct End {
  explicit End(ServerContext context) : session(std::move(context)) {}
  End(ClientContext context, const Endpoint& server) : session(std::move(context), server) { session.start(output); }

  TlsSession::State receive(std::string_view ciphertext) {
    return session.receive({ciphertext.data(), ciphertext.size()}, plaintext, output);
  }
  std::string take() { return take(output); }
  std::string heard() { return take(plaintext); }
  bool send(std::string_view text) { return session.send(text, output); }
  [[nodiscard]] TlsSession::State state() const { return session.state(); }
  [[nodiscard]] const std::string& failure() const { return session.failure(); }

  TlsSession session;
  Buffer plaintext;
  Buffer output;

 private:
  static std::string take(Buffer& from) {
    std::string all{from.view()};
    from.clear();
    return all;
  }
};

/// Until neither says anything.
inline void exchange(End& client, End& server) {
  for (;;) {
    const std::string to_server = client.take();
    const std::string to_client = server.take();
    if (to_server.empty() && to_client.empty()) return;
    if (!to_server.empty()) server.receive(to_server);
    if (!to_client.empty()) client.receive(to_client);
  }
}
/// The same with an OpenSSL peer, whatever its side. Adds what the peer reads to `heard`.
inline void exchange(TlsPeer& peer, End& ours, std::string* heard = nullptr) {
  for (;;) {
    if (peer.shake_hands()) {
      const std::string text = peer.read();
      if (heard != nullptr) *heard += text;
    }
    const std::string to_us = peer.take();
    const std::string to_peer = ours.take();
    if (to_us.empty() && to_peer.empty()) return;
    if (!to_us.empty()) ours.receive(to_us);
    peer.feed(to_peer);
  }
}

/// Both ends of a connection that is open.
struct Opened {
  explicit Opened(const ServerContext& at_server = server_context(), const ClientContext& at_client = client_context(),
                  const Endpoint& endpoint = kByName)
      : server(at_server), client(at_client, endpoint) {
    exchange(client, server);
    EXPECT_EQ(server.state(), TlsSession::State::open) << server.failure();
    EXPECT_EQ(client.state(), TlsSession::State::open) << client.failure();
  }
  End server;
  End client;
};

/// A server that asks clients for certificates, and a client that shows one.
inline TlsServerSettings asking(const std::string& authorities, ClientCertificate how = ClientCertificate::required,
                                const std::string& crl = {}) {
  return {
      .identities = {usual_certificates().server_files}, .client = how, .client_ca = authorities, .client_crl = crl};
}
inline TlsClientSettings showing(const TlsFiles& own) { return {.cafile = usual_certificates().cafile, .own = own}; }

}  // namespace wirecall::transport
