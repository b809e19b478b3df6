// A credential that is no token: a reload looks it up anew, as it does tokens.
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc/access.hpp"
#include "tests/broker/world.hpp"
#include "wirecall/task.hpp"

namespace wirecall {
namespace {

using test::Client;
using test::request;
using test::result_reply;
using test::World;

// "CN=name": whoever checked the certificate has found that this is its subject.
class Certificates final : public rpc::CredentialKind {
 public:
  [[nodiscard]] std::string_view revoked() const noexcept override {
    return "the certificate's subject is not known any more";
  }
  [[nodiscard]] const Principal* find(const rpc::Authority& authority, std::string_view shown) const noexcept override {
    return shown.starts_with("CN=") ? authority.find_named(shown.substr(3)) : nullptr;
  }
};
constexpr Certificates kCertificates;

Principal principal(std::string name, std::vector<std::string> call) {
  return {
      .name = std::move(name), .tokens = {}, .call = std::move(call), .provide = {}, .publish = {}, .subscribe = {}};
}

class CredentialTest : public testing::Test {
 protected:
  CredentialTest() {
    world.registry.method("one", [] { return 1; });
    world.registry.method("wait", [this]() -> Task<int> { co_return co_await held; });
    use({principal("robot", {"one", "wait"}), principal("desk", {"one", "wait"})});
    show(robot, "CN=robot");
    show(desk, "CN=desk");
  }
  void use(std::vector<Principal> principals) {
    world.loop_context.services.authority = std::make_shared<const rpc::Authority>(std::move(principals));
  }
  void show(Client& client, std::string subject) {
    const rpc::Credential credential{kCertificates, std::move(subject)};
    client.dispatcher->identify(credential.find_in(*world.loop_context.services.authority), credential);
  }

  World world;
  Completion<int> held;
  Client robot{world};
  Client desk{world};
};

TEST_F(CredentialTest, that_is_no_token_lets_its_principal_call) {
  EXPECT_EQ(robot.ask(request("one")), result_reply("1"));
  Client nobody{world};
  show(nobody, "CN=nobody");
  EXPECT_NE(nobody.ask(request("one")).find("-32004"), std::string::npos);
}

TEST_F(CredentialTest, survives_a_reload_that_still_knows_it) {
  use({principal("other", {"one"}), principal("robot", {"one", "wait"})});
  EXPECT_TRUE(robot.dispatcher->is_still_known(false));
  EXPECT_EQ(robot.ask(request("one")), result_reply("1"));
  use({principal("robot", {"one", "wait"})});
  EXPECT_EQ(robot.ask(request("one")), result_reply("1")) << "found again a second time";
}

TEST_F(CredentialTest, that_a_reload_knows_no_more_ends_the_calls_of_its_peer) {
  desk.send(request("wait"));
  use({principal("robot", {"one", "wait"})});
  EXPECT_FALSE(desk.dispatcher->is_still_known(false));
  desk.dispatcher->end_if_revoked();
  const std::string told = desk.received();
  EXPECT_NE(told.find("-32004"), std::string::npos) << told;
  EXPECT_NE(told.find("the certificate's subject is not known any more"), std::string::npos) << told;
  EXPECT_NE(desk.ask(request("one")).find("-32004"), std::string::npos);
  EXPECT_EQ(desk.sink->closes, 1);
  held.set(1);
}

TEST(Credential, that_is_none_finds_its_principal_by_the_name) {
  const rpc::Authority before{{principal("robot", {"one"})}};
  const rpc::Authority after{{principal("desk", {"one"}), principal("robot", {"one"})}};
  const rpc::Identity shown{.authority = nullptr, .principal = before.find_named("robot"), .credential = {}};
  EXPECT_TRUE(shown.credential.empty());
  EXPECT_TRUE(rpc::Credential{""}.empty());
  EXPECT_EQ(shown.find_in(after), after.find_named("robot"));
}

TEST_F(CredentialTest, what_its_peer_has_asked_of_others_ends_with_whether_they_got_it) {
  use({{.name = "robot", .tokens = {}, .call = {}, .provide = {"far"}, .publish = {}, .subscribe = {}},
       principal("desk", {"far"})});
  show(robot, "CN=robot");
  show(desk, "CN=desk");
  EXPECT_EQ(robot.ask(request("rpc.register", R"({"method":"far","concurrency":1})")), result_reply("1"));
  desk.send(request("far", "[1]", "1"));
  desk.send(request("far", "[2]", "2"));
  use({principal("robot", {})});
  desk.dispatcher->end_if_revoked();
  const std::string told = desk.received();
  EXPECT_NE(told.find(R"("delivered":"maybe"}},"id":1})"), std::string::npos) << told;
  EXPECT_NE(told.find(R"("delivered":"no"}},"id":2})"), std::string::npos) << told;
}

}  // namespace
}  // namespace wirecall
