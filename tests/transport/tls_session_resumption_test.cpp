// TLS sessions that are resumed by a ticket, and those that no longer may be.
#include <ctime>
#include <gtest/gtest.h>

#include "tests/transport/tls_pair.hpp"

namespace wirecall::transport {
namespace {

using namespace std::string_literals;
using State = TlsSession::State;

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
