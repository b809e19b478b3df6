// The published UTF-8 test cases (utf8tests.txt by Steve Flenniken), read from the folder that $WIRECALL_VECTORS names,
// as the contents of JSON strings: valid ones are accepted and come back unchanged, invalid ones are refused, read or
// written, whatever stands around them.
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json_scan.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

struct Case {
  std::string number;
  std::string bytes;
  bool valid = false;
};

int hex(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

std::string bytes_of(std::string_view digits) {
  std::string packed;
  for (const char c : digits) {
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) packed += c;
  }
  std::string bytes;
  for (std::size_t i = 0; i + 1 < packed.size(); i += 2)
    bytes += static_cast<char>(hex(packed[i]) * 16 + hex(packed[i + 1]));
  return bytes;
}

// What JSON does not take unescaped in a string is escaped: it is not what these cases are about.
std::string content_of(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string content;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || c == '"' || c == '\\') {
      content.append("\\u00").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    } else {
      content += c;
    }
  }
  return content;
}

class Utf8 : public testing::Test {
 protected:
  void SetUp() override {
    const char* vectors = std::getenv("WIRECALL_VECTORS");
    std::ifstream file{std::string{vectors == nullptr ? "" : vectors} + "/utf8tests.txt"};
    if (vectors == nullptr || !file)
      GTEST_SKIP() << "no UTF-8 test cases: set WIRECALL_VECTORS to a folder with utf8tests.txt";
    std::string line;
    while (std::getline(file, line)) {
      if (line.empty() || line[0] == '#') continue;
      const std::size_t first = line.find(':');
      const std::size_t second = line.find(':', first + 1);
      ASSERT_NE(second, std::string::npos) << line;
      const std::string kind = line.substr(first + 1, second - first - 1);
      const std::string value = line.substr(second + 1, line.find(':', second + 1) - second - 1);
      const bool in_hex = kind.find("hex") != std::string::npos;
      const bool valid = kind.find("invalid") == std::string::npos;
      cases_.push_back({line.substr(0, first), in_hex ? bytes_of(value) : line.substr(second + 1), valid});
    }
  }

  std::vector<Case> cases_;
};

TEST_F(Utf8, TheCasesAreAllRead) {
  std::size_t valid = 0;
  for (const Case& test : cases_) valid += test.valid ? 1 : 0;
  EXPECT_EQ(valid, 77U);
  EXPECT_EQ(cases_.size(), 77U + 145U);
}

TEST_F(Utf8, AStringOfValidBytesIsAcceptedAndComesBackUnchanged) {
  for (const Case& test : cases_) {
    if (!test.valid) continue;
    const auto decoded = from_json<std::string>('"' + content_of(test.bytes) + '"');
    ASSERT_TRUE(decoded) << test.number;
    EXPECT_EQ(*decoded, test.bytes) << test.number;
    EXPECT_EQ(from_json<std::string>(to_json(test.bytes)).value(), test.bytes) << test.number;
  }
}

TEST_F(Utf8, AStringOfInvalidBytesIsRefusedAndNeverWritten) {
  for (const Case& test : cases_) {
    if (test.valid) continue;
    const auto decoded = from_json<std::string>('"' + content_of(test.bytes) + '"');
    ASSERT_FALSE(decoded) << test.number;
    EXPECT_EQ(decoded.error().code(), -32700) << test.number;
    EXPECT_THROW(static_cast<void>(to_json(test.bytes)), Error) << test.number;
  }
}

TEST_F(Utf8, WhatStandsBeforeAndBehindMakesNoDifference) {
  for (const Case& test : cases_) {
    for (std::size_t before = 0; before <= 66; ++before) {
      const std::string text = '"' + std::string(before, 'a') + content_of(test.bytes) + std::string(40, 'b') + '"';
      Buffer padded{text};
      const ScanStatus expected = test.valid ? ScanStatus::complete : ScanStatus::malformed;
      EXPECT_EQ(json::scan(padded.padded(), 1).status, expected) << test.number << " behind " << before;
      EXPECT_EQ(json::scan_scalar(padded.padded(), 1).status, expected) << test.number << " behind " << before;
    }
  }
}

TEST_F(Utf8, NamesAndParamsAreHeldToTheSame) {
  Registry registry;
  registry.method("raw", [](Raw value) { return value; });
  for (const Case& test : cases_) {
    const std::string param = "{\"" + content_of(test.bytes) + "\":\"" + content_of(test.bytes) + "\"}";
    const std::string expected = test.valid
                                     ? R"({"jsonrpc":"2.0","result":)" + param + R"(,"id":1})"
                                     : R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})";
    EXPECT_EQ(registry.handle(R"({"jsonrpc":"2.0","method":"raw","params":[)" + param + R"(],"id":1})"), expected)
        << test.number;
  }
}

}  // namespace
}  // namespace wirecall
