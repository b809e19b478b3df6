// The table of options, walked: each can be said in every way, is told of wherever options are told of, and refuses
// what it cannot be with its name, the value and the range.
#include "session/option_rows.hpp"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "wirecall/detail/aggregate.hpp"
#include "wirecall/options.hpp"

namespace wirecall::session {
namespace {

/// What from_json says of the text; empty when it takes it.
template <class T>
std::string refusal(const std::string& json) {
  try {
    static_cast<void>(T::from_json(json));
    return {};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

/// A JSON object in which the option of that name has that value.
std::string object(std::string_view name, const std::string& value) {
  const std::size_t dot = name.find('.');
  const std::string last = "{\"" + std::string{name.substr(dot == std::string_view::npos ? 0 : dot + 1)} + "\":";
  if (dot == std::string_view::npos) return last + value + "}";
  return "{\"" + std::string{name.substr(0, dot)} + "\":" + last + value + "}}";
}

OptionSlot slot(const OptionRow& row, Options& options) { return row.in_server(options, row); }
OptionSlot slot(const OptionRow& row, ClientOptions& options) { return row.in_client(options, row); }

/// A value that is not the default, as JSON text.
std::string another(const OptionRow& row, const std::string& value) {
  if (!row.words.empty()) {
    const bool number = value[0] != '"';
    for (const std::string_view word : row.words) {
      const std::string other = number ? std::string{word} : '"' + std::string{word} + '"';
      if (other != value) return other;
    }
  }
  if (value[0] == '[') return row.max != 0 ? "[1,0]" : R"(["a","b"])";
  if (value[0] == '"') return R"("|")";
  return std::to_string(row.min + 1);
}

template <class T>
void set_by_json(const OptionRow& row) {
  T options;
  const std::string value = another(row, json_of(row, slot(row, options)));
  std::string json = object(row.name, value);
  // A soft mark above the hard one would be refused.
  if (row.name == "limits.hard_output") json = R"({"limits":{"soft_output":1,"hard_output":2}})";
  options = T::from_json(json);
  EXPECT_EQ(json_of(row, slot(row, options)), value) << json;
}

TEST(OptionRows, each_is_told_of_once_and_has_a_member) {
  std::set<std::string_view> names;
  for (const OptionRow& row : option_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.in_server != nullptr || row.in_client != nullptr) << row.name;
    EXPECT_FALSE(row.doc.empty()) << row.name;
    EXPECT_EQ(find_option(row.name), &row);
  }
  EXPECT_EQ(find_option("nonsense"), nullptr);
}

/// The members of a struct that have no row, those told of elsewhere left out.
template <class T>
std::set<std::string_view> without_row(const std::string& prefix) {
  std::set<std::string_view> names;
  for (const std::string_view name : detail::member_names<T>(std::make_index_sequence<detail::kMemberCount<T>>{})) {
    if (find_option(name) == nullptr && find_option(prefix + std::string{name}) == nullptr) names.insert(name);
  }
  return names;
}

TEST(OptionRows, each_member_has_a_row_but_for_the_sink_of_the_log) {
  EXPECT_EQ(without_row<Options>(""), (std::set<std::string_view>{"limits", "log"}));
  EXPECT_EQ(without_row<ClientOptions>(""), (std::set<std::string_view>{"limits", "log"}));
  EXPECT_EQ(without_row<Limits>("limits."), std::set<std::string_view>{});
}

TEST(OptionRows, the_names_of_the_contract_are_there_with_its_defaults) {
  const auto value = [](std::string_view name) {
    Options options;
    return json_of(*find_option(name), slot(*find_option(name), options));
  };
  EXPECT_EQ(value("port"), "8545");
  EXPECT_EQ(value("host"), "\"127.0.0.1\"");
  EXPECT_EQ(value("call_timeout_ms"), "30000");
  EXPECT_EQ(value("max_message_size"), "16777216");
  EXPECT_EQ(value("limits.batch"), "1000");
  EXPECT_EQ(value("limits.depth"), "256");
  EXPECT_EQ(value("limits.in_flight"), "4096");
  EXPECT_EQ(value("limits.hops"), "16");
  EXPECT_EQ(value("limits.header_timeout_ms"), "10000");
  EXPECT_EQ(value("limits.soft_output"), "4194304");
  EXPECT_EQ(value("limits.hard_output"), "67108864");
  for (const std::string_view name : {"thread_count", "keepalive_timeout_ms", "registration_timeout_ms", "client_id"}) {
    EXPECT_NE(find_option(name), nullptr) << name;
  }
}

TEST(OptionRows, each_is_set_by_json) {
  for (const OptionRow& row : option_rows()) {
    if (row.in_server != nullptr) set_by_json<Options>(row);
    if (row.in_client != nullptr) set_by_json<ClientOptions>(row);
  }
}

TEST(OptionRows, each_is_set_by_words_of_a_command_line) {
  for (const OptionRow& row : option_rows()) {
    if (row.in_server == nullptr) continue;
    Options options;
    const std::string value = another(row, json_of(row, slot(row, options)));
    std::vector<std::string> words;
    const Value parsed = Value::parse(value).value();
    for (const Value& word : parsed.is_array() ? parsed.as_array() : Value::Array{parsed}) {
      words.push_back(word.is_string() ? word.as_string() : word.dump());
    }
    EXPECT_TRUE(assign(row, slot(row, options), value_of_words(row, words))) << row.name;
    EXPECT_EQ(json_of(row, slot(row, options)), value) << row.name;
  }
}

template <class T>
void refuses(const OptionRow& row, const std::string& value) {
  EXPECT_EQ(refusal<T>(object(row.name, value)), std::string{row.name} + " is " + value + ": give " + range_of(row));
}

TEST(OptionRows, each_refuses_another_type_and_what_is_out_of_range_by_name_value_and_range) {
  for (const OptionRow& row : option_rows()) {
    std::vector<std::string> wrong{"null", "true", "{}", "-1", "1.5", "1e400", "[{}]"};
    if (row.max != 0) {
      const bool list = range_of(row).starts_with("a list");
      const std::string above = std::to_string(row.max + 1);
      wrong.push_back(list ? "[" + above + "]" : above);
      wrong.emplace_back("\"1\"");
      if (row.min != 0) wrong.push_back(std::to_string(row.min - 1));
    }
    if (!row.words.empty()) wrong.emplace_back("\"neither\"");

    for (const std::string& value : wrong) {
      if (row.in_server != nullptr) refuses<Options>(row, value);
      if (row.in_client != nullptr) refuses<ClientOptions>(row, value);
    }
  }
}

TEST(OptionRows, each_is_a_line_of_the_documentation) {
  std::ifstream file{std::string{WIRECALL_SOURCE} + "/docs/options.md"};
  const std::string page{std::istreambuf_iterator<char>{file}, {}};
  std::string table;
  for (const OptionRow& row : option_rows()) {
    Options options;
    ClientOptions client_options;
    std::string value =
        row.in_server != nullptr ? json_of(row, slot(row, options)) : json_of(row, slot(row, client_options));
    std::string of = row.in_client == nullptr ? "server" : row.in_server == nullptr ? "client" : "both";
    std::string doc{row.doc};
    if (row.limit != nullptr) doc.append(". Beyond it: ").append(row.limit->beyond);
    table +=
        "| `" + std::string{row.name} + "` | " + of + " | `" + value + "` | " + range_of(row) + " | " + doc + " |\n";
  }
  EXPECT_NE(page.find(table), std::string::npos) << "docs/options.md should have these lines:\n" << table;
}

}  // namespace
}  // namespace wirecall::session
