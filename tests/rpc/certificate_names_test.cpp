// Names of certificates: which spellings are one name, by RFC 5280, and what is none.
#include "rpc/certificate_names.hpp"

#include <gtest/gtest.h>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>

namespace wirecall::rpc {
namespace {

using namespace std::string_literals;

TEST(CertificateName, is_one_in_all_its_spellings) {
  for (const auto& [one, other] : std::initializer_list<std::pair<const char*, const char*>>{
           {"dns:Desk.Example", "dns:desk.example"},
           {"dns:*.EXAMPLE", "dns:*.example"},
           {"ip:::1", "ip:0:0:0:0:0:0:0:1"},
           {"ip:2001:DB8::", "ip:2001:0db8:0000:0000:0000:0000:0000:0000"},
           {"ip:::ffff:192.0.2.1", "ip:::FFFF:C000:201"},
           {"ip:192.0.2.1", "ip:192.0.2.1"},
           {"email:Ada@Example.COM", "email:Ada@example.com"},
           {"email:\"a@B\"@EXAMPLE", "email:\"a@B\"@example"},
           {"uri:SPIFFE://Example/Robot", "uri:spiffe://example/Robot"},
           {"uri:HTTPS://User@Host.Example:8443/A?B#C", "uri:https://User@host.example:8443/A?B#C"},
           {"uri:URN:Example:A", "uri:urn:Example:A"},
           {"uri:HTTP://HOST/a@B", "uri:http://host/a@B"}}) {
    const auto normal = normal_certificate_name(one);
    ASSERT_TRUE(normal) << one;
    EXPECT_EQ(normal, normal_certificate_name(other)) << one;
  }
}

TEST(CertificateName, differs_from_every_other) {
  const std::initializer_list<const char*> names{"dns:a",
                                                 "dns:b",
                                                 "uri:a",
                                                 "email:a",
                                                 "email:A",
                                                 "email:Ada@example",
                                                 "email:ada@example",
                                                 "uri:a://b/c",
                                                 "uri:a://b/C",
                                                 "uri:a://U@b",
                                                 "uri:a://u@b",
                                                 "uri:urn:A",
                                                 "uri:urn:a",
                                                 "ip:192.0.2.1",
                                                 "ip:::c000:201",
                                                 "ip:::ffff:192.0.2.1",
                                                 "ip:::1",
                                                 "ip:::",
                                                 "dns:ip:::1",
                                                 "dns:00"};
  std::set<std::string> normal;
  for (const char* const name : names) EXPECT_TRUE(normal.insert(normal_certificate_name(name).value()).second) << name;
}

TEST(CertificateName, is_none_of_another_type_or_without_text_or_that_is_no_address) {
  for (const std::string& none : {""s, "dns"s, "dns:"s, "uri:"s, "email:"s, "ip:"s, ":a"s, "DNS:a"s, "othername:a"s,
                                  "desk.example"s, "dns:a\nb"s, "ip:localhost"s, "ip:192.0.2"s, "ip:192.0.2.01"s,
                                  "ip:[::1]"s, "ip:::1%eth0"s, "ip:1::2::3"s, "ip:192.0.2.0/24"s, "ip: ::1"s})
    EXPECT_EQ(normal_certificate_name(none), std::nullopt) << none;
}

}  // namespace
}  // namespace wirecall::rpc
