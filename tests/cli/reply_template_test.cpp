#include "cli/view/reply_template.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

namespace wirecall::cli {
namespace {

std::string filled(std::string_view text, std::string_view params) {
  const auto parsed = ReplyTemplate::parse(text);
  if (!parsed) return "refused: " + parsed.error();
  const auto result = parsed->fill(params);
  return result ? *result : std::to_string(result.error().code()) + " " + result.error().data();
}

std::vector<std::string> names(std::string_view text) { return ReplyTemplate::parse(text).value().names(); }

TEST(ReplyTemplate, a_text_is_a_string) {
  EXPECT_EQ(filled("hello", ""), "\"hello\"");
  EXPECT_EQ(filled("", ""), "\"\"");
  EXPECT_EQ(filled("say \"hi\"\n", "[]"), R"("say \"hi\"\n")");
}

TEST(ReplyTemplate, names_are_filled_in) {
  EXPECT_EQ(filled("Hello, {name}!", R"({"name":"Ada"})"), "\"Hello, Ada!\"");
  EXPECT_EQ(filled("{a}{b}{a}", R"({"b":"2","a":"1"})"), "\"121\"");
  EXPECT_EQ(names("{b} {a} {b}"), (std::vector<std::string>{"b", "a"}));
}

TEST(ReplyTemplate, names_are_positions_as_well) { EXPECT_EQ(filled("{b} {a}", R"(["x","y"])"), "\"x y\""); }

TEST(ReplyTemplate, positions_are_filled_in) {
  EXPECT_EQ(filled("{1}, {0}", R"(["x","y"])"), "\"y, x\"");
  EXPECT_EQ(filled("{}, {}", R"(["x","y"])"), "\"x, y\"");
  EXPECT_EQ(filled("{1}, {0}", R"({"arg0":"x","arg1":"y"})"), "\"y, x\"");
  EXPECT_EQ(names("{2}"), (std::vector<std::string>{"arg0", "arg1", "arg2"}));
}

TEST(ReplyTemplate, what_is_no_string_is_its_json_within_a_text) {
  EXPECT_EQ(filled("is {x}", R"({"x":[1, {"a":"b"}]})"), R"("is [1,{\"a\":\"b\"}]")");
  EXPECT_EQ(filled("is {x}", R"({"x":1e400})"), "\"is 1e400\"");
  EXPECT_EQ(filled("is {x}", R"({"x":null})"), "\"is null\"");
}

TEST(ReplyTemplate, a_string_keeps_its_escapes) {
  EXPECT_EQ(filled("is {x}", R"({"x":"\"\u00e9\n"})"), R"("is \"\u00e9\n")");
}

TEST(ReplyTemplate, only_a_placeholder_is_the_param_itself) {
  EXPECT_EQ(filled("{x}", R"({"x": [1, 2.50]})"), "[1,2.50]");
  EXPECT_EQ(filled("{x}", R"({"x":"a"})"), "\"a\"");
  EXPECT_EQ(filled("{x} ", R"({"x":1})"), "\"1 \"");
  EXPECT_EQ(filled("{0}{1}", "[1,2]"), "\"12\"");
}

TEST(ReplyTemplate, json_is_that_value_with_its_strings_filled_in) {
  EXPECT_EQ(filled("42", ""), "42");
  EXPECT_EQ(filled("{}", ""), "{}");
  EXPECT_EQ(filled("[]", ""), "[]");
  EXPECT_EQ(filled(R"("{}")", "[7]"), "7");
  EXPECT_EQ(filled(R"({"a": ["{x}", "is {x}", null, 1e400], "{x}": true, "b": {}})", R"({"x":5})"),
            R"({"a":[5,"is 5",null,1e400],"{x}":true,"b":{}})");
}

TEST(ReplyTemplate, doubled_braces_are_braces) {
  EXPECT_EQ(filled("{{x}} }", ""), "\"{x} }\"");
  EXPECT_EQ(filled("{{{x}}}", R"({"x":1})"), "\"{1}\"");
  EXPECT_EQ(filled("{{", ""), "\"{\"");
}

TEST(ReplyTemplate, what_is_missing_is_invalid_params) {
  EXPECT_EQ(filled("{x}", ""), R"(-32602 {"loc":["x"],"expected":"any value","got":"nothing"})");
  EXPECT_EQ(filled("{x}", R"({"y":1})"), R"(-32602 {"loc":["x"],"expected":"any value","got":"nothing"})");
  EXPECT_EQ(filled("{0} {1}", "[1]"), R"(-32602 {"loc":["arg1"],"expected":"any value","got":"nothing"})");
}

TEST(ReplyTemplate, what_it_does_not_use_makes_no_difference) {
  EXPECT_EQ(filled("hello", "[1,2]"), "\"hello\"");
  EXPECT_EQ(filled("{a}", R"({"b":2,"a":1,"c":3})"), "1");
}

TEST(ReplyTemplate, of_a_name_given_twice_the_last_counts) { EXPECT_EQ(filled("{a}", R"({"a":1,"a":2})"), "2"); }

TEST(ReplyTemplate, what_is_none_is_refused) {
  EXPECT_EQ(filled("{x", ""), "refused: a { has no }; write {{ for a brace");
  EXPECT_EQ(filled("{a{b}", ""), "refused: a { has no }; write {{ for a brace");
  EXPECT_EQ(filled(R"(["{"])", ""), "refused: a { has no }; write {{ for a brace");
  EXPECT_TRUE(filled("{a} {0}", "").starts_with("refused: a call gives its params by name or by position"));
  EXPECT_TRUE(filled("{a} {}", "").starts_with("refused: a call gives its params by name or by position"));
  EXPECT_EQ(filled("{12}", ""), "refused: there may be 12 params at most");
  EXPECT_EQ(filled("{99999999999999999999999}", ""), "refused: there may be 12 params at most");
}

}  // namespace
}  // namespace wirecall::cli
