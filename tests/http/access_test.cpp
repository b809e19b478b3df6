// Which requests of which browser pages are let in: the table of docs/wire.md "Who may call from a browser".
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "http/browser_access.hpp"

namespace wirecall::net {
namespace {

Access access(std::string_view fields, const HttpSettings& settings = {}, std::string_view line = "POST /rpc") {
  const std::string text = std::string{line} + " HTTP/1.1\r\n" + std::string{fields} + "\r\n";
  framing::HttpHead head;
  EXPECT_EQ(framing::read_http_head(text, 4096, head).size, text.size()) << text;
  return access_of(head, settings);
}
Access of_host(std::string_view host, const HttpSettings& settings = {}) {
  return access("Host: " + std::string{host} + "\r\n", settings);
}
Access of_origin(std::string_view host, std::string_view origin, const HttpSettings& settings = {}) {
  return access("Host: " + std::string{host} + "\r\nOrigin: " + std::string{origin} + "\r\n", settings);
}

TEST(HttpAccess, takes_loopback_names_for_its_own) {
  for (const auto* host :
       {"localhost", "LOCALHOST:8545", "127.0.0.1", "127.0.0.1:1", "127.9.9.9", "[::1]", "[::1]:80"}) {
    EXPECT_EQ(of_host(host), Access::own) << host;
  }
}

TEST(HttpAccess, refuses_other_names) {
  for (const auto* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.evil.example:8545",
                           "10.0.0.1", "[::2]", "127.", "1.2.3", ""}) {
    EXPECT_EQ(of_host(host), Access::foreign_host) << host;
  }
}

TEST(HttpAccess, refuses_what_has_no_host) { EXPECT_EQ(access(""), Access::no_host); }

TEST(HttpAccess, looks_at_the_page_where_any_host_will_do) {
  const auto anywhere = [](std::string_view fields) {
    const std::string text = "POST /rpc HTTP/1.1\r\n" + std::string{fields} + "\r\n";
    framing::HttpHead head;
    EXPECT_EQ(framing::read_http_head(text, 4096, head).size, text.size()) << text;
    return access_of(head, {}, {.of_any_host = true});
  };
  for (const auto* host : {"", "Host: evil.example\r\n", "Host: /run/calls.sock\r\n", "Host:\r\n"}) {
    EXPECT_EQ(anywhere(host), Access::own) << host;
    EXPECT_EQ(anywhere(host + std::string{"Origin: http://other.example\r\n"}), Access::foreign_origin) << host;
    EXPECT_EQ(anywhere(host + std::string{"Sec-Fetch-Site: cross-site\r\n"}), Access::cross_site) << host;
  }
}

TEST(HttpAccess, refuses_hosts_that_are_none) {
  for (const auto* host : {"a b", "a/b", "user@localhost", "localhost:x", "localhost:123456", "[::1", "[::1]x",
                           "[localhost]", "::1", ":80", "[]", "a,b", "[:\"1]"}) {
    EXPECT_EQ(of_host(host), Access::malformed_host) << host;
  }
  EXPECT_EQ(of_host("localhost:"), Access::own);  // RFC 3986: an empty port is none
}

TEST(HttpAccess, takes_bound_and_allowed_hosts) {
  HttpSettings settings;
  settings.bound_hosts = {"192.168.1.5"};
  settings.allow_hosts = {"api.example", "port.example:8545"};
  EXPECT_EQ(of_host("192.168.1.5:8545", settings), Access::own);
  EXPECT_EQ(of_host("192.168.1.6:8545", settings), Access::foreign_host);
  EXPECT_EQ(of_host("API.example:99", settings), Access::own);
  EXPECT_EQ(of_host("port.example:8545", settings), Access::own);
  EXPECT_EQ(of_host("port.example:8546", settings), Access::foreign_host);
  EXPECT_EQ(of_host("port.example", settings), Access::foreign_host);
}

TEST(HttpAccess, takes_every_address_but_no_name_where_all_addresses_are_listened_on) {
  for (const auto* all : {"0.0.0.0", "::"}) {
    HttpSettings settings;
    settings.bound_hosts = {all};
    EXPECT_EQ(of_host("10.0.0.1:8545", settings), Access::own);
    EXPECT_EQ(of_host("[2001:db8::1]:8545", settings), Access::own);
    EXPECT_EQ(of_host("rebound.example", settings), Access::foreign_host);
  }
}

TEST(HttpAccess, takes_the_origin_of_host_itself) {
  EXPECT_EQ(of_origin("localhost:8545", "http://localhost:8545"), Access::own);
  EXPECT_EQ(of_origin("localhost", "http://LOCALHOST:80"), Access::own);
  EXPECT_EQ(of_origin("localhost", "https://localhost"), Access::own);
  EXPECT_EQ(of_origin("[::1]:8545", "http://[::1]:8545"), Access::own);
}

TEST(HttpAccess, takes_no_origin_without_encryption_for_its_own_over_tls) {
  const auto over_tls = [](std::string_view origin) {
    const std::string text = "POST /rpc HTTP/1.1\r\nHost: localhost\r\nOrigin: " + std::string{origin} + "\r\n\r\n";
    framing::HttpHead head;
    EXPECT_EQ(framing::read_http_head(text, 4096, head).size, text.size()) << text;
    return access_of(head, {}, {.over_tls = true});
  };
  EXPECT_EQ(over_tls("https://localhost"), Access::own);
  EXPECT_EQ(over_tls("https://localhost:443"), Access::own);
  EXPECT_EQ(over_tls("http://localhost"), Access::foreign_origin);
  EXPECT_EQ(over_tls("http://localhost:80"), Access::foreign_origin);
}

TEST(HttpAccess, refuses_other_origins_and_null) {
  for (const auto* origin :
       {"http://evil.example", "http://localhost", "http://localhost:8546", "null", "", "localhost:8545",
        "http://localhost:8545.evil.example", "http://127.0.0.1:8545", "file://", "http://", "ftp://localhost:8545"}) {
    EXPECT_EQ(of_origin("localhost:8545", origin), Access::foreign_origin) << origin;
  }
}

TEST(HttpAccess, takes_allowed_origins_and_null_when_listed) {
  HttpSettings settings;
  settings.allow_origins = {"https://app.example", "null"};
  EXPECT_EQ(of_origin("localhost", "https://app.example", settings), Access::allowed_origin);
  EXPECT_EQ(of_origin("localhost", "null", settings), Access::allowed_origin);
  EXPECT_EQ(of_origin("localhost", "http://app.example", settings), Access::foreign_origin);
  EXPECT_EQ(of_origin("localhost", "https://app.example:444", settings), Access::foreign_origin);
  EXPECT_EQ(of_origin("evil.example", "https://app.example", settings), Access::foreign_host);
}

TEST(HttpAccess, refuses_cross_site_requests_but_for_a_navigation_to_the_front_page) {
  const std::string cross = "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n";
  EXPECT_EQ(access(cross), Access::cross_site);
  EXPECT_EQ(access(cross, {}, "GET /healthz"), Access::cross_site);
  EXPECT_EQ(access(cross, {}, "GET /"), Access::cross_site);
  EXPECT_EQ(access(cross + "Sec-Fetch-Mode: navigate\r\n", {}, "GET /"), Access::own);
  EXPECT_EQ(access(cross + "Sec-Fetch-Mode: navigate\r\n", {}, "GET /rpc/x"), Access::cross_site);
  EXPECT_EQ(access(cross + "Sec-Fetch-Mode: navigate\r\n", {}, "POST /"), Access::cross_site);
  EXPECT_EQ(access("Host: localhost\r\nSec-Fetch-Site: same-origin\r\n"), Access::own);
  HttpSettings settings;
  settings.allow_origins = {"https://app.example"};
  EXPECT_EQ(access(cross + "Origin: https://app.example\r\n", settings), Access::allowed_origin);
}

}  // namespace
}  // namespace wirecall::net
