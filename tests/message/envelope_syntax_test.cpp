// Which texts are no JSON, and at which byte that is known; what is only the beginning of one; depth; scalars on top
// level. The texts are also cut at every byte and have every byte changed.
#include <cstddef>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tests/message/read.hpp"

namespace wirecall {
namespace {

using namespace std::string_literals;
using test::expect_malformed_at_every_split;
using test::expect_message_at_every_split;
using test::PaddedText;
using test::read;

struct Malformed {
  std::string text;
  std::size_t offset;  ///< of the first byte with which no JSON text can continue
};

Scan read_text(std::string_view text, bool whole, const Limits& limits = {}) {
  Received message;
  const PaddedText padded{text};
  return read(padded, whole, message, limits);
}

TEST(EnvelopeSyntax, IsWrongAtTheFirstByteThatCannotContinue) {
  const Malformed cases[] = {
      {"{1:2}", 1},
      {"{]", 1},
      {"[}", 1},
      {"{,}", 1},
      {"{\"a\"}", 4},
      {"{\"a\" 1}", 5},
      {"{\"a\":}", 5},
      {"{\"a\":1,}", 7},
      {"{\"a\":1 \"b\":2}", 7},
      {"{\"a\":1]", 6},
      {"{'a':1}", 1},
      {"{a:1}", 1},
      {"[1,]", 3},
      {"[,1]", 1},
      {"[1 2]", 3},
      {"[1}", 2},
      {"[01]", 2},
      {"[-]", 2},
      {"[+1]", 1},
      {"[.5]", 1},
      {"[1.]", 3},
      {"[1.e1]", 3},
      {"[1e]", 3},
      {"[1e+]", 4},
      {"[0x1]", 2},
      {"[-01]", 3},
      {"[1.5.5]", 4},
      {"[NaN]", 1},
      {"[Infinity]", 1},
      {"[-Infinity]", 2},
      {"[tru]", 4},
      {"[nulL]", 4},
      {"[falsE]", 5},
      {"[True]", 1},
      {"[truee]", 5},
      {"['x']", 1},
      {"[\"\\x\"]", 3},
      {"[\"\\u12G4\"]", 6},
      {"[\"\\u123\"]", 7},
      {"[1] /* comment */", 4},
      {"[/* comment */1]", 1},
      {"{\"jsonrpc\": \"2.0\", \"method\": \"foobar, \"params\": \"bar\", \"baz]", 39},
      {"[{\"jsonrpc\": \"2.0\", \"method\": \"sum\", \"params\": [1,2,4], \"id\": \"1\"},{\"jsonrpc\": \"2.0\", "
       "\"method\"]",
       94},
  };
  for (const Malformed& one : cases) {
    if (one.text == "[1] /* comment */") {
      const Scan scan = read_text(one.text, true);
      EXPECT_EQ(scan.status, ScanStatus::malformed);
      EXPECT_EQ(scan.offset, one.offset);
      continue;
    }
    expect_malformed_at_every_split(one.text, one.offset);
  }
}

TEST(EnvelopeSyntax, IsCheckedInsideEveryMember) {
  // Whatever is wrong with the envelope, text that is not JSON is that first of all.
  for (const char* name :
       {"jsonrpc", "method", "params", "id", "result", "error", "timeout_ms", "to", "other", "i\\u0064"}) {
    const std::string before = "{\"" + std::string{name} + "\":";
    const std::size_t at = before.size();
    expect_malformed_at_every_split(before + "01,\"id\":1}", at + 1);
    expect_malformed_at_every_split(before + "[tru}]}", at + 4);
    expect_malformed_at_every_split(before + "{\"a\":\"\\q\"}}", at + 7);
    expect_malformed_at_every_split(before + "\"\t\"}", at + 1);
    expect_malformed_at_every_split(before + "\"2.0\"x}", at + 5);
    expect_malformed_at_every_split(before + "\"2.0\",}", at + 6);
    expect_malformed_at_every_split(before + "x}", at);
    expect_malformed_at_every_split(before + "nulx}", at + 3);
    expect_malformed_at_every_split(before + "tr\n}", at + 2);
  }
}

TEST(EnvelopeSyntax, ControlBytesInStringsAreWrong) {
  for (int byte = 0; byte < 0x20; ++byte) {
    expect_malformed_at_every_split("{\"id\":\"a"s + static_cast<char>(byte) + "\"}", 8);
    expect_malformed_at_every_split("{\"a"s + static_cast<char>(byte) + "\":1}", 3);
  }
}

TEST(EnvelopeSyntax, NulBytesAreWrongEverywhere) {
  const std::string text = R"({"jsonrpc" : "2.0" , "method":"f","params":[1 ,true,null,"\u0041\n)"
                           "\xC3\xA9"
                           R"("],"id":12 })";
  for (std::size_t at = 0; at <= text.size(); ++at) {
    std::string with_nul = text;
    with_nul.insert(at, 1, '\0');
    const Scan scan = read_text(with_nul, true);
    ASSERT_EQ(scan.status, ScanStatus::malformed) << at;
    ASSERT_EQ(scan.offset, at);
  }
}

TEST(EnvelopeSyntax, ByteOrderMarkIsWrong) {
  expect_malformed_at_every_split("\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"method\":\"f\",\"id\":1}", 0);
  expect_malformed_at_every_split("\xFF\xFE{\0}\0"s, 0);
  expect_malformed_at_every_split("{\xEF\xBB\xBF}", 1);
}

TEST(EnvelopeSyntax, OnlyFourBytesAreWhiteSpace) {
  for (const char* space : {"\v", "\f", "\xC2\xA0", "\xE2\x80\xA8", "\x7F", "\x1F"}) {
    expect_malformed_at_every_split("[1,"s + space + "2]", 3);
    expect_malformed_at_every_split("{"s + space + "}", 1);
  }
}

TEST(EnvelopeSyntax, InvalidUtf8IsWrongWhereItCannotContinue) {
  const Malformed strings[] = {
      {"\x80", 0},  // a continuation byte alone
      {"\xBF", 0},
      {"\xC0\xAF", 0},  // overlong, two bytes
      {"\xC1\xBF", 0},
      {"\xE0\x80\xAF", 1},  // overlong, three bytes
      {"\xE0\x9F\xBF", 1},
      {"\xF0\x80\x80\xAF", 1},  // overlong, four bytes
      {"\xF0\x8F\xBF\xBF", 1},
      {"\xED\xA0\x80", 1},  // a surrogate in UTF-8
      {"\xED\xBF\xBF", 1},
      {"\xF4\x90\x80\x80", 1},  // above U+10FFFF
      {"\xF5\x80\x80\x80", 0},
      {"\xFE", 0},
      {"\xFF", 0},
      {"\xC3(", 1},  // a character that ends too early
      {"\xE2\x82(", 2},
      {"\xF0\x9F\x98(", 3},
      {"\xC3\xA9\xA9", 2},  // one continuation byte too many
  };
  for (const Malformed& one : strings) {
    for (const std::string& filler : {""s, "abc"s, std::string(31, 'x'), std::string(40, 'y')}) {
      expect_malformed_at_every_split("{\"id\":\"" + filler + one.text + "\"}", 7 + filler.size() + one.offset);
      expect_malformed_at_every_split("[\"" + filler + one.text + "\"]", 2 + filler.size() + one.offset);
      expect_malformed_at_every_split("{\"" + filler + one.text + "\":1}", 2 + filler.size() + one.offset);
    }
  }
}

TEST(EnvelopeSyntax, LoneSurrogatesAreWrongWhereTheyCannotContinue) {
  expect_malformed_at_every_split(R"({"id":"\udc00"})", 10);
  expect_malformed_at_every_split(R"({"id":"\uDFFF"})", 10);
  expect_malformed_at_every_split(R"({"id":"\ud800"})", 13);
  expect_malformed_at_every_split(R"({"id":"\ud800x"})", 13);
  expect_malformed_at_every_split(R"({"id":"\ud800\n"})", 14);
  expect_malformed_at_every_split(R"({"id":"\ud800\u0041"})", 15);
  expect_malformed_at_every_split(R"({"id":"\ud800\ud800"})", 16);
  expect_malformed_at_every_split(R"({"id":"\ud800\udc0"})", 18);
  expect_malformed_at_every_split(R"({"\ud800":1})", 8);
  expect_message_at_every_split(
      R"({"jsonrpc":"2.0","method":"\ud800\udc00\uDBFF\uDFFF\ud7ff\ue000","id":"\ud83d\ude00"})");
}

TEST(EnvelopeSyntax, TrailingGarbageIsWrongInAWholeText) {
  for (const std::string& message :
       {"{}"s, "[1]"s, R"({"jsonrpc":"2.0","method":"f","id":1})"s, "1"s, "\"x\""s, "null"s}) {
    for (const std::string& garbage : {"{}"s, "x"s, ","s, "]"s, "}"s, "1"s, "\0"s, "\xEF\xBB\xBF"s, "\"\""s}) {
      if (message == "1" && garbage == "1") continue;
      for (const std::string& space : {""s, " "s, "\r\n\t "s}) {
        const Scan scan = read_text(message + space + garbage, true);
        EXPECT_EQ(scan.status, ScanStatus::malformed) << message << space << garbage;
        EXPECT_EQ(scan.offset, message.size() + space.size());
        if (message.front() != '{' && message.front() != '[') continue;
        const Scan first = read_text(message + space + garbage, false);
        EXPECT_EQ(first.status, ScanStatus::complete);
        EXPECT_EQ(first.offset, message.size());
      }
    }
    EXPECT_EQ(read_text(message + " \n\r\t", true).status, ScanStatus::complete);
  }
}

TEST(EnvelopeSyntax, NothingButWhiteSpaceIsIncomplete) {
  for (const char* text : {"", " ", "\n\n\r\n\t"}) {
    EXPECT_EQ(read_text(text, true).status, ScanStatus::incomplete);
    EXPECT_EQ(read_text(text, false).status, ScanStatus::incomplete);
  }
}

TEST(EnvelopeSyntax, ScalarOnTopLevelNeedsWhiteSpaceBehindItUnlessTheTextIsWhole) {
  for (const std::string& scalar :
       {"1"s, "-12.5e+3"s, "0"s, "true"s, "false"s, "null"s, "\"x\""s, "\"\\n\xC3\xA9\""s}) {
    SCOPED_TRACE(scalar);
    EXPECT_EQ(read_text(scalar, true).status, ScanStatus::complete);
    EXPECT_EQ(read_text(scalar, true).offset, scalar.size());
    for (std::size_t size = 0; size <= scalar.size(); ++size)
      EXPECT_EQ(read_text(scalar.substr(0, size), false).status, ScanStatus::incomplete) << size;
    for (const char* space : {" ", "\n", "\r", "\t"}) {
      const Scan scan = read_text(scalar + space + "{", false);
      EXPECT_EQ(scan.status, ScanStatus::complete);
      EXPECT_EQ(scan.offset, scalar.size());
    }
  }
  expect_malformed_at_every_split("truefalse", 4);
  expect_malformed_at_every_split("\"a\"\"b\"", 3);
  expect_malformed_at_every_split("nullx", 4);
  expect_malformed_at_every_split("01", 1);
  expect_malformed_at_every_split("1,", 1);
  expect_malformed_at_every_split("hello", 0);
}

TEST(EnvelopeSyntax, NestingOverTheLimitIsTooDeepAtItsBracket) {
  Limits limits;
  for (const std::uint32_t depth : {1U, 2U, 3U, 63U, 64U, 65U, 128U, 256U, 1000U, kDepthMax}) {
    limits.depth = depth;
    SCOPED_TRACE(depth);
    const std::string arrays = std::string(depth, '[') + std::string(depth, ']');
    EXPECT_EQ(read_text(arrays, true, limits).status, ScanStatus::complete);
    const Scan over = read_text('[' + arrays + ']', true, limits);
    EXPECT_EQ(over.status, ScanStatus::too_deep);
    EXPECT_EQ(over.offset, depth);
    const std::string params = R"({"params":)" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
    if (depth > 1) {
      EXPECT_EQ(read_text(params, true, limits).status, ScanStatus::complete);
    }
    const Scan params_over = read_text(R"({"params":)" + std::string(depth, '['), true, limits);
    EXPECT_EQ(params_over.status, ScanStatus::too_deep);
    EXPECT_EQ(params_over.offset, 10 + depth - 1);
  }
}

TEST(EnvelopeSyntax, DepthCountsObjectsAndArraysAlike) {
  Limits limits;
  limits.depth = 4;
  expect_message_at_every_split(R"([{"a":[{}]},{"a":{"b":[]}}])", limits);
  expect_malformed_at_every_split(R"([{"a":[{"b":{}}]}])", 12, limits, ScanStatus::too_deep);
  expect_malformed_at_every_split(R"({"x":[[{"b":[]}]]})", 12, limits, ScanStatus::too_deep);
}

TEST(EnvelopeSyntax, WhatIsOpenIsRememberedAtEveryDepth) {
  // Arrays and objects in an irregular order, closed properly and with each bracket in turn exchanged.
  std::string open;
  std::string close;
  for (unsigned i = 0; i < 200; ++i) {
    const bool object = (i * i / 3 + i / 7) % 2 == 0;
    open += object ? "{\"k\":" : "[";
    close.insert(close.begin(), object ? '}' : ']');
  }
  expect_message_at_every_split(open + "1" + close);
  for (std::size_t i = 0; i < close.size(); ++i) {
    std::string wrong = close;
    wrong[i] = wrong[i] == '}' ? ']' : '}';
    const Scan scan = read_text(open + "1" + wrong, true);
    ASSERT_EQ(scan.status, ScanStatus::malformed);
    ASSERT_EQ(scan.offset, open.size() + 1 + i);
  }
}

TEST(EnvelopeSyntax, ChangingAnyByteIsJudgedAsAnotherParserDoes) {
  const std::string texts[] = {
      R"({"jsonrpc": "2.0", "method": "subtract", "params": [42, -2.5e1], "id": 1})",
      R"({"jsonrpc":"2.0","method":"f","params":{"a":[true,false,null],"b":"\u00e9\ud83d\ude00"},"id":"x\n"})",
      R"([{"jsonrpc":"2.0","id":null,"method":"g"},[],{"result":{},"id":7}, "s"])",
      "{\"id\":\"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\",\"timeout_ms\":10,\"to\":\"x\"}",
  };
  const std::string bytes = "\0\t\n\x1F \"+,-./059:E[\\]aefnrtu{}\x7F\x80\xA0\xBF\xC2\xE0\xED\xF0\xF4\xFF"s;
  for (const std::string& text : texts) {
    for (std::size_t at = 0; at < text.size(); ++at) {
      for (const char byte : bytes) {
        std::string changed = text;
        changed[at] = byte;
        const Scan scan = read_text(changed, true);
        ASSERT_EQ(scan.status == ScanStatus::complete, nlohmann::json::accept(changed)) << changed;
        // Up to the byte that is wrong the text is the beginning of one that is right.
        if (scan.status != ScanStatus::malformed) continue;
        ASSERT_GE(scan.offset, at);
        ASSERT_NE(read_text(changed.substr(0, scan.offset), true).status, ScanStatus::malformed) << changed;
      }
    }
  }
}

}  // namespace
}  // namespace wirecall
