// What a nats-server wants to see before it lets a broker in: TLS, nkeys, credentials, permissions; and what is told
// where that is not there. Skipped where there is no nats-server.
#include <cstdlib>
#include <gtest/gtest.h>

#include "nats/nats_bus.hpp"
#include "tests/nats/nats_secrets.hpp"
#include "tests/nats/nats_server.hpp"
#include "wirecall/log.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::test {
namespace {

using namespace std::chrono_literals;
using cluster::Bus;

class NatsSecurityTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!NatsServer::is_there()) GTEST_SKIP() << "there is no nats-server: tools/install_packages.sh test installs it";
    std::string pattern = (std::filesystem::temp_directory_path() / "wirecall-nats-keys-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  void TearDown() override {
    bus.reset();
    server.reset();
    if (!folder.empty()) std::filesystem::remove_all(folder);
  }
  void serve(const std::string& configuration) { server.emplace(configuration); }
  [[nodiscard]] std::string file(const std::string& name, std::string_view content) const {
    const std::filesystem::path path = folder / name;
    std::ofstream{path} << content;
    return path.string();
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder / name).string(); }
  // An authority NAME.pem, and a certificate of it for 127.0.0.1, NAME-cert.pem, with its key, NAME-key.pem.
  void make_certificates(const std::string& name) const {
    const std::string extensions = file(name + ".ext", "subjectAltName=IP:127.0.0.1\n");
    const std::string at = "cd '" + folder.string() + "' && ";
    const std::string commands[] = {
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority-" + name +
            " -keyout " + name + "-ca.key -out " + name + ".pem",
        "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name + " -keyout " + name +
            "-key.pem -out " + name + ".csr",
        "openssl x509 -req -days 2 -in " + name + ".csr -CA " + name + ".pem -CAkey " + name +
            "-ca.key -CAcreateserial -extfile " + extensions + " -out " + name + "-cert.pem"};
    for (const std::string& command : commands)
      ASSERT_EQ(std::system((at + command + " >/dev/null 2>&1").c_str()), 0) << command;
  }
  [[nodiscard]] std::string tls_configuration(bool verify) const {
    return "tls { cert_file: \"" + path("good-cert.pem") + "\", key_file: \"" + path("good-key.pem") +
           "\", ca_file: \"" + path("good.pem") + "\", verify: " + (verify ? "true" : "false") + ", timeout: 60 }\n";
  }
  Bus& join(ClusterOptions options, const std::string& user = {}) {
    options.url = server->url(user);
    bus = net::make_nats_bus(loop, options, "one", log);
    bus->on_state([] {});
    return *bus;
  }
  template <class Condition>
  bool until(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      loop.turn(10ms);
    }
    return true;
  }
  // A slow machine may be refused for that, and tries again.
  bool is_let_in(const ClusterOptions& options) {
    Bus& joined = join(options);
    return until([&] { return joined.state() == Bus::State::connected; });
  }
  bool is_refused(const ClusterOptions& options) {
    Bus& joined = join(options);
    return until([&] { return joined.state() == Bus::State::connected || !joined.failure().empty(); }) &&
           joined.state() != Bus::State::connected;
  }

  std::filesystem::path folder;
  std::optional<NatsServer> server;
  Loop loop;
  std::string logged;
  LogSink log{[this](const LogRecord& record) { logged.append(record.message).append("\n"); }};
  std::unique_ptr<Bus> bus;
};

TEST_F(NatsSecurityTest, TlsIsSpokenWhereTheAuthorityVouchesForTheServer) {
  make_certificates("good");
  make_certificates("bad");
  serve(tls_configuration(false));
  ClusterOptions options;
  options.ca = path("good.pem");
  EXPECT_TRUE(is_let_in(options)) << bus->failure();
  options.ca = path("bad.pem");
  EXPECT_TRUE(is_refused(options));
  EXPECT_TRUE(bus->failure().starts_with("SSL handshake error")) << bus->failure();
  EXPECT_NE(bus->failure().find("certificate"), std::string::npos) << bus->failure();
}

TEST_F(NatsSecurityTest, ACertificateIsShownToAServerThatWantsOne) {
  make_certificates("good");
  make_certificates("bad");
  serve(tls_configuration(true));
  ClusterOptions options;
  options.ca = path("good.pem");
  EXPECT_TRUE(is_refused(options));
  options.cert = path("bad-cert.pem");
  options.key = path("bad-key.pem");
  EXPECT_TRUE(is_refused(options));
  options.cert = path("good-cert.pem");
  options.key = path("good-key.pem");
  EXPECT_TRUE(is_let_in(options)) << bus->failure();
}

TEST_F(NatsSecurityTest, AnNkeyIsShown) {
  serve("authorization { users = [ { nkey: " + std::string{kUser} + " } ] }\n");
  ClusterOptions options;
  EXPECT_TRUE(is_refused(options));
  EXPECT_NE(bus->failure().find("Authorization"), std::string::npos) << bus->failure();
  options.nkey = kOther;
  options.nkey_seed = file("other.seed", kOtherSeed);
  EXPECT_TRUE(is_refused(options));
  options.nkey = kUser;
  options.nkey_seed = file("user.seed", kUserSeed);
  EXPECT_TRUE(is_let_in(options)) << bus->failure();
}

TEST_F(NatsSecurityTest, ACredentialsFileIsShown) {
  serve("operator: " + std::string{kOperatorJwt} + "\nresolver: MEMORY\nresolver_preload: { " + std::string{kAccount} +
        ": " + std::string{kAccountJwt} + " }\n");
  const auto credentials = [](std::string_view seed) {
    return "-----BEGIN NATS USER JWT-----\n" + std::string{kUserJwt} +
           "\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n" + std::string{seed} +
           "\n------END USER NKEY SEED------\n";
  };
  ClusterOptions options;
  options.credentials = file("wrong.creds", credentials(kOtherSeed));
  EXPECT_TRUE(is_refused(options));
  options.credentials = file("user.creds", credentials(kUserSeed));
  EXPECT_TRUE(is_let_in(options)) << bus->failure();
}

TEST_F(NatsSecurityTest, FilesThatAreNotThereAreRefusedAtOnce) {
  serve({});
  ClusterOptions options;
  options.ca = path("none.pem");
  EXPECT_THROW(join(options), std::invalid_argument);
}

TEST_F(NatsSecurityTest, WhatIsNotPermittedIsLogged) {
  serve(
      "authorization { users = [ { user: one, password: secret, permissions: { publish: [\"wc.shop.hb\"], "
      "subscribe: [\"wc.shop.hb\"] } } ] }\n");
  Bus& joined = join({}, "one:secret");
  ASSERT_TRUE(until([&] { return joined.state() == Bus::State::connected; }));
  joined.subscribe("wc.shop.n.one.call", [](const cluster::BusMessage&) {});
  EXPECT_TRUE(until([&] { return logged.find("wc.shop.n.one.call") != std::string::npos; })) << logged;
  for (int i = 0; i != 3; ++i) static_cast<void>(joined.publish("wc.shop.n.two.call", {}, "x"));
  joined.flush();
  EXPECT_TRUE(until([&] { return logged.find("wc.shop.n.two.call") != std::string::npos; })) << logged;
  EXPECT_EQ(logged.find("secret"), std::string::npos) << logged;
  EXPECT_EQ(joined.state(), Bus::State::connected);
}

// libnats gives up where it is refused twice.
TEST_F(NatsSecurityTest, ABrokerThatIsRefusedForAWhileComesBack) {
  const auto users = [](const std::string& password) {
    return "authorization { users = [ { user: one, password: " + password + " } ] }\n";
  };
  serve(users("secret"));
  Bus& joined = join({}, "one:secret");
  int received = 0;
  joined.subscribe("wc.shop.hb", [&](const cluster::BusMessage&) { ++received; });
  ASSERT_TRUE(until([&] { return joined.state() == Bus::State::connected; }));
  server->kill();
  ASSERT_TRUE(until([&] { return joined.state() == Bus::State::disconnected; }));
  server->configure(users("another"));
  server->start();
  EXPECT_TRUE(until([&] { return logged.find("Authorization Violation") != std::string::npos; })) << logged;
  server->kill();
  server->configure(users("secret"));
  server->start();
  ASSERT_TRUE(until([&] { return joined.state() == Bus::State::connected; })) << joined.failure();
  ClusterOptions options;
  options.url = server->url("one:secret");
  const std::unique_ptr<Bus> other = net::make_nats_bus(loop, options, "two", log);
  ASSERT_TRUE(until([&] { return other->state() == Bus::State::connected; }));
  EXPECT_TRUE(until([&] {
    static_cast<void>(other->publish("wc.shop.hb", {}, "x"));
    other->flush();
    return received != 0;
  }));
}

}  // namespace
}  // namespace wirecall::test
