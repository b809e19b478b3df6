// rpc.discover: the methods of a registry as an OpenRPC document.
#include "rpc/openrpc.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/value.hpp"

namespace wirecall {
namespace {

using nlohmann::json;
using test::request;

class OpenRpc : public testing::Test {
 protected:
  json discover(std::string_view params = {}) {
    test::Peer peer{registry};
    return json::parse(peer.ask(request("rpc.discover", params))).at("result");
  }

  Registry registry;
};

TEST_F(OpenRpc, describes_parameters_and_results_by_the_types_of_the_function) {
  registry
      .method("subtract", [](int a, std::optional<double> b) { return a - b.value_or(0); },
              {"minuend", Param{"subtrahend"}.doc("what is taken off")})
      .summary("takes one number off another");
  registry.method("alone", [] {});
  const json document = discover();
  EXPECT_EQ(document.at("openrpc"), "1.2.6");
  EXPECT_EQ(document.at("info").at("title"), "wirecall");
  ASSERT_EQ(document.at("methods").size(), 2U);
  const json& alone = document.at("methods").at(0);
  EXPECT_EQ(alone.at("name"), "alone");
  EXPECT_FALSE(alone.contains("summary"));
  EXPECT_EQ(alone.at("params"), json::array());
  EXPECT_EQ(alone.at("result").at("schema").at("type"), "null");
  const json& subtract = document.at("methods").at(1);
  EXPECT_EQ(subtract.at("summary"), "takes one number off another");
  const json& first = subtract.at("params").at(0);
  EXPECT_EQ(first.at("name"), "minuend");
  EXPECT_EQ(first.at("schema").at("type"), "integer");
  EXPECT_EQ(first.at("required"), true);
  const json& second = subtract.at("params").at(1);
  EXPECT_EQ(second.at("description"), "what is taken off");
  EXPECT_EQ(second.at("required"), false);
  EXPECT_EQ(subtract.at("result").at("name"), "result");
  EXPECT_EQ(subtract.at("result").at("schema").at("type"), "number");
}

TEST_F(OpenRpc, tells_of_the_positions_that_a_method_takes_besides) {
  registry.method("sum", [](int first, Rest<double> more) { return first + static_cast<int>(more.size()); }, {"rest"});
  const json document = discover();
  const json& params = document.at("methods").at(0).at("params");
  ASSERT_EQ(params.size(), 2U);
  EXPECT_EQ(params.at(0).at("name"), "rest");
  const json& more = params.at(1);
  EXPECT_EQ(more.at("name"), "rest_") << "a name of its own";
  EXPECT_EQ(more.at("schema").at("type"), "number");
  EXPECT_EQ(more.at("required"), false);
  EXPECT_EQ(more.at("x-rest"), true);
}

TEST_F(OpenRpc, tells_the_default_of_a_parameter) {
  registry.method("f", [](int x, Value y, int z) { return y.is_string() ? x : z; },
                  {"x", Param{"y"}.otherwise("a"), Param{"z"}.shown_default("7")});
  const json document = discover();
  const json& params = document.at("methods").at(0).at("params");
  EXPECT_FALSE(params.at(0).at("schema").contains("default"));
  EXPECT_EQ(params.at(1).at("schema"), json::parse(R"({"default":"a"})"));
  EXPECT_EQ(params.at(1).at("required"), false);
  EXPECT_EQ(params.at(2).at("schema").at("default"), 7);
  EXPECT_EQ(params.at(2).at("schema").at("type"), "integer");
  EXPECT_EQ(params.at(2).at("required"), true) << "what is shown is for readers alone";
}

TEST_F(OpenRpc, is_of_the_version_that_is_asked_for_where_it_is_known) {
  EXPECT_EQ(discover(R"({"version":"1.3.2"})").at("openrpc"), "1.3.2");
  EXPECT_EQ(discover(R"(["1.2.6"])").at("openrpc"), "1.2.6");
  EXPECT_EQ(discover(R"(["2.0.0"])").at("openrpc"), "1.2.6");
  test::Peer peer{registry};
  EXPECT_NE(peer.ask(request("rpc.discover", "[1]")).find("-32602"), std::string::npos);
}

TEST(OpenRpcOfOthers, takes_what_they_say_in_the_form_in_which_it_has_to_be) {
  Registry registry;
  registry.method("b", [] {});
  struct Others final : rpc::MethodSource {
    bool next_method(std::string_view after, const Principal*, rpc::DescribedMethod& method) const override {
      for (const rpc::DescribedMethod& one : methods) {
        if (one.name <= after) continue;
        method = one;
        return true;
      }
      return false;
    }
    const std::vector<rpc::DescribedMethod> methods{
        {.name = "a", .summary = {}, .params = R"({"type":"object"})", .result = R"({"type":"string"})"},
        {.name = "c",
         .summary = "\"c\"",
         .params = R"([{"name":"x","schema":{}}])",
         .result = R"({"name":"r","schema":true})"},
        {.name = "d", .summary = {}, .params = {}, .result = {}}};
  };
  const Others others;
  rpc::Workspace workspace;
  test::RecordingOutlet outlet;
  rpc::OpenRpcDocument written{workspace, registry, &others, {}, {}};
  ASSERT_TRUE(written.advance(outlet, ~std::size_t{0}));
  const json document = json::parse(written.text());
  const json& methods = document.at("methods");
  EXPECT_EQ(methods.at(0), json::parse(R"({"name":"a","params":[{"name":"params","schema":{"type":"object"}}],
                                           "result":{"name":"result","schema":{"type":"string"}}})"));
  EXPECT_EQ(methods.at(1).at("name"), "b");
  EXPECT_EQ(methods.at(2), json::parse(R"({"name":"c","summary":"\"c\"","params":[{"name":"x","schema":{}}],
                                           "result":{"name":"r","schema":true}})"));
  EXPECT_EQ(methods.at(3), json::parse(R"({"name":"d","params":[],"result":{"name":"result","schema":{}}})"));
}

TEST_F(OpenRpc, rpc_methods_lists_what_can_be_called) {
  registry.method("b", [](int x) { return x; }, {"x"}).summary("The second");
  registry.method("a", [] { return 1; });
  test::Peer peer{registry};
  const json listed = json::parse(peer.ask(request("rpc.methods"))).at("result");
  EXPECT_EQ(listed, json::parse(R"([
    {"name":"a","summary":"","policy":"exclusive","providers":1,"in_flight":0,"waiting":0},
    {"name":"b","summary":"The second","policy":"exclusive","providers":1,"in_flight":0,"waiting":0}])"));
  EXPECT_NE(peer.ask(request("rpc.methods", "[1]")).find("-32602"), std::string::npos);
}

}  // namespace
}  // namespace wirecall
