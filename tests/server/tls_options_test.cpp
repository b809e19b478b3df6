// Options of TLS that a server refuses, with the cure, or warns of.
#include <array>
#include <ctime>
#include <filesystem>
#include <gtest/gtest.h>
#include <stdexcept>

#include "tests/transport/certificates.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

using namespace std::string_literals;
using transport::CertificateTerms;
using transport::issue;
using transport::Issued;
using transport::TlsFiles;
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

// 14 days before, and where the clocks disagree.
TEST(TlsOptions, certificates_that_clients_do_not_accept_or_soon_will_not_are_warned_of) {
  const transport::UsualCertificates& usual = usual_certificates();
  const transport::CertificateFolder folder;
  constexpr long kDay = 24 * 3600;
  // The day of `seconds` from now, in UTC.
  const auto day = [](long seconds) {
    const std::time_t time = std::time(nullptr) + seconds;
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    std::array<char, 16> text{};
    return std::string{text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts)};
  };
  std::vector<std::string> lines;
  Options options;
  options.log = [&](const LogRecord& record) { lines.emplace_back(format_log(LogFormat::human, record).substr(25)); };
  const auto show = [&](const Issued& issued, std::initializer_list<const Issued*> chain = {}) {
    const TlsFiles files = folder.write("shown", issued, chain);
    options.tls.cert = {files.certificate};
    options.tls.key = {files.key};
  };
  const auto warnings = [&](const CertificateTerms& terms) {
    show(issue(terms, &usual.authority));
    lines.clear();
    const Server server{options};
    return lines;
  };
  const auto expect = [&](const CertificateTerms& terms, const std::string& begins, const std::string& date) {
    const std::string before = day(0);
    const std::vector<std::string> said = warnings(terms);
    ASSERT_EQ(said.size(), 1U);
    if (before != day(0)) return;  // midnight has passed
    EXPECT_TRUE(said[0].starts_with("warning " + begins + "=" + date + "T")) << said[0];
    EXPECT_TRUE(said[0].ends_with("Z\n") || said[0].ends_with("Z")) << said[0];
  };
  const std::string file = " file=" + folder.path + "/shown.pem subject=";
  EXPECT_TRUE(warnings({.ends = 14 * kDay + 60}).empty());
  expect({.subject = "soon", .ends = 14 * kDay - 60}, "a certificate is about to expire" + file + "soon ends",
         day(14 * kDay - 60));
  expect({.subject = "late", .begins = -2 * kDay, .ends = -60},
         "a certificate has expired: clients refuse it" + file + "late ended", day(-60));
  expect({.subject = "early", .begins = 3 * kDay},
         "a certificate is not valid yet: clients refuse it" + file + "early begins", day(3 * kDay));
  // What stands behind it, too; and each time they are read.
  const Issued middle = issue({.subject = "middle", .authority = true, .ends = kDay}, &usual.authority);
  show(issue({}, &middle), {&middle});
  lines.clear();
  Server server{options};
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].contains("subject=middle")) << lines[0];
  server.reload_certificates();
  EXPECT_EQ(lines.size(), 2U);
  show(issue({}, &usual.authority));
  server.reload_certificates();
  EXPECT_EQ(lines.size(), 2U);
}

}  // namespace
}  // namespace wirecall::net
