// Clients by tls://, https:// and wss:// over real sockets: sessions that are resumed, and servers that are not to be
// trusted. Their calls are in scheme_test.cpp.
#include <future>
#include <gtest/gtest.h>
#include <mutex>
#include <stdexcept>

#include "tests/client/served.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {
namespace {

using transport::CertificateTerms;
using transport::issue;
using transport::Issued;
using transport::usual_certificates;

class TlsClient : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::string uri(std::string_view host = "127.0.0.1") const { return by(GetParam(), served_.tcp, host); }
  Served served_;
};

TEST_P(TlsClient, resumes_its_session_when_it_connects_again) {
  Options options = serving();
  options.limits.keepalive_timeout_ms = 30;
  const Served idle{options};
  Client client{by(GetParam(), idle.tcp), trusting()};
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(comes_true([&] { return client.try_call<int>("subtract", 42, 23) == 19; }));
    EXPECT_TRUE(comes_true([&] { return idle.broker.stats().connections_timed_out > i; }));
  }
  EXPECT_GE(idle.broker.stats().tls_handshakes_resumed, 2U);
}

TEST_P(TlsClient, fails_over_to_a_server_that_it_trusts) {
  const Issued stranger = issue({.subject = "stranger", .authority = true});
  const transport::CertificateFolder folder;
  const Served other{serving(folder.write("strange", issue({}, &stranger)))};
  Client client{std::vector<Endpoint>{Endpoint{by(GetParam(), other.tcp)}, Endpoint{uri()}}, trusting()};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
}

TEST_P(TlsClient, uses_one_context_for_several_connections) {
  ClientOptions options = trusting();
  options.connections = 4;
  Client client{uri(), options};
  std::vector<std::future<std::string>> all;
  for (int i = 0; i < 64; ++i)
    all.push_back(client.request<std::string>("echo", std::string(50'000, static_cast<char>('a' + i % 26))).future());
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(all[static_cast<std::size_t>(i)].get(), std::string(50'000, static_cast<char>('a' + i % 26)));
}

TEST_P(TlsClient, is_shown_with_the_version_that_it_speaks) {
  ClientOptions options = trusting();
  options.client_id = "ada";
  Client client{uri(), options};
  client.connect();
  if (std::string_view{GetParam()} == "https") return;  // which has no name there
  const std::string shown = client.call<Value>("rpc.clients").dump();
  EXPECT_NE(shown.find(R"("tls":"TLSv1.3")"), std::string::npos) << shown;
}

INSTANTIATE_TEST_SUITE_P(Schemes, TlsClient, testing::Values("tls", "https", "wss"),
                         [](const auto& tested) { return std::string{tested.param}; });

// ---- whom it does not trust ----

// What a client says of the endpoint, without the words that all say; empty where it connects.
std::string said_of(const std::string& uri, const ClientOptions& options = trusting()) {
  Client client{uri, options};
  try {
    client.connect();
    static_cast<void>(client.call<int>("subtract", 42, 23));
    return {};
  } catch (const ConnectionError& error) {
    const std::string text = error.message();
    for (const char* const before : {"cannot connect to ", "the connection to "}) {
      if (!text.starts_with(before)) continue;
      const std::size_t end = text.find(": ");
      return text.substr(end + 2);
    }
    return text;
  }
}

TEST(TlsClientTrust, says_what_is_wrong_with_a_server_and_what_helps) {
  const transport::UsualCertificates& usual = usual_certificates();
  const transport::CertificateFolder folder;
  const Issued stranger = issue({.subject = "stranger", .authority = true});
  const auto said = [&](const CertificateTerms& terms, const Issued& issuer) {
    const Served served{serving(folder.write("shown", issue(terms, &issuer)))};
    return said_of(by("tls", served.tcp));
  };
  const std::string refused = "the peer's certificate is refused: ";
  EXPECT_EQ(said({}, stranger), refused +
                                    "unable to get local issuer certificate; name the authority that has signed it "
                                    "with cafile, or give its fingerprint as tls.pin");
  EXPECT_EQ(
      said({.names = "DNS:other.example"}, usual.authority),
      refused + "IP address mismatch; connect to a name that its certificate has, or give its fingerprint as tls.pin");
  EXPECT_EQ(said({.ends = -60}, usual.authority),
            refused + "certificate has expired; the server needs another certificate; or check this machine's clock");
  EXPECT_EQ(
      said({.begins = 600}, usual.authority),
      refused + "certificate is not yet valid; the server needs another certificate; or check this machine's clock");
  const Served served;
  ClientOptions pinned = trusting();
  pinned.tls.pin = "sha256:" + std::string(64, '0');
  EXPECT_EQ(said_of(by("tls", served.tcp), pinned),
            "the server's certificate is not the one of tls.pin; make sure that this is the server, and give its "
            "fingerprint as tls.pin");
  pinned.tls.pin = "sha256:" + served.broker.certificate_fingerprint();
  EXPECT_EQ(said_of(by("wss", served.tcp, "localhost"), pinned), "");
}

TEST(TlsClientTrust, says_that_a_server_speaks_no_tls) {
  const std::string cure = "; check that a server listens there that speaks TLS";
  const Served plain{Options{}};
  EXPECT_EQ(said_of(by("tls", plain.tcp)), "wrong version number" + cure);
  // It would wait for what that says is to come.
  const ScriptedServer ssh{[](RawPeer peer) {
    peer.send("SSH-2.0-OpenSSH_9.2\r\n");
    peer.all();
  }};
  EXPECT_EQ(said_of(by("https", ssh.uri())), "wrong version number" + cure);
  const ScriptedServer closing{[](RawPeer peer) { static_cast<void>(peer.take(1)); }};
  const std::string closed = said_of(by("tls", closing.uri()));
  EXPECT_TRUE(closed == "the server has closed the connection in the TLS handshake" + cure ||
              closed.contains("Connection reset by peer"))
      << closed;
}

TEST(TlsClientTrust, waits_for_a_handshake_as_long_as_for_a_connection) {
  const ScriptedServer silent{[](RawPeer peer) { peer.all(); }};
  ClientOptions options = trusting();
  options.connect_timeout_ms = 50;
  EXPECT_TRUE(
      said_of(by("tls", silent.uri()), options)
          .starts_with("the server has accepted the connection, and did not answer the TLS handshake in time; "));
}

TEST(TlsClientTrust, says_why_a_server_refuses_it) {
  Options options = serving();
  options.tls.client_auth = ClientAuth::required;
  options.tls.client_ca = usual_certificates().cafile;
  const Served served{options};
  const std::string cure =
      "; the server has refused this client: see its log; it may want a certificate, or another one";
  for (const char* const scheme : {"tls", "https", "wss"}) {
    const std::string said = said_of(by(scheme, served.tcp));
    EXPECT_EQ(said, "tlsv13 alert certificate required" + cure) << scheme;
  }
}

TEST(TlsClientTrust, shows_its_certificate) {
  Options options = serving();
  options.tls.client_auth = ClientAuth::required;
  options.tls.client_ca = usual_certificates().cafile;
  options.principals = {{.name = "ada",
                         .tokens = {},
                         .certificates = {"email:ada@example.com"},
                         .call = {"subtract"},
                         .provide = {},
                         .publish = {},
                         .subscribe = {}}};
  const Served served{options};
  ClientOptions ada = trusting();
  ada.tls.client_cert = usual_certificates().client_files.certificate;
  ada.tls.client_key = usual_certificates().client_files.key;
  for (const char* const scheme : {"tls", "https", "wss"})
    EXPECT_EQ(said_of(by(scheme, served.tcp), ada), "") << scheme;
}

TEST(TlsClientTrust, may_trust_anybody_and_says_so) {
  const Issued stranger = issue({.subject = "stranger", .authority = true});
  const transport::CertificateFolder folder;
  const Served served{serving(folder.write("any", issue({.names = "DNS:other.example"}, &stranger)))};
  ClientOptions options;
  options.tls.no_verify = true;
  std::mutex mutex;
  std::vector<std::string> lines;
  options.log = [&](const LogRecord& record) {
    const std::scoped_lock lock{mutex};
    lines.emplace_back(format_log(LogFormat::human, record).substr(25));
  };
  Client client{by("tls", served.tcp), options};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  const std::scoped_lock lock{mutex};
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(
      lines[0],
      "warning tls.no_verify: any server is accepted, and anybody on the way can read and change all that is sent");
}

TEST(TlsClientTrust, looks_at_its_files_when_it_is_made) {
  ClientOptions options;
  options.cafile = "/nonexistent/ca.pem";
  EXPECT_THROW((Client{"tls://localhost", options}), std::invalid_argument);
  options = {};
  options.tls.pin = "sha256:12";
  EXPECT_THROW((Client{"wss://localhost", options}), std::invalid_argument);
  EXPECT_NO_THROW((Client{"tcp://localhost", options})) << "who needs none of them";
}

}  // namespace
}  // namespace wirecall::net
