// Certificates, authorities and revocation lists that a server reads anew, and which connections that ends.
#include <atomic>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "tests/server/tls_server.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;
using transport::fingerprint_of;
using transport::issue;
using transport::Issued;
using transport::pem_of;
using transport::revocation_list;
using transport::TlsFiles;

class TlsReload : public TlsServer {};

TEST_P(TlsReload, certificates_read_anew_are_shown_from_then_on) {
  const Endpoint endpoint = serve();
  TlsSocket before{endpoint};
  EXPECT_EQ(before.ask(kPing), kPong);
  EXPECT_EQ(broker_->certificate_fingerprint(), fingerprint_of(usual_.server.certificate.get()));
  const Issued renewed = issue({.subject = "renewed"}, &usual_.authority);
  static_cast<void>(folder_.write("cert.pem", pem_of(renewed)));
  static_cast<void>(folder_.write("key.pem", transport::key_pem_of(renewed)));
  broker_->reload_certificates();
  EXPECT_EQ(broker_->certificate_fingerprint(), fingerprint_of(renewed.certificate.get()));
  EXPECT_TRUE(comes_true([&] { return TlsSocket{endpoint}.peer.peer_subject() == "renewed"; }));
  EXPECT_EQ(before.ask(kPing), kPong);
  TlsSocket resumed{endpoint, {.session = before.peer.session()}};
  EXPECT_TRUE(resumed.peer.resumed());
}

TEST_P(TlsReload, a_bad_file_is_refused_with_its_reason_and_all_stays_as_it_was) {
  ask_clients(ClientAuth::optional);
  const Endpoint endpoint = serve();
  const auto refusal = [&] {
    try {
      broker_->reload_certificates();
    } catch (const std::invalid_argument& error) {
      return std::string{error.what()};
    }
    return ""s;
  };
  const Issued renewed = issue({.subject = "renewed"}, &usual_.authority);
  static_cast<void>(folder_.write("cert.pem", pem_of(renewed)));
  EXPECT_EQ(refusal(), "tls.key: " + key_ + ": is not the key of the certificate in " + cert_);
  static_cast<void>(folder_.write("key.pem", transport::key_pem_of(renewed)));
  static_cast<void>(folder_.write("clients.pem", "garbage"));
  EXPECT_TRUE(refusal().starts_with("tls.client_ca: " + options_.tls.client_ca + ": holds no certificates in PEM"));
  std::filesystem::remove(cert_);
  EXPECT_EQ(refusal(), "tls.cert: " + cert_ + " cannot be read: No such file or directory");
  TlsSocket socket{endpoint, {.own = usual_.client_files}};
  EXPECT_EQ(socket.ask(kPing), kPong);
  EXPECT_EQ(socket.peer.peer_subject(), "localhost");
  EXPECT_EQ(broker_->certificate_fingerprint(), fingerprint_of(usual_.server.certificate.get()));
}

TEST_P(TlsReload, a_revocation_list_ends_the_connections_that_it_names_and_their_tickets) {
  ask_clients(ClientAuth::optional);
  options_.tls.client_crl = folder_.write("clients.crl", revocation_list(usual_.authority, {}));
  const Endpoint endpoint = serve();
  const Issued other = issue({.subject = "other", .usage = "clientAuth"}, &usual_.authority);
  const TlsFiles other_files = folder_.write("other", other);
  TlsSocket ada{endpoint, {.own = usual_.client_files}};
  EXPECT_EQ(ada.ask(kPing), kPong);
  TlsSocket resumed{endpoint, {.own = usual_.client_files, .session = ada.peer.session()}};
  EXPECT_EQ(resumed.ask(kPing), kPong);
  EXPECT_TRUE(resumed.peer.resumed());
  TlsSocket silent{endpoint, {.own = usual_.client_files}};
  TlsSocket bob{endpoint, {.own = other_files}};
  EXPECT_EQ(bob.ask(kPing), kPong);
  TlsSocket nobody{endpoint};
  EXPECT_EQ(nobody.ask(kPing), kPong);
  RawPeer plain{endpoint};
  plain.send(kPing);
  EXPECT_EQ(plain.line(), kPong);

  broker_->reload_certificates();  // nothing has changed
  EXPECT_EQ(ada.ask(kPing), kPong);
  static_cast<void>(folder_.write("clients.crl", revocation_list(usual_.authority, {&usual_.client})));
  broker_->reload_certificates();
  EXPECT_EQ(ada.all(), "");
  EXPECT_EQ(resumed.all(), "");
  EXPECT_EQ(silent.all(), "") << "although it has not said what it speaks";
  EXPECT_EQ(bob.ask(kPing), kPong);
  EXPECT_EQ(nobody.ask(kPing), kPong);
  plain.send(kPing);
  EXPECT_EQ(plain.line(), kPong);
  TlsSocket again{endpoint, {.own = usual_.client_files, .session = resumed.peer.session()}};
  again.send(kPing);
  EXPECT_EQ(again.all(), "");
  EXPECT_EQ(again.peer.failure, "sslv3 alert certificate revoked");
  TlsSocket bob_again{endpoint, {.own = other_files, .session = bob.peer.session()}};
  EXPECT_EQ(bob_again.ask(kPing), kPong);
  EXPECT_FALSE(bob_again.peer.resumed());
}

TEST_P(TlsReload, a_certificate_that_is_revoked_during_its_handshake_gets_no_connection) {
  ask_clients(ClientAuth::optional);
  options_.tls.client_crl = folder_.write("clients.crl", revocation_list(usual_.authority, {}));
  const Endpoint endpoint = serve();
  TlsSocket::Settings settings{.own = usual_.client_files};
  transport::TlsPeer peer{settings};
  RawPeer raw{endpoint};
  peer.shake_hands();
  raw.send(peer.take());
  // The server has begun.
  std::string flight = raw.bytes(5);
  static_cast<void>(folder_.write("clients.crl", revocation_list(usual_.authority, {&usual_.client})));
  broker_->reload_certificates();
  for (int i = 0; i < 2; ++i) {
    RawPeer plain{endpoint};
    plain.send(kPing);
    EXPECT_EQ(plain.line(), kPong) << "the new list is in force behind this";
  }
  for (bool done = false; !done;) {
    const auto byte = [&](std::size_t at) {
      return static_cast<std::size_t>(static_cast<unsigned char>(flight.at(at)));
    };
    flight += raw.bytes(byte(3) << 8 | byte(4));
    peer.feed(flight);
    done = peer.shake_hands();
    if (!done) flight = raw.bytes(5);
  }
  peer.write(kPing);
  raw.send(peer.take());
  peer.feed(raw.all());
  EXPECT_EQ(peer.read(), "");
}

TEST_P(TlsReload, other_authorities_end_the_connections_of_those_that_they_do_not_know) {
  ask_clients(ClientAuth::required);
  const Endpoint endpoint = serve();
  const Issued authority = issue({.subject = "other authority", .authority = true});
  const TlsFiles new_files = folder_.write("new", issue({.usage = "clientAuth"}, &authority));
  TlsSocket old{endpoint, {.own = usual_.client_files}};
  EXPECT_EQ(old.ask(kPing), kPong);
  static_cast<void>(folder_.write("clients.pem", pem_of(usual_.authority) + pem_of(authority)));
  broker_->reload_certificates();
  EXPECT_EQ(old.ask(kPing), kPong) << "who is still accepted";
  TlsSocket young{endpoint, {.own = new_files}};
  EXPECT_EQ(young.ask(kPing), kPong);
  static_cast<void>(folder_.write("clients.pem", pem_of(authority)));
  broker_->reload_certificates();
  EXPECT_EQ(old.all(), "");
  EXPECT_EQ(young.ask(kPing), kPong);
}

TEST_P(TlsReload, no_connection_is_lost_while_certificates_are_read_anew) {
  ask_clients(ClientAuth::optional);
  const Endpoint endpoint = serve();
  const Issued others[]{issue({.subject = "one"}, &usual_.authority), issue({.subject = "other"}, &usual_.authority)};
  std::atomic<bool> over{false};
  std::atomic<int> calls{0};
  std::atomic<int> connections{0};
  const auto call = [&](bool again) {
    while (!over) {
      TlsSocket socket{endpoint, {.own = usual_.client_files}};
      EXPECT_TRUE(socket.open) << socket.peer.failure;
      ++connections;
      do {
        const std::string answer = socket.ask(kPing);
        EXPECT_EQ(answer, kPong);
        if (answer != kPong) return;
        ++calls;
      } while (!over && !again);
    }
  };
  std::thread steady{call, false};
  std::thread renewing{call, true};
  for (int i = 0; i < 20; ++i) {
    const Issued& now = others[i % 2];
    static_cast<void>(folder_.write("cert.pem", pem_of(now)));
    static_cast<void>(folder_.write("key.pem", transport::key_pem_of(now)));
    broker_->reload_certificates();
    const int before = connections;
    EXPECT_TRUE(comes_true([&] { return connections > before; }));
  }
  over = true;
  steady.join();
  renewing.join();
  EXPECT_GT(calls, 20);
  EXPECT_EQ(stats().tls_handshakes_refused, 0U);
}

TEST_P(TlsReload, a_certificate_of_its_own_making_stays_the_same) {
  options_.tls.cert = {};
  options_.tls.key = {};
  options_.tls.self_signed = true;
  const Endpoint endpoint = serve();
  const std::string fingerprint = broker_->certificate_fingerprint();
  EXPECT_EQ(fingerprint.size(), 64U);
  broker_->reload_certificates();
  EXPECT_EQ(broker_->certificate_fingerprint(), fingerprint);
  TlsSocket socket{endpoint};
  EXPECT_EQ(socket.ask(kPing), kPong);
  EXPECT_EQ(fingerprint_of(SSL_get0_peer_certificate(socket.peer.ssl())), fingerprint);
}

INSTANTIATE_TEST_SUITE_P(Ways, TlsReload, kEachTlsWay, tls_way_name);

}  // namespace
}  // namespace wirecall::net
