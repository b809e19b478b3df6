// A server that speaks TLS beside what else it speaks, on each engine: every protocol, certificates of both sides,
// those that are read anew, and peers that dribble, flood or go.
#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/framing/websocket_frames.hpp"
#include "tests/server/engines.hpp"
#include "tests/server/tls_socket.hpp"
#include "tests/transport/certificates.hpp"
#include "transport/tls_context.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/server.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;
using transport::CertificateTerms;
using transport::fingerprint_of;
using transport::issue;
using transport::Issued;
using transport::pem_of;
using transport::revocation_list;
using transport::TlsFiles;
using transport::usual_certificates;

const std::string kPing = "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.ping\",\"id\":1}\n";
const std::string kPong = R"({"jsonrpc":"2.0","result":"pong","id":1})";
const std::string kParseError = R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})";
const std::string kWho = "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.methods\",\"id\":1}\n";
const std::string kProxy = "PROXY TCP4 203.0.113.9 192.0.2.1 56324 443\r\n";

std::string post(std::string_view body, const std::string& fields = {}) {
  return "POST /rpc HTTP/1.1\r\nHost: localhost\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string{body};
}
std::string upgrade(const std::string& fields = {}) {
  return "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
         "13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
         fields + "\r\n";
}
// Whose methods an answer to kWho lists; the answer itself where it lists nobody's.
std::string one_in(const std::string& answer) {
  const std::size_t at = answer.find("\"who.");
  if (at == std::string::npos) return answer;
  return answer.substr(at + 5, answer.find('"', at + 5) - at - 5);
}
std::string hello(const std::string& token) {
  return R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":")" + token + "\"},\"id\":0}\n";
}

struct Way {
  Engine engine;
  std::uint32_t threads;
};

class TlsServer : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    skip_where_refused(GetParam().engine);
    options_ = threads(GetParam().threads);
    options_.engine = GetParam().engine;
    // Copies, which a test replaces.
    cert_ = folder_.write("cert.pem", pem_of(usual_.server));
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
      broker_->method("who."s + name, [] { return 0; });  // which that one may call, and sees
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
    options_.tls.client_ca = folder_.write("clients.pem", pem_of(usual_.authority));
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
  [[nodiscard]] TlsFiles client(const std::string& names) const {
    return folder_.write("client-of-test",
                         issue({.subject = "client", .names = names, .usage = "clientAuth"}, &usual_.authority));
  }
  std::vector<std::string> log() {
    const std::scoped_lock lock{mutex_};
    return log_;
  }
  [[nodiscard]] std::uint64_t handshakes() const { return stats().tls_1_2_handshakes + stats().tls_1_3_handshakes; }
  [[nodiscard]] Stats stats() const { return broker_->stats(); }

  const transport::UsualCertificates& usual_ = usual_certificates();
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

TEST_P(TlsServer, every_protocol_is_spoken_behind_a_handshake) {
  const Endpoint endpoint = serve();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const TlsSocket::Settings settings{.version_min = version, .version_max = version};
    TlsSocket text{endpoint, settings};
    ASSERT_TRUE(text.open) << text.peer.failure;
    EXPECT_EQ(text.ask(kPing), kPong);
    EXPECT_EQ(text.ask("\n  " + kPing), kPong);
    TlsSocket header{endpoint, settings};
    header.send("Content-Length: 45\r\n\r\n" + kPing);
    EXPECT_EQ(header.take(62), "Content-Length: 40\r\n\r\n" + kPong);
    TlsSocket prefix{endpoint, settings};
    prefix.send("\0\0\0\x2C"s + kPing.substr(0, 44));
    EXPECT_EQ(prefix.take(44), "\0\0\0\x28"s + kPong);
    TlsSocket http{endpoint, settings};
    http.send(post(kPing));
    EXPECT_EQ(http.line(), "HTTP/1.1 200 OK\r");
    TlsSocket socket{endpoint, settings};
    socket.send(upgrade());
    EXPECT_EQ(socket.line(), "HTTP/1.1 101 Switching Protocols\r");
    while (socket.line() != "\r") {
    }
    socket.send(framing::client_frame(framing::kTextFrame, kPing));
    const std::string answer = framing::server_frame(framing::kTextFrame, kPong);
    EXPECT_EQ(socket.take(answer.size()), answer);
  }
  EXPECT_EQ(stats().tls_1_2_handshakes, 5U);
  EXPECT_EQ(stats().tls_1_3_handshakes, 5U);
  EXPECT_EQ(stats().tls_handshakes_refused, 0U);
}

TEST_P(TlsServer, plain_text_is_spoken_beside_it_on_this_machine) {
  const Endpoint endpoint = serve();
  RawPeer text{endpoint};
  text.send(kPing);
  EXPECT_EQ(text.line(), kPong);
  RawPeer http{endpoint};
  http.send(post(kPing));
  EXPECT_EQ(http.line(), "HTTP/1.1 200 OK\r");
  EXPECT_EQ(handshakes(), 0U);
}

// An address that a proxy names is never local.
TEST_P(TlsServer, who_is_elsewhere_has_to_speak_tls) {
  options_.proxy_protocol = true;
  options_.proxy_from = {"127.0.0.1"};
  for (const bool allowed : {false, true}) {
    options_.allow_plain = allowed;
    const Endpoint endpoint = serve();
    TlsSocket encrypted{endpoint, {}, kProxy};
    ASSERT_TRUE(encrypted.open);
    EXPECT_EQ(encrypted.ask(kPing), kPong);
    for (const std::string& plain : {kPing, "\0\0\0\x2C"s + kPing.substr(0, 44), post(kPing)}) {
      RawPeer peer{endpoint};
      peer.send(kProxy + plain);
      if (allowed) {
        EXPECT_NE(peer.take(30), "") << plain;
      } else {
        EXPECT_EQ(peer.all(), kParseError + "\n") << plain;
      }
    }
    running_.reset();
  }
}

TEST_P(TlsServer, a_server_without_certificates_refuses_it_in_a_line) {
  options_.tls = {};
  const Endpoint endpoint = serve();
  RawPeer peer{endpoint};
  peer.send("\x16\x03\x01\x02\x00");
  EXPECT_EQ(peer.all(), kParseError + "\n");
  EXPECT_EQ(broker_->certificate_fingerprint(), "");
  EXPECT_NO_THROW(broker_->reload_certificates());
}

TEST_P(TlsServer, within_tls_there_is_no_other) {
  const Endpoint endpoint = serve();
  TlsSocket outer{endpoint};
  transport::TlsPeer inner;
  inner.shake_hands();
  outer.send(inner.take());
  EXPECT_EQ(outer.all(), kParseError + "\n");
  EXPECT_EQ(handshakes(), 1U);
}

TEST_P(TlsServer, what_both_have_agreed_on_is_all_that_is_spoken) {
  const Endpoint endpoint = serve();
  const std::string prefixed = "\0\0\0\x2C"s + kPing.substr(0, 44);
  const auto speak = [&](const std::vector<std::string>& protocols, const std::string& text) {
    TlsSocket socket{endpoint, {.protocols = protocols}};
    EXPECT_TRUE(socket.open) << socket.peer.failure;
    socket.send(text);
    return socket.line();
  };
  EXPECT_EQ(speak({"http/1.1"}, post(kPing)), "HTTP/1.1 200 OK\r");
  EXPECT_EQ(speak({"http/1.1"}, upgrade()), "HTTP/1.1 101 Switching Protocols\r");
  EXPECT_EQ(speak({"http/1.1"}, kPing), kParseError);
  EXPECT_EQ(speak({"http/1.1"}, prefixed), kParseError);
  EXPECT_EQ(speak({"wirecall"}, kPing), kPong);
  EXPECT_EQ(speak({"wirecall"}, post(kPing)), kParseError);
  EXPECT_EQ(speak({}, kPing), kPong);
  EXPECT_EQ(speak({}, post(kPing)), "HTTP/1.1 200 OK\r");
  TlsSocket none{endpoint, {.protocols = {"h2", "ftp"}}};
  EXPECT_FALSE(none.open);
  EXPECT_EQ(none.peer.failure, "tlsv1 alert no application protocol");
}

TEST_P(TlsServer, behind_a_proxy_header_it_may_come_in_any_pieces) {
  options_.proxy_protocol = true;
  options_.proxy_from = {"127.0.0.1"};
  const Endpoint endpoint = serve();
  RawPeer raw{endpoint};
  transport::TlsPeer peer;
  const auto dribble = [&](const std::string& bytes) {
    for (const char byte : bytes) raw.send({&byte, 1});
  };
  dribble(kProxy);
  while (!peer.shake_hands()) {
    dribble(peer.take());
    const std::string head = raw.bytes(5);
    ASSERT_EQ(head.size(), 5U);
    peer.feed(head + raw.bytes(static_cast<std::size_t>(static_cast<unsigned char>(head[3])) << 8 |
                               static_cast<unsigned char>(head[4])));
  }
  peer.write(kPing);
  dribble(peer.take());
  std::string heard;
  while (heard.find('\n') == std::string::npos) {
    const std::string head = raw.bytes(5);
    ASSERT_EQ(head.size(), 5U);
    peer.feed(head + raw.bytes(static_cast<std::size_t>(static_cast<unsigned char>(head[3])) << 8 |
                               static_cast<unsigned char>(head[4])));
    heard += peer.read();
  }
  EXPECT_EQ(heard, kPong + "\n");
}

TEST_P(TlsServer, a_message_of_megabytes_comes_and_goes_whole) {
  const Endpoint endpoint = serve();
  TlsSocket socket{endpoint};
  std::string text(5'000'000, '\0');
  for (std::size_t i = 0; i != text.size(); ++i) text[i] = static_cast<char>('a' + i % 26);
  EXPECT_EQ(socket.ask(R"({"jsonrpc":"2.0","method":"echo","params":[")" + text + "\"],\"id\":1}\n"),
            R"({"jsonrpc":"2.0","result":")" + text + R"(","id":1})");
}

TEST_P(TlsServer, a_session_is_resumed) {
  const Endpoint endpoint = serve();
  TlsSocket first{endpoint};
  EXPECT_EQ(first.ask(kPing), kPong);
  ASSERT_NE(first.peer.session(), nullptr);
  TlsSocket second{endpoint, {.session = first.peer.session()}};
  EXPECT_EQ(second.ask(kPing), kPong);
  EXPECT_TRUE(second.peer.resumed());
  EXPECT_EQ(handshakes(), 2U);
  EXPECT_EQ(stats().tls_handshakes_resumed, 1U);
}

// ---- how connections end ----

TEST_P(TlsServer, the_end_is_said_by_both) {
  const Endpoint endpoint = serve();
  TlsSocket socket{endpoint};
  socket.peer.write(kPing);
  socket.peer.shut_down();
  socket.flush();
  EXPECT_EQ(socket.all(), kPong + "\n");
  EXPECT_TRUE(socket.peer.ended());
  EXPECT_TRUE(comes_true([&] { return stats().connections_open == 0; }));
}

TEST_P(TlsServer, who_goes_without_a_word_is_not_taken_for_one_that_has_ended) {
  const Endpoint endpoint = serve();
  // By plain text the request that the end completes is answered.
  RawPeer plain{endpoint};
  plain.send(kPing.substr(0, kPing.size() - 1));
  plain.finish();
  EXPECT_EQ(plain.line(), kPong);
  TlsSocket cut{endpoint};
  cut.send("12");  // a value that only an end completes
  cut.raw.finish();
  EXPECT_EQ(cut.all(), "");
  EXPECT_TRUE(comes_true([&] { return stats().connections_open == 0; }));
}

TEST_P(TlsServer, a_record_that_is_none_is_answered_by_an_alert) {
  const Endpoint endpoint = serve();
  TlsSocket socket{endpoint};
  EXPECT_EQ(socket.ask(kPing), kPong);
  socket.raw.send("\x17\x03\x03\x00\x20"s + std::string(32, 'x'));
  EXPECT_EQ(socket.all(), "");
  EXPECT_TRUE(socket.peer.failure.contains("alert bad record mac")) << socket.peer.failure;
  EXPECT_TRUE(comes_true([&] { return stats().connections_open == 0; }));
  EXPECT_EQ(stats().tls_handshakes_refused, 0U);
}

TEST_P(TlsServer, a_handshake_that_fails_is_counted_and_logged_with_its_reason) {
  const Endpoint endpoint = serve();
  TlsSocket old{endpoint, {.version_max = TLS1_1_VERSION}};
  EXPECT_FALSE(old.open);
  EXPECT_EQ(old.peer.failure, "tlsv1 alert protocol version");
  TlsSocket again{endpoint, {.version_max = TLS1_1_VERSION}};
  EXPECT_FALSE(again.open);
  EXPECT_TRUE(comes_true([&] { return stats().tls_handshakes_refused == 2; }));
  const std::vector<std::string> lines = log();
  EXPECT_EQ(std::ranges::count_if(lines, [](const auto& line) { return line.contains("TLS handshake has failed"); }), 1)
      << "not each of them";
  EXPECT_NE(std::ranges::find(lines,
                              "info a TLS handshake has failed reason=\"unsupported protocol\" source=127.0.0.1 "
                              "failed=1"),
            lines.end())
      << lines.back();
}

TEST_P(TlsServer, a_handshake_that_does_not_end_in_time_is_not_waited_for) {
  options_.limits.header_timeout_ms = 50;
  const Endpoint endpoint = serve();
  transport::TlsPeer peer;
  peer.shake_hands();
  const std::string first = peer.take();
  RawPeer nothing{endpoint};
  nothing.send(first.substr(0, 1));
  RawPeer half{endpoint};
  half.send(first.substr(0, 100));
  RawPeer no_answer{endpoint};
  no_answer.send(first);
  EXPECT_EQ(nothing.all(), "");
  EXPECT_EQ(half.all(), "");
  EXPECT_NE(no_answer.all(), "");
  // Nor is one that says nothing behind its handshake.
  TlsSocket silent{endpoint};
  EXPECT_EQ(silent.all(), "");
  EXPECT_EQ(stats().connections_timed_out, 4U);
}

TEST_P(TlsServer, handshakes_in_progress_are_bounded) {
  options_.limits.tls_handshakes = 2;
  const Endpoint endpoint = serve();
  RawPeer one{endpoint};
  RawPeer other{endpoint};
  one.send("\x16\x03\x01\x02");
  other.send("\x16\x03\x01\x02");
  // They have begun when a third is turned away.
  EXPECT_TRUE(comes_true([&] {
    TlsSocket third{endpoint};
    return !third.open;
  }));
  EXPECT_GE(stats().tls_handshakes_refused, 1U);
  RawPeer plain{endpoint};
  plain.send(kPing);
  EXPECT_EQ(plain.line(), kPong);
  one.close();
  EXPECT_TRUE(comes_true([&] {
    TlsSocket third{endpoint};
    return third.open && third.ask(kPing) == kPong;
  }));
  other.close();
}

TEST_P(TlsServer, a_thousand_that_begin_and_go_leave_nothing) {
  const Endpoint endpoint = serve();
  transport::TlsPeer peer;
  peer.shake_hands();
  const std::string first = peer.take();
  for (int i = 0; i < 300; ++i) {
    RawPeer raw{endpoint};
    raw.send(first.substr(0, static_cast<std::size_t>(i) * first.size() / 300 + 1));
    if (i % 3 == 0) raw.reset();
  }
  TlsSocket last{endpoint};
  EXPECT_EQ(last.ask(kPing), kPong);
  EXPECT_TRUE(comes_true([&] { return stats().connections_open == 1; }));
}

TEST_P(TlsServer, a_server_that_drains_answers_calls_and_waits_for_no_handshake) {
  const Endpoint endpoint = serve();
  TlsSocket caller{endpoint};
  caller.send("{\"jsonrpc\":\"2.0\",\"method\":\"slow\",\"id\":7}\n");
  gate_.await_inside(1);
  transport::TlsPeer peer;
  peer.shake_hands();
  RawPeer within{endpoint};
  const std::string first = peer.take();
  within.send(first.substr(0, 100));
  EXPECT_TRUE(comes_true([&] { return stats().connections_open >= 1; }));
  std::thread stopping{[&] { running_->stop(); }};
  gate_.open();
  EXPECT_EQ(caller.line(), R"({"jsonrpc":"2.0","result":1,"id":7})");
  EXPECT_EQ(caller.all(), "");
  EXPECT_TRUE(caller.peer.ended()) << "the end is said";
  EXPECT_EQ(within.all(), "");
  stopping.join();
}

TEST_P(TlsServer, an_idle_connection_is_closed) {
  options_.limits.keepalive_timeout_ms = 50;
  const Endpoint endpoint = serve();
  TlsSocket socket{endpoint};
  EXPECT_EQ(socket.ask(kPing), kPong);
  EXPECT_EQ(socket.all(), "");
  EXPECT_TRUE(socket.peer.ended());
}

// ---- clients' certificates ----

TEST_P(TlsServer, a_certificate_proves_a_principal_by_one_of_its_names) {
  ask_clients(ClientAuth::optional);
  let_in();
  const Endpoint endpoint = serve();
  const auto who = [&](const std::string& names, const std::string& first = {}) {
    TlsSocket socket{endpoint, names.empty() ? TlsSocket::Settings{} : TlsSocket::Settings{.own = client(names)}};
    EXPECT_TRUE(socket.open) << socket.peer.failure;
    if (!first.empty()) {
      const std::string answer = socket.ask(first);
      if (!answer.contains("\"session\"")) return answer;
    }
    return one_in(socket.ask(kWho));
  };
  const std::string refused = R"("code":-32004)";
  EXPECT_EQ(who("email:ada@example.com"), "ada");
  EXPECT_EQ(who("DNS:other.example,URI:spiffe://example/carol"), "carol");
  EXPECT_EQ(who("DNS:carol.example,URI:spiffe://example/carol"), "carol") << "two names of one";
  EXPECT_TRUE(who("DNS:carol.example,email:ada@example.com").contains(refused)) << "of two principals";
  EXPECT_TRUE(who("DNS:ada@example.com").contains(refused)) << "another type";
  EXPECT_TRUE(who("email:ADA@example.com").contains(refused)) << "the exact name";
  EXPECT_TRUE(who("DNS:nobody.example").contains(refused));
  EXPECT_TRUE(who("").contains(refused));
  // A token may say it where the certificate does not, and may not say something else.
  EXPECT_EQ(who("", hello("token-bob")), "bob");
  EXPECT_EQ(who("DNS:nobody.example", hello("token-bob")), "bob");
  EXPECT_EQ(who("email:ada@example.com", hello("token-ada")), "ada");
  EXPECT_TRUE(who("email:ada@example.com", hello("token-bob")).contains(refused));
  EXPECT_EQ(who("email:ada@example.com", "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.hello\",\"params\":{},\"id\":0}\n"),
            "ada");
}

TEST_P(TlsServer, a_certificate_proves_a_principal_to_http) {
  ask_clients(ClientAuth::optional);
  let_in();
  const Endpoint endpoint = serve();
  const auto ask = [&](const std::string& names, const std::string& fields) {
    TlsSocket socket{endpoint, names.empty() ? TlsSocket::Settings{} : TlsSocket::Settings{.own = client(names)}};
    socket.send(post(kWho, fields + "Connection: close\r\n"));
    const std::string all = socket.all();
    return all.substr(9, 3) + " " +
           (all.starts_with("HTTP/1.1 200") ? one_in(all.substr(all.find("\r\n\r\n") + 4)) : "");
  };
  const auto bearer = [](const std::string& name) { return "Authorization: Bearer token-" + name + "\r\n"; };
  EXPECT_EQ(ask("email:ada@example.com", ""), "200 ada");
  EXPECT_EQ(ask("email:ada@example.com", bearer("ada")), "200 ada");
  EXPECT_EQ(ask("email:ada@example.com", bearer("bob")), "401 ");
  EXPECT_EQ(ask("email:ada@example.com", bearer("unknown")), "401 ");
  EXPECT_EQ(ask("DNS:carol.example,email:ada@example.com", ""), "401 ");
  EXPECT_EQ(ask("DNS:nobody.example", ""), "401 ");
  EXPECT_EQ(ask("DNS:nobody.example", bearer("bob")), "200 bob");
  EXPECT_EQ(ask("", ""), "401 ");
  EXPECT_EQ(ask("", bearer("bob")), "200 bob");
}

TEST_P(TlsServer, a_certificate_proves_a_principal_to_a_websocket) {
  ask_clients(ClientAuth::optional);
  let_in();
  const Endpoint endpoint = serve();
  const auto ask = [&](const std::string& names, const std::string& fields) {
    TlsSocket socket{endpoint, names.empty() ? TlsSocket::Settings{} : TlsSocket::Settings{.own = client(names)}};
    socket.send(upgrade(fields));
    const std::string status = socket.line().substr(9, 3);
    if (status != "101") return status;
    while (socket.line() != "\r") {
    }
    socket.send(framing::client_frame(framing::kTextFrame, kWho));
    const std::string head = socket.take(2);
    EXPECT_EQ(head.size(), 2U);
    std::size_t size = static_cast<unsigned char>(head[1]);
    if (size == 126) {
      const std::string more = socket.take(2);
      size = static_cast<std::size_t>(static_cast<unsigned char>(more[0])) << 8 | static_cast<unsigned char>(more[1]);
    }
    return one_in(socket.take(size));
  };
  // "token-ada" and "token-bob".
  const auto bearer = [](const std::string& text) {
    return "Sec-WebSocket-Protocol: jsonrpc, bearer." + text + "\r\n";
  };
  const std::string ada = bearer("dG9rZW4tYWRh");
  const std::string bob = bearer("dG9rZW4tYm9i");
  EXPECT_EQ(ask("email:ada@example.com", ""), "ada");
  EXPECT_EQ(ask("email:ada@example.com", ada), "ada");
  EXPECT_EQ(ask("email:ada@example.com", bob), "401");
  EXPECT_EQ(ask("email:ada@example.com", "Authorization: Bearer token-bob\r\n"), "401");
  EXPECT_EQ(ask("email:ada@example.com", bearer("eA")), "401");
  EXPECT_EQ(ask("DNS:nobody.example", bob), "bob");
  EXPECT_EQ(ask("", bob), "bob");
  EXPECT_TRUE(ask("", "").contains("-32004"));
  EXPECT_TRUE(ask("DNS:carol.example,email:ada@example.com", "").contains("-32004"));
}

TEST_P(TlsServer, who_shows_no_certificate_where_one_is_required_gets_no_connection) {
  ask_clients(ClientAuth::required);
  const Endpoint endpoint = serve();
  TlsSocket none{endpoint};
  none.send(kPing);
  EXPECT_EQ(none.all(), "");
  EXPECT_EQ(none.peer.failure, "tlsv13 alert certificate required");
  const Issued stranger = issue({.subject = "stranger", .authority = true});
  const TlsFiles strange = folder_.write("strange", issue({.usage = "clientAuth"}, &stranger));
  TlsSocket unknown{endpoint, {.own = strange}};
  unknown.send(kPing);
  EXPECT_EQ(unknown.all(), "");
  EXPECT_EQ(unknown.peer.failure, "tlsv1 alert unknown ca");
  TlsSocket known{endpoint, {.own = usual_.client_files}};
  EXPECT_EQ(known.ask(kPing), kPong);
}

TEST_P(TlsServer, a_session_that_is_resumed_is_mapped_anew) {
  ask_clients(ClientAuth::optional);
  let_in();
  const Endpoint endpoint = serve();
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    broker_->set_principals(options_.principals);
    TlsSocket first{endpoint, {.version_max = version, .own = usual_.client_files}};
    ASSERT_EQ(one_in(first.ask(kWho)), "ada");
    TlsSocket second{endpoint, {.version_max = version, .own = usual_.client_files, .session = first.peer.session()}};
    EXPECT_EQ(one_in(second.ask(kWho)), "ada");
    EXPECT_TRUE(second.peer.resumed());
    broker_->set_principals({principal("zoe", {"email:ada@example.com"}), principal("bob", {})});
    EXPECT_EQ(first.all(), "") << "whose grants are another's now";
    // By 1.3 a ticket is for one resumption, which brings the next.
    SSL_SESSION* const last = version == TLS1_3_VERSION ? second.peer.session() : first.peer.session();
    TlsSocket third{endpoint, {.version_max = version, .own = usual_.client_files, .session = last}};
    EXPECT_EQ(one_in(third.ask(kWho)), "zoe");
    EXPECT_TRUE(third.peer.resumed());
  }
}

TEST_P(TlsServer, a_principal_whose_certificates_name_is_taken_away_is_cut) {
  ask_clients(ClientAuth::optional);
  let_in();
  const Endpoint endpoint = serve();
  TlsSocket ada{endpoint, {.own = usual_.client_files}};
  ASSERT_EQ(one_in(ada.ask(kWho)), "ada");
  TlsSocket carol{endpoint, {.own = client("DNS:carol.example")}};
  ASSERT_EQ(one_in(carol.ask(kWho)), "carol");
  std::vector<Principal> fewer = options_.principals;
  fewer[0].certificates = {};
  broker_->set_principals(fewer);
  EXPECT_EQ(ada.all(), "");
  EXPECT_EQ(one_in(carol.ask(kWho)), "carol");
}

// ---- certificates that are read anew ----

TEST_P(TlsServer, certificates_read_anew_are_shown_from_then_on) {
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

TEST_P(TlsServer, a_bad_file_is_refused_with_its_reason_and_all_stays_as_it_was) {
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

TEST_P(TlsServer, a_revocation_list_ends_the_connections_that_it_names_and_their_tickets) {
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

TEST_P(TlsServer, a_certificate_that_is_revoked_during_its_handshake_gets_no_connection) {
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

TEST_P(TlsServer, other_authorities_end_the_connections_of_those_that_they_do_not_know) {
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

TEST_P(TlsServer, no_connection_is_lost_while_certificates_are_read_anew) {
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

TEST_P(TlsServer, a_certificate_of_its_own_making_stays_the_same) {
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

INSTANTIATE_TEST_SUITE_P(Ways, TlsServer,
                         testing::Values(Way{Engine::epoll, 1}, Way{Engine::uring, 1}, Way{Engine::epoll, 3}),
                         [](const auto& tested) {
                           return engine_name({tested.param.engine, 0}) + std::to_string(tested.param.threads);
                         });

// ---- what does not go together ----

TEST(TlsOptions, that_do_not_go_together_are_refused_with_the_cure) {
  const transport::UsualCertificates& usual = usual_certificates();
  using Change = void (*)(TlsOptions&, const transport::UsualCertificates&);
  const auto refusal = [&](bool shows, Change change) {
    Options options;
    options.log = [](const LogRecord&) {};
    if (shows) {
      options.tls.cert = {usual.server_files.certificate};
      options.tls.key = {usual.server_files.key};
    }
    change(options.tls, usual);
    try {
      const Server server{options};
    } catch (const std::invalid_argument& error) {
      return std::string{error.what()};
    }
    return ""s;
  };
  using Usual = const transport::UsualCertificates&;
  EXPECT_EQ(refusal(true, [](TlsOptions&, Usual) {}), "");
  EXPECT_EQ(refusal(true, [](TlsOptions& tls, Usual) { tls.key.clear(); }),
            "tls.key names 0 files and tls.cert 1: give a key for each certificate, in their order");
  EXPECT_EQ(refusal(true, [](TlsOptions& tls, Usual) { tls.cert.push_back(tls.cert[0]); }),
            "tls.key names 1 files and tls.cert 2: give a key for each certificate, in their order");
  EXPECT_EQ(refusal(true, [](TlsOptions& tls, Usual) { tls.self_signed = true; }),
            "tls.self_signed is true, and tls.cert is not empty: give one of them");
  EXPECT_EQ(refusal(true, [](TlsOptions& tls, Usual) { tls.client_auth = ClientAuth::optional; }),
            "tls.client_auth asks clients for certificates, and tls.client_ca is empty: name the authorities that "
            "vouch for them");
  EXPECT_EQ(refusal(true, [](TlsOptions& tls, Usual all) { tls.client_ca = all.cafile; }),
            "tls.client_ca names authorities, and tls.client_auth is none: set it to optional or required");
  EXPECT_EQ(refusal(true, [](TlsOptions& tls, Usual all) { tls.client_crl = all.cafile; }),
            "tls.client_crl is given, and tls.client_ca is empty: name the authorities as well");
  // Nor what only a server with a certificate can do.
  const Change asks = [](TlsOptions& tls, Usual all) {
    tls.client_auth = ClientAuth::required;
    tls.client_ca = all.cafile;
  };
  EXPECT_EQ(refusal(true, asks), "");
  EXPECT_EQ(refusal(false, asks),
            "tls.client_auth asks clients for certificates, and the server speaks no TLS: give tls.cert and tls.key");
  EXPECT_NE(refusal(false, [](TlsOptions& tls, Usual all) { tls.key = {all.server_files.key}; }), "");
}

TEST(TlsOptions, a_key_that_others_may_read_is_warned_of) {
  const transport::UsualCertificates& usual = usual_certificates();
  const transport::CertificateFolder folder;
  const std::string key = folder.write("key.pem", transport::key_pem_of(usual.server));
  std::vector<std::string> lines;
  Options options;
  options.tls.cert = {usual.server_files.certificate};
  options.tls.key = {key};
  options.log = [&](const LogRecord& record) { lines.emplace_back(format_log(LogFormat::human, record).substr(25)); };
  {
    const Server server{options};
  }
  EXPECT_TRUE(lines.empty()) << lines.front();
  std::filesystem::permissions(key, std::filesystem::perms{0644});
  {
    const Server server{options};
  }
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0],
            "warning other users of this machine can read or change the tls.key, which holds a private key; chmod 600 "
            "keeps it to its owner file=" +
                key);
}

}  // namespace
}  // namespace wirecall::net
