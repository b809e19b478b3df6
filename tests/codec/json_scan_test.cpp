// The scanner by hand-written cases. Each runs with SIMD and without, whole and cut at each byte, from heap blocks of
// the text's exact size plus padding, whose bytes behind the first are what a careless scanner would take for text.
// Where an error is, and that there is none, comes from RFC 8259 and from counting bytes.
#include "codec/json_scan.hpp"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/bytes.hpp"

namespace wirecall::json {
namespace {

using std::string_literals::operator""s;

struct Expected {
  ScanStatus status;
  std::size_t offset;
  bool operator==(const Expected&) const = default;
};

void PrintTo(const Expected& expected, std::ostream* out) {
  constexpr std::array kNames{"complete", "incomplete", "malformed", "too deep"};
  *out << kNames[static_cast<std::size_t>(expected.status)] << " at " << expected.offset;
}

using Scanning = Scan (*)(std::string_view, std::uint32_t) noexcept;

Expected run(Scanning scanning, std::string_view text, char garbage, std::uint32_t depth_max) {
  const auto block = std::make_unique<char[]>(text.size() + kPaddingBytes);
  text.copy(block.get(), text.size());
  std::memset(block.get() + text.size(), garbage, kPaddingBytes);
  block[text.size()] = '\0';
  const Scan scan = scanning({block.get(), text.size()}, depth_max);
  return {scan.status, scan.offset};
}

void expect_scan(std::string_view text, Expected expected, std::uint32_t depth_max = 256) {
  for (const char garbage : {'\xFF', '"', '0', ' ', ']'}) {
    EXPECT_EQ(run(scan, text, garbage, depth_max), expected) << text << "\nfollowed by " << garbage;
    EXPECT_EQ(run(scan_scalar, text, garbage, depth_max), expected)
        << text << "\nfollowed by " << garbage << ", scalar";
  }
}

// An array or object, or a string, whose every beginning is incomplete.
void expect_value(std::string_view text, std::uint32_t depth_max = 256) {
  expect_scan(text, {ScanStatus::complete, text.size()}, depth_max);
  for (std::size_t cut = 0; cut < text.size(); ++cut)
    expect_scan(text.substr(0, cut), {ScanStatus::incomplete, cut}, depth_max);
  for (const std::string_view rest : {" ", ",", "]", "}", "x", "1", "\"", "\xFF"})
    expect_scan(std::string{text}.append(rest), {ScanStatus::complete, text.size()}, depth_max);
}

// A text that is wrong at `offset`, and right so far at each byte before it. Shown in an array, where each place is
// within a value.
void expect_malformed(std::string_view text, std::size_t offset) {
  const std::string array = '[' + std::string{text};
  for (std::size_t cut = 0; cut <= offset + 1; ++cut)
    expect_scan(std::string_view{array}.substr(0, cut), {ScanStatus::incomplete, cut});
  for (std::size_t cut = offset + 2; cut <= array.size(); ++cut)
    expect_scan(std::string_view{array}.substr(0, cut), {ScanStatus::malformed, offset + 1});
}

TEST(JsonScan, ArraysAndObjectsEndAtTheirLastBracket) {
  for (const std::string_view text :
       {"[]", "{}", "[ ]", "{\n}", "[1]", "[1,2]", "[ 1 , 2 ]", "[[],[]]", "[[[]]]", "{\"a\":1}",
        "{ \"a\" : 1 , \"b\" : 2 }", "{\"a\":{\"b\":[{}]}}", "[{},[],{}]", "{\"\":\"\"}", "[\"a\",\"b\"]",
        "[true,false,null]", "{\"a\":1,\"a\":2}", "[{\"a\":[{\"a\":[]},{}]},[[{}],{\"b\":{}}]]"}) {
    expect_value(text);
  }
}

TEST(JsonScan, WhiteSpaceIsFourBytesAndNoOther) {
  expect_value(" \t\r\n[ \t\r\n1 \t\r\n, \t\r\n{ \t\r\n\"a\" \t\r\n: \t\r\n2 \t\r\n} \t\r\n]");
  for (const char c : {'\v', '\f', '\0', '\x1F', '\x7F', '\xA0', '\x85'}) {
    expect_malformed(std::string(1, c), 0);
    expect_malformed("1"s + c, 1);
    expect_malformed("1,"s + c, 2);
    expect_malformed("{"s + c, 1);
    expect_malformed("{\"a\""s + c, 4);
    expect_malformed("{\"a\":"s + c, 5);
    expect_malformed("{\"a\":1"s + c, 6);
  }
}

TEST(JsonScan, NothingAndWhiteSpaceAreIncomplete) {
  for (const std::string_view text : {"", " ", "\n\n", " \t\r\n   "})
    expect_scan(text, {ScanStatus::incomplete, text.size()});
}

TEST(JsonScan, StructureThatIsNoneIsRefusedAtItsFirstWrongByte) {
  // Behind the bracket that expect_malformed puts before each.
  expect_malformed(",", 0);
  expect_malformed(":", 0);
  expect_malformed("}", 0);
  expect_malformed("1,]", 2);
  expect_malformed("1,,2]", 2);
  expect_malformed("1}", 1);
  expect_malformed("1:2]", 1);
  expect_malformed("\"a\":1]", 3);
  expect_malformed("[]x", 2);
  expect_malformed("[] []", 3);
  expect_malformed("{,", 1);
  expect_malformed("{1:2}", 1);
  expect_malformed("{a:1}", 1);
  expect_malformed("{'a':1}", 1);
  expect_malformed("{]", 1);
  expect_malformed("{:", 1);
  expect_malformed("{\"a\"}", 4);
  expect_malformed("{\"a\",1}", 4);
  expect_malformed("{\"a\" 1}", 5);
  expect_malformed("{\"a\"::1}", 5);
  expect_malformed("{\"a\":}", 5);
  expect_malformed("{\"a\":1]", 6);
  expect_malformed("{\"a\":1,}", 7);
  expect_malformed("{\"a\":1,,\"b\":2}", 7);
  expect_malformed("{\"a\":1 \"b\":2}", 7);
  expect_malformed("{\"a\":1,2}", 7);
  expect_malformed("/* no comments */1]", 0);
}

TEST(JsonScan, LiteralsAreThreeWords) {
  for (const std::string_view word : {"true", "false", "null"}) {
    expect_scan(word, {ScanStatus::complete, word.size()});
    for (std::size_t cut = 0; cut < word.size(); ++cut) {
      expect_scan(word.substr(0, cut), {ScanStatus::incomplete, cut});
      for (const char wrong : {' ', 'x', '"', '\xFF', 'E', ','}) {
        if (cut != 0) expect_malformed(std::string{word.substr(0, cut)} + wrong, cut);
      }
    }
    expect_scan(std::string{word} + "x", {ScanStatus::complete, word.size()});
    expect_malformed(std::string{word} + "x", word.size());
  }
  for (const std::string_view other :
       {"True", "NULL", "undefined", "NaN", "Infinity", "'a'", "/", "#", "+1", ".5", "\xFF"})
    expect_malformed(other, 0);
}

TEST(JsonScan, NumbersKeepToTheGrammar) {
  for (const std::string_view number : {"0",
                                        "-0",
                                        "1",
                                        "-1",
                                        "10",
                                        "1234567890",
                                        "12345678901234567",
                                        "-123456789012345678901234567890123456789",
                                        "0.0",
                                        "-0.5",
                                        "1.25",
                                        "1e1",
                                        "1E1",
                                        "1e+1",
                                        "1e-1",
                                        "0e0",
                                        "0E-0",
                                        "1.5e300",
                                        "1e999999",
                                        "0.1e-99999",
                                        "1.0000000000000000000000000000000001",
                                        "1e0000000000000000000000000000000001"}) {
    expect_scan(number, {ScanStatus::complete, number.size()});
    expect_value("[" + std::string{number} + "]");
    expect_value("{\"a\":" + std::string{number} + "}");
  }
}

TEST(JsonScan, ANumberThatBreaksOffIsIncomplete) {
  for (const std::string_view number : {"-", "1.", "-0.", "1e", "1E+", "1.5e-", "0e"})
    expect_scan(number, {ScanStatus::incomplete, number.size()});
}

TEST(JsonScan, NumbersThatAreNoneAreRefusedAtTheirFirstWrongByte) {
  expect_malformed("--1", 1);
  expect_malformed("-a", 1);
  expect_malformed("-]", 1);
  expect_malformed("-.5", 1);
  expect_malformed("+1", 0);
  expect_malformed(".5", 0);
  expect_malformed("01", 1);
  expect_malformed("-01", 2);
  expect_malformed("00", 1);
  expect_malformed("1.]", 2);
  expect_malformed("1.e1", 2);
  expect_malformed("1..2", 2);
  expect_malformed("1.2.3", 3);
  expect_malformed("1e]", 2);
  expect_malformed("1e+]", 3);
  expect_malformed("1e+-1", 3);
  expect_malformed("1e1.5", 3);
  expect_malformed("1e1e1", 3);
  expect_malformed("0x1", 1);
  expect_malformed("1_000", 1);
  expect_malformed("1 2", 2);
  expect_malformed("1a", 1);
  expect_malformed("-Infinity", 1);
}

TEST(JsonScan, ALongNumberEndsWhereItsDigitsDo) {
  for (std::size_t digits = 1; digits <= 100; ++digits) {
    const std::string number(digits, '7');
    expect_scan(number, {ScanStatus::complete, digits});
    expect_scan(number + "/", {ScanStatus::complete, digits});
    expect_scan(number + ":", {ScanStatus::complete, digits});
    expect_scan(number + "." + number, {ScanStatus::complete, 2 * digits + 1});
    expect_scan(number + "e" + number + "e", {ScanStatus::complete, 2 * digits + 1});
    expect_malformed(number + "\xFF", digits);
  }
}

TEST(JsonScan, EveryEscapeOfRfc8259IsTaken) {
  for (const std::string_view escape : {"\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t", "\\u0000", "\\u0020",
                                        "\\uD7FF", "\\uE000", "\\uFFFF", "\\uabcd", "\\uABCD", "\\u00e9"}) {
    expect_value('"' + std::string{escape} + '"');
    expect_value("[\"a" + std::string{escape} + "b\"]");
    expect_value("{\"" + std::string{escape} + "\":1}");
  }
}

TEST(JsonScan, EveryOtherByteBehindABackslashIsRefused) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (c != '\0' && std::strchr("\"\\/bfnrtu", c) != nullptr) continue;
    expect_malformed("\"\\"s + c + '"', 2);
  }
}

TEST(JsonScan, HexadecimalDigitsAreCounted) {
  for (const char c : {'g', 'G', '"', ' ', '\\', '/', ':', '@', '`', '\xFF', '\0'}) {
    expect_malformed("\"\\u"s + c, 3);
    expect_malformed("\"\\u0"s + c, 4);
    expect_malformed("\"\\u00"s + c, 5);
    expect_malformed("\"\\u000"s + c, 6);
  }
}

TEST(JsonScan, SurrogatesComeInPairsInOrder) {
  for (const std::string_view pair : {"\\uD800\\uDC00", "\\uDBFF\\uDFFF", "\\ud83d\\ude00", "\\uDa00\\udD00"}) {
    expect_value('"' + std::string{pair} + '"');
    expect_value("[\"" + std::string{pair} + std::string{pair} + "\"]");
  }
  // A second half alone is wrong with the digit that makes it one.
  for (const char c : {'c', 'C', 'd', 'e', 'f', 'F'}) expect_malformed("\"\\ud"s + c + "00\"", 4);
  // Behind a first half only the second of \uDC00 to \uDFFF may come.
  expect_malformed("\"\\ud800\"", 7);
  expect_malformed("\"\\ud800x", 7);
  expect_malformed("\"\\ud800\\n", 8);
  expect_malformed("\"\\ud800\\\\", 8);
  expect_malformed("\"\\udbff\\u0041", 9);
  expect_malformed("\"\\udbff\\ue000", 9);
  expect_malformed("\"\\udbff\\ud7ff", 10);
  expect_malformed("\"\\ud800\\ud800", 10);
  expect_malformed("\"\\ud800\\udbff", 10);
  expect_malformed("\"\\ud800\\udcg0", 11);
  expect_malformed("\"\\ud800\\udc0g", 12);
}

TEST(JsonScan, ControlBytesInAStringAreRefused) {
  for (int byte = 0; byte < 0x20; ++byte) {
    expect_malformed("\""s + static_cast<char>(byte) + "\"", 1);
    expect_malformed("\"0123456789abcdef0123"s + static_cast<char>(byte), 21);
    expect_malformed("{\"a"s + static_cast<char>(byte) + "\":1}", 3);
  }
  expect_value("\"\x7F\"");  // RFC 8259 section 7 has no quarrel with DEL
}

TEST(JsonScan, Utf8EndsAtTheBoundariesOfRfc3629) {
  // The first and last sequence of each row of the table in RFC 3629 section 4.
  for (const std::string_view character :
       {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xE0\xBF\xBF", "\xE1\x80\x80", "\xEC\xBF\xBF", "\xED\x80\x80",
        "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF0\xBF\xBF\xBF", "\xF1\x80\x80\x80",
        "\xF3\xBF\xBF\xBF", "\xF4\x80\x80\x80", "\xF4\x8F\xBF\xBF", "\xEF\xBB\xBF"}) {
    expect_value('"' + std::string{character} + '"');
    expect_value("[\"" + std::string{character} + std::string{character} + "x\"]");
    expect_value("{\"" + std::string{character} + "\":\"" + std::string{character} + "\"}");
  }
}

struct Wrong {
  std::string_view bytes;
  std::size_t offset;
};

TEST(JsonScan, Utf8BeyondThemIsRefusedAtItsFirstWrongByte) {
  for (const Wrong& wrong : {Wrong{"\x80", 0},
                             Wrong{"\xBF", 0},
                             Wrong{"\xC0\x80", 0},
                             Wrong{"\xC1\xBF", 0},
                             Wrong{"\xC2\x7F", 1},
                             Wrong{"\xC2\xC0", 1},
                             Wrong{"\xC2\"", 1},
                             Wrong{"\xDF\xC0", 1},
                             Wrong{"\xE0\x9F\xBF", 1},
                             Wrong{"\xE0\xA0\x7F", 2},
                             Wrong{"\xE0\xA0\xC0", 2},
                             Wrong{"\xED\xA0\x80", 1},
                             Wrong{"\xED\xBF\xBF", 1},
                             Wrong{"\xEF\xBF\"", 2},
                             Wrong{"\xF0\x8F\xBF\xBF", 1},
                             Wrong{"\xF0\x90\x7F", 2},
                             Wrong{"\xF0\x90\x80\xC0", 3},
                             Wrong{"\xF4\x90\x80\x80", 1},
                             Wrong{"\xF5\x80\x80\x80", 0},
                             Wrong{"\xF8\x88\x80\x80\x80", 0},
                             Wrong{"\xFE", 0},
                             Wrong{"\xFF", 0}}) {
    for (const std::string before :
         {"\"", "\"abc", "\"\\n", "\"\xC2\x80", "\"0123456789abcde", "\"0123456789abcdef0123456789"})
      expect_malformed(before + std::string{wrong.bytes}, before.size() + wrong.offset);
  }
}

// The blocks of SIMD code are 16 and 32 bytes: the byte that ends the search stands at each place of each.
TEST(JsonScan, EachPlaceInALongStringIsLookedAt) {
  for (std::size_t at = 0; at <= 200; ++at) {
    const std::string before = '"' + std::string(at, 'a');
    const std::string after = std::string(70, 'b') + '"';
    expect_scan(before + '"', {ScanStatus::complete, at + 2});
    expect_scan(before + '"' + after, {ScanStatus::complete, at + 2});
    expect_scan(before, {ScanStatus::incomplete, at + 1});
    for (const std::string_view fine : {"\\n", "\\u00e9", "\xC3\xA9", "\xF0\x9F\x98\x80", "\x7F"}) {
      const std::string text = before + std::string{fine} + after;
      expect_scan(text, {ScanStatus::complete, text.size()});
    }
    for (const char wrong : {'\n', '\x1F', '\0', '\x80', '\xFF'}) {
      expect_scan(before + wrong + after, {ScanStatus::malformed, at + 1});
    }
    expect_scan(before + "\\x" + after, {ScanStatus::malformed, at + 2});
    expect_scan(before + "\xC3" + after, {ScanStatus::malformed, at + 2});
  }
}

// The same for whatever stands behind a run of 64 plain bytes, from where AVX2 takes over, whole and cut at each byte.
TEST(JsonScan, ALongStringCutAtEachByteIsIncomplete) {
  const std::string text = "[\"" + std::string(90, 'x') + "\\\"" + std::string(40, 'y') + "\xE2\x82\xAC" +
                           std::string(70, 'z') + "\",\"" + std::string(150, 'w') + "\"]";
  expect_value(text);
}

TEST(JsonScan, LevelsAreCountedUpToTheLimit) {
  for (const std::uint32_t limit : {1U, 2U, 5U, 63U, 64U, 65U, 127U, 128U, 129U, 256U, 4096U}) {
    const std::string open(limit, '[');
    const std::string close(limit, ']');
    const std::string fits = open + close;
    EXPECT_EQ(run(scan, fits, '\xFF', limit), (Expected{ScanStatus::complete, fits.size()}));
    EXPECT_EQ(run(scan_scalar, fits, '\xFF', limit), (Expected{ScanStatus::complete, fits.size()}));
    for (const std::string_view more : {"[", "{", "[]", "{}"}) {
      const std::string text = open + std::string{more} + close;
      EXPECT_EQ(run(scan, text, '\xFF', limit), (Expected{ScanStatus::too_deep, limit})) << limit;
      EXPECT_EQ(run(scan_scalar, text, '\xFF', limit), (Expected{ScanStatus::too_deep, limit})) << limit;
    }
  }
}

TEST(JsonScan, ALevelThatIsClosedCountsNoMore) {
  std::string text = "[";
  for (int i = 0; i < 500; ++i) text += "[],{},";
  text += "[{\"a\":[]}]]";
  expect_scan(text, {ScanStatus::complete, text.size()}, 4);
  expect_scan(text, {ScanStatus::too_deep, text.size() - 5}, 3);
}

TEST(JsonScan, EachLevelRemembersWhatItIs) {
  // Levels that alternate, and levels in pairs, across the words in which a bit a level is kept.
  for (const int run_length : {1, 2, 3, 64}) {
    std::string open;
    std::string close;
    for (int level = 0; level < 200; ++level) {
      const bool object = level / run_length % 2 == 1;
      open += object ? "{\"k\":" : "[";
      close.insert(0, 1, object ? '}' : ']');
    }
    expect_scan(open + "1" + close, {ScanStatus::complete, open.size() + 1 + close.size()});
    for (std::size_t i = 0; i < close.size(); ++i) {
      std::string wrong = close;
      wrong[i] = wrong[i] == '}' ? ']' : '}';
      EXPECT_EQ(run(scan, open + "1" + wrong, '"', 256), (Expected{ScanStatus::malformed, open.size() + 1 + i}));
    }
  }
}

TEST(JsonScan, DepthIsAnErrorBeforeAnythingBehindIt) {
  expect_scan("[[[[}", {ScanStatus::too_deep, 3}, 3);
  expect_scan("[[[}", {ScanStatus::malformed, 3}, 3);
  expect_scan("[1,{\"a\":[", {ScanStatus::too_deep, 8}, 2);
}

TEST(JsonScan, FiveMillionBracketsStopAtTheLimit) {
  const std::string text(5'000'000, '[');
  expect_scan(text, {ScanStatus::too_deep, 256}, 256);
}

TEST(JsonScan, AZeroByteEndsNothing) {
  expect_scan("[1\0]"s, {ScanStatus::malformed, 2});
  expect_scan("\"a\0b\""s, {ScanStatus::malformed, 2});
  expect_scan("\0"s, {ScanStatus::malformed, 0});
  expect_scan(" \0"s, {ScanStatus::malformed, 1});
  expect_scan("tru\0"s, {ScanStatus::malformed, 3});
  expect_scan("-\0"s, {ScanStatus::malformed, 1});
}

TEST(JsonScan, AByteOrderMarkIsNoWhiteSpace) { expect_scan("\xEF\xBB\xBF{}", {ScanStatus::malformed, 0}); }

}  // namespace
}  // namespace wirecall::json
