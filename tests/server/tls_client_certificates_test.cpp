// Which principal a client's certificate proves to a server, by each protocol and beside a token.
#include "tests/framing/websocket_frames.hpp"
#include "tests/server/tls_server.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;
using transport::issue;
using transport::Issued;
using transport::TlsFiles;

class TlsClientCertificates : public TlsServer {};

TEST_P(TlsClientCertificates, a_certificate_proves_a_principal_by_one_of_its_names) {
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

TEST_P(TlsClientCertificates, a_certificate_proves_a_principal_to_http) {
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

TEST_P(TlsClientCertificates, a_certificate_proves_a_principal_to_a_websocket) {
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

TEST_P(TlsClientCertificates, who_shows_no_certificate_where_one_is_required_gets_no_connection) {
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

// Both the client and the log are told what the certificate says, and why that is nobody's.
TEST_P(TlsClientCertificates, whoever_has_a_certificate_of_nobodys_is_told_so) {
  ask_clients(ClientAuth::optional);
  let_in();
  const Endpoint endpoint = serve();
  const std::string greeting = "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.hello\",\"id\":1}\n";
  const auto told = [&](const std::string& names, const std::string& text) {
    TlsSocket socket{endpoint, {.own = client(names)}};
    socket.send(text);
    return socket.all();
  };
  for (const auto& [names, fault] :
       {std::pair{"DNS:Desk.example,IP:::1,URI:urn:a",
                  "a certificate of nobody who is known: dns:Desk.example, ip:::1, uri:urn:a"},
        std::pair{"DNS:carol.example,email:ada@example.com",
                  "a certificate of several principals: dns:carol.example, email:ada@example.com"},
        std::pair{"", "a certificate without alternative names"}}) {
    for (const std::string& text : {greeting, kWho, "[" + kWho + "]\n", post(kWho)}) {
      const std::string answer = told(names, text);
      EXPECT_TRUE(answer.contains("; the connection has shown "s + fault + (text == post(kWho) ? "\n" : "\"")))
          << text << answer;
      EXPECT_TRUE(comes_true([&] { return !log().empty(); }));
      const std::vector<std::string> lines = log();
      EXPECT_TRUE(lines.back().contains("a caller is not let in")) << lines.back();
      EXPECT_TRUE(lines.back().contains("reason=\""s + fault + "\"")) << lines.back();
    }
  }
  EXPECT_EQ(one_in(TlsSocket{endpoint, {.own = client("DNS:CAROL.Example")}}.ask(kWho)), "carol");
  EXPECT_EQ(one_in(TlsSocket{endpoint, {.own = client("email:ada@EXAMPLE.com")}}.ask(kWho)), "ada");
  TlsSocket many{endpoint,
                 {.own = client("DNS:" + std::string(200, 'a') + ",DNS:" + std::string(200, 'b') + ",DNS:c.example")}};
  EXPECT_TRUE(many.ask(greeting).contains(std::string(200, 'b') + ", and more\""));
}

TEST_P(TlsClientCertificates, a_session_that_is_resumed_is_mapped_anew) {
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

TEST_P(TlsClientCertificates, a_principal_whose_certificates_name_is_taken_away_is_cut) {
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

INSTANTIATE_TEST_SUITE_P(Ways, TlsClientCertificates, kEachTlsWay, tls_way_name);

}  // namespace
}  // namespace wirecall::net
