// rpc.discover: the methods of a registry as an OpenRPC document.
#include "rpc/openrpc.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

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

// Methods of others, by name.
struct Others final : rpc::MethodSource {
  explicit Others(std::vector<rpc::DescribedMethod> of) : methods(std::move(of)) {}
  bool next_method(std::string_view after, const Principal*, rpc::DescribedMethod& method) const override {
    for (const rpc::DescribedMethod& one : methods) {
      if (one.name <= after) continue;
      method = one;
      return true;
    }
    return false;
  }
  const std::vector<rpc::DescribedMethod> methods;
};

json document_of(const Registry& registry, std::vector<rpc::DescribedMethod> of_others,
                 const rpc::DocumentOrigin& origin = {}) {
  const Others others{std::move(of_others)};
  rpc::LoopContext loop_context;
  test::RecordingSink sink;
  rpc::OpenRpcDocument written{loop_context, registry, &others, {}, {}, origin};
  EXPECT_TRUE(written.advance(sink, ~std::size_t{0}));
  return json::parse(written.text());
}

TEST_F(OpenRpc, describes_parameters_and_results_by_the_types_of_the_function) {
  registry
      .method("subtract", [](int a, std::optional<double> b) { return a - b.value_or(0); },
              {"minuend", Param{"subtrahend"}.description("what is taken off")})
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
                  {"x", Param{"y"}.default_value("a"), Param{"z"}.shown_default("7")});
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
  const json document = document_of(
      registry, {{.name = "a", .summary = {}, .params = R"({"type":"object"})", .result = R"({"type":"string"})"},
                 {.name = "c",
                  .summary = "\"c\"",
                  .params = R"([{"name":"x","schema":{}}])",
                  .result = R"({"name":"r","schema":true})"},
                 {.name = "d", .summary = {}, .params = {}, .result = {}}});
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

TEST_F(OpenRpc, names_the_server_and_where_it_is_called) {
  EXPECT_FALSE(discover().contains("servers")) << "an address that is not known is not made up";
  const std::vector<std::string> urls{"http://a:1/rpc", "http://[::1]:2/rpc"};
  const json document = document_of(registry, {}, {.title = "calc \"2\"", .urls = urls});
  EXPECT_EQ(document.at("info").at("title"), "calc \"2\"");
  EXPECT_EQ(document.at("servers"), json::parse(R"([{"name":"calc \"2\"","url":"http://a:1/rpc"},)"
                                                R"({"name":"calc \"2\"","url":"http://[::1]:2/rpc"}])"));
}

// What the meta-schema of OpenRPC asks of a document, of its objects and of their members.
void expect_members(const json& object, const std::vector<std::string>& required,
                    const std::vector<std::string>& others) {
  for (const std::string& name : required) EXPECT_TRUE(object.contains(name)) << name << " in " << object;
  for (const auto& [name, value] : object.items()) {
    const bool known = std::ranges::find(required, name) != required.end() ||
                       std::ranges::find(others, name) != others.end() || name.starts_with("x-");
    EXPECT_TRUE(known) << name << " in " << object;
  }
}

TEST_F(OpenRpc, has_the_members_that_the_meta_schema_asks_for_and_no_others) {
  registry
      .method("subtract", [](int a, std::optional<double> b) { return a - b.value_or(0); },
              {"minuend", Param{"subtrahend"}.description("what is taken off")})
      .summary("takes one number off another");
  registry.method("sum", [](int first, Rest<double> more) { return first + static_cast<int>(more.size()); }, {"first"});
  registry.method("alone", [] {});
  const std::vector<std::string> urls{"http://localhost:8545/rpc"};
  const std::vector<rpc::DescribedMethod> others{
      {.name = "theirs", .summary = "a", .params = R"({"type":"object"})", .result = R"({"type":"null"})"}};
  const json document = document_of(registry, others, {.urls = urls});
  expect_members(document, {"openrpc", "info", "methods"}, {"servers", "components", "externalDocs"});
  expect_members(document.at("info"), {"title", "version"}, {"description", "termsOfService", "contact", "license"});
  for (const json& server : document.at("servers")) expect_members(server, {"url", "name"}, {"summary", "description"});
  ASSERT_EQ(document.at("methods").size(), 4U);
  const std::vector<std::string> of_descriptor{"summary", "description", "required", "deprecated"};
  for (const json& method : document.at("methods")) {
    expect_members(method, {"name", "params", "result"},
                   {"summary", "description", "tags", "paramStructure", "errors"});
    expect_members(method.at("result"), {"name", "schema"}, of_descriptor);
    std::set<std::string> names;
    for (const json& param : method.at("params")) {
      expect_members(param, {"name", "schema"}, of_descriptor);
      EXPECT_TRUE(param.at("schema").is_object());
      EXPECT_TRUE(names.insert(param.at("name").get<std::string>()).second) << "names are unique";
    }
  }
}

}  // namespace
}  // namespace wirecall
