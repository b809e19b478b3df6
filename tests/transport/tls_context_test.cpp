// The files of TLS: what is wrong with each is said with the option's name, the path, the cause and what helps.
#include "transport/tls_context.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <stdexcept>
#include <string>
#include <unistd.h>

#include "tests/transport/certificates.hpp"

namespace wirecall::transport {
namespace {

using namespace std::string_literals;

std::string refusal(const TlsServerSettings& settings) {
  try {
    const TlsServerContext made{settings};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}
std::string refusal(const TlsClientSettings& settings) {
  try {
    const TlsClientContext made{settings};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

class TlsContext : public testing::Test {
 protected:
  [[nodiscard]] TlsServerSettings with(const std::string& certificate, const std::string& key) const {
    return {.identities = {{.certificate = certificate, .key = key}}};
  }
  const UsualCertificates& usual = usual_certificates();
  CertificateFolder folder;
  const std::string none = folder.path + "/none";
  const std::string garbage = folder.write("garbage", "no PEM at all\n");
  const std::string empty = folder.write("empty", "");
  const std::string cut = folder.write("cut", pem_of(usual.server).substr(0, 200));
  const std::string& cert = usual.server_files.certificate;
  const std::string& key = usual.server_files.key;
};

TEST_F(TlsContext, of_a_server_names_what_is_wrong_with_a_certificate) {
  EXPECT_EQ(refusal(with(cert, key)), "");
  EXPECT_EQ(refusal(with(none, key)), "tls.cert: " + none + " cannot be read: No such file or directory");
  for (const std::string& bad : {garbage, empty, usual.server_files.key}) {
    EXPECT_EQ(refusal(with(bad, key)), "tls.cert: " + bad + ": is no certificate in PEM: no start line");
  }
  EXPECT_TRUE(refusal(with(cut, key)).starts_with("tls.cert: " + cut + ": is no certificate in PEM: "));
}

TEST_F(TlsContext, of_a_server_names_what_is_wrong_with_a_key) {
  EXPECT_EQ(refusal(with(cert, none)), "tls.key: " + none + " cannot be read: No such file or directory");
  for (const std::string& bad : {garbage, empty, cert}) {
    EXPECT_TRUE(
        refusal(with(cert, bad)).starts_with("tls.key: " + bad + ": is no private key in PEM without a passphrase: "))
        << refusal(with(cert, bad));
  }
  EXPECT_EQ(refusal(with(cert, usual.client_files.key)),
            "tls.key: " + usual.client_files.key + ": is not the key of the certificate in " + cert);
  const std::string rsa = folder.write("rsa.key", key_pem_of(issue({.rsa = true})));
  EXPECT_EQ(refusal(with(cert, rsa)), "tls.key: " + rsa + ": is not the key of the certificate in " + cert);
}

// Nobody is there to be asked for one: where there is a terminal, it must not wait.
TEST_F(TlsContext, of_a_server_refuses_a_key_with_a_passphrase_and_asks_for_none) {
  const std::string locked = folder.write("locked.key", key_pem_of(usual.server, "secret"));
  EXPECT_TRUE(refusal(with(cert, locked))
                  .starts_with("tls.key: " + locked + ": is no private key in PEM without a passphrase: "))
      << refusal(with(cert, locked));
  EXPECT_TRUE(refusal(TlsClientSettings{.own = {.certificate = cert, .key = locked}}).starts_with("tls.client_key: "));
}

TEST_F(TlsContext, of_a_server_looks_at_every_pair) {
  TlsServerSettings two = with(cert, key);
  two.identities.push_back({.certificate = usual.client_files.certificate, .key = garbage});
  EXPECT_TRUE(refusal(two).starts_with("tls.key: " + garbage));
}

TEST_F(TlsContext, of_a_server_names_what_is_wrong_with_authorities_and_revocation_lists) {
  TlsServerSettings asks = with(cert, key);
  asks.client = ClientCertificate::required;
  for (const std::string& bad : {garbage, empty}) {
    asks.client_ca = bad;
    EXPECT_TRUE(refusal(asks).starts_with("tls.client_ca: " + bad + ": holds no certificates in PEM: "))
        << refusal(asks);
  }
  asks.client_ca = none;
  EXPECT_EQ(refusal(asks), "tls.client_ca: " + none + " cannot be read: No such file or directory");
  asks.client_ca = usual.cafile;
  EXPECT_EQ(refusal(asks), "");
  for (const std::string& bad : {garbage, empty, cert}) {
    asks.client_crl = bad;
    EXPECT_TRUE(refusal(asks).starts_with("tls.client_crl: " + bad + ": holds no revocation lists in PEM: "))
        << refusal(asks);
  }
  asks.client_crl = none;
  EXPECT_EQ(refusal(asks), "tls.client_crl: " + none + " cannot be read: No such file or directory");
  asks.client_crl = folder.write("good.crl", revocation_list(usual.authority, {}));
  EXPECT_EQ(refusal(asks), "");
}

TEST_F(TlsContext, of_a_client_names_what_is_wrong) {
  EXPECT_EQ(refusal(TlsClientSettings{}), "");
  EXPECT_EQ(refusal(TlsClientSettings{.cafile = none}),
            "cafile: " + none + " cannot be read: No such file or directory");
  for (const std::string& bad : {garbage, empty})
    EXPECT_TRUE(
        refusal(TlsClientSettings{.cafile = bad}).starts_with("cafile: " + bad + ": holds no certificates in PEM: "));
  EXPECT_EQ(refusal(TlsClientSettings{.own = {.certificate = cert, .key = ""}}),
            "tls.client_cert and tls.client_key belong together: give both, or neither");
  EXPECT_EQ(refusal(TlsClientSettings{.own = {.certificate = "", .key = key}}),
            "tls.client_cert and tls.client_key belong together: give both, or neither");
  EXPECT_TRUE(refusal(TlsClientSettings{.own = {.certificate = garbage, .key = key}})
                  .starts_with("tls.client_cert: " + garbage + ": is no certificate in PEM: "));
  EXPECT_EQ(refusal(TlsClientSettings{.own = {.certificate = cert, .key = usual.client_files.key}}),
            "tls.client_key: " + usual.client_files.key + ": is not the key of the certificate in " + cert);
  EXPECT_EQ(refusal(TlsClientSettings{.own = {.certificate = cert, .key = key}}), "");
}

TEST_F(TlsContext, of_a_client_wants_a_pin_of_64_digits) {
  const std::string digits(64, 'a');
  for (const std::string& good :
       {"sha256:" + digits, "sha256:" + std::string(64, 'F'), "sha256:aa:" + digits.substr(2)})
    EXPECT_EQ(refusal(TlsClientSettings{.pin = good}), "") << good;
  for (const std::string& bad : {digits, "sha256:"s, "sha1:" + digits, "sha256:" + digits + "a", "SHA256:" + digits,
                                 "sha256:" + digits.substr(1) + "g", "sha256: " + digits.substr(1), "s"s})
    EXPECT_EQ(refusal(TlsClientSettings{.pin = bad}),
              "tls.pin is no fingerprint: give sha256: and the 64 hexadecimal digits of the server's certificate")
        << bad;
}

TEST_F(TlsContext, leaves_no_errors_behind) {
  ERR_clear_error();
  static_cast<void>(refusal(with(cert, usual.client_files.key)));
  static_cast<void>(refusal(with(garbage, key)));
  static_cast<void>(refusal(TlsClientSettings{.cafile = empty}));
  static_cast<void>(refusal(with(cert, key)));
  EXPECT_EQ(ERR_peek_error(), 0U);
}

TEST(TlsClientContext, reads_each_file_once_since_it_may_be_a_pipe) {
  const std::string path = usual_certificates().cafile;
  std::ifstream file{path};
  const std::string pem{std::istreambuf_iterator<char>{file}, {}};
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], pem.data(), pem.size()), static_cast<ssize_t>(pem.size()));
  ::close(ends[1]);
  TlsClientSettings settings;
  settings.cafile = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_NO_THROW(static_cast<void>(TlsClientContext{settings}));
  ::close(ends[0]);
}

}  // namespace
}  // namespace wirecall::transport
