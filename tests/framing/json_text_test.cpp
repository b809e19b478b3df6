// The framing of JSON text by itself: what it says of bytes that a session would feed it. The codec's part is played by
// `Reading`, which knows no envelopes.
#include "framing/json_text.hpp"

#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/codec.hpp"

namespace wirecall::framing {
namespace {

// Feeds a framing as a session does, and writes down what comes of it: a line for each message, "!" for one that cannot
// be read, "closed" when nothing more can.
class Reading {
 public:
  explicit Reading(std::string delimiter = "\n", Limits limits = {})
      : limits_(limits), settings_(limits_, std::move(delimiter)), framing_(settings_) {}

  void feed(std::string_view input) {
    while (!input.empty() && !closed_) {
      std::string bytes{input};  // which a framing may change
      Found found = framing_.next(bytes);
      input.remove_prefix(found.skip);
      if (found.find == Find::opening) {
        Buffer padded{input};
        const Scan scan = json_codec().scan(padded.padded(), limits_.depth);
        const bool scalar = input[0] != '{' && input[0] != '[';
        if (scan.status == ScanStatus::complete && !scalar) {
          log.push_back(std::string{input.substr(0, scan.offset)});
          input.remove_prefix(scan.offset);
          continue;
        }
        if (scan.status == ScanStatus::incomplete || scan.status == ScanStatus::complete) {
          found = framing_.unfinished(input);  // which wants white space behind a scalar
        } else {
          found = {Find::malformed, 0, scan.offset};
        }
      }
      const std::string_view part = input.substr(0, found.size);
      input.remove_prefix(found.size);
      switch (found.find) {
        case Find::part: kept_ += part; break;
        case Find::message:
          log.push_back(kept_ + std::string{part});
          kept_.clear();
          break;
        case Find::malformed:
        case Find::too_deep:
          log.emplace_back("!");
          kept_.clear();
          if (framing_.recover(part) == Recovery::close) close();
          break;
        case Find::lost: close(); break;
        default: break;
      }
    }
  }
  void end() {
    if (closed_) return;
    const Found found = framing_.end_of_stream();
    if (found.find == Find::message) log.push_back(kept_);
    if (found.find == Find::malformed) log.emplace_back("!");
  }

  std::vector<std::string> log;

 private:
  void close() {
    log.emplace_back("closed");
    closed_ = true;
  }

  Limits limits_;
  JsonTextSettings settings_;
  JsonText framing_;
  std::string kept_;
  bool closed_ = false;
};

using Log = std::vector<std::string>;

// The same for every cut in two, and byte by byte.
void expect_log(std::string_view input, const Log& expected, const std::string& delimiter = "\n", Limits limits = {}) {
  for (std::size_t cut = 0; cut <= input.size(); ++cut) {
    Reading reading{delimiter, limits};
    reading.feed(input.substr(0, cut));
    reading.feed(input.substr(cut));
    reading.end();
    EXPECT_EQ(reading.log, expected) << input << "\ncut at " << cut;
  }
  Reading reading{delimiter, limits};
  for (std::size_t at = 0; at < input.size(); ++at) reading.feed(input.substr(at, 1));
  reading.end();
  EXPECT_EQ(reading.log, expected) << input << "\nbyte by byte";
}

TEST(JsonText, lines_and_concatenated_values_are_messages_alike) {
  expect_log("{\"a\":1}\n[2]\r\n\n  {}[]{\"b\":\n3} ", {"{\"a\":1}", "[2]", "{}", "[]", "{\"b\":\n3}"});
}

TEST(JsonText, a_scalar_ends_at_white_space_or_with_the_stream) {
  expect_log("[]\n1 true\n\"a\"\t-2.5", {"[]", "1", "true", "\"a\"", "-2.5"});
}

TEST(JsonText, a_scalar_without_white_space_behind_it_is_an_error) {
  expect_log("[] 1[] 2\n[3]", {"[]", "!", "[3]"});
  expect_log("[]\"a\"[]\n[3]", {"[]", "!", "[3]"});
}

TEST(JsonText, an_error_costs_the_rest_of_the_line_that_the_message_began_on) {
  expect_log("{\"a\":1}\n{\"a\":nope} {}\n{\"b\":2}\n", {"{\"a\":1}", "!", "{\"b\":2}"});
  expect_log("[]\n}\n\n]x\n[1]", {"[]", "!", "!", "[1]"});
}

TEST(JsonText, an_error_that_is_the_line_s_end_costs_no_more_than_that_line) {
  expect_log("[\"a\n[1]\n", {"!", "[1]"});
}

TEST(JsonText, an_error_on_a_later_line_of_its_message_closes) {
  expect_log("[1,\n2,x]\n[3]\n", {"!", "closed"});
  expect_log("{\"a\":\n\n}\n[3]\n", {"!", "closed"});
}

TEST(JsonText, a_message_too_deep_is_an_error_at_that_bracket) {
  Limits limits;
  limits.depth = 2;
  expect_log("[[1]]\n[[[1]]]\n[2]\n", {"[[1]]", "!", "[2]"}, "\n", limits);
  expect_log("[[\n[1]]]\n[2]\n", {"!", "closed"}, "\n", limits);
}

TEST(JsonText, white_space_between_messages_has_no_limit) {
  expect_log("[1]" + std::string(300, '\n') + "[2]", {"[1]", "[2]"});
}

TEST(JsonText, an_unfinished_message_at_the_end_is_an_error) {
  expect_log("[1]\n{\"a\":", {"[1]", "!"});
  expect_log("[1]\n-", {"[1]", "!"});
}

TEST(JsonText, nothing_but_white_space_is_no_message) { expect_log("  \n ", {}); }

TEST(JsonText, one_byte_order_mark_may_come_before_everything) {
  expect_log("\xEF\xBB\xBF[1]\n[2]", {"[1]", "[2]"});
  expect_log("\xEF\xBB\xBF\n \"a\" [2]", {"\"a\"", "[2]"});
  expect_log("\xEF\xBB\xBF||[1]||", {"[1]"}, "||");
  expect_log("\xEF\xBB\xBF", {});
  expect_log("\xEF\xBB\xBF\xEF\xBB\xBF[1]\n[2]", {"!", "[2]"});
  expect_log("[1]\n\xEF\xBB\xBF[2]\n[3]", {"[1]", "!", "[3]"});
  expect_log("\xEF\xBB[1]\n[2]", {"!", "[2]"});
}

TEST(JsonText, a_delimiter_stands_between_messages_only) {
  expect_log("{\"a\":\"||\"}||[1] ||\n[2]||", {"{\"a\":\"||\"}", "[1]", "[2]"}, "||");
  expect_log("[1]<END>[2]<END>\n[3]", {"[1]", "[2]", "[3]"}, "\r\n<END>\r\n");
  expect_log("[1]\r\n[2]\n", {"[1]", "[2]"}, "\r\n");
}

TEST(JsonText, a_broken_delimiter_is_an_error) { expect_log("[1]|[2]||\n[3]||", {"[1]", "!", "[3]"}, "||"); }

TEST(JsonText, a_delimiter_that_could_begin_a_value_is_refused_with_the_cure) {
  const Limits limits;
  for (const char* delimiter : {"", "{", "--", "\n\"x", "null", "0"}) {
    EXPECT_THROW(JsonTextSettings(limits, delimiter), std::invalid_argument) << delimiter;
  }
  // Blanks and tabs stand between the tokens of what others write as well.
  for (const char* delimiter : {" ", "\t", " \t "}) {
    EXPECT_THROW(JsonTextSettings(limits, delimiter), std::invalid_argument);
  }
  EXPECT_NO_THROW(JsonTextSettings(limits, " \n"));
  EXPECT_NO_THROW(JsonTextSettings(limits, "\x1E"));
  try {
    JsonTextSettings settings{limits, "-|"};
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string_view{error.what()}.find("'|' or '#'"), std::string_view::npos);
  }
}

TEST(JsonText, a_bad_line_without_end_is_looked_through_only_so_far) {
  Limits limits;
  limits.max_message_size = 100;
  Reading reading{"\n", limits};
  reading.feed("[1]\nx");
  for (int i = 0; i < 99; ++i) reading.feed("x");
  EXPECT_EQ(reading.log, (Log{"[1]", "!"}));
  reading.feed("x");
  EXPECT_EQ(reading.log, (Log{"[1]", "!", "closed"}));
}

TEST(JsonText, replies_end_with_the_delimiter) {
  const Limits limits;
  const JsonTextSettings settings{limits, "\r\n"};
  const JsonText framing{settings};
  EXPECT_EQ(framing.head_bytes(), 0U);
  EXPECT_EQ(framing.tail(), "\r\n");
}

}  // namespace
}  // namespace wirecall::framing
