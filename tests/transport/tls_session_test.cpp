// TLS sessions in memory: against each other, and against OpenSSL peers that do what ours never would. Expected texts
// are OpenSSL's own reasons, and the alerts of RFC 5246 and 8446.
#include "transport/tls_session.hpp"

#include <algorithm>
#include <ctime>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/transport/tls_pair.hpp"
#include "transport/tls_certificate.hpp"

namespace wirecall::transport {
namespace {

using namespace std::string_literals;
using State = TlsSession::State;

const Endpoint kByName{"tls://localhost:8545"};
const Endpoint kByAddress{"tls://127.0.0.1:8545"};

// Pieces of records, as a wire has them.
std::vector<std::string> records_of(std::string_view bytes) {
  std::vector<std::string> all;
  while (bytes.size() >= 5) {
    const std::size_t size = 5 + (static_cast<std::size_t>(static_cast<unsigned char>(bytes[3])) << 8 |
                                  static_cast<unsigned char>(bytes[4]));
    all.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
  return all;
}

// Both ends of a connection that is open.
struct Opened {
  explicit Opened(const ServerContext& at_server = server_context(), const ClientContext& at_client = client_context(),
                  const Endpoint& endpoint = kByName)
      : server(at_server), client(at_client, endpoint) {
    exchange(client, server);
    EXPECT_EQ(server.state(), State::open) << server.failure();
    EXPECT_EQ(client.state(), State::open) << client.failure();
  }
  End server;
  End client;
};

// What a client says of a server that it does not accept; empty for one that it does.
std::string refusal(const ServerContext& at_server, const ClientContext& at_client = client_context(),
                    const Endpoint& endpoint = kByName) {
  End server{at_server};
  End client{at_client, endpoint};
  exchange(client, server);
  EXPECT_EQ(server.state() == State::open, client.state() == State::open) << server.failure();
  return client.failure();
}

TEST(TlsSession, shakes_hands_by_1_3_and_carries_bytes_both_ways) {
  Opened ends;
  EXPECT_EQ(ends.server.session.version(), "TLSv1.3");
  EXPECT_EQ(ends.client.session.version(), "TLSv1.3");
  EXPECT_FALSE(ends.client.session.resumed());
  EXPECT_FALSE(ends.server.session.has_certificate());
  const std::string large(300'000, 'x');
  for (const std::string& text : {"a"s, large}) {
    ASSERT_TRUE(ends.client.send(text));
    ASSERT_TRUE(ends.server.send(text + "!"));
    exchange(ends.client, ends.server);
    EXPECT_EQ(ends.server.heard(), text);
    EXPECT_EQ(ends.client.heard(), text + "!");
  }
}

TEST(TlsSession, shakes_hands_by_1_2_with_forward_secrecy_and_authenticated_encryption) {
  End server{server_context()};
  TlsPeer client{{.version_max = TLS1_2_VERSION}};
  std::string heard;
  exchange(client, server);
  ASSERT_EQ(server.state(), State::open) << server.failure();
  EXPECT_EQ(server.session.version(), "TLSv1.2");
  EXPECT_TRUE(server.session.cipher().starts_with("ECDHE-")) << server.session.cipher();
  client.write("question");
  ASSERT_TRUE(server.send("answer"));
  exchange(client, server, &heard);
  EXPECT_EQ(server.heard(), "question");
  EXPECT_EQ(heard, "answer");
}

TEST(TlsSession, of_a_client_speaks_1_2_with_a_server_that_knows_no_more) {
  TlsPeer server{{.server = true, .version_max = TLS1_2_VERSION, .own = usual_certificates().server_files}};
  End client{client_context(), kByName};
  exchange(server, client);
  ASSERT_EQ(client.state(), State::open) << client.failure();
  EXPECT_EQ(client.session.version(), "TLSv1.2");
}

TEST(TlsSession, refuses_versions_before_1_2) {
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION}) {
    End server{server_context()};
    TlsPeer client{{.version_min = version, .version_max = version}};
    exchange(client, server);
    EXPECT_EQ(server.state(), State::failed);
    EXPECT_EQ(server.failure(), "unsupported protocol");
    EXPECT_EQ(client.failure, "tlsv1 alert protocol version");
    TlsPeer old_server{{.server = true,
                        .version_min = version,
                        .version_max = version,
                        .own = usual_certificates().server_files,
                        .adapt = [](SSL_CTX* context) { SSL_CTX_set_cipher_list(context, "ALL:@SECLEVEL=0"); }}};
    End new_client{client_context(), kByName};
    exchange(old_server, new_client);
    EXPECT_EQ(new_client.state(), State::failed);
  }
}

TEST(TlsSession, refuses_ciphers_without_forward_secrecy_or_authenticated_encryption) {
  const TlsFiles rsa = usual_certificates().folder.write("rsa", issue({.rsa = true}, &usual_certificates().authority));
  const ServerContext both = server_context({.identities = {usual_certificates().server_files, rsa}});
  for (const char* const ciphers : {"AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384",
                                    "DHE-RSA-AES128-GCM-SHA256", "NULL-SHA256", "AES256-SHA"}) {
    End server{both};
    TlsPeer client{{.version_max = TLS1_2_VERSION, .adapt = [&](SSL_CTX* context) {
                      EXPECT_EQ(SSL_CTX_set_cipher_list(context, (ciphers + ":@SECLEVEL=0"s).c_str()), 1) << ciphers;
                    }}};
    exchange(client, server);
    EXPECT_EQ(server.failure(), "no shared cipher") << ciphers;
  }
}

TEST(TlsSession, does_not_compress) {
  End server{server_context()};
  TlsPeer client{{.adapt = [](SSL_CTX* context) { SSL_CTX_clear_options(context, SSL_OP_NO_COMPRESSION); }}};
  exchange(client, server);
  ASSERT_EQ(server.state(), State::open);
  EXPECT_EQ(SSL_get_current_compression(client.ssl()), nullptr);
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

// ---- the protocol that is agreed on ----

TEST(TlsSession, agrees_on_http_or_on_what_else_its_port_speaks) {
  for (const auto& [uri, protocol] :
       {std::pair{"tls://localhost", "wirecall"}, std::pair{"https://localhost", "http/1.1"},
        std::pair{"wss://localhost", "http/1.1"}}) {
    const Opened ends{server_context(), client_context(), Endpoint{uri}};
    EXPECT_EQ(ends.server.session.protocol(), protocol);
    EXPECT_EQ(ends.client.session.protocol(), protocol);
  }
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const auto agreed = [&](const std::vector<std::string>& offered) {
      End server{server_context()};
      TlsPeer client{{.version_min = version, .version_max = version, .protocols = offered}};
      exchange(client, server);
      EXPECT_EQ(server.state() == State::open, client.failure.empty());
      if (server.state() != State::open) return client.failure + " / " + server.failure();
      EXPECT_EQ(client.protocol(), server.session.protocol());
      return client.protocol();
    };
    EXPECT_EQ(agreed({}), "");
    EXPECT_EQ(agreed({"h2", "http/1.1"}), "http/1.1");
    EXPECT_EQ(agreed({"wirecall", "http/1.1"}), "wirecall");
    EXPECT_EQ(agreed({"http/1.1", "wirecall"}), "http/1.1");
    const std::string none = "tlsv1 alert no application protocol / no application protocol";
    EXPECT_EQ(agreed({"h2"}), none);
    EXPECT_EQ(agreed({"http/1.0", "http/1.1x", "wirecal", "HTTP/1.1"}), none);
    EXPECT_EQ(agreed({std::string(255, 'x'), "wirecall"}), "wirecall");
  }
}

// ---- sessions that are resumed ----

TEST(TlsSession, is_resumed_by_its_client_once_a_ticket) {
  for (const char* const uri : {"tls://localhost", "https://127.0.0.1"}) {
    const ServerContext at_server = server_context();
    const ClientContext at_client = client_context();
    const Endpoint endpoint{uri};
    EXPECT_FALSE(Opened(at_server, at_client, endpoint).client.session.resumed());
    for (int i = 0; i < 3; ++i) {
      const Opened again{at_server, at_client, endpoint};
      EXPECT_TRUE(again.client.session.resumed());
      EXPECT_TRUE(again.server.session.resumed());
    }
    EXPECT_FALSE(Opened(at_server, at_client, Endpoint{"tls://localhost:1"}).client.session.resumed())
        << "another server";
  }
}

TEST(TlsSession, is_resumed_by_1_2) {
  const ServerContext at_server = server_context();
  TlsPeer first{{.version_max = TLS1_2_VERSION}};
  End server{at_server};
  exchange(first, server);
  ASSERT_NE(first.session(), nullptr);
  TlsPeer second{{.version_max = TLS1_2_VERSION, .session = first.session()}};
  End again{at_server};
  exchange(second, again);
  EXPECT_TRUE(second.resumed());
  EXPECT_TRUE(again.session.resumed());
}

TEST(TlsSession, is_resumed_after_certificates_were_read_anew) {
  const UsualCertificates& usual = usual_certificates();
  const ServerContext before = server_context();
  const ServerContext after = server_context(
      TlsServerSettings{.identities = {usual.folder.write("rotated", issue({}, &usual.authority))}}, before);
  const ClientContext at_client = client_context();
  static_cast<void>(Opened(before, at_client));
  EXPECT_TRUE(Opened(after, at_client).client.session.resumed());
  EXPECT_FALSE(Opened(server_context(), at_client).client.session.resumed()) << "another server";
}

TlsServerSettings asking(const std::string& authorities, ClientCertificate how = ClientCertificate::required,
                         const std::string& crl = {}) {
  return {
      .identities = {usual_certificates().server_files}, .client = how, .client_ca = authorities, .client_crl = crl};
}
TlsClientSettings showing(const TlsFiles& own) { return {.cafile = usual_certificates().cafile, .own = own}; }

TEST(TlsSession, is_not_resumed_once_others_vouch_for_clients) {
  const UsualCertificates& usual = usual_certificates();
  const Issued other = issue({.subject = "other", .authority = true});
  const std::string both = usual.folder.write("both.pem", pem_of(usual.authority) + pem_of(other));
  const std::string none_revoked = usual.folder.write("none.crl", revocation_list(usual.authority, {}));
  const ServerContext before = server_context(asking(usual.cafile));
  const ServerContext same = server_context(asking(usual.cafile), before);
  EXPECT_FALSE(same->differs_for_clients(*before));
  const ClientContext at_client = client_context(showing(usual.client_files));
  static_cast<void>(Opened(before, at_client));
  EXPECT_TRUE(Opened(same, at_client).client.session.resumed());
  for (const TlsServerSettings& now : {asking(both), asking(usual.cafile, ClientCertificate::required, none_revoked)}) {
    const ServerContext after = server_context(now, before);
    EXPECT_TRUE(after->differs_for_clients(*before));
    static_cast<void>(Opened(before, at_client));  // which has a ticket now
    EXPECT_FALSE(Opened(after, at_client).client.session.resumed());
  }
}

TEST(TlsSession, that_is_resumed_has_the_certificate_of_when_it_began) {
  const ServerContext at_server = server_context(asking(usual_certificates().cafile));
  const ClientContext at_client = client_context(showing(usual_certificates().client_files));
  for (int i = 0; i < 3; ++i) {
    const Opened ends{at_server, at_client};
    EXPECT_EQ(ends.server.session.resumed(), i != 0);
    EXPECT_EQ(ends.server.session.certificate_names(), std::vector{"email:ada@example.com"s});
    EXPECT_TRUE(ends.server.session.is_accepted_by(*at_server));
  }
}

TEST(TlsSession, is_not_resumed_once_the_clients_certificate_has_expired) {
  const UsualCertificates& usual = usual_certificates();
  const Issued brief = issue({.subject = "brief", .ends = -60}, &usual.authority);
  const ServerContext at_server = server_context(asking(usual.cafile));
  // What is shown is looked at as if that were ten minutes ago.
  X509_VERIFY_PARAM_set_time(SSL_CTX_get0_param(at_server->get()), std::time(nullptr) - 600);
  const ClientContext at_client = client_context(showing(usual.folder.write("brief", brief)));
  End server{at_server};
  End client{at_client, kByName};
  exchange(client, server);
  ASSERT_EQ(server.state(), State::open) << server.failure();
  End again{at_server};
  End resuming{at_client, kByName};
  exchange(resuming, again);
  EXPECT_EQ(again.state(), State::failed);
  EXPECT_EQ(again.failure(), "the peer's certificate has expired");
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

// ---- the end ----

TEST(TlsSession, ends_when_the_peer_says_so_and_may_answer_yet) {
  Opened ends;
  ends.client.session.shut_down(ends.client.output);
  exchange(ends.client, ends.server);
  EXPECT_EQ(ends.server.state(), State::ended);
  EXPECT_EQ(ends.client.state(), State::open);
  ASSERT_TRUE(ends.server.send("late"));
  exchange(ends.client, ends.server);
  EXPECT_EQ(ends.client.heard(), "late");
  ends.server.session.shut_down(ends.server.output);
  exchange(ends.client, ends.server);
  EXPECT_EQ(ends.client.state(), State::ended);
  EXPECT_EQ(ends.client.take() + ends.server.take(), "");
}

TEST(TlsSession, ignores_what_follows_the_end) {
  Opened ends;
  ASSERT_TRUE(ends.client.send("before"));
  ends.client.session.shut_down(ends.client.output);
  ends.server.receive(ends.client.take() + "and garbage");
  EXPECT_EQ(ends.server.state(), State::ended);
  EXPECT_EQ(ends.server.heard(), "before");
  ends.server.receive("more garbage");
  EXPECT_EQ(ends.server.state(), State::ended);
  EXPECT_EQ(ends.server.take(), "");
}

// ---- cuts and garbage ----

TEST(TlsSession, reads_alike_however_its_input_is_cut) {
  const ServerContext at_server = server_context();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    // Each message of the client is cut in two at each of its bytes, a connection each.
    std::size_t longest = 1;
    for (std::size_t cut = 0; cut < longest; ++cut) {
      End server{at_server};
      TlsPeer client{{.version_min = version, .version_max = version}};
      bool asked = false;
      for (int i = 0; i < 8; ++i) {
        client.shake_hands();
        if (SSL_is_init_finished(client.ssl()) == 1 && !std::exchange(asked, true)) client.write("question");
        const std::string bytes = client.take();
        longest = std::max(longest, bytes.size());
        const std::size_t at = std::min(cut, bytes.size());
        if (at != 0) server.receive(bytes.substr(0, at));
        if (at != bytes.size()) server.receive(bytes.substr(at));
        client.feed(server.take());
      }
      ASSERT_EQ(server.state(), State::open) << "cut at " << cut << ": " << server.failure();
      EXPECT_EQ(server.heard(), "question") << cut;
    }
  }
}

TEST(TlsSession, reads_what_comes_a_byte_at_a_time) {
  End server{server_context()};
  End client{client_context(), kByName};
  const auto dribble = [](End& from, End& to) {
    for (const char byte : from.take()) to.receive({&byte, 1});
  };
  for (int i = 0; i < 4; ++i) dribble(client, server), dribble(server, client);
  ASSERT_EQ(server.state(), State::open) << server.failure();
  ASSERT_TRUE(server.send(std::string(40'000, 'y')));
  dribble(server, client);
  EXPECT_EQ(client.heard(), std::string(40'000, 'y'));
}

TEST(TlsSession, takes_a_message_that_came_with_the_end_of_the_handshake) {
  End server{server_context()};
  TlsPeer client;
  client.shake_hands();
  server.receive(client.take());
  client.feed(server.take());
  ASSERT_TRUE(client.shake_hands());
  client.write("question");
  EXPECT_EQ(server.receive(client.take()), State::open);
  EXPECT_EQ(server.heard(), "question");
}

TEST(TlsSession, fails_with_an_alert_where_a_byte_of_a_record_is_another) {
  const ServerContext at_server = server_context();
  std::size_t size = 1;
  for (std::size_t i = 0; i < size; ++i) {
    Opened ends{at_server};
    ASSERT_TRUE(ends.client.send("secret"));
    std::string record = ends.client.take();
    ASSERT_EQ(records_of(record).size(), 1U);
    size = record.size();
    record[i] = static_cast<char>(record[i] ^ 1);
    ends.server.receive(record);
    if (i == 3 || i == 4) ends.server.receive(std::string(512, 'x'));  // the rest that its length promises
    EXPECT_EQ(ends.server.state(), State::failed) << i;
    EXPECT_EQ(ends.server.heard(), "") << i;
    ends.client.receive(ends.server.take());
    EXPECT_EQ(ends.client.state(), State::failed) << i;
    EXPECT_TRUE(ends.client.failure().contains("alert")) << i << ends.client.failure();
    EXPECT_FALSE(ends.server.send("anything"));
    EXPECT_EQ(ends.server.take(), "");
  }
}

// No byte of the first message may end in anything but a handshake or an alert.
TEST(TlsSession, answers_a_client_hello_with_another_byte_by_an_alert_or_goes_on) {
  const ServerContext at_server = server_context();
  TlsPeer first{
      {.protocols = {"wirecall"}, .adapt = [](SSL_CTX* context) { SSL_CTX_set_options(context, SSL_OP_NO_TICKET); }}};
  first.shake_hands();
  const std::string hello = first.take();
  for (std::size_t i = 0; i < hello.size(); ++i) {
    for (const int bit : {0x01, 0x80}) {
      std::string other = hello;
      other[i] = static_cast<char>(other[i] ^ bit);
      End server{at_server};
      server.receive(other);
      const std::string output = server.take();
      if (server.state() == State::failed) {
        EXPECT_TRUE(output.empty() || output[0] == '\x15') << i;
        EXPECT_FALSE(server.failure().empty());
      }
    }
  }
}

TEST(TlsSession, fails_for_plain_text) {
  for (const std::string& text :
       {"{\"jsonrpc\":\"2.0\"}\n"s, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"s, std::string(64, '\0'),
        "\x16\x03\x01\xFF\xFF"s + std::string(0x10000, 'x'), "\x15\x03\x03\x00\x02\x02\x28"s,
        "\x17\x03\x03\x00\x05hello"s, "\x14\x03\x03\x00\x01\x01"s, "\x18\x03\x03\x00\x03\x01\x40\x00"s}) {
    End server{server_context()};
    server.receive(text);
    EXPECT_EQ(server.state(), State::failed) << text.substr(0, 5);
    EXPECT_NE(server.state(), State::open);
    End client{client_context(), kByName};
    client.receive(text);
    EXPECT_NE(client.state(), State::open);
  }
}

TEST(TlsSession, that_has_failed_stays_so) {
  End server{server_context()};
  server.receive("GET / HTTP/1.1\r\n\r\n");
  ASSERT_EQ(server.state(), State::failed);
  EXPECT_EQ(server.failure(), "http request");
  static_cast<void>(server.take());
  TlsPeer client;
  client.shake_hands();
  server.receive(client.take());
  EXPECT_EQ(server.state(), State::failed);
  server.session.shut_down(server.output);
  EXPECT_EQ(server.take(), "");
}

TEST(TlsSession, leaves_nothing_of_a_failure_to_another_on_its_thread) {
  Opened ends;
  End failing{server_context()};
  failing.receive("nonsense that is no record");
  ASSERT_EQ(failing.state(), State::failed);
  EXPECT_EQ(ERR_peek_error(), 0U);
  ERR_put_error(ERR_LIB_SSL, 0, SSL_R_CERTIFICATE_VERIFY_FAILED, "", 0);  // another library's, on this thread
  ASSERT_TRUE(ends.client.send("question"));
  exchange(ends.client, ends.server);
  EXPECT_EQ(ends.server.heard(), "question");
}

// ---- floods ----

TEST(TlsSession, does_not_renegotiate) {
  End server{server_context()};
  TlsPeer client{{.version_max = TLS1_2_VERSION}};
  exchange(client, server);
  ASSERT_EQ(server.state(), State::open);
  ASSERT_EQ(SSL_renegotiate(client.ssl()), 1);
  SSL_do_handshake(client.ssl());
  exchange(client, server);
  EXPECT_EQ(client.failure, "no renegotiation");
  EXPECT_NE(server.state(), State::handshaking);
}

TEST(TlsSession, of_a_client_does_not_renegotiate_either) {
  TlsPeer server{{.server = true, .version_max = TLS1_2_VERSION, .own = usual_certificates().server_files}};
  End client{client_context(), kByName};
  exchange(server, client);
  ASSERT_EQ(client.state(), State::open) << client.failure();
  ASSERT_EQ(SSL_renegotiate(server.ssl()), 1);
  SSL_do_handshake(server.ssl());
  exchange(server, client);
  EXPECT_NE(client.state(), State::handshaking);
  EXPECT_NE(SSL_get_state(server.ssl()), TLS_ST_SR_CLNT_HELLO);
}

TEST(TlsSession, changes_keys_as_often_as_a_peer_may_ask) {
  End server{server_context()};
  TlsPeer client;
  exchange(client, server);
  std::string heard;
  for (int i = 0; i < 64; ++i) {
    SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED);
    client.write("x");
    ASSERT_TRUE(server.send("y"));
    exchange(client, server, &heard);
    ASSERT_EQ(server.state(), State::open) << i;
  }
  EXPECT_EQ(server.heard(), std::string(64, 'x'));
  EXPECT_EQ(heard, std::string(64, 'y'));
  SSL_key_update(client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
  client.write("x");
  exchange(client, server);
  EXPECT_EQ(server.state(), State::failed);
  EXPECT_EQ(server.failure(), "the peer changes keys too often");
}

TEST(TlsSession, does_not_follow_a_flood_of_new_keys) {
  End server{server_context()};
  TlsPeer client;
  exchange(client, server);
  std::string flood;
  for (int i = 0; i < 10'000; ++i) {
    SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED);
    client.write("");
    SSL_do_handshake(client.ssl());
    flood += client.take();
  }
  server.receive(flood);
  EXPECT_EQ(server.state(), State::failed);
  EXPECT_LT(server.take().size(), 8192U) << "of what is answered";
}

TEST(TlsSession, does_not_follow_a_flood_of_empty_records) {
  End server{server_context()};
  TlsPeer client{{.version_max = TLS1_2_VERSION}};
  exchange(client, server);
  // A record of nothing, encrypted, is what OpenSSL cannot be asked for; unencrypted ones stand for them.
  std::string flood;
  for (int i = 0; i < 100'000; ++i) flood += "\x17\x03\x03\x00\x00"s;
  server.receive(flood);
  EXPECT_EQ(server.state(), State::failed);
}

TEST(TlsSession, bounds_the_bytes_of_a_handshake) {
  // A client hello that says it is as long as may be, in records of one byte.
  End server{server_context()};
  server.receive("\x16\x03\x01\x00\x04\x01\x01\xFF\xFC"s);
  std::size_t sent = 9;
  while (server.state() == State::handshaking && sent < 1'000'000) {
    server.receive("\x16\x03\x01\x00\x01x"s);
    sent += 6;
  }
  EXPECT_EQ(server.state(), State::failed);
  EXPECT_LE(sent, 128U * 1024 + 6) << server.failure();
}

TEST(TlsSession, bounds_what_it_takes_of_a_clients_chain) {
  const UsualCertificates& usual = usual_certificates();
  std::string chain = pem_of(usual.client);
  const std::string more = pem_of(usual.authority);
  for (int i = 0; i < 400; ++i) chain += more;
  const TlsFiles files{.certificate = usual.folder.write("long.pem", chain), .key = usual.client_files.key};
  End server{server_context(asking(usual.cafile))};
  TlsPeer client{{.own = files}};
  exchange(client, server);
  EXPECT_EQ(server.state(), State::failed);
  EXPECT_TRUE(server.failure().contains("excessive message size") || server.failure().contains("too long"))
      << server.failure();
}

TEST(TlsSession, counts_no_bytes_that_follow_the_handshake) {
  Opened ends;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(ends.client.send(std::string(100'000, 'z')));
    exchange(ends.client, ends.server);
    EXPECT_EQ(ends.server.heard().size(), 100'000U);
  }
}

TEST(TlsSession, takes_a_client_hello_of_16_kib_in_fragments) {
  End server{server_context()};
  TlsPeer client{{.protocols = {"wirecall"}}};
  std::vector<std::string> many{"wirecall"};
  for (int i = 0; i < 60; ++i) many.push_back(std::string(250, 'a'));
  TlsPeer large{{.protocols = many}};
  large.shake_hands();
  const std::string hello = large.take();
  ASSERT_GT(hello.size(), 15'000U);
  // The same message in records of 100 bytes.
  const std::string message = hello.substr(5);
  std::string cut;
  for (std::size_t at = 0; at < message.size(); at += 100) {
    const std::string part = message.substr(at, 100);
    cut += "\x16\x03\x01\x00"s + static_cast<char>(part.size()) + part;
  }
  server.receive(cut);
  large.feed(server.take());
  EXPECT_TRUE(large.shake_hands()) << large.failure;
  exchange(large, server);
  EXPECT_EQ(server.state(), State::open) << server.failure();
}

TEST(TlsSession, accepts_no_data_before_the_handshake) {
  const ServerContext at_server = server_context();
  TlsPeer first;
  End server{at_server};
  exchange(first, server);
  ASSERT_NE(first.session(), nullptr);
  EXPECT_EQ(SSL_SESSION_get_max_early_data(first.session()), 0U);
}

}  // namespace
}  // namespace wirecall::transport
