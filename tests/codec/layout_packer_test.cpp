// Packing by a layout's text alone: the bytes and the values are those of the type, whatever it is; and what is no
// layout, no value of it, and no bytes of it.
#include "wirecall/layout_packer.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "wirecall/packed.hpp"
#include "wirecall/packed_method.hpp"

namespace wirecall {
namespace {

enum class Color { red, green = 5, blue = -1 };
enum class Yes : bool { no, yes };
struct Point {
  int x = 0;
  int y = 0;
};
struct Nothing {};
struct Tree {
  std::string name;
  std::vector<Tree> children;
  std::unique_ptr<Tree> next;
};

Value parsed(std::string_view json) { return Value::parse(json).value(); }

template <class T>
void expect_the_same(const T& value) {
  const LayoutPacker packer{packed_layout<T>()};
  const std::string json = to_json(value);
  SCOPED_TRACE(std::string{packer.text()} + " of " + json);
  const std::vector<std::byte> bytes = to_packed(value);
  const auto packed = packer.pack(parsed(json));
  ASSERT_TRUE(packed) << packed.error().data();
  EXPECT_EQ(*packed, bytes);
  const auto unpacked = packer.unpack(bytes);
  ASSERT_TRUE(unpacked) << unpacked.error().data();
  EXPECT_EQ(parsed(unpacked->dump()), parsed(json));
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    const auto part = packer.unpack(std::span{bytes}.first(cut));
    EXPECT_FALSE(part) << cut << " bytes";
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(packer.unpack(longer));
}

TEST(LayoutPacker, PacksAndUnpacksWhatTheTypeDoes) {
  using namespace std::chrono;
  expect_the_same(true);
  expect_the_same(std::int8_t{-128});
  expect_the_same(std::uint16_t{65535});
  expect_the_same(std::int32_t{-5});
  expect_the_same(std::numeric_limits<std::int64_t>::min());
  expect_the_same(std::numeric_limits<std::uint64_t>::max());
  expect_the_same(0.1F);
  expect_the_same(-2.5e300);
  expect_the_same(std::string{"h\xC3\xA9llo"});
  expect_the_same(std::string(300, 'x'));
  expect_the_same(Color::blue);
  expect_the_same(Yes::yes);
  expect_the_same(std::optional<Point>{});
  expect_the_same(std::optional<Point>{{1, 2}});
  expect_the_same(std::vector<double>{1, 2.5});
  expect_the_same(std::vector<bool>{true, false});
  expect_the_same(std::deque<short>{1, 2});
  expect_the_same(std::set<int>{3, 4});
  expect_the_same(std::array<Point, 2>{Point{1, 2}, Point{3, 4}});
  expect_the_same(std::array<int, 0>{});
  expect_the_same(std::tuple<int, std::string>{1, "b"});
  expect_the_same(std::tuple<>{});
  expect_the_same(std::pair<bool, std::monostate>{});
  expect_the_same(std::map<std::string, Point>{{"a", {1, 2}}, {"b", {}}});
  expect_the_same(std::map<int, bool>{{-1, true}, {2, false}});
  expect_the_same(std::map<Color, int>{{Color::red, 1}});
  expect_the_same(std::variant<std::monostate, int, Point>{});
  expect_the_same(std::variant<std::monostate, int, Point>{Point{1, 2}});
  expect_the_same(std::variant<Point, std::vector<int>, std::string>{"text"});
  expect_the_same(std::vector<std::byte>{std::byte{1}, std::byte{0xFF}});
  expect_the_same(std::array<std::byte, 3>{std::byte{1}});
  expect_the_same(milliseconds{1500});
  expect_the_same(duration<double>{0.25});
  expect_the_same(sys_time<milliseconds>{milliseconds{1'700'000'000'123}});
  expect_the_same(sys_time<milliseconds>{milliseconds{-1}});
  expect_the_same(sys_time<seconds>{seconds{1'700'000'000}});
  expect_the_same(sys_days{year{2024} / 2 / 29});
  expect_the_same(Nothing{});
  expect_the_same(std::vector<Nothing>(3));
  expect_the_same(parsed(R"({"any":[1,null,"x",{"y":1.5}]})"));
  Tree tree{"root", {}, nullptr};
  tree.children.push_back({"a", {}, std::make_unique<Tree>(Tree{"b", {}, nullptr})});
  expect_the_same(tree);
}

TEST(LayoutPacker, TakesMembersInAnyOrderAndLeavesOutWhatIsEmpty) {
  const LayoutPacker packer{packed_layout<Tree>()};
  const auto packed = packer.pack(parsed(R"({"children":[],"more":1,"name":"x"})"));
  ASSERT_TRUE(packed);
  EXPECT_EQ(*packed, to_packed(Tree{"x", {}, nullptr}));
  EXPECT_EQ(packer.unpack(*packed)->dump(), R"({"name":"x","children":[]})");
}

TEST(LayoutPacker, ReadsNamesThatAreStrings) {
  const LayoutPacker packer{R"({"odd \"one\"\\":i8,plain:enum:u8<"a b"=1,c=2>})"};
  const auto packed = packer.pack(parsed(R"({"odd \"one\"\\":1,"plain":"a b"})"));
  ASSERT_TRUE(packed);
  EXPECT_EQ(packer.unpack(*packed)->dump(), R"({"odd \"one\"\\":1,"plain":"a b"})");
}

std::string refusal(std::string_view layout, std::string_view json) {
  const auto packed = LayoutPacker{layout}.pack(parsed(json));
  return packed ? "taken" : packed.error().data();
}

TEST(LayoutPacker, SaysWhichValueDoesNotFitAndWhy) {
  EXPECT_EQ(refusal("i8", "128"), R"({"loc":[],"expected":"integer from -128 to 127","got":"128"})");
  EXPECT_EQ(refusal("u8", "-1"), R"({"loc":[],"expected":"integer from 0 to 255","got":"-1"})");
  EXPECT_EQ(refusal("i64", "1.5"),
            R"({"loc":[],"expected":"integer from -9223372036854775808 to 9223372036854775807","got":"1.5"})");
  EXPECT_EQ(refusal("i64", "1.0"), "taken");
  EXPECT_EQ(refusal("f32", "1e300"), R"({"loc":[],"expected":"number","got":"1e+300"})");
  EXPECT_EQ(refusal("str", "1"), R"({"loc":[],"expected":"string","got":"1"})");
  EXPECT_EQ(refusal("[{x:[bool][2]}]", R"([{"x":[true,true]},{"x":[true,0]}])"),
            R"({"loc":[1,"x",1],"expected":"boolean","got":"0"})");
  EXPECT_EQ(refusal("[bool][2]", "[true]"), R"({"loc":[],"expected":"array of length 2","got":"[true]"})");
  EXPECT_EQ(refusal("(i8,i8)", "[1]"), R"({"loc":[],"expected":"array of length 2","got":"[1]"})");
  EXPECT_EQ(refusal("{a:i8,b:optional<i8>}", "{}"),
            R"({"loc":["a"],"expected":"integer from -128 to 127","got":"nothing"})");
  EXPECT_EQ(refusal("enum:i32<a=1,b=2>", R"("c")"), R"({"loc":[],"expected":"one of \"a\", \"b\"","got":"\"c\""})");
  EXPECT_EQ(refusal("map<i8,bool>", R"({"300":true})"),
            R"({"loc":["300"],"expected":"integer from -128 to 127","got":"\"300\""})");
  EXPECT_EQ(refusal("one_of<i8,str>", "true"),
            R"({"loc":[],"expected":"one of the 2 types of a variant","got":"true"})");
  EXPECT_EQ(refusal("bytes[2]", R"({"$bytes":"AAAA"})"),
            R"({"loc":[],"expected":"2 bytes as {\"$bytes\":\"<base64>\"}","got":"{\"$bytes\":\"AAAA\"}"})");
  EXPECT_EQ(refusal("time:i32<1/1000>", R"("2024-01-01T00:00:00Z")"),
            R"({"loc":[],"expected":"a date-time that the time point can hold","got":"\"2024-01-01T00:00:00Z\""})");
}

TEST(LayoutPacker, RefusesBytesOfAnotherLayout) {
  const auto value = LayoutPacker{"(i8)"}.unpack(to_packed(std::tuple<int>{1}));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code(), -32602);
  EXPECT_EQ(value.error().data(), R"_({"layout":"(i8)"})_");
}

TEST(LayoutPacker, RefusesWhatIsNoLayout) {
  for (const char* text : {"",
                           "i",
                           "i7",
                           "i16i",
                           "x",
                           "{",
                           "{}}",
                           "{a}",
                           "{a:}",
                           "{a:i8,}",
                           "{a:i8,a:i8}",
                           "{\"a:i8}",
                           "#0",
                           "{a:#1}",
                           "[]",
                           "[i8",
                           "[i8,i8]",
                           "[i8][",
                           "[i8][x]",
                           "[i8][-1]",
                           "optional<>",
                           "optional<i8,i8>",
                           "one_of<>",
                           "map<str>",
                           "map<f64,i8>",
                           "map<[i8],i8>",
                           "enum:i8<>",
                           "enum:i8<a>",
                           "enum:f32<a=1>",
                           "time:f64<1/1>",
                           "time:i64<1/3>",
                           "duration:i64<1>",
                           "duration:i64<0/1>",
                           "duration:i64<1/0>",
                           "bytes[",
                           "(i8",
                           "null,",
                           "f16",
                           "u128"}) {
    EXPECT_THROW(LayoutPacker{text}, std::invalid_argument) << text;
  }
  EXPECT_THROW(LayoutPacker{std::string(100, '\x80')}, std::invalid_argument);
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += '[';
  EXPECT_THROW(LayoutPacker{deep}, std::invalid_argument);
}

/// A value of nothing but the hash.
std::vector<std::byte> hash_of(std::string_view layout) {
  const std::uint64_t hash = detail::Layout{std::string{layout}}.hash();
  std::vector<std::byte> bytes(sizeof hash);
  std::memcpy(bytes.data(), &hash, sizeof hash);
  return bytes;
}

TEST(LayoutPacker, NestsNoDeeperThanIsAllowed) {
  constexpr std::string_view kEndless = "{a:#0}";
  EXPECT_FALSE(LayoutPacker{kEndless}.unpack(hash_of(kEndless)));
  EXPECT_FALSE(LayoutPacker{kEndless}.pack(parsed(R"({"a":{"a":{}}})")));
}

TEST(LayoutPacker, GivesUpWhereVariantsAreTriedWithoutEnd) {
  constexpr int kDepth = 100;
  std::string json = R"({"a":1})";
  for (int i = 0; i < kDepth; ++i) json = R"({"a":)" + json + "}";
  EXPECT_NE(refusal("{a:optional<one_of<#0,#0>>}", json), "taken");
}

TEST(LayoutPacker, CopiesNoMoreForAlternativesInVainThanTheyMayCost) {
  const std::string json = R"({"image":")" + std::string(1 << 20, 'x') + R"(","format":"png"})";
  const auto one_of = [](std::size_t count, const std::string& each, const std::string& last) {
    std::string layout = "one_of<";
    for (std::size_t i = 1; i < count; ++i) layout += each + ",";
    return layout + last + ">";
  };
  for (const std::string kind : {"any", "str"}) {
    const std::string vain = "{image:" + kind + ",format:u8}";
    const std::string fits = "{image:" + kind + ",format:str}";
    EXPECT_EQ(refusal(one_of(8, vain, fits), json), "taken");
    EXPECT_NE(refusal(one_of(64, one_of(64, vain, vain), fits), json), "taken");
  }
}

TEST(LayoutPacker, TakesRepeatedKeysAsTheTypesDoThatHaveThem) {
  expect_the_same(std::multimap<std::string, int>{{"a", 1}, {"a", 1}});
}

TEST(LayoutPacker, TellsWhetherWhatIsOptionalIsEmptyOrHoldsNothing) {
  struct Both {
    std::optional<std::monostate> set;
    std::optional<std::monostate> empty;
  };
  const Both both{.set = std::monostate{}, .empty = {}};
  EXPECT_EQ(LayoutPacker{packed_layout<Both>()}.unpack(to_packed(both))->dump(), to_json(both));
}

TEST(LayoutPacker, MakesNoMoreOfBytesThanTheyMayStandFor) {
  std::string layout = "bool";
  for (int i = 0; i < 120; ++i) layout = "(" + layout + ")";
  layout = "[" + layout + "]";
  std::vector<std::byte> bytes = hash_of(layout);
  const std::size_t count = std::size_t{1} << 20;
  for (std::size_t left = count; left != 0; left >>= 7)
    bytes.push_back(static_cast<std::byte>((left & 0x7F) | (left > 0x7F ? 0x80 : 0)));
  bytes.resize(bytes.size() + count);
  const auto value = LayoutPacker{layout}.unpack(bytes);
  ASSERT_FALSE(value);
  EXPECT_NE(value.error().data().find("more names and arrays"), std::string::npos) << value.error().data();
}

TEST(LayoutPacker, NestsAsDeepAsTheTypeDoes) {
  struct Chain {
    int value = 0;
    std::unique_ptr<Chain> next;
  };
  Chain chain;
  Chain* last = &chain;
  for (int i = 0; i < 200; ++i) {
    last->next = std::make_unique<Chain>();
    last = last->next.get();
  }
  expect_the_same(chain);
}

TEST(LayoutPacker, TriesAlternativesOfManyValues) {
  std::string json = "[";
  for (int i = 0; i < 5000; ++i) json += std::string{i == 0 ? "" : ","} + R"({"h":1,"x":2})";
  const std::string options = "a:optional<i8>,b:optional<i8>,c:optional<i8>,d:optional<i8>,e:optional<i8>";
  std::string layout = "[one_of<";
  for (const char name : std::string{"abcdefg"}) layout += "{" + options + "," + std::string(2, name) + ":i8},";
  EXPECT_EQ(refusal(layout + "{" + options + ",h:i8}>]", json + "]"), "taken");
}

TEST(LayoutPacker, TellsNamesNoMoreOftenThanIsAllowed) {
  const std::string layout = "[{" + std::string(1 << 16, 'x') + ":bool}]";
  std::vector<std::byte> bytes = hash_of(layout);
  for (const std::size_t count : {1000, 1100}) {  // 64 MiB, less what the structs are
    bytes.resize(sizeof(std::uint64_t));
    bytes.push_back(static_cast<std::byte>(count | 0x80));
    bytes.push_back(static_cast<std::byte>(count >> 7));
    bytes.resize(bytes.size() + count);
    EXPECT_EQ(LayoutPacker{layout}.unpack(bytes).has_value(), count == 1000);
  }
}

TEST(PackedMethod, PacksParamsByPositionAndByNameWithTheirDefaults) {
  const Value description = parsed(R"({"name":"f","params":[{"name":"a","schema":{}},)"
                                   R"({"name":"b","schema":{"default":7}},{"name":"c","schema":{}}],)"
                                   R"_("result":{"x-packed":{"params":"(i8,i8,optional<i8>)","result":"str"}}})_");
  const Value document{{"methods", Value::array({description, parsed(R"({"name":"g","params":[],"result":{}})")})}};
  EXPECT_FALSE(PackedMethod::find(document, "g"));
  EXPECT_FALSE(PackedMethod::find(document, "h"));
  EXPECT_TRUE(PackedMethod::has_method(document, "g"));
  EXPECT_FALSE(PackedMethod::has_method(document, "h"));
  const auto method = PackedMethod::find(document, "f");
  ASSERT_TRUE(method);
  using Params = std::tuple<std::int8_t, std::int8_t, std::optional<std::int8_t>>;
  const auto packed = [&](std::string_view params) {
    const auto sent = method->pack(parsed(params));
    return sent ? from_packed<Params>(sent->at(0).as_extension().data).value() : Params{};
  };
  EXPECT_EQ(packed("[1]"), (Params{1, 7, std::nullopt}));
  EXPECT_EQ(packed("[1,2,3]"), (Params{1, 2, 3}));
  EXPECT_EQ(packed(R"({"c":3,"a":1})"), (Params{1, 7, 3}));
  const auto refused = [&](std::string_view params) { return method->pack(parsed(params)).error().data(); };
  EXPECT_EQ(refused("null"), R"({"loc":["a"],"expected":"a value","got":"nothing"})");
  EXPECT_EQ(refused("[1,2,3,4]"), R"({"loc":[3],"expected":"nothing","got":"4"})");
  EXPECT_EQ(refused(R"({"a":1,"x":2})"), R"({"loc":["x"],"expected":"nothing","got":"2"})");
  EXPECT_EQ(refused(R"({"a":1,"c":"3"})"), R"({"loc":["c"],"expected":"integer from -128 to 127","got":"\"3\""})");

  const auto packed_result = [](const auto& value) { return Value{Extension{kPackedExtension, to_packed(value)}}; };
  EXPECT_EQ(method->unpack(packed_result(std::string{"x"}))->as_string(), "x");
  EXPECT_EQ(method->unpack(Value{5})->as_int(), 5);
  const auto other = method->unpack(packed_result(1));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code(), -32603);
  EXPECT_EQ(other.error().data(), R"({"layout":"str"})");
}

TEST(PackedMethod, RefusesADescriptionThatContradictsItself) {
  EXPECT_THROW(static_cast<void>(PackedMethod::from_description(
                   parsed(R"_({"params":[],"result":{"x-packed":{"params":"(i8)","result":"str"}}})_"))),
               std::invalid_argument);
  EXPECT_THROW(static_cast<void>(PackedMethod::from_description(
                   parsed(R"({"params":[],"result":{"x-packed":{"params":"i8","result":"str"}}})"))),
               std::invalid_argument);
  EXPECT_THROW(static_cast<void>(PackedMethod::from_description(parsed(R"({"params":[],"result":{"x-packed":{}}})"))),
               std::invalid_argument);
}

}  // namespace
}  // namespace wirecall
