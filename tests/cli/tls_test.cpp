// The command by TLS: what a server's banner says runs as it is, certificates are read anew at SIGHUP, and a client
// says whom it does not trust.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <vector>

#include "tests/cli/broker_tool.hpp"
#include "tests/cli/process.hpp"
#include "tests/transport/certificates.hpp"
#include "transport/tls_certificate.hpp"

namespace wirecall::cli {
namespace {

using transport::fingerprint_of;
using transport::issue;
using transport::Issued;
using transport::usual_certificates;

// What the line of a shell prints, both streams, and its exit status.
struct Printed {
  std::string text;
  int status;
};
Printed in_shell(const std::string& line) {
  FILE* const pipe = popen((line + " 2>&1").c_str(), "r");
  Printed printed{};
  std::array<char, 4096> block;
  while (const std::size_t bytes = std::fread(block.data(), 1, block.size(), pipe))
    printed.text.append(block.data(), bytes);
  const int status = pclose(pipe);
  printed.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return printed;
}

// The lines of a banner that have this word.
std::vector<std::string> lines_with(std::string_view text, std::string_view word) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.contains(word)) lines.emplace_back(line.substr(line.find_first_not_of(' ')));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string port_text(Process& server) { return std::to_string(port_of(server)); }

TEST(TlsTool, banner_of_a_server_with_a_certificate_of_its_own_has_lines_that_run) {
  Process server{{"serve", "--port", "0", "--tls-self-signed"}};
  const std::string banner = server.read_error_until("nc -q1");
  EXPECT_TRUE(banner.contains("with TLS, on this machine also without")) << banner;
  const std::vector<std::string> lines = lines_with(banner, "--tls-pin sha256:");
  ASSERT_GE(lines.size(), 3U) << banner;
  for (const std::string_view scheme : {"tls://", "https://", "wss://"})
    EXPECT_EQ(lines_with(banner, scheme).empty(), false) << scheme;
  for (const std::string& line : lines) {
    const Printed printed = in_shell(line);
    EXPECT_EQ(printed.status, 0) << line;
    EXPECT_EQ(printed.text, "\"pong\"\n") << line;
  }
}

TEST(TlsTool, a_certificate_of_its_own_stays_at_a_hang_up) {
  Process server{{"serve", "--port", "0", "--tls-self-signed"}};
  const std::vector<std::string> lines = lines_with(server.read_error_until("nc -q1"), "--url tls://");
  ASSERT_EQ(lines.size(), 1U);
  server.signal(SIGHUP);
  EXPECT_TRUE(server.read_error_until("the configuration is in force").contains("the certificate stays"));
  EXPECT_EQ(in_shell(lines.front()).text, "\"pong\"\n");
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST(TlsTool, the_fingerprint_is_in_a_log_of_json) {
  Process server{{"serve", "--port", "0", "--tls-self-signed", "--log-format", "json"}};
  const std::string line = server.read_error_until("\n");
  const std::size_t at = line.find(R"("tls":"on","fingerprint":"sha256:)");
  ASSERT_NE(at, std::string::npos) << line;
  const std::size_t pin = line.find("sha256:", at);
  const std::size_t port = line.find("tcp://127.0.0.1:") + std::string_view{"tcp://"}.size();
  const Ended ended = run({"call", "rpc.ping", "--url", "tls://" + line.substr(port, line.find('"', port) - port),
                           "--tls-pin", line.substr(pin, line.find('"', pin) - pin)});
  EXPECT_EQ(ended.output, "\"pong\"\n") << ended.error;
}

class TlsToolWithFiles : public testing::Test {
 protected:
  std::vector<std::string> with(const std::vector<std::string>& flags) const {
    std::vector<std::string> words{"serve", "--port", "0", "--tls-cert", cert_, "--tls-key", key_};
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  }
  static Ended ping(const std::string& url, const std::vector<std::string>& flags = {}) {
    std::vector<std::string> words{"call", "rpc.ping", "--url", url, "--timeout", "20s"};
    words.insert(words.end(), flags.begin(), flags.end());
    return run(std::move(words));
  }

  const transport::UsualCertificates& usual_ = usual_certificates();
  transport::CertificateFolder folder_;
  std::string cert_ = folder_.write("cert.pem", transport::pem_of(usual_.server));
  std::string key_ = folder_.write("key.pem", transport::key_pem_of(usual_.server));
};

TEST_F(TlsToolWithFiles, clients_trust_an_authority_a_fingerprint_or_say_that_they_trust_anybody) {
  Process server{with({})};
  const std::string port = port_text(server);
  const std::string pin = "sha256:" + fingerprint_of(usual_.server.certificate.get());
  for (const std::string scheme : {"tls", "https", "wss"}) {
    const std::string url = scheme + "://127.0.0.1:" + port;
    EXPECT_EQ(ping(url, {"--cafile", usual_.cafile}).output, "\"pong\"\n") << scheme;
    EXPECT_EQ(ping(url, {"--tls-pin", pin}).output, "\"pong\"\n") << scheme;
    const Ended any = ping(url, {"--tls-no-verify"});
    EXPECT_EQ(any.output, "\"pong\"\n") << scheme;
    EXPECT_EQ(any.error,
              "warning: --tls-no-verify accepts any server: whoever is on the way can read and change all that is "
              "sent\n");
    const Ended none = ping(url);
    EXPECT_EQ(none.status, 3) << scheme;
    EXPECT_TRUE(
        none.error.contains("the peer's certificate is refused: unable to get local issuer certificate; name the "
                            "authority that has signed it with"))
        << none.error;
    const Ended other = ping(url, {"--tls-pin", "sha256:" + std::string(64, '0')});
    EXPECT_EQ(other.status, 3);
    EXPECT_TRUE(other.error.contains("the server's certificate is not the one of tls.pin")) << other.error;
  }
  EXPECT_EQ(ping("tls://localhost:" + port, {"--cafile", usual_.cafile}).output, "\"pong\"\n");
  EXPECT_EQ(ping("tcp://127.0.0.1:" + port).output, "\"pong\"\n") << "plain, on this machine";
}

TEST_F(TlsToolWithFiles, wrong_files_and_flags_are_told_before_anything_else) {
  const Ended missing = ping("tls://127.0.0.1:1", {"--cafile", "/nonexistent/ca.pem"});
  EXPECT_NE(missing.status, 0);
  EXPECT_TRUE(missing.error.contains("cafile: /nonexistent/ca.pem cannot be read: No such file or directory"))
      << missing.error;
  const Ended pin = ping("tls://127.0.0.1:1", {"--tls-pin", "12"});
  EXPECT_EQ(pin.status, 2) << pin.error;
  EXPECT_TRUE(pin.error.contains("64 hexadecimal digits")) << pin.error;
  const Ended no_key = run({"serve", "--port", "0", "--tls-cert", cert_});
  EXPECT_EQ(no_key.status, 2) << no_key.error;
  EXPECT_TRUE(no_key.error.contains("give a key for each certificate")) << no_key.error;
  const Ended both = run(with({"--tls-self-signed"}));
  EXPECT_EQ(both.status, 2);
  EXPECT_TRUE(both.error.contains("tls.self_signed is true, and tls.cert is not empty")) << both.error;
}

TEST_F(TlsToolWithFiles, clients_show_certificates) {
  Process server{with({"--tls-client-auth", "required", "--tls-client-ca", usual_.cafile})};
  const std::string url = "tls://127.0.0.1:" + port_text(server);
  EXPECT_EQ(ping(url, {"--cafile", usual_.cafile, "--tls-client-cert", usual_.client_files.certificate,
                       "--tls-client-key", usual_.client_files.key})
                .output,
            "\"pong\"\n");
  const Ended none = ping(url, {"--cafile", usual_.cafile});
  EXPECT_NE(none.status, 0);
  EXPECT_TRUE(none.error.contains("certificate required")) << none.error;
  const std::vector<std::string> lines = lines_with(server.read_error_until("nc -q1"), "--tls-pin sha256:");
  ASSERT_EQ(lines.size(), 3U);
  for (std::string line : lines) {
    for (const auto& [placeholder, file] : {std::pair{std::string{"client.pem"}, usual_.client_files.certificate},
                                            {"client.key", usual_.client_files.key}})
      line.replace(line.find(placeholder), placeholder.size(), file);
    EXPECT_EQ(in_shell(line).text, "\"pong\"\n") << line;
  }
}

TEST_F(TlsToolWithFiles, principals_by_certificates_that_nobody_is_asked_for_are_warned_of) {
  constexpr std::string_view kWarning =
      "warning principals have certificates, which no client is asked for: set tls.client_auth to optional or required "
      "principal=ada\n";
  const std::string path = folder_.write("principals.json", R"([{"name":"ada","certificates":["dns:ada.example"]}])");
  Process server{with({"--principals-file", path})};
  EXPECT_TRUE(server.read_error_until("nc -q1").contains(kWarning));
  static_cast<void>(folder_.write("principals.json", R"([{"name":"ada","certificates":["dns:ada.test"]}])"));
  server.signal(SIGHUP);
  server.read_error_until(kWarning, 2);
  Process asking{with({"--principals-file", path, "--tls-client-auth", "optional", "--tls-client-ca", usual_.cafile})};
  EXPECT_FALSE(asking.read_error_until("nc -q1").contains("warning"));
}

TEST_F(TlsToolWithFiles, who_is_not_known_any_more_by_his_certificate_is_told_once_and_ends) {
  const std::string path = folder_.path + "/principals.json";
  const auto know = [&](const std::string& certificate) {
    std::ofstream{path} << R"([{"name":"ada","certificates":[")" + certificate + R"("],"subscribe":[">"]}])";
  };
  know("email:ada@example.com");
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  Process server{with({"--tls-client-auth", "optional", "--tls-client-ca", usual_.cafile, "--principals-file", path})};
  const std::string url = "tls://127.0.0.1:" + port_text(server);
  Process sub{{"sub", "news", "--url", url, "--cafile", usual_.cafile, "--tls-client-cert",
               usual_.client_files.certificate, "--tls-client-key", usual_.client_files.key, "--reconnect-min-ms", "5",
               "--reconnect-max-ms", "10"}};
  sub.read_error_until("subscribed to news\n");
  know("email:bob@example.com");
  server.signal(SIGHUP);
  const std::string told = sub.rest_of_error();
  EXPECT_EQ(sub.wait(), 1) << told;
  EXPECT_FALSE(told.contains(" again: ")) << told;
  EXPECT_EQ(told.find("error -32004: "), told.rfind("error -32004: ")) << told;
  EXPECT_TRUE(told.contains("error -32004: ")) << told;
}

TEST_F(TlsToolWithFiles, sighup_reads_certificates_anew_and_refuses_bad_ones_as_a_whole) {
  Process server{with({})};
  const std::string url = "tls://127.0.0.1:" + port_text(server);
  const auto pinned = [](const Issued& shown) {
    return std::vector<std::string>{"--tls-pin", "sha256:" + fingerprint_of(shown.certificate.get())};
  };
  EXPECT_EQ(ping(url, pinned(usual_.server)).status, 0);
  const Issued renewed = issue({}, &usual_.authority);
  static_cast<void>(folder_.write("cert.pem", transport::pem_of(renewed)));
  server.signal(SIGHUP);
  const std::string refused = server.read_error_until("refused as a whole");
  EXPECT_TRUE(server.read_error_until("is not the key of the certificate in").contains("tls.key: " + key_)) << refused;
  EXPECT_EQ(ping(url, pinned(usual_.server)).status, 0);
  static_cast<void>(folder_.write("key.pem", transport::key_pem_of(renewed)));
  server.signal(SIGHUP);
  const std::string taken = server.read_error_until("the configuration is in force changed=1");
  const auto shown = [](const Issued& one) { return "sha256:" + fingerprint_of(one.certificate.get()); };
  EXPECT_TRUE(taken.contains("the certificates are read anew files=" + cert_ + " was=" + shown(usual_.server) +
                             " fingerprint=" + shown(renewed)))
      << taken;
  server.signal(SIGHUP);
  server.read_error_until("the configuration is in force changed=0");
  EXPECT_EQ(ping(url, pinned(renewed)).status, 0);
  EXPECT_NE(ping(url, pinned(usual_.server)).status, 0);
  server.signal(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(TlsToolWithFiles, every_command_of_a_broker_goes_by_every_scheme_with_a_connection) {
  Process server{with({})};
  const std::string port = port_text(server);
  for (const std::string scheme : {"ws", "tls", "wss"}) {
    const auto words = [&](std::vector<std::string> own) {
      own.insert(own.end(), {"--url", scheme + "://127.0.0.1:" + port});
      if (scheme != "ws") own.insert(own.end(), {"--cafile", usual_.cafile});
      return own;
    };
    const auto output = [&](std::vector<std::string> own) {
      const Ended ended = run(words(std::move(own)));
      EXPECT_EQ(ended.status, 0) << scheme << ": " << ended.error;
      return ended.output;
    };
    const std::string greet = "greet." + scheme;
    const std::string news = "news." + scheme;
    const Staying provider{words({"reply", greet, "Hello, {0}!"}), {}, "wirecall: provides "};
    Staying subscriber{words({"sub", news}), {}, "wirecall: subscribed to "};
    EXPECT_EQ(output({"call", greet, "Ada"}), "\"Hello, Ada!\"\n");
    EXPECT_EQ(output({"notify", greet, "Ada"}), "");
    output({"pub", news, "21.5"});
    EXPECT_EQ(subscriber.line(), "21.5") << scheme;
    EXPECT_TRUE(output({"ls"}).contains(greet));
    EXPECT_TRUE(output({"describe", greet}).contains(greet));
    EXPECT_TRUE(output({"clients"}).contains("127.0.0.1"));
    EXPECT_TRUE(output({"stats", "--json"}).contains("connections"));
  }
}

TEST_F(TlsToolWithFiles, bench_loads_it_by_every_scheme) {
  Process server{with({"--demo"})};
  const std::string port = port_text(server);
  for (const std::string scheme : {"tls", "https", "wss"}) {
    const Ended ended = run({"bench", "subtract", "42", "23", "-c", "2", "-p", "4", "-z", "50ms", "--json", "--cafile",
                             usual_.cafile, "--url", scheme + "://127.0.0.1:" + port});
    EXPECT_EQ(ended.status, 0) << ended.error;
    EXPECT_TRUE(ended.output.contains("\"errors\":0")) << ended.output;
  }
}

}  // namespace
}  // namespace wirecall::cli
