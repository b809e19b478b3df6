#include "wirecall/reflect.hpp"

#include <cmath>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <limits>
#include <list>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>

#include "support.hpp"
#include "wirecall/value.hpp"

namespace wirecall {

struct Fahrenheit {  // no aggregate
  explicit Fahrenheit(double value) : degrees(value) {}
  Fahrenheit() : Fahrenheit(32) {}
  double degrees;
};

template <>
struct Adapt<Fahrenheit> {
  static bool decode(Reader& reader, Fahrenheit& out) {
    double celsius = 0;
    if (!reader.read_double(celsius)) return reader.fail("degrees Celsius");
    out = Fahrenheit{celsius * 9 / 5 + 32};
    return true;
  }
  static void encode(Writer& writer, const Fahrenheit& value) { writer.number((value.degrees - 32) * 5 / 9); }
  static constexpr std::string_view name = "degrees Celsius";
};

struct Order {
  int count = 1;
  std::string class_;
  std::vector<int> sizes = {};
  std::optional<double> price = {};
};

template <>
struct Describe<Order> {
  static constexpr std::string_view description = "What somebody wants.";
  static constexpr About members[] = {
      {.member = "count", .description = "How many.", .minimum = 1, .maximum = 9, .optional = true},
      {.member = "class_", .name = "class", .length_min = 1, .length_max = 3},
      {.member = "sizes", .length_max = 2, .optional = true},
      {.member = "price", .minimum = 0},
  };
};

enum class Status { ok = 200, not_found = 404 };
template <>
struct EnumNames<Status> {
  static constexpr std::pair<Status, std::string_view> values[] = {{Status::ok, "ok"},
                                                                   {Status::not_found, "not-found"}};
};

namespace {

using testing::Exact;
using testing::expected_by;
using testing::failure;
using testing::Text;

enum class Color { red, green = 3, blue = -5 };
enum Plain { plain_a, plain_b = 2 };
enum class Tiny : std::uint8_t { first, last = 255 };

struct Point {
  int x = 0;
  int y = 0;
  bool operator==(const Point&) const = default;
};

struct Everything {
  bool flag = false;
  std::int8_t i8 = 0;
  std::uint8_t u8 = 0;
  std::int64_t i64 = 0;
  std::uint64_t u64 = 0;
  float single = 0;
  double real = 0;
  std::string text;
  Color color = Color::red;
  std::optional<Point> maybe;
  std::vector<Point> points;
  std::array<int, 3> three{};
  int two[2] = {};
  Point corners[2] = {};
  std::list<std::string> names;
  std::deque<bool> bits;
  std::vector<bool> packed;
  std::set<int> sorted;
  std::map<std::string, Point> places;
  std::unordered_map<Color, int> by_color;
  std::map<std::int16_t, std::string> by_number;
  std::tuple<int, std::string, bool> triple;
  std::pair<double, Point> pair;
  std::variant<std::monostate, int, std::string, Point> either;
  std::chrono::milliseconds wait{};
  std::chrono::duration<double> exactly{};
  std::chrono::sys_time<std::chrono::milliseconds> when{};
  std::vector<std::byte> blob;
  std::array<std::byte, 2> pair_of_bytes{};
  std::unique_ptr<Point> owned;
  std::shared_ptr<int> shared;
  bool operator==(const Everything&) const = default;
};

constexpr const char* kEverything = R"({
  "flag": true, "i8": -128, "u8": 255, "i64": -9223372036854775808, "u64": 18446744073709551615, "single": 0.1,
  "real": 1e-7, "text": "\u20ac\n", "color": "blue", "maybe": {"x": 1, "y": 2}, "points": [{"x": 3, "y": 4}, {"x": 5, "y": 6}],
  "three": [1, 2, 3], "two": [4, 5], "corners": [{"x": 0, "y": 0}, {"x": 9, "y": 9}], "names": ["a", "b"],
  "bits": [true, false], "packed": [false, true, true], "sorted": [1, 2], "places": {"home": {"x": 7, "y": 8}},
  "by_color": {"green": 1}, "by_number": {"-7": "seven"}, "triple": [1, "two", true], "pair": [0.5, {"x": 1, "y": 1}],
  "either": {"x": 2, "y": 2}, "wait": 250, "exactly": 0.25, "when": "2024-05-06T07:08:09.123Z",
  "blob": {"$bytes": "AP8="}, "pair_of_bytes": {"$bytes": "AQI="}, "owned": {"x": 1, "y": 2}, "shared": 5})";

TEST(Reflect, EveryKindOfMemberIsDecodedToItsValue) {
  const Exact text{kEverything};
  const auto decoded = from_json<Everything>(text.view());
  ASSERT_TRUE(decoded) << decoded.error().data();
  const Everything& all = *decoded;
  EXPECT_TRUE(all.flag);
  EXPECT_EQ(all.i8, -128);
  EXPECT_EQ(all.u8, 255);
  EXPECT_EQ(all.i64, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(all.u64, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(all.single, 0.1F);
  EXPECT_EQ(all.real, 1e-7);
  EXPECT_EQ(all.text, "\xE2\x82\xAC\n");
  EXPECT_EQ(all.color, Color::blue);
  EXPECT_EQ(all.maybe, (Point{1, 2}));
  EXPECT_EQ(all.points, (std::vector<Point>{{3, 4}, {5, 6}}));
  EXPECT_EQ(all.three, (std::array{1, 2, 3}));
  EXPECT_EQ(all.two[1], 5);
  EXPECT_EQ(all.corners[1], (Point{9, 9}));
  EXPECT_EQ(all.names, (std::list<std::string>{"a", "b"}));
  EXPECT_EQ(all.bits, (std::deque<bool>{true, false}));
  EXPECT_EQ(all.packed, (std::vector<bool>{false, true, true}));
  EXPECT_EQ(all.sorted, (std::set{1, 2}));
  EXPECT_EQ(all.places.at("home"), (Point{7, 8}));
  EXPECT_EQ(all.by_color.at(Color::green), 1);
  EXPECT_EQ(all.by_number.at(-7), "seven");
  EXPECT_EQ(all.triple, (std::tuple{1, "two", true}));
  EXPECT_EQ(all.pair, (std::pair{0.5, Point{1, 1}}));
  EXPECT_EQ(std::get<Point>(all.either), (Point{2, 2}));
  EXPECT_EQ(all.wait, std::chrono::milliseconds{250});
  EXPECT_EQ(all.exactly.count(), 0.25);
  EXPECT_EQ(all.when.time_since_epoch().count(), 1714979289123);
  EXPECT_EQ(all.blob, (std::vector{std::byte{0}, std::byte{255}}));
  EXPECT_EQ(all.pair_of_bytes[1], std::byte{2});
  EXPECT_EQ(*all.owned, (Point{1, 2}));
  EXPECT_EQ(*all.shared, 5);
}

TEST(Reflect, WhatIsEncodedIsTheSameJsonToNlohmann) {
  const auto decoded = from_json<Everything>(kEverything);
  ASSERT_TRUE(decoded);
  const auto expected = nlohmann::json::parse(kEverything);
  const auto encoded = nlohmann::json::parse(to_json(*decoded));
  ASSERT_EQ(encoded.size(), expected.size());
  for (const auto& [name, value] : expected.items()) {
    if (name == "single") {
      EXPECT_EQ(encoded.at(name).get<float>(), 0.1F);
    } else {
      EXPECT_EQ(encoded.at(name), value) << name;
    }
  }
}

TEST(Reflect, WhatNlohmannPrintsIsDecodedAlike) {
  // Sorted by name, indented, and with every character beyond ASCII escaped: another order, other white space.
  const std::string printed = nlohmann::json::parse(kEverything).dump(2, ' ', true);
  const auto first = from_json<Everything>(kEverything);
  const auto second = from_json<Everything>(printed);
  ASSERT_TRUE(first);
  ASSERT_TRUE(second) << second.error().data();
  EXPECT_EQ(to_json(*first), to_json(*second));
}

template <class Int>
void expect_edges() {
  using Limits = std::numeric_limits<Int>;
  for (const Int value : {Limits::min(), static_cast<Int>(Limits::min() + 1), Int{0}, Int{1},
                          static_cast<Int>(Limits::max() - 1), Limits::max()}) {
    const std::string text = std::to_string(value);
    EXPECT_EQ(to_json(value), text);
    const auto decoded = from_json<Int>(text);
    ASSERT_TRUE(decoded) << text;
    EXPECT_EQ(*decoded, value);
    EXPECT_EQ(from_json<Int>(text + ".0").value(), value);
  }
  const std::string range = "integer from " + std::to_string(Limits::min()) + " to " + std::to_string(Limits::max());
  std::string above = std::to_string(Limits::max());  // its last digit is 5 or 7
  ++above.back();
  EXPECT_EQ(expected_by<Int>(above), range);
  std::string below = std::is_signed_v<Int> ? std::to_string(Limits::min()) : "-1";
  if (std::is_signed_v<Int>) ++below.back();
  EXPECT_EQ(expected_by<Int>(below), range);
  EXPECT_EQ(expected_by<Int>("1e400"), range);
  for (const char* text : {"0.5", "true", "\"1\"", "null", "[]", "{}"})
    EXPECT_EQ(expected_by<Int>(text), "integer") << text;
}

TEST(Reflect, IntegersOfEveryWidthAreCheckedAtTheirEdges) {
  expect_edges<std::int8_t>();
  expect_edges<std::uint8_t>();
  expect_edges<std::int16_t>();
  expect_edges<std::uint16_t>();
  expect_edges<std::int32_t>();
  expect_edges<std::uint32_t>();
  expect_edges<std::int64_t>();
  expect_edges<std::uint64_t>();
  expect_edges<long>();
  expect_edges<unsigned long long>();
}

TEST(Reflect, FloatsAreRoundedOnce) {
  // Halfway between two floats but for a digit that a double does not hold: rounding to double first would go down.
  EXPECT_EQ(from_json<float>("1.00000005960464477540").value(), std::nextafter(1.0F, 2.0F));
  EXPECT_EQ(expected_by<float>("1e39"), "number from -3.4028235e38 to 3.4028235e38");
  EXPECT_EQ(expected_by<float>("true"), "number");
  EXPECT_EQ(expected_by<double>("1e400"), "number from -1.7976931348623157e308 to 1.7976931348623157e308");
  EXPECT_EQ(from_json<double>("1e-400").value(), 0);
}

TEST(Reflect, EnumsGoByName) {
  EXPECT_EQ(to_json(Color::green), "\"green\"");
  EXPECT_EQ(from_json<Color>("\"blue\"").value(), Color::blue);
  EXPECT_EQ(from_json<Plain>("\"plain_b\"").value(), plain_b);
  EXPECT_EQ(from_json<Tiny>("\"last\"").value(), Tiny::last);
  EXPECT_EQ(from_json<Status>("\"not-found\"").value(), Status::not_found);
  EXPECT_EQ(to_json(Status::ok), "\"ok\"");
  EXPECT_EQ(expected_by<Plain>("\"plain_c\""), "one of plain_a, plain_b");
  EXPECT_EQ(expected_by<Plain>("0"), "one of plain_a, plain_b");
  EXPECT_THROW(static_cast<void>(to_json(static_cast<Color>(7))), Error);
}

TEST(Reflect, StructsTakeMembersInAnyOrderAndIgnoreUnknownOnes) {
  const Point point{1, 2};
  EXPECT_EQ(from_json<Point>(R"({"x":1,"y":2})").value(), point);
  EXPECT_EQ(from_json<Point>(R"({"y":2,"x":1})").value(), point);
  EXPECT_EQ(from_json<Point>(R"({"z":{"x":[5]},"y":2,"":null,"x":1,"X":7})").value(), point);
  EXPECT_EQ(from_json<Point>(R"({"\u0078":1,"\u0079":2})").value(), point) << "names compare after unescaping";
}

TEST(Reflect, StructsRefuseMissingAndRepeatedMembersAndArrays) {
  EXPECT_EQ(failure<Point>(R"({"x":1})"), R"({"loc":["y"],"expected":"integer","got":"nothing"})");
  EXPECT_EQ(failure<Point>(R"({"x":1,"y":2,"x":3})"), R"({"loc":["x"],"expected":"member given once","got":"3"})");
  EXPECT_EQ(failure<Point>(R"({"x":1,"y":2,"\u0078":3})"), R"({"loc":["x"],"expected":"member given once","got":"3"})");
  EXPECT_EQ(failure<Point>("[1,2]"), R"({"loc":[],"expected":"object","got":"[1,2]"})");
  EXPECT_EQ(failure<Point>("null"), R"({"loc":[],"expected":"object","got":"null"})");
}

struct Node {
  std::string name;
  std::vector<Node> children;
  std::unique_ptr<Node> next;
};

// Its description is first asked for by way of the vector around it.
struct Branch {
  std::unique_ptr<Branch> twig;
};

TEST(Reflect, ARecursiveStructMayFirstBeSeenAsAnElement) {
  const auto branches = from_json<std::vector<Branch>>(R"([{"twig":{"twig":null}},{}])");
  ASSERT_TRUE(branches);
  EXPECT_EQ(to_json(*branches), R"([{"twig":{}},{}])");
}

TEST(Reflect, FailuresTellTheWay) {
  EXPECT_EQ(failure<Node>(R"({"name":"a","children":[{"name":"b","children":[]},{"name":7,"children":[]}]})"),
            R"({"loc":["children",1,"name"],"expected":"string","got":"7"})");
  EXPECT_EQ(failure<Node>(R"({"name":"a","children":[],"next":{"name":"b"}})"),
            R"({"loc":["next","children"],"expected":"array of object","got":"nothing"})");
  EXPECT_EQ((failure<std::map<std::string, std::vector<int>>>(R"({"a":[1],"b c":[1,"x"]})")),
            R"({"loc":["b c",1],"expected":"integer","got":"\"x\""})");
  EXPECT_EQ((failure<std::tuple<int, Point>>(R"([1,{"x":1,"y":null}])")),
            R"({"loc":[1,"y"],"expected":"integer","got":"null"})");
}

TEST(Reflect, RecursiveTypesNest) {
  const std::string text = R"({"name":"a","children":[{"name":"b","children":[]}],"next":{"name":"c","children":[]}})";
  EXPECT_EQ(to_json(from_json<Node>(text).value()), text);
}

TEST(Reflect, OptionalMembersMayBeAbsentOrNullAndAreNotWrittenWhenEmpty) {
  struct Options {
    std::optional<int> a = 5;
    std::unique_ptr<int> b;
    std::optional<std::string> c;
  };
  EXPECT_EQ(from_json<Options>("{}").value().a, 5);
  EXPECT_EQ(from_json<Options>(R"({"a":null})").value().a, std::nullopt);
  EXPECT_EQ(to_json(from_json<Options>(R"({"a":null,"b":2})").value()), R"({"b":2})");
  EXPECT_EQ(to_json(std::vector<std::optional<int>>{1, std::nullopt}), "[1,null]");
  EXPECT_EQ(expected_by<std::optional<int>>("\"x\""), "integer");
}

TEST(Reflect, FixedArraysAndTuplesAreOfExactlyTheirLength) {
  using Three = std::array<int, 3>;
  EXPECT_EQ(failure<Three>("[1,2]"), R"({"loc":[2],"expected":"integer","got":"nothing"})");
  EXPECT_EQ(failure<Three>("[1,2,3,4]"), R"({"loc":[],"expected":"array of 3 times integer","got":"[1,2,3,4]"})");
  EXPECT_EQ(failure<Three>("{}"), R"({"loc":[],"expected":"array of 3 times integer","got":"{}"})");
  using Two = std::pair<int, std::string>;
  EXPECT_EQ(failure<Two>("[1]"), R"({"loc":[1],"expected":"string","got":"nothing"})");
  EXPECT_EQ(failure<Two>("[1,\"a\",2]"), R"({"loc":[],"expected":"array of [integer, string]","got":"[1,\"a\",2]"})");
  EXPECT_EQ(from_json<std::tuple<>>("[]").value(), std::tuple<>{});
}

TEST(Reflect, AContainerIsEmptiedFirst) {
  Text text{"[1]"};
  std::vector<int> out{7, 8, 9};
  ASSERT_TRUE(decode(*text, out));
  EXPECT_EQ(out, std::vector{1});
}

TEST(Reflect, MapsRefuseRepeatedNamesAndWrongKeys) {
  EXPECT_EQ((failure<std::map<std::string, int>>(R"({"a":1,"a":2})")),
            R"({"loc":["a"],"expected":"member given once","got":"2"})");
  EXPECT_EQ((failure<std::map<std::int8_t, int>>(R"({"128":1})")),
            R"({"loc":["128"],"expected":"member name that is an integer from -128 to 127","got":"1"})");
  EXPECT_EQ((failure<std::map<std::uint8_t, int>>(R"({"1x":1})")),
            R"({"loc":["1x"],"expected":"member name that is an integer from 0 to 255","got":"1"})");
  EXPECT_EQ((failure<std::map<Plain, int>>(R"({"c":1})")),
            R"({"loc":["c"],"expected":"member name that is one of plain_a, plain_b","got":"1"})");
  EXPECT_EQ((to_json(from_json<std::multimap<std::string, int>>(R"({"a":1,"a":2})").value())), R"({"a":1,"a":2})");
}

TEST(Reflect, VariantsTakeTheFirstAlternativeThatFits) {
  using Any =
      std::variant<std::monostate, int, double, std::string, Point, std::vector<int>, std::map<std::string, int>>;
  const std::pair<const char*, std::size_t> cases[] = {
      {"null", 0}, {"1", 1},          {"1.0", 1}, {"1.5", 2}, {"1e30", 2}, {"\"x\"", 3}, {R"({"x":1,"y":2})", 4},
      {"[1]", 5},  {R"({"x":1})", 6},
  };
  for (const auto& [text, index] : cases) {
    const auto decoded = from_json<Any>(text);
    ASSERT_TRUE(decoded) << text;
    EXPECT_EQ(decoded->index(), index) << text;
  }
}

TEST(Reflect, AVariantThatFitsNothingNamesItsAlternatives) {
  EXPECT_EQ((expected_by<std::variant<int, std::string>>("true")), "integer or string");
  EXPECT_EQ((expected_by<std::variant<int, double>>("1e400")), "integer or number");
  EXPECT_EQ((failure<std::variant<int, Point>>(R"({"x":"a","y":1})")),
            R"({"loc":["x"],"expected":"integer","got":"\"a\""})")
      << "where only one alternative is of that kind, its own failure says more";
}

struct Circle {
  double radius;
  std::optional<std::string> colour;
};
struct Square {
  double side;
  std::optional<std::string> colour;
};

TEST(Reflect, StructsInAVariantAreToldApartByTheirRequiredMembers) {
  using Shape = std::variant<Circle, Square, std::string>;
  EXPECT_EQ(from_json<Shape>(R"({"colour":"red","side":2})").value().index(), 1U);
  EXPECT_EQ(from_json<Shape>(R"({"side":2,"radius":1})").value().index(), 0U);
  EXPECT_EQ(failure<Shape>(R"({"side":"2"})"), R"({"loc":["side"],"expected":"number","got":"\"2\""})");
  EXPECT_EQ(expected_by<Shape>(R"({"colour":"red"})"), "Circle object or Square object or string");
}

struct Sum;
struct Product;
using Term = std::variant<int, std::unique_ptr<Sum>, std::unique_ptr<Product>>;
struct Sum {
  Term left, right;
  std::string plus;
};
struct Product {
  Term left, right;
  std::string times;
};
struct Minus;
struct Plus;
using Alike = std::variant<int, std::unique_ptr<Minus>, std::unique_ptr<Plus>>;
struct Minus {
  Alike inner;
  int last;
};
struct Plus {
  Alike inner;
  int last;
};

TEST(Reflect, NestedVariantsCostBoundedTime) {
  // Each level looks like both alternatives until its last member, so trying both would double the work each time.
  std::string deep = "1";
  for (int i = 0; i < 200; ++i) deep = R"({"inner":)" + deep + R"(,"last":"x"})";
  EXPECT_EQ(from_json<Alike>(deep).error().code(), -32602);

  std::string terms = "1";
  for (int i = 0; i < 60; ++i) terms = R"({"left":)" + terms + R"(,"right":2,"times":""})";
  EXPECT_EQ(to_json(from_json<Term>(terms).value()), terms) << "a required member tells them apart, however deep";
  EXPECT_EQ(from_json<Term>("null").value().index(), 1U);
}

TEST(Reflect, StringsWithoutEscapesAreBorrowed) {
  Text text{R"(["plain","a\u0000b"])"};
  std::pair<std::string_view, std::string_view> out;
  ASSERT_TRUE(decode(*text, out));
  EXPECT_EQ(out.first, "plain");
  EXPECT_EQ(out.first.data(), text.view().data() + 2);
  EXPECT_EQ(out.second, std::string_view("a\0b", 3));
}

TEST(Reflect, BytesHaveTheirSize) {
  EXPECT_EQ((failure<std::array<std::byte, 2>>(R"({"$bytes":"AAAA"})")),
            R"({"loc":[],"expected":"2 bytes as {\"$bytes\":\"<base64>\"}","got":"{\"$bytes\":\"AAAA\"}"})");
  EXPECT_EQ(to_json(std::vector<std::byte>{}), R"({"$bytes":""})");
  Text text{R"({"$bytes":"AQI="})"};
  std::span<const std::byte> view;
  ASSERT_TRUE(decode(*text, view));
  EXPECT_EQ(view.size(), 2U);
}

TEST(Reflect, LiteralsAndViewsCanBeEncoded) {
  const int numbers[] = {1, 2};
  EXPECT_EQ(to_json("x\"y"), R"("x\"y")");
  EXPECT_EQ(to_json(std::string_view{"x"}), R"("x")");
  EXPECT_EQ(to_json(static_cast<const char*>("x")), R"("x")");
  EXPECT_EQ(to_json(std::span{numbers}), "[1,2]");
  EXPECT_EQ(to_json(nullptr), "null");
}

TEST(Reflect, AdaptedTypesAreLikeAnyOther) {
  EXPECT_EQ(to_json(std::vector{Fahrenheit{212}}), "[100]");
  using Cities = std::map<std::string, Fahrenheit>;
  EXPECT_EQ(from_json<Cities>(R"({"a":0})").value().at("a").degrees, 32);
  EXPECT_EQ(expected_by<Fahrenheit>("\"hot\""), "degrees Celsius");
  EXPECT_EQ(type_name<std::vector<Fahrenheit>>(), "array of degrees Celsius");
}

TEST(Reflect, DescribedMembersAreRenamedAndLimited) {
  EXPECT_EQ(to_json(from_json<Order>(R"({"class":"abc"})").value()), R"({"count":1,"class":"abc","sizes":[]})");
  EXPECT_EQ(failure<Order>(R"({"class_":"abc"})"), R"({"loc":["class"],"expected":"string","got":"nothing"})");
  EXPECT_EQ(failure<Order>(R"({"class":"abc","count":10})"),
            R"({"loc":["count"],"expected":"integer from 1 to 9","got":"10"})");
  EXPECT_EQ(failure<Order>(R"({"class":""})"),
            R"({"loc":["class"],"expected":"string of length 1 to 3","got":"\"\""})");
  EXPECT_EQ(failure<Order>(R"({"class":"\u20ac\u20ac\u20ac"})"), "decoded") << "characters count, not bytes";
  EXPECT_EQ(failure<Order>(R"({"class":"abcd"})"),
            R"({"loc":["class"],"expected":"string of length 1 to 3","got":"\"abcd\""})");
  EXPECT_EQ(failure<Order>(R"({"class":"a","sizes":[1,2,3]})"),
            R"({"loc":["sizes"],"expected":"array of integer of length at most 2","got":"[1,2,3]"})");
  EXPECT_EQ(failure<Order>(R"({"class":"a","price":-1})"),
            R"({"loc":["price"],"expected":"number at least 0","got":"-1"})");
  EXPECT_EQ(failure<Order>(R"({"class":"a","price":null})"), "decoded");
}

struct Wide {
  int a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24,
      a25, a26, a27, a28, a29, a30, a31, a32;
};
struct Widest {
  Wide wide;
  int b02, b03, b04, b05, b06, b07, b08, b09, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19, b20, b21, b22, b23, b24,
      b25, b26, b27, b28, b29, b30, b31, b32, b33, b34, b35, b36, b37, b38, b39, b40;
};
struct Arrays {
  int first[3];
  Point second[2];
  std::string last;
};
struct Empty {};
struct One {
  std::vector<int> only;
};

TEST(Reflect, AggregatesOfEverySizeAreCountedRight) {
  EXPECT_EQ(type_info<Wide>().members.size(), 32U);
  EXPECT_EQ(type_info<Wide>().members[31].name, "a32");
  ASSERT_EQ(type_info<Widest>().members.size(), 40U) << "the most";
  EXPECT_EQ(type_info<Widest>().members[39].name, "b40");
  EXPECT_EQ(type_info<Empty>().members.size(), 0U);
  EXPECT_EQ(type_info<One>().members.size(), 1U);
  ASSERT_EQ(type_info<Arrays>().members.size(), 3U) << "an array is one member";
  EXPECT_EQ(type_info<Arrays>().members[2].name, "last");
  const std::string text = R"({"first":[1,2,3],"second":[{"x":1,"y":2},{"x":3,"y":4}],"last":"z"})";
  EXPECT_EQ(to_json(from_json<Arrays>(text).value()), text);
  EXPECT_EQ(to_json(from_json<Empty>(R"({"more":1})").value()), "{}");
}

TEST(Reflect, EachOfTheMostMembersIsDecodedMissedAndRefusedTwice) {
  Widest widest{};
  widest.b02 = 2;
  widest.b33 = 33;
  widest.b40 = 40;
  const std::string text = to_json(widest);
  const auto decoded = from_json<Widest>(text);
  ASSERT_TRUE(decoded) << decoded.error().data();
  EXPECT_EQ(to_json(*decoded), text);
  using Either = std::variant<Wide, Widest>;
  EXPECT_EQ(from_json<Either>(text).value().index(), 1U);
  for (const char* const last : {R"(,"b33":33)", R"(,"b40":40)"}) {
    std::string missing = text;
    missing.erase(missing.find(last), std::strlen(last));
    ASSERT_FALSE(from_json<Widest>(missing)) << last;
    std::string twice = text;
    twice.insert(twice.find(last), last);
    ASSERT_FALSE(from_json<Widest>(twice)) << last;
  }
}

TEST(Reflect, TypesAreNamedInWords) {
  EXPECT_EQ(type_name<int>(), "integer");
  EXPECT_EQ(type_name<double>(), "number");
  EXPECT_EQ(type_name<std::string_view>(), "string");
  EXPECT_EQ(type_name<bool>(), "boolean");
  EXPECT_EQ(type_name<std::vector<std::string>>(), "array of string");
  EXPECT_EQ((type_name<std::vector<std::variant<int, bool>>>()), "array of (integer or boolean)");
  EXPECT_EQ(type_name<std::optional<int>>(), "integer or null");
  EXPECT_EQ((type_name<std::map<std::string, int>>()), "object of integer");
  EXPECT_EQ(type_name<Point>(), "object");
  EXPECT_EQ(type_name<Plain>(), "one of plain_a, plain_b");
  EXPECT_EQ(type_name<std::vector<std::byte>>(), R"({"$bytes":"<base64>"})");
  EXPECT_EQ(type_name<Value>(), "any value");
  EXPECT_EQ(type_name<std::chrono::seconds>(), "integer");
}

TEST(Reflect, FromJsonRefusesWhatIsNoJson) {
  for (const char* text : {"", " ", "[1", "[1,]", "{} {}", "tru", "\"\\ud800\"", "\"\xFF\"", "01", "1 2"}) {
    const Exact exact{text};
    const auto decoded = from_json<Value>(exact.view());
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(decoded.error().code(), -32700);
    EXPECT_EQ(decoded.error().data(), "");
  }
  EXPECT_EQ(from_json<int>(Exact{" 7\n"}.view()).value(), 7);
  const auto deep = from_json<Value>("[[[]]]", 2);
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().data(), R"({"limit":"depth"})");
}

TEST(Reflect, ToJsonThrowsWhatJsonCannotHold) {
  EXPECT_THROW(static_cast<void>(to_json(std::numeric_limits<double>::quiet_NaN())), Error);
  EXPECT_THROW(static_cast<void>(to_json(std::vector<std::string>{"ok", "\xC3"})), Error);
  EXPECT_THROW(static_cast<void>(to_json(std::map<std::string, int>{{"\xFF", 1}})), Error);
  EXPECT_THROW(static_cast<void>(to_json(std::chrono::sys_seconds{std::chrono::seconds{1LL << 50}})), Error);
}

}  // namespace
}  // namespace wirecall
