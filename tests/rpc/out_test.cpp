// Parameters that come back: `T&` in both directions, Out<T> in one; what is sent, what is answered, what a document
// says of it.
#include "wirecall/out.hpp"

#include <expected>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"
#include "wirecall/value.hpp"

namespace wirecall {
namespace {

using test::invalid_params;
using test::request;
using test::result_reply;

void divide(int a, int b, Out<int> quotient, Out<int> remainder) {
  if (b == 0) throw Error{-50, "division by zero"};
  quotient = a / b;
  remainder = a % b;
}

class ComesBack : public testing::Test {
 protected:
  std::string call(std::string_view method, std::string_view params = {}) {
    return registry.handle(request(method, params));
  }
  Registry registry;
};

TEST_F(ComesBack, by_the_names_of_the_parameters_beside_what_the_function_returns) {
  registry.method("divide", divide, {"a", "b", "quotient", "remainder"});
  registry.method("half", [](int& value) { return (value /= 2) == 0; }, {"value"});
  registry.method("nameless", [](int a, Out<int> doubled) { doubled = 2 * a; });
  EXPECT_EQ(call("divide", "[7,2]"), result_reply(R"({"return":null,"out":{"quotient":3,"remainder":1}})"));
  EXPECT_EQ(call("divide", R"({"b":2,"a":7})"), result_reply(R"({"return":null,"out":{"quotient":3,"remainder":1}})"));
  EXPECT_EQ(call("half", "[9]"), result_reply(R"({"return":false,"out":{"value":4}})"));
  EXPECT_EQ(call("half", R"({"value":1})"), result_reply(R"({"return":true,"out":{"value":0}})"));
  EXPECT_EQ(call("nameless", "[3]"), result_reply(R"({"return":null,"out":{"arg1":6}})"));
}

TEST_F(ComesBack, and_positions_count_only_what_is_sent) {
  registry.method("split",
                  [](Out<std::string> head, std::string text, std::string& seen, Out<std::string> tail, int at) {
                    seen += text;
                    head = text.substr(0, static_cast<std::size_t>(at));
                    *tail = text.substr(static_cast<std::size_t>(at));
                  },
                  {"head", "text", "seen", "tail", "at"});
  EXPECT_EQ(call("split", R"(["abc","x",1])"),
            result_reply(R"({"return":null,"out":{"head":"a","seen":"xabc","tail":"bc"}})"));
  EXPECT_EQ(call("split", R"({"at":2,"text":"abc","seen":""})"),
            result_reply(R"({"return":null,"out":{"head":"ab","seen":"abc","tail":"c"}})"));
}

TEST_F(ComesBack, what_is_not_sent_is_refused_where_it_is_given) {
  registry.method("divide", divide, {"a", "b", "quotient", "remainder"});
  EXPECT_EQ(call("divide", "[7,2,0]"), invalid_params(R"({"loc":[2],"expected":"nothing","got":"0"})"));
  EXPECT_EQ(call("divide", R"({"a":7,"b":2,"quotient":0})"),
            invalid_params(R"({"loc":["quotient"],"expected":"nothing","got":"0"})"));
  EXPECT_EQ(call("divide", "[7]"), invalid_params(R"({"loc":["b"],"expected":"integer","got":"nothing"})"));
  EXPECT_THROW(registry.method("x", divide, {"a", "b", Param{"quotient"}.default_value(1)}), std::invalid_argument);
}

TEST_F(ComesBack, what_is_sent_as_well_may_have_a_default_or_be_left_out) {
  registry.method("next", [](int& value) { ++value; }, {Param{"value"}.default_value(41)});
  registry.method("fill", [](std::optional<int>& value) { value = value.value_or(6) + 1; }, {"value"});
  EXPECT_EQ(call("next"), result_reply(R"({"return":null,"out":{"value":42}})"));
  EXPECT_EQ(call("fill"), result_reply(R"({"return":null,"out":{"value":7}})"));
  EXPECT_EQ(call("fill", "[1]"), result_reply(R"({"return":null,"out":{"value":2}})"));
}

TEST_F(ComesBack, and_not_where_the_call_fails_or_nobody_waits) {
  registry.method("divide", divide, {"a", "b", "quotient", "remainder"});
  registry.method("positive", [](int value, int& seen) -> std::expected<int, Error> {
    seen = value;
    if (value < 0) return std::unexpected{Error{-51, "negative"}};
    return value;
  });
  EXPECT_EQ(call("divide", "[7,0]"), R"({"jsonrpc":"2.0","error":{"code":-50,"message":"division by zero"},"id":1})");
  EXPECT_EQ(call("positive", "[-1,0]"), R"({"jsonrpc":"2.0","error":{"code":-51,"message":"negative"},"id":1})");
  EXPECT_EQ(call("positive", "[5,0]"), result_reply(R"({"return":5,"out":{"arg1":5}})"));
  EXPECT_EQ(registry.handle(R"({"jsonrpc":"2.0","method":"divide","params":[7,2]})"), "");
}

TEST_F(ComesBack, from_every_kind_of_handler) {
  struct Meter {
    int total = 0;
    void add(int amount, Out<int> now) { now = total += amount; }
  } meter;
  registry.method("meter", &Meter::add, meter, {"amount", "now"});
  registry.method("task", [](Context, int a, int& b) -> Task<std::expected<void, Error>> {
    b += a;
    co_return {};
  });
  registry.method("stream", [](int n, Out<int> sum) -> Stream<int> {
    for (int i = 1; i <= n; ++i) {
      *sum += i;
      co_yield i;
    }
  });
  registry.method("blocking", blocking([](int a, int& b) { return b = a; }));
  registry.method("rest", [](Out<int> sum, Rest<int> numbers) {
    for (const int number : numbers) *sum += number;
  });
  EXPECT_EQ(call("meter", "[5]"), result_reply(R"({"return":null,"out":{"now":5}})"));
  EXPECT_EQ(call("task", "[5,6]"), result_reply(R"({"return":null,"out":{"arg1":11}})"));
  EXPECT_EQ(call("stream", "[3]"), result_reply(R"({"return":[1,2,3],"out":{"arg1":6}})"));
  EXPECT_EQ(call("blocking", "[3,0]"), result_reply(R"({"return":3,"out":{"arg1":3}})"));
  EXPECT_EQ(call("rest", "[3,4,5]"), result_reply(R"({"return":null,"out":{"arg0":12}})"));
}

// Params too long for the loop are decoded, and the answer written, on another path.
TEST_F(ComesBack, after_long_params) {
  registry.method("measure", [](std::string text, Out<std::size_t> size, std::string& mark) {
    size = text.size();
    mark += "!";
  });
  const std::string text(300'000, 'x');
  EXPECT_EQ(call("measure", "[\"" + text + R"(","a"])"),
            result_reply(R"({"return":null,"out":{"arg1":300000,"arg2":"a!"}})"));
}

TEST_F(ComesBack, in_a_batch_for_each_call) {
  registry.method("divide", divide, {"a", "b", "quotient", "remainder"});
  EXPECT_EQ(registry.handle("[" + request("divide", "[7,2]") + "," + request("divide", "[9,0]") + "]"),
            "[" + result_reply(R"({"return":null,"out":{"quotient":3,"remainder":1}})") + "," +
                R"({"jsonrpc":"2.0","error":{"code":-50,"message":"division by zero"},"id":1})" + "]");
}

TEST_F(ComesBack, and_const_references_do_not) {
  registry.method("size", [](const std::string& text) { return text.size(); });
  EXPECT_EQ(call("size", R"(["abc"])"), result_reply("3"));
}

TEST_F(ComesBack, is_what_documents_say) {
  struct Point {
    int x, y;
  };
  registry.method("move",
                  [](Point& point, int by, Out<Point> before) {
                    before = point;
                    point.x += by;
                    return true;
                  },
                  {"point", "by", "before"});
  test::Peer peer{registry};
  const auto method = nlohmann::json::parse(peer.ask(request("rpc.discover"))).at("result").at("methods").at(0);
  ASSERT_EQ(method.at("params").size(), 2);
  EXPECT_EQ(method.at("params").at(0).at("name"), "point");
  EXPECT_EQ(method.at("params").at(0).at("x-out"), true);
  EXPECT_EQ(method.at("params").at(1).at("name"), "by");
  EXPECT_FALSE(method.at("params").at(1).contains("x-out"));
  EXPECT_EQ(method.at("result").at("x-out"), true);
  const auto& schema = method.at("result").at("schema");
  EXPECT_EQ(schema.at("required"), nlohmann::json::array({"return", "out"}));
  EXPECT_EQ(schema.at("properties").at("return").at("type"), "boolean");
  const auto& out = schema.at("properties").at("out");
  EXPECT_EQ(out.at("required"), nlohmann::json::array({"point", "before"}));
  EXPECT_EQ(out.at("properties").at("point"), nlohmann::json::parse(R"({"$ref":"#/$defs/Point"})"));
  EXPECT_EQ(schema.at("$defs").at("Point").at("type"), "object");
}

TEST(Out, writes_the_variable_of_a_caller_in_this_program) {
  int quotient = 0;
  int remainder = 0;
  divide(7, 2, quotient, remainder);
  EXPECT_EQ(quotient, 3);
  EXPECT_EQ(remainder, 1);
  std::vector<int> values;
  const Out<std::vector<int>> out{values};
  out->push_back(4);
  (*out).push_back(5);
  EXPECT_EQ(values, (std::vector{4, 5}));
}

}  // namespace
}  // namespace wirecall
