// Options of TLS that a server refuses, with the cure, or warns of.
#include <filesystem>
#include <gtest/gtest.h>
#include <stdexcept>

#include "tests/transport/certificates.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;
using transport::usual_certificates;

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
