// The codec of values in Protocol Buffers: what is written, in bytes; that a reader finds the same there as JSON's
// does; which forms it leaves to others; and every way for bytes to be too few.
#include <array>
#include <chrono>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "codec/protobuf_reader.hpp"
#include "codec/protobuf_regular.hpp"
#include "codec/protobuf_writer.hpp"
#include "fuzz/json_maker.hpp"
#include "msgpack.hpp"
#include "support.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall {
namespace {

using packing::from_hex;
using packing::to_hex;
using testing::Exact;

Scan scan(std::string_view bytes, std::uint32_t depth_max = 64) {
  const Exact exact{bytes};
  return protobuf_codec().scan(exact.view(), depth_max);
}
bool is_regular(std::string_view hex) {
  const std::string bytes = from_hex(hex);
  const Scan result = scan(bytes);
  return result.status == ScanStatus::complete && result.offset == bytes.size();
}

template <class T>
std::string written(const T& value) {
  const std::unique_ptr<Writer> writer = protobuf_codec().writer();
  Buffer out;
  writer->reset(out);
  encode(*writer, value);
  return writer->failed() ? writer->failure() : std::string{out.view()};
}
template <class T>
std::string hex_of(const T& value) {
  return to_hex(written(value));
}

/// The value as the conversion from JSON text has it.
std::string from_text(std::string_view json) {
  Buffer text{json};
  Buffer out;
  codec::JsonToProtobuf from_json;
  protobuf_wire::MessageWriter writer;
  from_json(text.padded(), protobuf_wire::MessageWriter::kNoField, writer);
  writer.finish(out);
  return std::string{out.view()};
}

template <class T>
std::optional<T> read(std::string_view bytes, std::string* why = nullptr) {
  const Exact exact{bytes};
  const std::unique_ptr<Reader> reader = protobuf_codec().reader();
  reader->reset(exact.view());
  T value{};
  if (decode(*reader, value)) return value;
  if (why != nullptr) *why = reader->failure().expected + ", got " + reader->failure().got;
  return std::nullopt;
}

TEST(Protobuf, ValuesAreFieldsBehindTheirLength) {
  EXPECT_EQ(hex_of(nullptr), "02 08 00");
  EXPECT_EQ(hex_of(true), "02 10 01");
  EXPECT_EQ(hex_of(42), "02 18 54");
  EXPECT_EQ(hex_of(-1), "02 18 01");
  EXPECT_EQ(hex_of(std::numeric_limits<std::int64_t>::min()), "0b 18 ff ff ff ff ff ff ff ff ff 01");
  EXPECT_EQ(hex_of(std::numeric_limits<std::uint64_t>::max()), "0b 20 ff ff ff ff ff ff ff ff ff 01");
  EXPECT_EQ(hex_of(std::uint64_t{300}), "03 18 d8 04");
  EXPECT_EQ(hex_of(1.5), "09 29 00 00 00 00 00 00 f8 3f");
  EXPECT_EQ(hex_of(0.1F), hex_of(0.1));
  EXPECT_EQ(hex_of(std::string{"é"}), "04 32 02 c3 a9");
  EXPECT_EQ(hex_of(std::vector<std::byte>{std::byte{0}, std::byte{255}}), "04 3a 02 00 ff");
  EXPECT_EQ(hex_of(std::vector<int>{}), "02 42 00");
  EXPECT_EQ(hex_of(std::vector<int>{1, -1}), "0a 42 08 0a 02 18 02 0a 02 18 01");
  EXPECT_EQ(hex_of(std::map<std::string, int>{{"a", 1}}), "0b 4a 09 0a 07 0a 01 61 12 02 18 02");
}

TEST(Protobuf, WhatHasNoFormFailsTheWriter) {
  EXPECT_EQ(written(std::numeric_limits<double>::infinity()), codec::kNotFinite);
  EXPECT_EQ(written(std::numeric_limits<float>::quiet_NaN()), codec::kNotFinite);
  EXPECT_EQ(written(std::string{"\xFF"}), "a string is not UTF-8");
  EXPECT_EQ(written(std::map<std::string, int>{{"\xFF", 1}}), "a string is not UTF-8");
  const std::unique_ptr<Writer> writer = protobuf_codec().writer();
  Buffer out;
  writer->reset(out);
  writer->extension(5, {});
  EXPECT_TRUE(writer->failed());
  writer->reset(out);
  EXPECT_FALSE(writer->failed());
}

TEST(Protobuf, AnAbandonedValueLeavesNothingToTheNext) {
  const std::unique_ptr<Writer> writer = protobuf_codec().writer();
  Buffer out;
  writer->reset(out);
  writer->begin_array(2);
  writer->integer(1);
  writer->reset(out);
  writer->integer(2);
  EXPECT_EQ(to_hex(out.view()), "02 18 04");
}

TEST(Protobuf, AWriterMakesTheBytesThatJsonBecomes) {
  for (const char* json : {R"({"a":[1,{"b":[]},"x"],"c":{"$a":"AP8="},"d":{},"e":-0.5,"f":null})", "[[[[]]]]",
                           R"([18446744073709551615,-9223372036854775808,1.0,123456789012345678901234567890])"}) {
    const auto value = Value::parse(json);
    ASSERT_TRUE(value.has_value());
    EXPECT_EQ(to_hex(written(*value)), to_hex(from_text(json))) << json;
  }
}

TEST(Protobuf, ValuesAlreadyWrittenAndJsonTextGoIntoListsAndMaps) {
  const std::unique_ptr<Writer> writer = protobuf_codec().writer();
  Buffer out;
  writer->reset(out);
  writer->begin_object(2);
  writer->key("a");
  writer->encoded(from_text("[1,\"x\"]"));
  writer->key("b");
  writer->json("{\"c\":[2.5]}");
  writer->end_object();
  EXPECT_EQ(to_hex(out.view()), to_hex(from_text(R"({"a":[1,"x"],"b":{"c":[2.5]}})")));
  writer->reset(out);
  out.clear();
  writer->encoded(from_text("7"));
  EXPECT_EQ(to_hex(out.view()), "02 18 0e");
}

// ---- reading ----

TEST(Protobuf, AReaderFindsWhatJsonHas) {
  fuzz::JsonMaker maker{7};
  std::size_t regular = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string json = maker.value();
    Buffer text{json};
    if (json::scan(text.padded(), protobuf_wire::kRegularDepthMax).status != ScanStatus::complete) continue;
    const std::string bytes = from_text(json);
    // Numbers that are but digits are left to others.
    if (scan(bytes).status != ScanStatus::complete) continue;
    ++regular;
    EXPECT_EQ(scan(bytes).offset, bytes.size());
    const Exact exact{bytes};
    const std::unique_ptr<Reader> reader = protobuf_codec().reader();
    reader->reset(exact.view());
    Value value;
    ASSERT_TRUE(decode(*reader, value)) << json;
    EXPECT_EQ(to_hex(written(value)), to_hex(bytes)) << json;
    reader->reset(exact.view());
    std::string_view again;
    ASSERT_TRUE(reader->read_json(again));
    EXPECT_EQ(to_hex(from_text(again)), to_hex(bytes)) << json;
    reader->reset(exact.view());
    EXPECT_EQ(reader->skip().size(), bytes.size());
  }
  EXPECT_GT(regular, 2000U);
}

TEST(Protobuf, IntegersAreExactAndDoublesWithoutFractionAreIntegers) {
  EXPECT_EQ(read<std::int64_t>(from_text("-9223372036854775808")), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(read<std::uint64_t>(from_text("18446744073709551615")), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(read<std::int64_t>(from_text("1e3")), 1000);
  EXPECT_EQ(read<std::uint8_t>(from_text("255")), 255);
  EXPECT_EQ(read<double>(from_text("3")), 3.0);
  EXPECT_EQ(read<double>(from_text("18446744073709551615")), 18446744073709551615.0);
  EXPECT_EQ(read<float>(from_text("0.1")), 0.1F);
  std::string why;
  EXPECT_FALSE(read<std::uint8_t>(from_text("256"), &why));
  EXPECT_EQ(why, "integer from 0 to 255, got 256");
  EXPECT_FALSE(read<std::uint8_t>(from_text("-1"), &why));
  EXPECT_EQ(why, "integer from 0 to 255, got -1");
  EXPECT_FALSE(read<std::int64_t>(from_text("18446744073709551615"), &why));
  EXPECT_FALSE(read<int>(from_text("1.5"), &why));
  EXPECT_EQ(why, "integer, got 1.5");
  EXPECT_FALSE(read<int>(from_text("[1]"), &why));
  EXPECT_EQ(why, "integer, got [1]");
  EXPECT_FALSE(read<bool>(from_text("1"), &why));
  EXPECT_EQ(why, "boolean, got 1");
  EXPECT_FALSE(read<std::string>(from_text("{\"a\":1}"), &why));
  EXPECT_EQ(why, "string, got {\"a\":1}");
  EXPECT_FALSE(read<double>(from_text("\"1\""), &why));
  EXPECT_EQ(why, "number, got \"1\"");
}

TEST(Protobuf, BytesTimesAndOptionalValuesAreRead) {
  EXPECT_EQ(read<std::vector<std::byte>>(from_hex("04 3a 02 00 ff")),
            (std::vector<std::byte>{std::byte{0}, std::byte{255}}));
  for (const char* null : {"00", "02 08 00"}) {
    const auto none = read<std::optional<int>>(from_hex(null));
    ASSERT_TRUE(none.has_value());
    EXPECT_FALSE(none->has_value());
  }
  const auto time = read<std::chrono::sys_seconds>(from_text("\"1970-01-01T00:00:09Z\""));
  ASSERT_TRUE(time.has_value());
  EXPECT_EQ(time->time_since_epoch().count(), 9);
  // As MessagePack has it, a timestamp becomes text.
  const std::unique_ptr<Writer> writer = protobuf_codec().writer();
  Buffer out;
  writer->reset(out);
  const std::string nine = from_hex("00 00 00 09");
  writer->extension(kTimestampExtension, std::as_bytes(std::span{nine}));
  EXPECT_EQ(to_hex(out.view()), to_hex(from_text("\"1970-01-01T00:00:09Z\"")));
}

TEST(Protobuf, AlternativesAreReadFromWhereTheyBegin) {
  using Either = std::variant<std::vector<int>, std::map<std::string, std::vector<std::string>>, std::string>;
  const auto values = read<std::vector<Either>>(from_text(R"([[1,2],{"a":["x","y"],"b":[]},"z",[]])"));
  ASSERT_TRUE(values.has_value());
  EXPECT_EQ(std::get<0>((*values)[0]), (std::vector{1, 2}));
  EXPECT_EQ(std::get<1>((*values)[1]).at("a"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(std::get<2>((*values)[2]), "z");
}

TEST(Protobuf, AnyValueThatHasBeenPassedCanBeGoneBackTo) {
  const std::string bytes = from_text(R"([[1,[2]],{"a":{"b":3},"c":4},5])");
  const std::unique_ptr<Reader> reader = protobuf_codec().reader();
  reader->reset(bytes);
  std::vector<const char*> marks;
  std::vector<std::string> texts;
  const auto note = [&] {
    marks.push_back(reader->mark());
    texts.push_back(reader->json());
  };
  const auto walk = [&](auto& self) -> void {
    note();
    std::string_view name;
    if (reader->kind() == ValueKind::array) {
      reader->begin_array();
      while (reader->next_element()) self(self);
    } else if (reader->kind() == ValueKind::object) {
      reader->begin_object();
      while (reader->next_member(name)) self(self);
    } else {
      reader->skip();
    }
  };
  walk(walk);
  // Of each: whether it is in a map, and whether something follows it there.
  constexpr std::array<std::pair<bool, bool>, 10> kPlaces{{{false, false},
                                                           {false, true},
                                                           {false, true},
                                                           {false, false},
                                                           {false, false},
                                                           {false, true},
                                                           {true, true},
                                                           {true, false},
                                                           {true, false},
                                                           {false, false}}};
  ASSERT_EQ(marks.size(), kPlaces.size());
  for (std::size_t i = marks.size(); i-- != 0;) {
    reader->rewind(marks[i]);
    EXPECT_EQ(reader->json(), texts[i]);
    EXPECT_FALSE(reader->skip().empty());
    if (i == 0) break;
    std::string_view name;
    const auto [in_map, follows] = kPlaces[i];
    EXPECT_EQ(in_map ? reader->next_member(name) : reader->next_element(), follows) << i;
  }
}

TEST(Protobuf, WhatAWriterHasWrittenIsReadAsDeepAsItIs) {
  const std::string json = std::string(200, '[') + std::string(200, ']');
  const std::string bytes = from_text(json);
  const std::unique_ptr<Reader> reader = protobuf_codec().reader();
  reader->reset(bytes);
  std::string_view again;
  ASSERT_TRUE(reader->read_json(again));
  EXPECT_EQ(again, json);
  const std::string deeper = from_text(std::string(kDepthMax + 1, '[') + std::string(kDepthMax + 1, ']'));
  reader->reset(deeper);
  EXPECT_FALSE(reader->read_json(again));
}

// ---- what is left to others ----

TEST(Protobuf, OnlyTheUsualFormIsRegular) {
  EXPECT_TRUE(is_regular("00"));
  EXPECT_TRUE(is_regular("02 18 02"));
  EXPECT_TRUE(is_regular("03 18 82 00"));  // a longer varint than needed
  EXPECT_TRUE(is_regular("0b 4a 09 0a 07 0a 01 61 12 02 18 02"));
  EXPECT_TRUE(is_regular("09 4a 07 0a 05 0a 01 61 12 00"));
  for (const char* hex : {
           "82 00 18 02",                                // a longer length than needed
           "06 32 83 00 61 62 63",                       // the same within
           "04 18 02 18 04",                             // a oneof given twice
           "04 18 02 32 00",                             // and in two kinds
           "05 a0 06 00 18 02",                          // an unknown field
           "03 98 00 02",                                // a tag of two bytes
           "0c 18 80 80 80 80 80 80 80 80 80 02",        // more than 64 bits
           "09 29 00 00 00 00 00 00 f0 7f",              // infinite
           "09 29 00 00 00 00 00 00 f8 7f",              // no number
           "05 29 00 00 00 00",                          // too short
           "03 32 01 ff",                                // no UTF-8
           "03 52 01 31",                                // digits
           "02 1a 00",                                   // an integer of another type
           "02 0b 0c",                                   // a group
           "08 42 02 0a 00 42 02 0a 00",                 // lists that are merged
           "04 42 02 12 00",                             // no element
           "07 4a 05 0a 03 0a 01 61",                    // a member without a value
           "06 4a 04 0a 02 12 00",                       // and without a name
           "0b 4a 09 0a 07 12 02 18 02 0a 01 61",        // its fields the other way round
           "0d 4a 0b 0a 09 0a 01 61 12 02 18 02 12 00",  // a value given twice
           "0b 4a 09 0a 07 0a 01 ff 12 02 18 02",        // a name that is no UTF-8
           "03 42 02 0a 00",                             // a list that ends behind its value
       })
    EXPECT_FALSE(is_regular(hex)) << hex;
}

TEST(Protobuf, DepthIsCountedAsInJson) {
  for (const std::uint32_t levels : {1U, 5U, protobuf_wire::kRegularDepthMax}) {
    const std::string nest = from_text(std::string(levels, '[') + std::string(levels, ']'));
    EXPECT_EQ(scan(nest, levels).status, ScanStatus::complete) << levels;
    EXPECT_EQ(scan(nest, levels - 1).status, ScanStatus::malformed) << levels;
  }
  const std::uint32_t more = protobuf_wire::kRegularDepthMax + 1;
  EXPECT_EQ(scan(from_text(std::string(more, '[') + std::string(more, ']')), kDepthMax).status, ScanStatus::malformed);
}

TEST(Protobuf, NoBeginningOfAValueIsAValueAndNothingIsReadBehindIt) {
  fuzz::JsonMaker maker{11};
  for (int i = 0; i < 300; ++i) {
    const std::string bytes = from_text(maker.value());
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_EQ(scan(std::string_view{bytes}.substr(0, size)).status, ScanStatus::malformed);
    }
  }
}

/// Whatever passes is read to its end, by a reader that trusts it.
TEST(Protobuf, WhatPassesIsReadWhole) {
  fuzz::JsonMaker maker{13};
  std::mt19937 random{17};
  std::size_t passed = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = from_text(maker.value());
    for (std::size_t changes = 1 + random() % 3; changes != 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random() % 4 == 0 ? random() : random() % 128);
    const Scan result = scan(bytes);
    if (result.status != ScanStatus::complete) continue;
    ++passed;
    const Exact exact{std::string_view{bytes}.substr(0, result.offset)};
    const std::unique_ptr<Reader> reader = protobuf_codec().reader();
    reader->reset(exact.view());
    Value value;
    ASSERT_TRUE(decode(*reader, value)) << to_hex(bytes);
    EXPECT_EQ(reader->mark(), exact.view().data() + exact.view().size());
    reader->reset(exact.view());
    std::string_view json;
    ASSERT_TRUE(reader->read_json(json));
    const auto same = Value::parse(json);
    ASSERT_TRUE(same.has_value()) << json;
  }
  EXPECT_GT(passed, 500U);
}

}  // namespace
}  // namespace wirecall
