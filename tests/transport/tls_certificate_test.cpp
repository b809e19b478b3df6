#include "transport/tls_certificate.hpp"

#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/transport/certificates.hpp"

namespace wirecall::transport {
namespace {

using namespace std::string_literals;
using Names = std::vector<std::string>;

Names names_of(const CertificateTerms& terms) { return alternative_names(issue(terms).certificate.get()); }

TEST(TlsCertificate, names_are_told_with_their_types_in_their_order) {
  EXPECT_EQ(
      names_of({.names = "DNS:worker.example,URI:spiffe://example/worker,email:ada@example.com,IP:10.0.0.7,IP:::1"}),
      (Names{"dns:worker.example", "uri:spiffe://example/worker", "email:ada@example.com", "ip:10.0.0.7", "ip:::1"}));
  EXPECT_EQ(names_of({.names = ""}), Names{});
  EXPECT_EQ(names_of({.subject = "only.a.subject", .names = ""}), Names{}) << "a subject is no name";
  EXPECT_EQ(names_of({.names = "DNS:a,DNS:a"}), (Names{"dns:a", "dns:a"}));
  EXPECT_EQ(names_of({.names = "otherName:1.2.3.4;UTF8:other,RID:1.2.3"}).size(), 0U);
}

TEST(TlsCertificate, names_are_told_as_they_are_written) {
  EXPECT_EQ(names_of({.names = "DNS:Worker.EXAMPLE,DNS:*.example,email:A@b.C"}),
            (Names{"dns:Worker.EXAMPLE", "dns:*.example", "email:A@b.C"}));
  EXPECT_EQ(names_of({.names = "IP:2001:DB8::0:1"}), Names{"ip:2001:db8::1"});
}

TEST(TlsCertificate, of_a_name_with_a_byte_of_zero_nothing_is_said) {
  EXPECT_EQ(names_of({.names = "DNS:after.example", .raw_dns = "good.example\0.evil.example"s}),
            Names{"dns:after.example"});
  EXPECT_EQ(names_of({.names = "", .raw_dns = "\0"s}), Names{});
}

TEST(TlsCertificate, a_name_may_have_any_other_bytes) {
  EXPECT_EQ(names_of({.names = "", .raw_dns = "two\nlines"}), Names{"dns:two\nlines"});
}

TEST(TlsCertificate, a_certificate_of_this_process_is_known_as_such) {
  const SelfSigned made = make_self_signed();
  EXPECT_TRUE(is_self_signed(made.certificate.get()));
  EXPECT_FALSE(is_self_signed(issue({}).certificate.get()));
  EXPECT_EQ(X509_check_private_key(made.certificate.get(), made.key.get()), 1);
  const Names names = alternative_names(made.certificate.get());
  ASSERT_GE(names.size(), 3U);
  EXPECT_EQ((Names{names.begin(), names.begin() + 3}), (Names{"dns:localhost", "ip:127.0.0.1", "ip:::1"}));
  EXPECT_EQ(X509_check_ca(made.certificate.get()), 0);
}

TEST(TlsCertificate, fingerprints_are_those_of_openssl) {
  // $ openssl x509 -noout -fingerprint -sha256, whose colons and case are left away here.
  const Issued issued = issue({});
  unsigned char* der = nullptr;
  const int size = i2d_X509(issued.certificate.get(), &der);
  unsigned char digest[32];
  EVP_Digest(der, static_cast<std::size_t>(size), digest, nullptr, EVP_sha256(), nullptr);
  OPENSSL_free(der);
  std::string expected;
  for (const unsigned char byte : digest) {
    char text[3];
    std::snprintf(text, sizeof text, "%02x", byte);
    expected += text;
  }
  EXPECT_EQ(fingerprint_of(issued.certificate.get()), expected);
}

TEST(TlsCertificate, a_file_that_cannot_be_read_is_named_with_its_option) {
  const auto refusal = [](const std::string& path) {
    try {
      return content_of_file(path, "cafile");
    } catch (const std::invalid_argument& error) {
      return std::string{error.what()};
    }
  };
  EXPECT_EQ(refusal("/nonexistent/x.pem"), "cafile: /nonexistent/x.pem cannot be read: No such file or directory");
  EXPECT_EQ(refusal("/tmp"), "cafile: /tmp cannot be read: Is a directory");
  const CertificateFolder folder;
  EXPECT_EQ(refusal(folder.write("a", "content\0more"s)), "content\0more"s);
}

}  // namespace
}  // namespace wirecall::transport
