// Which certificate a server shows, what a client accepts, and which clients' certificates a server does.
#include <gtest/gtest.h>

#include "tests/transport/tls_pair.hpp"
#include "transport/tls_certificate.hpp"

namespace wirecall::transport {
namespace {

using namespace std::string_literals;
using State = TlsSession::State;

// What a client says of a server that it does not accept; empty for one that it does.
std::string refusal(const ServerContext& at_server, const ClientContext& at_client = client_context(),
                    const Endpoint& endpoint = kByName) {
  End server{at_server};
  End client{at_client, endpoint};
  exchange(client, server);
  EXPECT_EQ(server.state() == State::open, client.state() == State::open) << server.failure();
  return client.failure();
}

// ---- the certificate that is shown ----

TEST(TlsSession, shows_the_certificate_of_the_name_that_is_asked_for) {
  const UsualCertificates& usual = usual_certificates();
  const auto of = [&](const std::string& name, const std::string& names) {
    return usual.folder.write("sni-" + name, issue({.subject = name, .names = names}, &usual.authority));
  };
  const ServerContext context = server_context(
      {.identities = {of("first", "DNS:first.example"), of("second", "DNS:second.example,DNS:*.second.example")}});
  for (const auto& [asked, shown] :
       {std::pair{"first.example", "first"}, std::pair{"second.example", "second"},
        std::pair{"SECOND.example", "second"}, std::pair{"a.second.example", "second"},
        std::pair{"a.b.second.example", "first"}, std::pair{"third.example", "first"}, std::pair{"", "first"}}) {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      End server{context};
      TlsPeer client{{.version_min = version, .version_max = version, .server_name = asked}};
      exchange(client, server);
      ASSERT_EQ(server.state(), State::open) << server.failure();
      EXPECT_EQ(client.peer_subject(), shown) << asked;
    }
  }
  EXPECT_EQ(context->fingerprint(), fingerprint_of(SSL_CTX_get0_certificate(context->get())));
}

TEST(TlsSession, shows_the_certificate_whose_key_the_client_understands) {
  const UsualCertificates& usual = usual_certificates();
  const TlsFiles rsa = usual.folder.write("twin-rsa", issue({.subject = "rsa", .rsa = true}, &usual.authority));
  const TlsFiles ecdsa = usual.folder.write("twin-ecdsa", issue({.subject = "ecdsa"}, &usual.authority));
  for (const bool rsa_first : {false, true}) {
    const ServerContext context =
        server_context({.identities = rsa_first ? std::vector{rsa, ecdsa} : std::vector{ecdsa, rsa}});
    for (const char* const key : {"rsa", "ecdsa"}) {
      End server{context};
      TlsPeer client{{.server_name = "localhost", .adapt = [&](SSL_CTX* made) {
                        SSL_CTX_set1_sigalgs_list(made, key == "rsa"s ? "rsa_pss_rsae_sha256" : "ECDSA+SHA256");
                      }}};
      exchange(client, server);
      ASSERT_EQ(server.state(), State::open) << server.failure();
      EXPECT_EQ(client.peer_subject(), key);
    }
  }
}

TEST(TlsSession, shows_the_chain_of_its_file) {
  const UsualCertificates& usual = usual_certificates();
  const Issued middle = issue({.subject = "middle", .authority = true}, &usual.authority);
  const Issued leaf = issue({}, &middle);
  EXPECT_EQ(refusal(server_context(usual.folder.write("chained", leaf, {&middle}))), "");
  EXPECT_EQ(refusal(server_context(usual.folder.write("unchained", leaf))),
            "the peer's certificate is refused: unable to get local issuer certificate");
}

TEST(TlsSession, shows_a_certificate_of_its_own_making_that_only_its_fingerprint_proves) {
  const ServerContext made = server_context(TlsServerSettings{.self_signed = true});
  EXPECT_EQ(refusal(made), "the peer's certificate is refused: self-signed certificate");
  for (const Endpoint& endpoint : {kByName, kByAddress, Endpoint{"tls://[::1]:1"}})
    EXPECT_EQ(refusal(made, client_context({.pin = "sha256:" + made->fingerprint()}), endpoint), "");
  // It has the names that it says.
  const CertificateFolder folder;
  X509* const certificate = SSL_CTX_get0_certificate(made->get());
  const BioPointer bio{BIO_new(BIO_s_mem())};
  PEM_write_bio_X509(bio.get(), certificate);
  const ClientContext trusting = client_context({.cafile = folder.write("self.pem", text_in(bio.get()))});
  for (const Endpoint& endpoint : {kByName, kByAddress, Endpoint{"tls://[::1]:1"}})
    EXPECT_EQ(refusal(made, trusting, endpoint), "") << endpoint.uri();
  EXPECT_NE(refusal(made, trusting, Endpoint{"tls://127.0.0.2:1"}), "");
  // Another start makes another; the same server keeps its own.
  EXPECT_NE(server_context(TlsServerSettings{.self_signed = true})->fingerprint(), made->fingerprint());
  EXPECT_EQ(server_context(TlsServerSettings{.self_signed = true}, made)->fingerprint(), made->fingerprint());
}

// ---- what a client accepts ----

TEST(TlsSession, of_a_client_wants_the_name_or_address_that_it_connects_to) {
  const UsualCertificates& usual = usual_certificates();
  const auto shown = [&](const std::string& names) {
    return server_context(usual.folder.write("names", issue({.subject = "named", .names = names}, &usual.authority)));
  };
  const std::string by_name = "the peer's certificate is refused: hostname mismatch";
  const std::string by_address = "the peer's certificate is refused: IP address mismatch";
  struct Case {
    const char* names;
    const char* uri;
    std::string refused;
  };
  for (const Case& one :
       {Case{"DNS:a.example", "tls://a.example", ""}, Case{"DNS:a.example", "tls://A.EXAMPLE", ""},
        Case{"DNS:a.example", "wss://b.example", by_name}, Case{"DNS:a.example", "https://x.a.example", by_name},
        Case{"DNS:*.example.com", "tls://a.example.com", ""},
        Case{"DNS:*.example.com", "tls://a.b.example.com", by_name},
        Case{"DNS:*.example.com", "tls://example.com", by_name},
        Case{"DNS:a*.example.com", "tls://ab.example.com", by_name}, Case{"DNS:*", "tls://localhost", by_name},
        Case{"IP:127.0.0.1", "tls://127.0.0.1", ""}, Case{"IP:127.0.0.1", "tls://127.0.0.2", by_address},
        Case{"DNS:127.0.0.1", "tls://127.0.0.1", by_address}, Case{"IP:::1", "tls://[::1]:1", ""},
        Case{"IP:::1", "tls://[::2]:1", by_address}, Case{"email:a@localhost", "tls://localhost", by_name}}) {
    EXPECT_EQ(refusal(shown(one.names), client_context(), Endpoint{one.uri}), one.refused) << one.names << one.uri;
  }
}

TEST(TlsSession, of_a_client_refuses_what_no_authority_of_its_own_vouches_for_now) {
  const UsualCertificates& usual = usual_certificates();
  const auto refused = [&](const CertificateTerms& terms, const Issued* issuer) {
    return refusal(server_context(usual.folder.write("refused", issue(terms, issuer))));
  };
  const std::string why = "the peer's certificate is refused: ";
  EXPECT_EQ(refused({.ends = -60}, &usual.authority), why + "certificate has expired");
  EXPECT_EQ(refused({.begins = 600}, &usual.authority), why + "certificate is not yet valid");
  EXPECT_EQ(refused({.usage = "clientAuth"}, &usual.authority), why + "unsuitable certificate purpose");
  EXPECT_EQ(refused({}, nullptr), why + "self-signed certificate");
  const Issued stranger = issue({.subject = "stranger", .authority = true});
  EXPECT_EQ(refused({}, &stranger), why + "unable to get local issuer certificate");
  // A leaf is no authority.
  const Issued leaf = issue({.subject = "leaf"}, &usual.authority);
  const TlsFiles forged = usual.folder.write("forged", issue({}, &leaf), {&leaf});
  EXPECT_EQ(refusal(server_context(forged)), why + "invalid CA certificate");
  EXPECT_EQ(refusal(server_context(), client_context(TlsClientSettings{})),
            why + "unable to get local issuer certificate")
      << "the system's authorities do not know it";
}

// By OpenSSL's codes, whatever its texts are.
TEST(TlsSession, of_a_client_says_what_kind_of_fault_it_has_found) {
  const UsualCertificates& usual = usual_certificates();
  const auto fault_of = [&](const CertificateTerms& terms, const Issued* issuer, const ClientContext& at_client) {
    End server{server_context(usual.folder.write("faulty", issue(terms, issuer)))};
    End client{at_client, kByName};
    exchange(client, server);
    EXPECT_EQ(client.state(), State::failed);
    EXPECT_EQ(server.session.fault(), TlsFault::alert) << server.failure();
    return client.session.fault();
  };
  const ClientContext usually = client_context();
  EXPECT_EQ(fault_of({.ends = -60}, &usual.authority, usually), TlsFault::validity);
  EXPECT_EQ(fault_of({.begins = 600}, &usual.authority, usually), TlsFault::validity);
  EXPECT_EQ(fault_of({.names = "DNS:a.example"}, &usual.authority, usually), TlsFault::name);
  EXPECT_EQ(fault_of({}, nullptr, usually), TlsFault::authority);
  EXPECT_EQ(fault_of({.usage = "clientAuth"}, &usual.authority, usually), TlsFault::authority);
  EXPECT_EQ(fault_of({}, nullptr, client_context({.pin = "sha256:" + std::string(64, '0')})), TlsFault::pin);
  End plain{usually, kByName};
  plain.receive("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ(plain.state(), State::failed);
  EXPECT_EQ(plain.session.fault(), TlsFault::other);
}

TEST(TlsSession, of_a_client_tells_the_server_why_it_refuses_it) {
  const Issued stranger = issue({.subject = "stranger", .authority = true});
  End server{server_context(usual_certificates().folder.write("strange", issue({}, &stranger)))};
  End client{client_context(), kByName};
  exchange(client, server);
  EXPECT_EQ(server.failure(), "tlsv1 alert unknown ca");
}

TEST(TlsSession, of_a_client_may_be_told_the_certificate_itself) {
  const ServerContext server = server_context();
  const std::string digits = server->fingerprint();
  ASSERT_EQ(digits.size(), 64U);
  std::string loud;
  for (std::size_t i = 0; i != digits.size(); ++i) {
    if (i != 0 && i % 2 == 0) loud += ':';
    loud += static_cast<char>(std::toupper(static_cast<unsigned char>(digits[i])));
  }
  const Endpoint elsewhere{"tls://elsewhere.example"};
  for (const std::string& pin : {"sha256:" + digits, "sha256:" + loud})
    EXPECT_EQ(refusal(server, client_context({.pin = pin}), elsewhere), "") << "no name is checked, and no authority";
  std::string other = digits;
  other[63] = other[63] == '0' ? '1' : '0';
  EXPECT_EQ(
      refusal(server_context(usual_certificates().folder.write("unpinned", issue({}, &usual_certificates().authority))),
              client_context({.cafile = usual_certificates().cafile, .pin = "sha256:" + digits})),
      "the server's certificate is not the one of tls.pin");
}

TEST(TlsSession, of_a_client_that_verifies_nothing_accepts_anybody) {
  const ClientContext any = client_context({.verify = false});
  EXPECT_EQ(refusal(server_context(TlsServerSettings{.self_signed = true}), any, Endpoint{"tls://x.example"}), "");
}

// ---- clients' certificates ----

TEST(TlsSession, of_a_server_asks_for_a_certificate_as_it_is_told) {
  const UsualCertificates& usual = usual_certificates();
  const ClientContext without = client_context();
  const ClientContext with = client_context(showing(usual.client_files));
  EXPECT_FALSE(Opened(server_context(), with).server.session.has_certificate()) << "nobody asks";
  const ServerContext optional = server_context(asking(usual.cafile, ClientCertificate::optional));
  EXPECT_FALSE(Opened(optional, without).server.session.has_certificate());
  EXPECT_TRUE(Opened(optional, with).server.session.has_certificate());
  const ServerContext required = server_context(asking(usual.cafile));
  EXPECT_TRUE(Opened(required, with).server.session.has_certificate());
  End server{required};
  End client{without, kByName};
  exchange(client, server);
  EXPECT_EQ(server.failure(), "peer did not return a certificate");
  EXPECT_EQ(client.failure(), "tlsv13 alert certificate required");
}

TEST(TlsSession, of_a_server_refuses_a_certificate_that_is_not_in_order_even_where_none_is_needed) {
  const UsualCertificates& usual = usual_certificates();
  const Issued stranger = issue({.subject = "stranger", .authority = true});
  const Issued revoked = issue({.subject = "revoked"}, &usual.authority);
  const Issued middle = issue({.subject = "middle", .authority = true}, &usual.authority);
  const std::string crl = usual.folder.write(
      "clients.crl", revocation_list(usual.authority, {&revoked, &middle}) + revocation_list(middle, {}));
  const std::string late = usual.folder.write("late.crl", revocation_list(usual.authority, {}, -30));
  const auto refused = [&](const TlsFiles& own, const std::string& revocations = {}) {
    for (const ClientCertificate how : {ClientCertificate::optional, ClientCertificate::required}) {
      End server{server_context(asking(usual.cafile, how, revocations))};
      End client{client_context(showing(own)), kByName};
      exchange(client, server);
      EXPECT_EQ(server.state(), State::failed);
      if (how == ClientCertificate::required) return server.failure();
    }
    return ""s;
  };
  const auto own = [&](const CertificateTerms& terms, const Issued& issuer,
                       std::initializer_list<const Issued*> chain = {}) {
    return usual.folder.write("own", issue(terms, &issuer), chain);
  };
  const std::string why = "the peer's certificate is refused: ";
  EXPECT_EQ(refused(own({.ends = -60}, usual.authority)), why + "certificate has expired");
  EXPECT_EQ(refused(own({}, stranger)), why + "unable to get local issuer certificate");
  EXPECT_EQ(refused(own({.usage = "serverAuth"}, usual.authority)), why + "unsuitable certificate purpose");
  EXPECT_EQ(refused(usual.folder.write("revoked", revoked), crl), why + "certificate revoked");
  EXPECT_EQ(refused(own({}, middle, {&middle}), crl), why + "certificate revoked") << "the authority behind it";
  EXPECT_EQ(refused(usual.client_files, late), why + "CRL has expired");
}

TEST(TlsSession, of_a_server_accepts_a_chain_and_a_certificate_that_is_not_on_the_list) {
  const UsualCertificates& usual = usual_certificates();
  const Issued middle = issue({.subject = "middle", .authority = true}, &usual.authority);
  const Issued leaf = issue({.subject = "leaf", .names = "DNS:worker.example"}, &middle);
  const std::string crl = usual.folder.write(
      "chain.crl", revocation_list(usual.authority, {&usual.server}) + revocation_list(middle, {&usual.server}));
  const ClientContext at_client = client_context(showing(usual.folder.write("chained-client", leaf, {&middle})));
  const ServerContext at_server = server_context(asking(usual.cafile, ClientCertificate::required, crl));
  const Opened ends{at_server, at_client};
  EXPECT_EQ(ends.server.session.certificate_names(), std::vector{"dns:worker.example"s});
  EXPECT_TRUE(ends.server.session.is_accepted_by(*at_server));
}

TEST(TlsSession, of_a_server_says_whether_it_would_accept_its_client_by_other_authorities) {
  const UsualCertificates& usual = usual_certificates();
  const Issued other = issue({.subject = "other", .authority = true});
  const ServerContext before = server_context(asking(usual.cafile, ClientCertificate::optional));
  const ServerContext elsewhere = server_context(asking(usual.folder.write("other.pem", pem_of(other))));
  const ServerContext revoking =
      server_context(asking(usual.cafile, ClientCertificate::optional,
                            usual.folder.write("ada.crl", revocation_list(usual.authority, {&usual.client}))));
  const Opened known{before, client_context(showing(usual.client_files))};
  EXPECT_TRUE(known.server.session.is_accepted_by(*before));
  EXPECT_FALSE(known.server.session.is_accepted_by(*elsewhere));
  EXPECT_FALSE(known.server.session.is_accepted_by(*revoking));
  const Opened unknown{before};
  EXPECT_TRUE(unknown.server.session.is_accepted_by(*elsewhere)) << "it has shown none";
}

TEST(TlsSession, of_a_server_keeps_a_resumed_client_whose_chain_is_still_accepted) {
  const UsualCertificates& usual = usual_certificates();
  const Issued middle = issue({.subject = "middle", .authority = true}, &usual.authority);
  const Issued leaf = issue({.subject = "leaf", .names = "DNS:worker.example"}, &middle);
  const ServerContext at_server = server_context(asking(usual.cafile));
  const ClientContext at_client = client_context(showing(usual.folder.write("resumed-chain", leaf, {&middle})));
  static_cast<void>(Opened(at_server, at_client));
  const Opened resumed{at_server, at_client};
  ASSERT_TRUE(resumed.server.session.resumed());
  EXPECT_TRUE(resumed.server.session.is_accepted_by(*at_server));
}

}  // namespace
}  // namespace wirecall::transport
