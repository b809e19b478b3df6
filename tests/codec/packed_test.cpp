// Packed values: the bytes of every kind of type, layouts and their hashes, older layouts, every way for bytes not to
// fit, and random values there and back, cut and changed.
#include "wirecall/packed.hpp"

#include <cmath>
#include <deque>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#include "support.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall {
namespace {

struct Refusing {};

}  // namespace

template <>
struct Adapt<Refusing> {
  static void encode(Writer& /*writer*/, const Refusing& /*value*/) { throw std::runtime_error{"not this one"}; }
};

namespace {

using testing::Exact;

std::string hex(std::span<const std::byte> bytes) {
  std::string out;
  for (const std::byte byte : bytes) {
    out += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> 4];
    out += "0123456789abcdef"[std::to_integer<unsigned>(byte) & 15];
  }
  return out;
}

constexpr std::size_t kHashBytes = 8;

/// The bytes behind the hash.
template <class T>
std::string packed(const T& value) {
  return hex(to_packed(value)).substr(2 * kHashBytes);
}

/// T's hash with `bytes` behind it.
template <class T>
std::vector<std::byte> with_hash(std::string_view bytes) {
  std::vector<std::byte> out = to_packed(T{});
  out.resize(kHashBytes);
  for (const char byte : bytes) out.push_back(static_cast<std::byte>(byte));
  return out;
}

/// Decodes from a heap block of exactly that size.
template <class T>
std::expected<T, Error> unpacked(std::span<const std::byte> bytes, std::uint32_t depth_max = 256) {
  const Exact exact{{reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
  return from_packed<T>(std::as_bytes(std::span{exact.view()}), depth_max);
}

/// What the error's data is.
template <class T>
std::string refusal(std::string_view bytes) {
  const auto result = unpacked<T>(with_hash<T>(bytes));
  return result ? "taken" : result.error().data();
}

enum class Color { red, green = 5, blue = -1 };
enum class Letter : char { a = 'a', b = 'b' };
enum class Yes : bool { no, yes };
struct Point {
  int x = 0;
  int y = 0;
};
struct Nothing {};
struct Tree {
  std::string name;
  std::vector<Tree> children;
};
struct Chain {
  std::unique_ptr<Chain> next;
};
struct Everything {
  bool flag = false;
  std::int8_t tiny = 0;
  std::uint64_t big = 0;
  float single = 0;
  double twice = 0;
  std::string text;
  Color color = Color::red;
  Letter letter = Letter::a;
  Yes yes = Yes::no;
  std::optional<Point> maybe;
  std::unique_ptr<int> owned;
  std::vector<std::string> words;
  std::vector<double> numbers;
  std::deque<short> queue;
  std::vector<bool> bits;
  std::set<int> ordered;
  std::array<Point, 2> pair{};
  int plain[3] = {};
  std::map<std::string, Point> by_name;
  std::unordered_map<int, bool> by_number;
  std::tuple<int, std::string> both;
  std::variant<std::monostate, int, Point> either;
  std::vector<std::byte> blob;
  std::array<std::byte, 4> sized{};
  std::chrono::milliseconds lasted{};
  std::chrono::sys_time<std::chrono::microseconds> at{};
  Tree tree;
  Value any;
  Nothing nothing;
};

Everything make_everything() {
  Everything out;
  out.flag = true;
  out.tiny = -7;
  out.big = std::numeric_limits<std::uint64_t>::max();
  out.single = 0.1F;
  out.twice = -2.5e300;
  out.text = "h\xC3\xA9llo";
  out.color = Color::blue;
  out.letter = Letter::b;
  out.yes = Yes::yes;
  out.maybe = Point{1, 2};
  out.owned = std::make_unique<int>(9);
  out.words = {"", std::string(200, 'w')};
  out.numbers = {1, 2.5};
  out.queue = {3, -3};
  out.bits = {true, false, true};
  out.ordered = {5, 1};
  out.pair = {Point{1, 2}, Point{3, 4}};
  out.plain[2] = 30;
  out.by_name = {{"p", {5, 6}}};
  out.by_number = {{7, true}};
  out.both = {8, "eight"};
  out.either = Point{9, 10};
  out.blob = {std::byte{1}, std::byte{255}};
  out.sized[3] = std::byte{4};
  out.lasted = std::chrono::milliseconds{1'500};
  out.at = std::chrono::sys_time<std::chrono::microseconds>{std::chrono::microseconds{1'714'979'289'000'001}};
  out.tree = {"root", {{"leaf", {}}, {"branch", {{"twig", {}}}}}};
  out.any = Value{{"list", Value::array({1, "two", nullptr})}};
  return out;
}

TEST(Packed, ValuesAreTheirBytesInOrder) {
  EXPECT_EQ(packed(true), "01");
  EXPECT_EQ(packed(-2), "feffffff");
  EXPECT_EQ(packed(std::uint16_t{0x1234}), "3412");
  EXPECT_EQ(packed(1.0), "000000000000f03f");
  EXPECT_EQ(packed(std::string{"ab"}), "026162");
  EXPECT_EQ(packed(std::string(200, 'a')).substr(0, 6), "c80161");
  EXPECT_EQ(packed(Color::green), "05000000");
  EXPECT_EQ(packed(Yes::yes), "01");
  EXPECT_EQ(packed(std::optional<int>{}), "00");
  EXPECT_EQ(packed(std::optional<int>{1}), "0101000000");
  EXPECT_EQ(packed(std::vector<std::int16_t>{1, 2}), "0201000200");
  EXPECT_EQ(packed(std::array<std::int8_t, 2>{1, 2}), "0102");
  EXPECT_EQ(packed(std::map<std::string, bool>{{"k", true}}), "01016b01");
  EXPECT_EQ(packed(std::tuple<std::int8_t, std::string>{1, "x"}), "010178");
  EXPECT_EQ(packed(std::variant<std::int8_t, std::string>{"x"}), "010178");
  EXPECT_EQ(packed(std::vector<std::byte>{std::byte{7}}), "0107");
  EXPECT_EQ(packed(std::array<std::byte, 1>{std::byte{7}}), "07");
  EXPECT_EQ(packed(std::chrono::seconds{1}), "0100000000000000");
  EXPECT_EQ(packed(Point{1, 2}), "0100000002000000");
  EXPECT_EQ(packed(Value{1}), "0101") << "MessagePack";
}

// A count of elements is a count of bytes at least, so what has no content is a byte.
TEST(Packed, WhatHasNoContentIsAByte) {
  EXPECT_EQ(packed(std::monostate{}), "00");
  EXPECT_EQ(packed(Nothing{}), "00");
  EXPECT_EQ(packed(std::tuple<>{}), "00");
  EXPECT_EQ((packed(std::array<int, 0>{})), "00");
  EXPECT_EQ((packed(std::array<std::byte, 0>{})), "00");
  EXPECT_EQ(packed(std::vector<Nothing>(2)), "020000");
  EXPECT_EQ(unpacked<std::vector<Nothing>>(to_packed(std::vector<Nothing>(2))).value().size(), 2U);
  EXPECT_TRUE(unpacked<std::tuple<>>(to_packed(std::tuple<>{})));
  EXPECT_TRUE((unpacked<std::array<int, 0>>(to_packed(std::array<int, 0>{}))));
  EXPECT_TRUE((unpacked<std::array<std::byte, 0>>(to_packed(std::array<std::byte, 0>{}))));
  EXPECT_EQ(refusal<Nothing>("\x01"), R"({"loc":[],"expected":"object","got":"the byte 1"})");
}

TEST(Packed, LayoutsSayWhatTheBytesDoNot) {
  EXPECT_EQ(packed_layout<Everything>(),
            "{flag:bool,tiny:i8,big:u64,single:f32,twice:f64,text:str,color:enum:i32<blue=-1,red=0,green=5>,"
            "letter:enum:i8<a=97,b=98>,yes:enum:u8<no=0,yes=1>,maybe:optional<{x:i32,y:i32}>,owned:optional<i32>,"
            "words:[str],numbers:[f64],queue:[i16],bits:[bool],ordered:[i32],pair:[#1][2],plain:[i32][3],"
            "by_name:map<str,#1>,by_number:map<i32,bool>,both:(i32,str),"
            "either:one_of<null,i32,#1>,blob:bytes,sized:bytes[4],lasted:duration:i64<1/1000>,"
            "at:time:i64<1/1000000>,tree:{name:str,children:[#2]},any:any,nothing:{}}");
  EXPECT_EQ(hex(to_packed(true)).substr(0, 16), "bd14b0c69bd42fcd") << "FNV-1a of \"bool\", its lowest byte first";
}

TEST(Packed, EveryKindComesBack) {
  const Everything value = make_everything();
  const auto bytes = to_packed(value);
  const auto back = unpacked<Everything>(bytes);
  ASSERT_TRUE(back) << back.error().data();
  EXPECT_EQ(to_json(*back), to_json(value));
  EXPECT_EQ(to_packed(*back), bytes);
}

TEST(Packed, WhatJsonCannotHoldComesBack) {
  const std::vector<double> odd{std::numeric_limits<double>::infinity(), -0.0, std::nan("")};
  const auto back = unpacked<std::vector<double>>(to_packed(odd)).value();
  EXPECT_EQ(back[0], odd[0]);
  EXPECT_TRUE(std::signbit(back[1]));
  EXPECT_TRUE(std::isnan(back[2]));
}

TEST(Packed, EachCutIsRefused) {
  const auto bytes = to_packed(make_everything());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto result = unpacked<Everything>({bytes.data(), size});
    ASSERT_FALSE(result) << size;
    EXPECT_EQ(result.error().code(), -32602);
    EXPECT_NE(result.error().data(), "");
  }
  auto longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_EQ(unpacked<Everything>(longer).error().data(),
            R"({"loc":[],"expected":"the end of the value","got":"1 further bytes"})");
}

TEST(Packed, FailuresTellTheWay) {
  EXPECT_EQ(refusal<bool>("\x02"), R"({"loc":[],"expected":"boolean","got":"the byte 2"})");
  EXPECT_EQ(refusal<int>("\x01"), R"({"loc":[],"expected":"integer","got":"the end of the bytes"})");
  EXPECT_EQ(refusal<std::string>("\x01\xFF"), R"({"loc":[],"expected":"string","got":"bytes that are not UTF-8"})");
  EXPECT_EQ(refusal<Color>(std::string_view{"\x02\0\0\0", 4}),
            R"({"loc":[],"expected":"one of blue, red, green","got":"2"})");
  EXPECT_EQ((refusal<std::variant<int, bool>>("\x02")),
            R"({"loc":[],"expected":"integer or boolean","got":"the byte 2"})");
  EXPECT_EQ(refusal<std::vector<std::string>>("\x02\x01\x61\x09"),
            R"({"loc":[1],"expected":"elements","got":"a count of more than there are bytes for"})");
  EXPECT_EQ((refusal<std::map<std::string, bool>>("\x02\x01\x61\x01\x01\x61\x01")),
            R"({"loc":[1],"expected":"member given once","got":"a key for the second time"})");
  EXPECT_EQ(refusal<Tree>(std::string_view{"\x01r\x01\x01s\x01\x01\xFF\0", 9}),
            R"({"loc":["children",0,"children",0,"name"],"expected":"string","got":"bytes that are not UTF-8"})");
  EXPECT_EQ(refusal<Value>("\x01\xC1"), R"({"loc":[],"expected":"a value of MessagePack","got":"1 other bytes"})");
}

TEST(Packed, CountsAreNotTrusted) {
  // 2^62 elements, more than 64 bits, no end, a zero written long, and elements of eight bytes.
  for (const std::string_view bytes : {std::string_view{"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x3F"},
                                       std::string_view{"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F"},
                                       std::string_view{"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"},
                                       std::string_view{"\x80"}, std::string_view{"\x02\0\0\0\0\0\0\0\0", 9}}) {
    EXPECT_FALSE(unpacked<std::vector<double>>(with_hash<std::vector<double>>(bytes)));
    EXPECT_FALSE(unpacked<std::string>(with_hash<std::string>(bytes))) << bytes.size();
  }
}

TEST(Packed, WhatNestsTooDeepIsRefused) {
  Tree deep{"0", {}};
  for (int i = 0; i < 50; ++i) deep = Tree{"n", {deep}};
  const auto bytes = to_packed(deep);
  EXPECT_TRUE(unpacked<Tree>(bytes, 102));
  EXPECT_FALSE(unpacked<Tree>(bytes, 100));
  // A chain of a million pointers, each a byte.
  auto chain = with_hash<Chain>(std::string(1'000'000, '\1') + '\0');
  EXPECT_EQ(unpacked<Chain>(chain).error().code(), -32602);
  EXPECT_EQ(unpacked<Chain>(chain, std::numeric_limits<std::uint32_t>::max()).error().code(), -32602);
  const auto nested = to_packed(Value::array({Value::array({Value::array({})})}));
  EXPECT_TRUE(unpacked<Value>(nested, 3));
  EXPECT_FALSE(unpacked<Value>(nested, 2));
}

// Each struct stands once in its layout, however the types refer to each other.
template <int N>
struct Doubling {
  Doubling<N - 1> a, b;
};
template <>
struct Doubling<0> {
  int x = 0;
};

TEST(Packed, LayoutsAreAsLongAsTheirTypes) {
  EXPECT_EQ(packed_layout<Doubling<2>>(), "{a:{a:{x:i32},b:#2},b:#1}");
  EXPECT_LT(packed_layout<Doubling<10>>().size(), 200U);
}

TEST(Packed, WhatCannotBeHeldIsNotSent) {
  Buffer out{"before"};
  EXPECT_THROW(append_packed(out, std::string{"\xFF"}), LocalError);
  EXPECT_EQ(out.view(), "before");
  EXPECT_THROW(append_packed(out, Color{3}), LocalError);
  EXPECT_THROW(append_packed(out, Refusing{}), std::runtime_error);
  EXPECT_EQ(out.view(), "before");
  append_packed(out, true);
  EXPECT_EQ(out.size(), 6 + kHashBytes + 1);
}

TEST(Packed, ViewsBorrow) {
  const auto bytes = to_packed(std::string{"a longer text than a string holds by itself"});
  std::string_view view;
  ASSERT_TRUE(decode_packed(bytes, view));
  EXPECT_EQ(static_cast<const void*>(view.data()), bytes.data() + kHashBytes + 1);
}

// ---- layouts ----

struct Renamed {
  int x = 0;
  int z = 0;
};
struct Wider {
  int x = 0;
  long y = 0;
};
struct Swapped {
  int y = 0;
  int x = 0;
};

TEST(Packed, AnotherLayoutIsRefusedWithOurs) {
  const auto bytes = to_packed(Point{1, 2});
  const std::string ours = R"({"layout":"{x:i32,z:i32}"})";
  EXPECT_EQ(unpacked<Renamed>(bytes).error().data(), ours);
  EXPECT_FALSE(unpacked<Wider>(bytes));
  EXPECT_FALSE(unpacked<Swapped>(bytes));
  EXPECT_FALSE((unpacked<std::pair<int, int>>(bytes)));
  EXPECT_FALSE(unpacked<std::chrono::seconds>(to_packed(std::chrono::milliseconds{1})));
}

struct ItemV1 {
  int id = 0;
};
struct ItemV2 {
  int id = 0;
  std::optional<std::string> note;
};
struct ItemV3 {
  int id = 0;
  std::optional<std::string> note;
  std::optional<int> weight;
};
template <class Item>
struct OrderOf {
  std::vector<Item> items;
  std::string customer;
};

TEST(Packed, OptionalMembersAtTheEndOfAStructMayBeNewer) {
  const OrderOf<ItemV1> first{.items = {{1}, {2}}, .customer = "c"};
  const auto old = unpacked<OrderOf<ItemV3>>(to_packed(first));
  ASSERT_TRUE(old) << old.error().data();
  EXPECT_EQ(to_json(*old), to_json(first));
  const OrderOf<ItemV2> second{.items = {{1, "n"}, {2, {}}}, .customer = "c"};
  const auto middle = unpacked<OrderOf<ItemV3>>(to_packed(second));
  ASSERT_TRUE(middle) << middle.error().data();
  EXPECT_EQ(to_json(*middle), to_json(second));
  // The other way round is garbage to the older type, and is refused.
  EXPECT_FALSE(unpacked<OrderOf<ItemV2>>(to_packed(OrderOf<ItemV3>{})));
}

struct Options {
  std::optional<int> level;
};

TEST(Packed, AStructOfWhichNothingIsLeftIsAByteStill) {
  EXPECT_TRUE(unpacked<Options>(to_packed(Nothing{})));
  Options reused{.level = 4};
  ASSERT_TRUE(decode_packed(to_packed(Nothing{}), reused));
  EXPECT_EQ(reused.level, std::nullopt);
}

struct Job {
  int priority = 0;
  std::string name = "none";
};

}  // namespace

template <>
struct Describe<Job> {
  static constexpr About members[] = {{.member = "priority", .minimum = 0, .maximum = 9},
                                      {.member = "name", .name = "the name", .length_min = 1, .optional = true}};
};

namespace {

struct JobBefore {
  int priority = 0;
};

TEST(Packed, DescribedMembersAreRenamedLimitedAndOptional) {
  EXPECT_EQ(packed_layout<Job>(), R"({priority:i32,"the name":str})");
  EXPECT_EQ(unpacked<Job>(to_packed(Job{10, "n"})).error().data(),
            R"({"loc":["priority"],"expected":"integer from 0 to 9","got":"10"})");
  EXPECT_EQ(unpacked<Job>(to_packed(Job{1, ""})).error().data(),
            R"({"loc":["the name"],"expected":"string of length at least 1","got":"\"\""})");
  EXPECT_EQ(unpacked<Job>(to_packed(JobBefore{3})).value().name, "none");
}

TEST(Packed, ChangedBytesAreRefusedOrAnotherValue) {
  const auto bytes = to_packed(make_everything());
  std::mt19937 random{1};
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto changed = bytes;
    for (unsigned changes = 1 + random() % 3; changes != 0; --changes)
      changed[kHashBytes + random() % (changed.size() - kHashBytes)] = static_cast<std::byte>(random());
    const auto result = unpacked<Everything>(changed);
    if (!result) continue;
    ++taken;
    // A set or map in another order, and MessagePack in a longer form, have one form when they are written again.
    const auto again = to_packed(*result);
    ASSERT_EQ(to_packed(unpacked<Everything>(again).value()), again);
  }
  EXPECT_GT(taken, 1'000);
}

}  // namespace
}  // namespace wirecall
