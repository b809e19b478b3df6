// The configuration file: each option can be said in it, what it cannot be is refused by its name, value, range and
// line, and what is printed of options reads back as the same.
#include "cli/config/config_file.hpp"

#include <gtest/gtest.h>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/options/another_option.hpp"

namespace wirecall::cli {
namespace {

using net::OptionRow;

/// What is said of the text; empty when it is taken.
std::string refusal(std::string_view toml) {
  const auto options = options_of_toml(toml);
  return options ? "" : options.error();
}

Options taken(std::string_view toml) {
  auto options = options_of_toml(toml);
  EXPECT_TRUE(options) << toml << options.error();
  return options ? *std::move(options) : Options{};
}

std::vector<const OptionRow*> rows() {
  std::vector<const OptionRow*> of_servers;
  for (const OptionRow& row : net::option_rows()) {
    if (row.in_server != nullptr) of_servers.push_back(&row);
  }
  return of_servers;
}

/// What all options are, by name.
std::map<std::string_view, std::string> values(Options options) {
  std::map<std::string_view, std::string> all;
  for (const OptionRow* row : rows()) all[row->name] = net::json_of(*row, row->in_server(options, *row));
  return all;
}

TEST(ConfigFile, each_option_is_set_by_its_name_and_no_other_is) {
  for (const OptionRow* row : rows()) {
    auto expected = values({});
    expected[row->name] = net::test::another<Options>(*row);
    EXPECT_EQ(values(taken(std::string{row->name} + " = " + expected[row->name])), expected) << row->name;
  }
}

TEST(ConfigFile, an_empty_one_leaves_every_option_as_it_is) {
  EXPECT_EQ(values(taken("")), values({}));
  EXPECT_EQ(values(taken("# nothing\n\n[limits]\n")), values({}));
}

TEST(ConfigFile, groups_are_tables_or_dotted_or_quoted_names) {
  EXPECT_EQ(taken("[limits]\nbatch = 7\n").limits.batch, 7U);
  EXPECT_EQ(taken("limits.batch = 7\n").limits.batch, 7U);
  EXPECT_EQ(taken("limits = { batch = 7, depth = 8 }\n").limits.depth, 8U);
  EXPECT_EQ(taken("'limits.batch' = 7\n").limits.batch, 7U);
  EXPECT_EQ(taken("max_message_size = 16_000_000 # bytes\nport = 0x2161\n").port, 8545);
}

TEST(ConfigFile, each_refuses_what_it_cannot_be_by_name_value_range_and_line) {
  for (const OptionRow* row : rows()) {
    std::vector<std::string> wrong{"-1", "1.5", "{}", "[{}]"};
    wrong.emplace_back(net::range_of(*row) == "true or false" ? "\"true\"" : "true");
    if (row->max != 0) {
      const std::string above = std::to_string(row->max + 1);
      wrong.push_back(net::range_of(*row).starts_with("a list") ? "[" + above + "]" : above);
      wrong.emplace_back("\"1\"");
      if (row->min != 0) wrong.push_back(std::to_string(row->min - 1));
    }
    if (!row->words.empty()) wrong.emplace_back("\"neither\"");
    for (const std::string& value : wrong) {
      EXPECT_EQ(refusal("\n\n" + std::string{row->name} + " = " + value),
                "line 3: " + std::string{row->name} + " is " + value + ": give " + net::range_of(*row));
    }
    for (const std::string value : {"1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "nan", "inf", "[07:32:00]"}) {
      const std::string why = refusal(std::string{row->name} + " = " + value);
      EXPECT_TRUE(why.starts_with("line 1: " + std::string{row->name} + " is ")) << value << why;
      EXPECT_TRUE(why.ends_with(": give " + net::range_of(*row))) << value << why;
    }
  }
  EXPECT_EQ(refusal("port = 1979-05-27"), "line 1: port is 1979-05-27: give a number from 0 to 65535");
  EXPECT_EQ(refusal("limits = 3"), "line 1: limits is 3: give a table of options");
}

TEST(ConfigFile, a_name_that_no_option_has_is_refused_with_the_nearest_one_and_the_line) {
  EXPECT_EQ(refusal("prot = 1"), "line 1: there is no option prot; did you mean port?");
  EXPECT_EQ(refusal("[limits]\n\nbach = 1"), "line 3: there is no option limits.bach; did you mean limits.batch?");
  EXPECT_EQ(refusal("batch = 1"), "line 1: there is no option batch; did you mean limits.batch?");
  EXPECT_EQ(refusal("[limits]\nmax_message_size = 1"),
            "line 2: there is no option limits.max_message_size; did you mean max_message_size?");
  EXPECT_EQ(refusal("[nothing.like.it]\nat = 'all'"), "line 1: there is no option nothing");
  EXPECT_EQ(refusal("\"\\u001b[2J\" = 1"), "line 1: there is no option \\x1b[2J");
  EXPECT_EQ(refusal("client_id = 'me'"), "line 1: there is no option client_id");
}

TEST(ConfigFile, all_that_is_wrong_is_told_at_once_in_the_order_of_the_lines) {
  EXPECT_EQ(
      refusal("prot = 1\nhost = 5\n\n[limits]\nbatch = 0\n"),
      "line 1: there is no option prot; did you mean port?; line 2: host is 5: give a string; line 5: limits.batch is "
      "0: give a number from 1 to 1000000000 (elements)");
}

TEST(ConfigFile, what_options_cannot_be_together_is_refused_with_the_line) {
  const std::string why = refusal("port = 1\n[limits]\nsoft_output = 99999999");
  EXPECT_TRUE(why.starts_with("line 3: limits.soft_output is 99999999: give no more than limits.hard_output")) << why;
  EXPECT_EQ(refusal("limits.batch = 1\n'limits.batch' = 2"), "line 2: limits.batch is given twice");
}

TEST(ConfigFile, what_is_no_toml_is_refused_with_the_line) {
  const std::string deep(5000, '[');
  for (const std::string_view text :
       {std::string_view{"\nport"}, std::string_view{"\nport ="}, std::string_view{"\nport = 1\nport = 2"},
        std::string_view{"\nhost = \"open"}, std::string_view{"\n[limits\n"}, std::string_view{"\nhost = '\xFF'"},
        std::string_view{"\nport = \0 1", 10}, std::string_view{"\nhost = \"\x01\""},
        std::string_view{"\nport = 08545"}, std::string_view{"\nport = 99999999999999999999"}}) {
    EXPECT_TRUE(refusal(text).starts_with("line ")) << text << "->" << refusal(text);
  }
  EXPECT_TRUE(refusal("listen = " + deep).starts_with("line 1: this is no TOML: "));
}

TEST(ConfigFile, what_is_printed_reads_back_as_the_same) {
  EXPECT_EQ(values(taken(toml_of_options({}))), values({}));
  for (const OptionRow* row : rows()) {
    const Options options = taken(std::string{row->name} + " = " + net::test::another<Options>(*row));
    EXPECT_EQ(values(taken(toml_of_options(options))), values(options)) << row->name;
  }
  Options texts;
  texts.delimiter = "|\"\\\n\t\x7F\x01";
  texts.allow_hosts = {"a\"b", "\xC3\xA9", "'", ""};
  EXPECT_EQ(values(taken(toml_of_options(texts))), values(texts));
}

TEST(ConfigFile, what_is_printed_tells_what_each_option_is_and_can_be) {
  Options options;
  options.port = 9000;
  const std::string text = toml_of_options(options);
  EXPECT_NE(text.find("\n# The TCP port to listen on; 0 lets the system choose.\n"
                      "# A number from 0 to 65535. Default: 8545\n"
                      "port = 9000\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n[limits]\n\n# Elements of one batch.\n"), std::string::npos) << text;
  EXPECT_NE(text.find("(elements). Default: 1000\nbatch = 1000\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace wirecall::cli
