// TLS sessions whose peer sends garbage, floods them or asks for what ours never would. Expected texts are OpenSSL's
// own reasons, and the alerts of RFC 5246 and 8446.
#include <algorithm>
#include <gtest/gtest.h>

#include "tests/transport/tls_pair.hpp"

namespace wirecall::transport {
namespace {

using namespace std::string_literals;
using State = TlsSession::State;

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
  // One more may be allowed by the time that has passed.
  for (int i = 0; i < 64 && server.state() == State::open; ++i) {
    SSL_key_update(client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
    client.write("x");
    exchange(client, server);
  }
  EXPECT_EQ(server.state(), State::failed);
  EXPECT_EQ(server.failure(), "the peer changes keys too often");
}

TEST(KeyUpdateBudget, is_spent_by_a_flood_and_not_by_a_peer_that_changes_keys_by_time) {
  using std::chrono::seconds;
  KeyUpdateBudget by_time;
  for (int hour = 0; hour < 10'000; ++hour) {
    by_time.spend(seconds{1'000'000 + 3600 * hour});
    ASSERT_FALSE(by_time.exceeded()) << hour;
  }
  KeyUpdateBudget flood;
  for (int i = 0; i < 64; ++i) flood.spend(seconds{1'000'000});
  EXPECT_FALSE(flood.exceeded());
  flood.spend(seconds{1'000'000});
  EXPECT_TRUE(flood.exceeded());
  flood.spend(seconds{1'000'020});
  EXPECT_FALSE(flood.exceeded());
  flood.spend(seconds{1'000'020});
  EXPECT_TRUE(flood.exceeded());
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

}  // namespace
}  // namespace wirecall::transport
