// The automaton against hand-made cases, and against the codec's scanner: both must end at the same byte, or refuse the
// same one, for the published JSON cases, for random texts, and for broken ones.
#include "framing/json_automaton.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::framing {
namespace {

using Status = JsonAutomaton::Status;
using namespace std::string_view_literals;

struct Outcome {
  Status status;
  std::size_t offset;  // from the start of the text
  bool operator==(const Outcome&) const = default;
};

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << "status " << static_cast<int>(outcome.status) << " at " << outcome.offset;
}

// Feeds `text` in pieces of `piece` bytes, each from a heap block of its exact size.
Outcome run(std::string_view text, std::size_t piece, std::uint32_t depth_max = 256) {
  JsonAutomaton automaton;
  automaton.start(depth_max);
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::size_t bytes = std::min(piece, text.size() - at);
    const auto copy = std::make_unique<char[]>(bytes);
    text.copy(copy.get(), bytes, at);
    const JsonAutomaton::Result result = automaton.feed({copy.get(), bytes});
    if (result.status != Status::more) return {result.status, at + result.offset};
  }
  return {Status::more, text.size()};
}

Outcome scanned(std::string_view text, std::uint32_t depth_max = 256) {
  Buffer padded{text};
  const Scan scan = json_codec().scan(padded.padded(), depth_max);
  switch (scan.status) {
    case ScanStatus::complete: return {Status::complete, scan.offset};
    case ScanStatus::incomplete: return {Status::more, text.size()};
    case ScanStatus::malformed: return {Status::malformed, scan.offset};
    case ScanStatus::too_deep: return {Status::too_deep, scan.offset};
  }
  std::abort();
}

// What the scanner finds, for every way of cutting into equal pieces and for both halves of every cut in two.
void expect_as_scanned(std::string_view text, std::uint32_t depth_max = 256) {
  const Outcome expected = scanned(text, depth_max);
  EXPECT_EQ(run(text, 1, depth_max), expected) << text;
  EXPECT_EQ(run(text, 3, depth_max), expected) << text;
  EXPECT_EQ(run(text, text.size() + 1, depth_max), expected) << text;
  for (std::size_t cut = 1; cut < text.size(); cut += 1 + text.size() / 200) {
    EXPECT_EQ(run(text, cut, depth_max), expected) << text << " cut at " << cut;
  }
}

TEST(JsonAutomaton, long_strings_are_looked_at_byte_by_byte_wherever_they_stop_being_plain) {
  for (std::size_t size = 0; size < 150; ++size) {
    for (const std::string_view middle : {"\\\""sv, "\xC3\xA9"sv, "\x7F"sv, "\x1F"sv, "\xFF"sv, "\\x"sv}) {
      const std::string text = '"' + std::string(size, 'x').append(middle) + std::string(40, 'y') + "\" 1";
      const Outcome whole = scanned(text);
      EXPECT_EQ(run(text, text.size()), whole) << text;
      EXPECT_EQ(run(text, 1), whole) << text;
      EXPECT_EQ(run(text, 50), whole) << text;
    }
  }
}

TEST(JsonAutomaton, a_value_ends_at_its_last_byte) {
  EXPECT_EQ(run(R"({"a":[1,2,{"b":null}]} )", 1), (Outcome{Status::complete, 22}));
  EXPECT_EQ(run("[]]", 1), (Outcome{Status::complete, 2}));
  EXPECT_EQ(run(R"({"a":"}{][\""}{})", 1), (Outcome{Status::complete, 14}));
}

TEST(JsonAutomaton, a_number_string_or_literal_on_top_level_ends_before_white_space) {
  EXPECT_EQ(run("-12.5e+3\n", 1), (Outcome{Status::complete, 8}));
  EXPECT_EQ(run("0 ", 1), (Outcome{Status::complete, 1}));
  EXPECT_EQ(run("true\t", 1), (Outcome{Status::complete, 4}));
  EXPECT_EQ(run("\"a b\"\r", 1), (Outcome{Status::complete, 5}));
  EXPECT_EQ(run("1{", 1), (Outcome{Status::malformed, 1}));
  EXPECT_EQ(run("\"a\"{", 1), (Outcome{Status::malformed, 3}));
  EXPECT_EQ(run("nullx", 1), (Outcome{Status::malformed, 4}));
}

TEST(JsonAutomaton, what_could_end_with_the_stream_says_so) {
  for (const std::string_view text : {"0", "-1", "12", "1.5", "1e3", "1E-3", "true", "null", "\"a\""}) {
    JsonAutomaton automaton;
    automaton.start(256);
    automaton.feed(text);
    EXPECT_TRUE(automaton.could_end()) << text;
  }
  for (const std::string_view text : {"-", "1.", "1e", "1e+", "tru", "\"a", "[1", "{\"a\":1", "\"\\u12"}) {
    JsonAutomaton automaton;
    automaton.start(256);
    automaton.feed(text);
    EXPECT_FALSE(automaton.could_end()) << text;
  }
}

TEST(JsonAutomaton, an_error_is_the_first_byte_that_no_text_can_go_on_with) {
  const auto malformed = [](std::string_view text) {
    const Outcome outcome = run(text, 1);
    EXPECT_EQ(outcome.status, Status::malformed) << text;
    return outcome.offset;
  };
  EXPECT_EQ(malformed(R"(["\udc00"])"), 5U);         // the second half of a pair: decided by its second digit
  EXPECT_EQ(malformed(R"(["\uD83Dx"])"), 8U);        // a first half, and no backslash
  EXPECT_EQ(malformed(R"(["\uD83D\n"])"), 9U);       // nor u
  EXPECT_EQ(malformed(R"(["\uD83D\u0041"])"), 10U);  // nor a D
  EXPECT_EQ(malformed(R"(["\uD83D\uD83D"])"), 11U);  // nor C to F behind it
  EXPECT_EQ(malformed("[\"\xC0\xAF\"]"), 2U);        // overlong
  EXPECT_EQ(malformed("[\"\xE0\x80\x80\"]"), 3U);
  EXPECT_EQ(malformed("[\"\xED\xA0\x80\"]"), 3U);  // a surrogate
  EXPECT_EQ(malformed("[\"\xF4\x90\x80\x80\"]"), 3U);
  EXPECT_EQ(malformed("[\"a\nb\"]"), 3U);
  EXPECT_EQ(malformed("[01]"), 2U);
  EXPECT_EQ(malformed("[1.]"), 3U);
  EXPECT_EQ(malformed("[-]"), 2U);
  EXPECT_EQ(malformed("[1e+]"), 4U);
  EXPECT_EQ(malformed("[tru]"), 4U);
  EXPECT_EQ(malformed("[1,]"), 3U);
  EXPECT_EQ(malformed("[1}"), 2U);
  EXPECT_EQ(malformed("{\"a\"}"), 4U);
  EXPECT_EQ(malformed("{\"a\":1,}"), 7U);
  EXPECT_EQ(malformed("{1"), 1U);
  EXPECT_EQ(malformed("\xEF\xBB\xBF{}"), 0U);  // a byte order mark
}

TEST(JsonAutomaton, the_bracket_too_many_is_where_a_value_is_too_deep) {
  EXPECT_EQ(run("[[[]]]", 1, 3), (Outcome{Status::complete, 6}));
  EXPECT_EQ(run("[[[[]]]]", 1, 3), (Outcome{Status::too_deep, 3}));
  EXPECT_EQ(run(R"({"a":{"b":{}}})", 1, 2), (Outcome{Status::too_deep, 10}));
  for (const std::uint32_t depth : {63U, 64U, 65U, 128U, 200U, 4096U}) {
    std::string text;
    for (std::uint32_t i = 0; i < depth; ++i) text += i % 3 == 0 ? "{\"a\":" : "[";
    std::string ends;
    for (std::uint32_t i = depth; i-- > 0;) ends += i % 3 == 0 ? "}" : "]";
    text += "1" + ends;
    EXPECT_EQ(run(text, 7, depth), (Outcome{Status::complete, text.size()})) << depth;
    EXPECT_EQ(run(text, 7, depth - 1).status, Status::too_deep) << depth;
    expect_as_scanned(text, depth);
  }
}

TEST(JsonAutomaton, five_million_brackets_end_at_the_limit) {
  const std::string text(5'000'000, '[');
  EXPECT_EQ(run(text, 65536, 256), (Outcome{Status::too_deep, 256}));
}

TEST(JsonAutomaton, a_line_of_the_value_that_ended_is_remembered) {
  JsonAutomaton automaton;
  automaton.start(256);
  automaton.feed("{\"a\\n\": ");
  EXPECT_FALSE(automaton.line_ended());
  automaton.feed("\n1");
  EXPECT_TRUE(automaton.line_ended());
  automaton.start(256);
  EXPECT_FALSE(automaton.line_ended());
}

TEST(JsonAutomaton, agrees_with_the_scanner_on_the_published_cases) {
  const char* folder = std::getenv("WIRECALL_VECTORS");
  if (folder == nullptr || *folder == '\0') GTEST_SKIP() << "set WIRECALL_VECTORS to the folder of test vectors";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{std::filesystem::path{folder} / "json"}) {
    if (entry.path().extension() != ".json" || entry.file_size() > 1'000'000) continue;
    std::ifstream file{entry.path(), std::ios::binary};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    expect_as_scanned("[" + text + "]");
    if (!text.empty() && (text[0] == '[' || text[0] == '{')) expect_as_scanned(text);
    ++files;
  }
  EXPECT_GT(files, 300);
}

// Random values, and the same with a few bytes changed.
class Texts {
 public:
  explicit Texts(unsigned seed) : random_(seed) {}

  std::string value(int depth) {
    switch (pick(depth == 0 ? 5 : 8)) {
      case 0: return pick(2) == 0 ? "true" : "null";
      case 1: return std::to_string(static_cast<int>(random_()) % 100000);
      case 2: return "-0." + std::to_string(random_() % 1000) + (pick(2) == 0 ? "e-7" : "E12");
      case 3:
      case 4: return string();
      case 5: return "false";
      case 6: return list(depth, "[", "]", false);
      default: return list(depth, "{", "}", true);
    }
  }
  std::string broken(std::string text) {
    static constexpr std::string_view kBytes = "\0\n\"\\/{}[]:,0123456789.eE+-tfnudDcC \x80\xBF\xC2\xE0\xED\xF4\xFF"sv;
    for (std::size_t i = pick(3); i-- > 0;) {
      const std::size_t at = pick(text.size());
      if (pick(3) == 0) {
        text.erase(at, 1);
      } else if (pick(2) == 0) {
        text.insert(at, 1, kBytes[pick(kBytes.size())]);
      } else {
        text[at] = kBytes[pick(kBytes.size())];
      }
      if (text.empty()) return "{";
    }
    return text;
  }
  std::string list(int depth, std::string_view open, std::string_view close, bool names) {
    std::string text{open};
    for (std::size_t i = pick(4); i-- > 0;) {
      text += space() + (names ? string() + space() + ":" + space() : "") + value(depth - 1) + space();
      if (i != 0) text += ",";
    }
    return text + std::string{close};
  }

 private:
  std::size_t pick(std::size_t below) { return random_() % below; }
  std::string space() { return std::string(pick(5) == 0 ? pick(3) : 0, " \n\t"[pick(3)]); }
  std::string string() {
    static constexpr std::string_view kParts[] = {"a",
                                                  "plain text that is longer than a word",
                                                  "\\n",
                                                  "\\\"",
                                                  "\\u0041",
                                                  "\\ud83d\\ude00",
                                                  "\xC3\xA9",
                                                  "\xE2\x82\xAC",
                                                  "\xF0\x9F\x98\x80",
                                                  "\x7F"};
    std::string text{"\""};
    for (std::size_t i = pick(5); i-- > 0;) text += kParts[pick(std::size(kParts))];
    return text + "\"";
  }

  std::mt19937 random_;
};

TEST(JsonAutomaton, agrees_with_the_scanner_on_random_and_broken_texts) {
  Texts texts{20};
  for (int i = 0; i < 3000; ++i) {
    const std::string text = i % 2 == 0 ? texts.list(3, "[", "]", false) : texts.list(3, "{", "}", true);
    expect_as_scanned(text);
    std::string broken = texts.broken(text);
    if (broken[0] == '[' || broken[0] == '{') expect_as_scanned(broken);
  }
}

}  // namespace
}  // namespace wirecall::framing
