// The published JSON test suite (JSONTestSuite by Nicolas Seriot), read from the folder that $WIRECALL_VECTORS names:
// what must be accepted, what must be refused, and what RFC 8259 leaves to us, one by one. Each text is taken twice: as
// a value, and as the first of a request's params.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json_scan.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/value.hpp"

namespace wirecall {
namespace {

enum class Verdict { accepted, refused };

// What the suite leaves to the implementation. Numbers are kept as text whatever their size; strings are UTF-8 without
// lone surrogates, escaped or not; other encodings and byte order marks are no JSON.
const std::map<std::string, Verdict>& decisions() {
  static const std::map<std::string, Verdict> decisions{
      {"i_number_double_huge_neg_exp.json", Verdict::accepted},
      {"i_number_huge_exp.json", Verdict::accepted},
      {"i_number_neg_int_huge_exp.json", Verdict::accepted},
      {"i_number_pos_double_huge_exp.json", Verdict::accepted},
      {"i_number_real_neg_overflow.json", Verdict::accepted},
      {"i_number_real_pos_overflow.json", Verdict::accepted},
      {"i_number_real_underflow.json", Verdict::accepted},
      {"i_number_too_big_neg_int.json", Verdict::accepted},
      {"i_number_too_big_pos_int.json", Verdict::accepted},
      {"i_number_very_big_negative_int.json", Verdict::accepted},
      {"i_object_key_lone_2nd_surrogate.json", Verdict::refused},
      {"i_string_1st_surrogate_but_2nd_missing.json", Verdict::refused},
      {"i_string_1st_valid_surrogate_2nd_invalid.json", Verdict::refused},
      {"i_string_UTF-16LE_with_BOM.json", Verdict::refused},
      {"i_string_UTF-8_invalid_sequence.json", Verdict::refused},
      {"i_string_UTF8_surrogate_U+D800.json", Verdict::refused},
      {"i_string_incomplete_surrogate_and_escape_valid.json", Verdict::refused},
      {"i_string_incomplete_surrogate_pair.json", Verdict::refused},
      {"i_string_incomplete_surrogates_escape_valid.json", Verdict::refused},
      {"i_string_invalid_lonely_surrogate.json", Verdict::refused},
      {"i_string_invalid_surrogate.json", Verdict::refused},
      {"i_string_invalid_utf-8.json", Verdict::refused},
      {"i_string_inverted_surrogates_U+1D11E.json", Verdict::refused},
      {"i_string_iso_latin_1.json", Verdict::refused},
      {"i_string_lone_second_surrogate.json", Verdict::refused},
      {"i_string_lone_utf8_continuation_byte.json", Verdict::refused},
      {"i_string_not_in_unicode_range.json", Verdict::refused},
      {"i_string_overlong_sequence_2_bytes.json", Verdict::refused},
      {"i_string_overlong_sequence_6_bytes.json", Verdict::refused},
      {"i_string_overlong_sequence_6_bytes_null.json", Verdict::refused},
      {"i_string_truncated-utf-8.json", Verdict::refused},
      {"i_string_utf16BE_no_BOM.json", Verdict::refused},
      {"i_string_utf16LE_no_BOM.json", Verdict::refused},
      {"i_structure_500_nested_arrays.json", Verdict::refused},  // deeper than Limits::depth
      {"i_structure_UTF-8_BOM_empty_object.json", Verdict::refused},
  };
  return decisions;
}

struct Case {
  std::string name;
  std::string text;
};

// Valid JSON text without the white space between its tokens.
std::string without_space(std::string_view json) {
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (!quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n')) continue;
    out += c;
    if (quoted && c == '\\') out += json[++i];
    if (c == '"') quoted = !quoted;
  }
  return out;
}

class JsonSuite : public testing::Test {
 protected:
  void SetUp() override {
    const char* vectors = std::getenv("WIRECALL_VECTORS");
    const std::filesystem::path folder = std::filesystem::path{vectors == nullptr ? "" : vectors} / "json";
    if (vectors == nullptr || !std::filesystem::is_directory(folder))
      GTEST_SKIP() << "no JSON test suite: set WIRECALL_VECTORS to a folder in which it is json/";
    for (const auto& entry : std::filesystem::directory_iterator{folder}) {
      std::ifstream file{entry.path(), std::ios::binary};
      cases_.push_back({entry.path().filename().string(), std::string{std::istreambuf_iterator<char>{file}, {}}});
    }
    std::sort(cases_.begin(), cases_.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
    registry_.method("raw", [](Raw value) { return value; });
    registry_.method("value", [](Value value) { return value; });
  }

  [[nodiscard]] std::vector<Case> those_that_begin(std::string_view prefix) const {
    std::vector<Case> out;
    std::copy_if(cases_.begin(), cases_.end(), std::back_inserter(out),
                 [&](const Case& a) { return a.name.starts_with(prefix); });
    return out;
  }

  static bool is_value(const std::string& text, std::uint32_t depth_max = Limits{}.depth) {
    Buffer padded{text};
    const Scan scan = json::scan(padded.padded(), depth_max);
    return scan.status == ScanStatus::complete && text.find_first_not_of(" \t\r\n", scan.offset) == std::string::npos;
  }

  std::string answer(std::string_view method, const std::string& param) {
    return registry_.handle(R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":[)" + param +
                            R"(],"id":1})");
  }

  void expect_accepted(const Case& test) {
    EXPECT_TRUE(is_value(test.text)) << test.name;
    EXPECT_TRUE(from_json<Value>(test.text).has_value()) << test.name;
    // Unread, the value comes back as it was sent but for white space, since replies are compact.
    EXPECT_EQ(answer("raw", test.text), R"({"jsonrpc":"2.0","result":)" + without_space(test.text) + R"(,"id":1})")
        << test.name;
    EXPECT_EQ(answer("value", test.text).find("\"error\""), std::string::npos) << test.name;
  }

  void expect_refused(const Case& test) {
    EXPECT_FALSE(is_value(test.text)) << test.name;
    EXPECT_FALSE(from_json<Value>(test.text).has_value()) << test.name;
    const std::string reply = answer("raw", test.text);
    EXPECT_TRUE(reply.starts_with(R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error")"))
        << test.name << reply;
    EXPECT_TRUE(reply.ends_with(R"("id":null})")) << test.name << reply;
  }

  std::vector<Case> cases_;
  Registry registry_;
};

TEST_F(JsonSuite, WhatMustBeAcceptedIsAccepted) {
  const std::vector<Case> cases = those_that_begin("y_");
  EXPECT_EQ(cases.size(), 95U);
  for (const Case& test : cases) expect_accepted(test);
}

TEST_F(JsonSuite, WhatIsDecodedAndEncodedMeansTheSame) {
  for (const Case& test : those_that_begin("y_")) {
    const nlohmann::json reply = nlohmann::json::parse(answer("value", test.text));
    EXPECT_EQ(reply["result"], nlohmann::json::parse(test.text)) << test.name;
  }
}

TEST_F(JsonSuite, WhatMustBeRefusedIsRefused) {
  const std::vector<Case> cases = those_that_begin("n_");
  EXPECT_EQ(cases.size(), 188U);
  for (const Case& test : cases) {
    if (test.text.find_first_not_of(' ') == std::string::npos) {
      // Between the brackets of an array nothing is nothing: the request is a valid one without params.
      EXPECT_FALSE(is_value(test.text)) << test.name;
      EXPECT_NE(answer("raw", test.text).find("\"code\":-32602"), std::string::npos) << test.name;
      continue;
    }
    expect_refused(test);
  }
}

TEST_F(JsonSuite, WhatIsLeftToUsIsDecidedOneByOne) {
  const std::vector<Case> cases = those_that_begin("i_");
  EXPECT_EQ(cases.size(), decisions().size());
  for (const Case& test : cases) {
    const auto decision = decisions().find(test.name);
    ASSERT_NE(decision, decisions().end()) << test.name << " is not in the list";
    decision->second == Verdict::accepted ? expect_accepted(test) : expect_refused(test);
  }
}

TEST_F(JsonSuite, OnlyTheLimitStandsAgainstFiveHundredLevels) {
  for (const Case& test : those_that_begin("i_structure_500")) {
    EXPECT_TRUE(is_value(test.text, 500));
    EXPECT_FALSE(is_value(test.text, 499));
    EXPECT_NE(answer("raw", test.text).find(R"("data":{"limit":"depth"})"), std::string::npos);
  }
}

}  // namespace
}  // namespace wirecall
