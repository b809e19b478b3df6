// What the adapters of all three libraries have to do with the same JSON values.
#pragma once

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "wirecall/reflect.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/value.hpp"

namespace wirecall::test {

/// Compact, with members in order of their names, so that all three write them alike; nested, escaped, exact to 64
/// bits.
inline constexpr std::string_view kSameText[] = {
    "null",
    "true",
    "false",
    "0",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551615",
    "9007199254740993",
    "0.1",
    "-2.5",
    "1e+300",
    "5e-324",
    "1.7976931348623157e+308",
    R"("")",
    R"("a\"b\\c\u0001é😀")",
    "[]",
    "{}",
    R"([[],{},[[1,2.5,"x",null,true]]])",
    R"({"":{"":0},"a":[1,{"b":-9223372036854775808}],"z":18446744073709551615})",
};

/// As they come and as they are written then.
inline constexpr std::pair<std::string_view, std::string_view> kOtherText[] = {
    {" [ 1 , 2 ] ", "[1,2]"},
    {R"("\u00e9\ud83d\ude00\/")", "\"é😀/\""},
    {"1e2", "100"},
    {"18446744073709551616", "1.8446744073709552e+19"},
};

template <class T>
std::string through_json(std::string_view text) {
  const auto value = from_json<T>(text);
  return value ? to_json(*value) : "error " + value.error().data();
}

/// JSON to the value, to MessagePack, to another value, to JSON.
template <class T>
std::string through_msgpack(std::string_view text) {
  const auto value = from_json<T>(text);
  if (!value) return "error";
  const auto back = from_msgpack<T>(to_msgpack(*value));
  return back ? to_json(*back) : "error " + back.error().data();
}

template <class T>
void expect_values_kept() {
  for (const std::string_view text : kSameText) {
    EXPECT_EQ(through_json<T>(text), text);
    EXPECT_EQ(through_msgpack<T>(text), text);
    EXPECT_EQ(to_msgpack(*from_json<T>(text)), to_msgpack(*Value::parse(text))) << text;
  }
  for (const auto& [text, expected] : kOtherText) {
    EXPECT_EQ(to_json(*Value::parse(through_json<T>(text))), to_json(*Value::parse(expected))) << text;
  }
  EXPECT_EQ(through_json<T>("1e400").substr(0, 5), "error");
  EXPECT_EQ(through_json<T>("[1,{\"a\":1e400}]").find(R"(error {"loc":[1,"a"])"), 0U);
}

/// Nested as deep as a message may be, and one level more.
template <class T>
void expect_depth_bounded() {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(through_json<T>(nested(128)), nested(128));
  EXPECT_FALSE(from_json<T>(nested(129), 128));
  const auto deep = from_json<T>(nested(kDepthMax), kDepthMax);
  ASSERT_TRUE(deep);
  EXPECT_EQ(to_json(*deep), nested(kDepthMax));
}

/// As parameter, result and member of a struct, by name and by position.
template <class T>
void expect_called() {
  Registry registry;
  registry.method("echo", [](T value) { return value; }, {"value"});
  registry.method("constant", [](const T& value) { return to_json(value); }, {"value"});
  registry.method("all", [](const std::vector<T>& values) { return values.size(); }, {"values"});
  const auto ask = [&](std::string_view method, std::string_view params) {
    return registry.handle(R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" +
                           std::string{params} + R"(,"id":1})");
  };
  EXPECT_EQ(ask("echo", R"([{"a":[1,2.5,"x"]}])"), R"({"jsonrpc":"2.0","result":{"a":[1,2.5,"x"]},"id":1})");
  EXPECT_EQ(ask("echo", R"({"value":18446744073709551615})"),
            R"({"jsonrpc":"2.0","result":18446744073709551615,"id":1})");
  EXPECT_EQ(ask("constant", R"([null])"), R"({"jsonrpc":"2.0","result":"null","id":1})");
  EXPECT_EQ(ask("all", R"([[1,"x",{}]])"), R"({"jsonrpc":"2.0","result":3,"id":1})");
}

}  // namespace wirecall::test
