// The banner of `wirecall serve`, without any socket.
#include "cli/commands/banner.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/demo.hpp"

namespace wirecall::cli {
namespace {

TEST(Banner, ListsEveryWayInWithLinesToCopy) {
  Registry registry;
  add_demo_methods(registry);
  ServeOptions options;
  options.demo = true;
  options.version = "1.2.3";
  const std::vector<Endpoint> usual{Endpoint{"tcp://127.0.0.1:8545"}, Endpoint{"tcp://[::1]:9000"}};
  const std::string text = banner(options, usual, registry);
  EXPECT_NE(text.find("tcp://127.0.0.1:8545"), std::string::npos);
  EXPECT_NE(text.find("tcp://[::1]:9000"), std::string::npos);
  EXPECT_NE(text.find("  wirecall call subtract 42 23\n"), std::string::npos);
  EXPECT_NE(text.find("| nc -q1 127.0.0.1 8545\n"), std::string::npos);
  EXPECT_NE(text.find("subtract(minuend, subtrahend)"), std::string::npos);
  EXPECT_NE(text.find("sum(...)"), std::string::npos);
}

TEST(Banner, OfABrokerWithoutMethodsOfItsOwnCopiesNoCallOfThem) {
  const std::string text = banner({}, std::vector<Endpoint>{Endpoint{"tcp://127.0.0.1"}}, {});
  EXPECT_EQ(text.find("subtract"), std::string::npos);
  EXPECT_NE(text.find("  wirecall reply greet 'Hello, {name}!'\n"), std::string::npos);
  EXPECT_NE(text.find("  wirecall call greet name=Ada\n"), std::string::npos);
  EXPECT_EQ(text.find("Methods:"), std::string::npos);
}

TEST(Banner, WhereATokenIsAskedForTheLinesShowOne) {
  ServeOptions options;
  options.server.principals_file = "principals.json";
  const std::string text = banner(options, std::vector<Endpoint>{Endpoint{"tcp://127.0.0.1"}}, {});
  EXPECT_NE(text.find("with a token in $WIRECALL_TOKEN:\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" those that principals.json names; "), std::string::npos) << text;
  EXPECT_EQ(text.find("whoever can connect"), std::string::npos) << text;
  EXPECT_NE(text.find("curl -H \"Authorization: Bearer $WIRECALL_TOKEN\" -d '"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("params":{"token":"%s"},"id":0}\n{)"), std::string::npos) << text;
  EXPECT_NE(text.find("\\n' \"$WIRECALL_TOKEN\" | nc "), std::string::npos) << text;
}

TEST(Banner, AContentLengthIsThatOfTheTextBehindIt) {
  const std::vector<Endpoint> usual{Endpoint{"tcp://127.0.0.1"}};
  const std::string text = banner({}, usual, {});
  constexpr std::string_view kHead = "printf 'Content-Length: ";
  const std::size_t at = text.find(kHead);
  ASSERT_NE(at, std::string::npos);
  const std::size_t body = text.find("\\r\\n\\r\\n", at) + 8;
  EXPECT_EQ(std::stoul(text.substr(at + kHead.size())), text.find("' | nc", at) - body);
}

TEST(Banner, ALengthOfFourBytesIsThatOfTheTextBehindIt) {
  const std::string text = banner({}, std::vector<Endpoint>{Endpoint{"tcp://127.0.0.1"}}, {});
  constexpr std::string_view kHead = R"(printf '\000\000\000\)";
  const std::size_t at = text.find(kHead);
  ASSERT_NE(at, std::string::npos);
  const std::size_t body = at + kHead.size() + 3;
  EXPECT_EQ(std::stoul(text.substr(at + kHead.size(), 3), nullptr, 8), text.find("' | nc", at) - body);
}

TEST(Banner, LinesToCopyNameTheServerWhereItIsNotTheUsualOne) {
  ServeOptions options;
  options.demo = true;
  options.program = "build/wirecall";
  const std::vector<Endpoint> everywhere{Endpoint{"tcp://0.0.0.0:9000"}};
  EXPECT_NE(banner(options, everywhere, {}).find("build/wirecall call subtract 42 23 --url tcp://127.0.0.1:9000\n"),
            std::string::npos);
}

std::string banner_at(const ServeOptions& options, const std::vector<std::string>& uris) {
  std::vector<Endpoint> endpoints;
  for (const std::string& uri : uris) endpoints.emplace_back(uri);
  return banner(options, endpoints, {});
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++count;
  return count;
}

ServeOptions with_certificate() {
  ServeOptions options;
  options.server.tls.self_signed = true;
  options.fingerprint = std::string(64, 'a');
  return options;
}

TEST(Banner, EachKindOfEndpointHasLinesWhicheverComesFirst) {
  const std::string tcp = "tcp://127.0.0.1:9000";
  const std::string udp = "udp://127.0.0.1:9001";
  const std::string local = "unix:///run/calls.sock";
  for (const auto& uris : {std::vector{tcp, udp, local}, {local, udp, tcp}, {udp, tcp, local}}) {
    const std::string text = banner_at({}, uris);
    for (const std::string line :
         {"nc -q1 127.0.0.1 9000\n", "http://127.0.0.1:9000/rpc\n", "'http://127.0.0.1:9000/events?topic=news'\n",
          "--url ws://127.0.0.1:9000/\n", "call rpc.ping --url udp://127.0.0.1:9001\n", "nc -u -w1 127.0.0.1 9001\n",
          "nc -q1 -U /run/calls.sock\n", "--unix-socket /run/calls.sock http://localhost/rpc\n"})
      EXPECT_TRUE(text.contains(line)) << line << text;
    EXPECT_EQ(count_of(text, "To copy into another terminal"), 1U) << text;
  }
  EXPECT_FALSE(banner_at({}, {tcp, "tcp://127.0.0.1:9002"}).contains("nc -q1 127.0.0.1 9002"));
  EXPECT_FALSE(banner_at({}, {"stdio:"}).contains("To copy"));
}

TEST(Banner, TheFingerprintIsAlwaysThere) {
  const std::string pin = "sha256:" + std::string(64, 'a');
  for (const std::vector<std::string>& uris : {std::vector<std::string>{"unix:///run/calls.sock"},
                                               {"unix:///run/calls.sock", "tcp://127.0.0.1"},
                                               {"tcp://127.0.0.1"}}) {
    const std::string text = banner_at(with_certificate(), uris);
    EXPECT_TRUE(text.contains("  certificate " + pin + "   its fingerprint, for --tls-pin\n")) << text;
    EXPECT_EQ(text.contains("--url tls://127.0.0.1:8545 --tls-pin " + pin + "\n"), uris.back().starts_with("tcp"));
  }
  ServeOptions proxied = with_certificate();
  proxied.server.proxy_protocol = true;
  proxied.server.proxy_from = {"10.0.0.7"};
  EXPECT_TRUE(banner_at(proxied, {"tcp://127.0.0.1"}).contains("  certificate " + pin));
}

TEST(Banner, LinesOfTlsShowTheClientsCertificateWhereThatIsRequired) {
  ServeOptions options = with_certificate();
  options.server.tls.client_auth = ClientAuth::optional;
  EXPECT_FALSE(banner_at(options, {"tcp://127.0.0.1"}).contains("--tls-client-cert"));
  options.server.tls.client_auth = ClientAuth::required;
  const std::string text = banner_at(options, {"tcp://127.0.0.1"});
  EXPECT_EQ(count_of(text, " --tls-client-cert client.pem --tls-client-key client.key\n"), 3U) << text;
  EXPECT_TRUE(text.contains("asks for the client's certificate")) << text;
}

TEST(Banner, LinesWithoutTlsAreThereWhereTheServerTakesThem) {
  const std::string here = banner_at(with_certificate(), {"tcp://0.0.0.0:9000"});
  EXPECT_TRUE(here.contains("; with TLS, on this machine also without\n")) << here;
  EXPECT_TRUE(here.contains("http://127.0.0.1:9000/rpc\n")) << here;
  const std::string there = banner_at(with_certificate(), {"tcp://192.0.2.7:9000"});
  EXPECT_TRUE(there.contains("; with TLS\n")) << there;
  EXPECT_FALSE(there.contains("nc -q1") || there.contains("http://")) << there;
  EXPECT_TRUE(there.contains("--url tls://192.0.2.7:9000 ")) << there;
  ServeOptions both = with_certificate();
  both.server.allow_plain = true;
  const std::string all = banner_at(both, {"tcp://192.0.2.7:9000"});
  EXPECT_TRUE(all.contains("; with TLS or without\n") && all.contains("nc -q1 192.0.2.7 9000\n")) << all;
}

TEST(Banner, BehindAProxyItSaysWhoMayComeAndShowsNoLineThatCannot) {
  ServeOptions options;
  options.server.proxy_protocol = true;
  options.server.proxy_from = {"10.0.0.7", "fd00::/8"};
  const std::string plain = banner_at(options, {"tcp://127.0.0.1:9000"});
  EXPECT_TRUE(plain.contains("WebSocket; only behind the PROXY header of 10.0.0.7, fd00::/8\n")) << plain;
  EXPECT_FALSE(plain.contains("To copy")) << plain;
  const std::string beside = banner_at(options, {"tcp://127.0.0.1:9000", "unix:///run/calls.sock"});
  EXPECT_TRUE(beside.contains("nc -q1 -U /run/calls.sock\n")) << beside;
  EXPECT_FALSE(beside.contains("nc -q1 127")) << beside;
  options.server.tls.self_signed = true;
  options.fingerprint = std::string(64, 'a');
  const std::string tls = banner_at(options, {"tcp://127.0.0.1:9000"});
  EXPECT_TRUE(tls.contains("; with TLS; only behind the PROXY header of 10.0.0.7, fd00::/8\n")) << tls;
}

TEST(Banner, ByDatagramsNoTokenIsSent) {
  ServeOptions options;
  options.server.principals_file = "principals.json";
  const std::string text = banner_at(options, {"tcp://127.0.0.1", "udp://127.0.0.1:9001"});
  EXPECT_TRUE(text.contains("  WIRECALL_TOKEN= wirecall call rpc.ping --url udp://127.0.0.1:9001\n")) << text;
}

}  // namespace
}  // namespace wirecall::cli
