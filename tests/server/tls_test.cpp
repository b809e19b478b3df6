// A server that speaks TLS beside what else it speaks: every protocol, how connections end, and peers that dribble,
// flood or go.
#include <algorithm>
#include <arpa/inet.h>
#include <filesystem>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>

#include "tests/framing/websocket_frames.hpp"
#include "tests/server/tls_server.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;

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
    for (const std::string& plain : {kPing, "\0\0\0\x2C"s + kPing.substr(0, 44)}) {
      RawPeer peer{endpoint};
      peer.send(kProxy + plain);
      if (allowed) {
        EXPECT_NE(peer.take(30), "") << plain;
      } else {
        EXPECT_EQ(peer.all(), kParseError + "\n") << plain;
      }
    }
    // By HTTP it is told so by HTTP, whatever it asks for and however much it sends.
    const std::string body =
        "Bad Request: this request came without TLS, to a port that wants it: use https:// or wss://; the server's "
        "option allow_plain admits it\n";
    const std::string head =
        "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n";
    for (const std::string& plain : {post(kPing), upgrade(), "HEAD / HTTP/1.1\r\n\r\n"s, "BREW "s,
                                     post(std::string(300'000, ' ') + kPing) + post(kPing)}) {
      RawPeer peer{endpoint};
      peer.send(kProxy + plain);
      if (allowed && plain != "BREW ") {
        EXPECT_TRUE(peer.take(9).starts_with("HTTP/1.1 ")) << plain.substr(0, 30);
      } else if (!allowed) {
        EXPECT_EQ(peer.all(), plain.starts_with("HEAD") ? head : head + body) << plain.substr(0, 30);
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

// A connection to 127.0.0.1 from another address of this machine.
int connected_from(const char* address, const Endpoint& endpoint) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in ends{};
  ends.sin_family = AF_INET;
  ::inet_pton(AF_INET, address, &ends.sin_addr);
  EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&ends), sizeof ends), 0);
  ends.sin_port = htons(static_cast<std::uint16_t>(endpoint.port()));
  ::inet_pton(AF_INET, "127.0.0.1", &ends.sin_addr);
  EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&ends), sizeof ends), 0);
  return fd;
}

TEST_P(TlsServer, handshakes_in_progress_are_bounded) {
  options_.limits.tls_handshakes = 4;
  options_.limits.header_timeout_ms = 3'600'000;
  const Endpoint endpoint = serve();
  transport::TlsPeer hello;
  hello.shake_hands();
  const std::string first = hello.take();
  // One address has half of what others leave: on each thread two.
  const std::size_t begun_max = 2 * GetParam().threads;
  std::vector<RawPeer> begun;
  for (bool refused = false; !refused && begun.size() <= begun_max;) {
    RawPeer next{endpoint};
    next.send(first);
    refused = next.bytes(1) != "\x16";
    if (!refused) begun.push_back(std::move(next));
  }
  EXPECT_GE(begun.size(), 2U);
  EXPECT_LE(begun.size(), begun_max);
  EXPECT_EQ(stats().tls_handshakes_refused, 1U);
  RawPeer plain{endpoint};
  plain.send(kPing);
  EXPECT_EQ(plain.line(), kPong);
  RawPeer elsewhere{connected_from("127.0.0.2", endpoint)};
  elsewhere.send(first);
  EXPECT_EQ(elsewhere.bytes(1), "\x16");
  begun.clear();
  EXPECT_TRUE(comes_true([&] {
    TlsSocket next{endpoint};
    return next.open && next.ask(kPing) == kPong;
  }));
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

INSTANTIATE_TEST_SUITE_P(Ways, TlsServer, kEachTlsWay, tls_way_name);

}  // namespace
}  // namespace wirecall::net
