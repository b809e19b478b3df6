// TLS sessions in memory, against each other and against OpenSSL peers: versions, ciphers and protocols, the bytes that
// they carry, and their end. Expected texts are OpenSSL's own reasons, and the alerts of RFC 5246 and 8446.
#include "transport/tls_session.hpp"

#include <algorithm>
#include <gtest/gtest.h>

#include "tests/transport/tls_pair.hpp"

namespace wirecall::transport {
namespace {

using namespace std::string_literals;
using State = TlsSession::State;

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

// ---- cuts ----

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

}  // namespace
}  // namespace wirecall::transport
