// The table of options, walked: each can be said in every way, is told of wherever options are told of, and refuses
// what it cannot be with its name, the value and the range.
#include "options/rows.hpp"

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/options/another_option.hpp"
#include "wirecall/detail/aggregate.hpp"
#include "wirecall/options.hpp"

namespace wirecall::net {
namespace {

using test::another;
using test::words_of;

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

template <class T>
OptionSlot slot(const OptionRow& row, T& options) {
  return slot_in<T>(row)(options, row);
}

/// Calls `check` with each option of a T.
template <class T, class Check>
void each_option(const Check& check) {
  for (const OptionRow& row : option_rows()) {
    if (slot_in<T>(row) != nullptr) check(row);
  }
}

template <class T>
void are_set_by_json() {
  each_option<T>([](const OptionRow& row) {
    const std::string value = another<T>(row);
    T options;
    EXPECT_NE(json_of(row, slot(row, options)), value) << row.name;
    options = T::from_json(object(row.name, value));
    EXPECT_EQ(json_of(row, slot(row, options)), value) << row.name;
  });
}

template <class T>
void are_set_by_words() {
  each_option<T>([](const OptionRow& row) {
    const std::string value = another<T>(row);
    T options;
    EXPECT_TRUE(assign(row, slot(row, options), value_of_words(row, words_of(value)))) << row.name;
    EXPECT_EQ(json_of(row, slot(row, options)), value) << row.name;
  });
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

/// The members of `part`, which is `options` or within, that no option of `options` is.
template <class T, class Part>
std::set<std::string_view> without_row(T& options, Part& part) {
  std::set<const void*> told;
  each_option<T>(
      [&](const OptionRow& row) { std::visit([&](const auto* member) { told.insert(member); }, slot(row, options)); });
  std::set<std::string_view> names;
  const auto all = detail::member_names<Part>(std::make_index_sequence<detail::kMemberCount<Part>>{});
  detail::visit_members(part, [&](const auto&... member) {
    std::size_t at = 0;
    ((told.contains(&member) ? ++at : (names.insert(all[at]), ++at)), ...);
  });
  return names;
}

TEST(OptionRows, each_member_is_an_option_but_for_the_sink_of_the_log_and_the_principals) {
  std::set<std::string_view> told_elsewhere{"log", "principals"};  // limits is where its first member is
  Options options;
  EXPECT_EQ(without_row(options, options), told_elsewhere);
  told_elsewhere.erase("principals");
  EXPECT_EQ(without_row(options, options.limits), std::set<std::string_view>{});
  told_elsewhere.insert("connect");
  ClientOptions client;
  EXPECT_EQ(without_row(client, client), told_elsewhere);
  const std::set<std::string_view> of_listeners{"connections",
                                                "datagram_calls",
                                                "datagram_reply_bytes",
                                                "header_timeout_ms",
                                                "keepalive_timeout_ms",
                                                "methods",
                                                "rate",
                                                "registration_timeout_ms",
                                                "retained_bytes",
                                                "subscription_bytes",
                                                "subscriptions",
                                                "tls_handshakes",
                                                "principal_rate",
                                                "principal_calls",
                                                "principal_retained_bytes",
                                                "principal_bytes",
                                                "unidentified_bytes",
                                                "half_closed_calls",
                                                "half_closed_ms"};
  EXPECT_EQ(without_row(client, client.limits), of_listeners);
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
  are_set_by_json<Options>();
  are_set_by_json<ClientOptions>();
}

TEST(OptionRows, each_is_set_by_words_of_a_command_line) {
  are_set_by_words<Options>();
  are_set_by_words<ClientOptions>();
}

template <class T>
void refuses(const OptionRow& row, const std::string& value) {
  EXPECT_EQ(refusal<T>(object(row.name, value)), std::string{row.name} + " is " + value + ": give " + range_of(row));
}

TEST(OptionRows, each_refuses_another_type_and_what_is_out_of_range_by_name_value_and_range) {
  for (const OptionRow& row : option_rows()) {
    std::vector<std::string> wrong{"null", "{}", "-1", "1.5", "1e400", "[{}]"};
    wrong.emplace_back(range_of(row) == "true or false" ? "\"true\"" : "true");
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
}  // namespace wirecall::net
