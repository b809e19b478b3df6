// Clients by tls://, https:// and wss:// over real sockets: every kind of call, and servers that are not to be trusted.
#include <chrono>
#include <cstdint>
#include <expected>
#include <future>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/client/provided.hpp"
#include "tests/connection/peer.hpp"
#include "tests/transport/certificates.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/client.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;
using transport::CertificateTerms;
using transport::issue;
using transport::Issued;
using transport::TlsFiles;
using transport::usual_certificates;

std::string by(std::string_view scheme, const std::string& tcp, std::string_view host = "127.0.0.1") {
  return std::string{scheme} + "://" + std::string{host} + tcp.substr(tcp.rfind(':'));
}

Options serving(const TlsFiles& files = usual_certificates().server_files) {
  Options options;
  options.tls.cert = {files.certificate};
  options.tls.key = {files.key};
  options.takeover_ms = 0;
  return options;
}
ClientOptions trusting() {
  ClientOptions options;
  options.cafile = usual_certificates().cafile;
  options.connect_attempts = 1;
  options.reconnect_min_ms = 1;
  return options;
}

void add_methods(Broker& broker) {
  broker.method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"});
  broker.method("echo", [](std::string text) { return text; });
  broker.method("count", [](int n) -> Stream<int> {
    for (int i = 0; i < n; ++i) co_yield i;
  });
}

// A broker that serves until the end of its scope.
struct Served {
  explicit Served(const Options& options = serving(), const std::string& at = "tcp://127.0.0.1:0") : broker(options) {
    add_methods(broker);
    tcp = broker.listen(at).uri();
    running.emplace(broker);
  }
  Broker broker;
  std::string tcp;
  std::optional<RunningServer> running;
};

class TlsClient : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] std::string uri(std::string_view host = "127.0.0.1") const { return by(GetParam(), served_.tcp, host); }
  [[nodiscard]] static bool calls_back() { return GetParam() != "https"s; }
  Served served_;
};

TEST_P(TlsClient, calls_in_each_of_the_four_ways) {
  for (const char* const host : {"127.0.0.1", "localhost"}) {
    Client client{uri(host), trusting()};
    EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
    EXPECT_EQ(client.request<int>("subtract", 42, 22).future().get(), 20);
    std::promise<std::expected<int, Error>> done;
    client.request<int>("subtract", 42, 21).then([&](std::expected<int, Error> result) {
      done.set_value(std::move(result));
    });
    EXPECT_EQ(done.get_future().get(), 21);
    const auto task = [&]() -> Task<int> { co_return co_await client.request<int>("subtract", 42, 20); };
    EXPECT_EQ(client.run(task()), 22);
    EXPECT_EQ(client.try_call<int>("nowhere").error().code(), -32601);
  }
}

TEST_P(TlsClient, sends_and_reads_messages_of_every_length) {
  for (const Encoding encoding : {Encoding::json, Encoding::msgpack}) {
    ClientOptions options = trusting();
    options.encoding = encoding;
    Client client{uri(), options};
    for (const std::size_t bytes : {0, 1, 16'300, 16'400, 260'000, 3'000'000}) {
      const std::string text(bytes, 'x');
      EXPECT_EQ(client.call<std::string>("echo", text), text);
    }
  }
}

TEST_P(TlsClient, sends_a_batch) {
  Client client{uri(), trusting()};
  const auto [difference, text] = client.batch().call<int>("subtract", 5, 3).call<std::string>("echo", "x").send();
  EXPECT_EQ(difference, 2);
  EXPECT_EQ(text, "x");
}

TEST_P(TlsClient, streams) {
  if (!calls_back()) GTEST_SKIP() << "not by HTTP";
  Client client{uri(), trusting()};
  int count = 0;
  for (const int i : client.stream<int>("count", 1000)) EXPECT_EQ(i, count++);
  EXPECT_EQ(count, 1000);
}

TEST_P(TlsClient, provides_and_subscribes) {
  if (!calls_back()) GTEST_SKIP() << "not by HTTP";
  Client provider{uri(), trusting()};
  provider.provide("add", add, {.params = {"a", "b"}});
  std::counting_semaphore<> came{0};
  std::string topic;
  const Subscription news = provider.subscribe("news.>", [&](const Event& event) {
    topic = event.topic + " " + std::string{event.value_json()};
    came.release();
  });
  provider.connect();
  Client caller{uri(), trusting()};
  EXPECT_EQ(caller.call<int>("add", 2, 3), 5);
  Client plain{served_.tcp};
  EXPECT_EQ(plain.call<int>("add", 2, 4), 6);
  plain.publish("news.today", 7);
  ASSERT_TRUE(came.try_acquire_for(kWatchdog));
  EXPECT_EQ(topic, "news.today 7");
}

TEST_P(TlsClient, connects_again_to_a_server_that_was_started_again) {
  ClientOptions options = trusting();
  options.connect_attempts = 0;
  Client client{uri(), options};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  served_.running.reset();
  Broker next{serving()};
  next.method("subtract", [](int a, int b) { return 100 + a - b; });
  EXPECT_EQ(next.listen(served_.tcp).uri(), served_.tcp);
  const RunningServer running{next};
  EXPECT_TRUE(comes_true([&] { return client.try_call<int>("subtract", 42, 23) == 119; }));
}

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
