// The choice of a protocol by the first bytes: the table of docs/wire.md "Connections", cut at every byte.
#include "framing/protocol.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>

namespace wirecall::framing {
namespace {

using namespace std::string_literals;

struct Choice {
  Protocol protocol = Protocol::undetermined;
  std::string seen;  // what the protocol is given of what had come when it was chosen
};

Choice choice(std::string_view input, std::size_t piece_bytes) {
  FirstBytes first;
  for (std::size_t at = 0; at < input.size(); at += piece_bytes) {
    const std::string_view piece = input.substr(at, piece_bytes);
    const std::unique_ptr<char[]> block{new char[piece.size()]};
    std::memcpy(block.get(), piece.data(), piece.size());
    const std::string_view bytes{block.get(), piece.size()};
    const Protocol protocol = first.feed(bytes);
    if (protocol != Protocol::undetermined) {
      return {protocol, std::string{first.kept()} + std::string{bytes.substr(first.skipped())}};
    }
  }
  return {Protocol::undetermined, std::string{first.kept()}};
}

// Whole and in pieces of each size; nothing that was not white space is lost.
void expect_choice(std::string_view input, Protocol expected) {
  const std::string_view text = input.substr(std::min(input.find_first_not_of(" \t\r\n"), input.size()));
  for (std::size_t piece = 1; piece <= input.size(); ++piece) {
    const Choice chosen = choice(input, piece);
    EXPECT_EQ(chosen.protocol, expected) << input << " in pieces of " << piece;
    if (expected == Protocol::unknown) continue;
    EXPECT_TRUE(text.starts_with(chosen.seen)) << input << " in pieces of " << piece;
    EXPECT_FALSE(expected != Protocol::undetermined && chosen.seen.empty());
  }
}

TEST(FirstBytes, an_object_or_array_is_json_text) {
  expect_choice("{\"jsonrpc\"", Protocol::json_text);
  expect_choice("[", Protocol::json_text);
}

TEST(FirstBytes, any_other_json_value_is_json_text_as_well) {
  for (const std::string_view text : {"1\n", "9", "0", "-", "\"a\"\n", "\"", "true\n", "t", "f", "null", "nonsense"}) {
    expect_choice(text, Protocol::json_text);
  }
}

TEST(FirstBytes, a_byte_order_mark_may_stand_before_json_text) {
  for (const std::string_view text : {"{\"jsonrpc\"", "[1]", "\"a\"", "1", " \r\n\t{", "                        {"}) {
    expect_choice("\xEF\xBB\xBF" + std::string{text}, Protocol::json_text);
    expect_choice("\n \xEF\xBB\xBF" + std::string{text}, Protocol::json_text);
  }
  for (const std::string_view part : {"\xEF", "\xEF\xBB", "\xEF\xBB\xBF", "\xEF\xBB\xBF \n"}) {
    expect_choice(part, Protocol::undetermined);
  }
}

TEST(FirstBytes, a_content_header_in_any_case_is_header_framing) {
  expect_choice("Content-Length: 1", Protocol::content_length);
  expect_choice("CONTENT-", Protocol::content_length);
  expect_choice("content-type", Protocol::content_length);
}

TEST(FirstBytes, a_byte_up_to_8_is_the_first_of_a_length) {
  for (char c = 0; c <= 8; ++c) expect_choice(c + "\0\0\1"s, Protocol::length_prefix);
}

TEST(FirstBytes, capital_letters_and_a_space_are_http) {
  for (const std::string_view text : {"GET / HTTP/1.1\r\n", "POST ", "A ", "PRI * HTTP/2.0\r\n", "PROXY TCP4 ",
                                      "CONTENT ", "CONNECT host:1", "ABCDEFGHIJKLMNOP "}) {
    expect_choice(text, Protocol::http);
  }
}

TEST(FirstBytes, a_record_of_a_handshake_is_tls) {
  for (const std::string_view text : {"\x16\x03\x01", "\x16\x03", "\x16\x03\x03\x01"})
    expect_choice(text, Protocol::tls);
  expect_choice("\x16", Protocol::undetermined);
}

TEST(FirstBytes, anything_else_is_unknown) {
  for (const std::string_view text :
       {"get / HTTP/1.1\r\n", "GET\t/", "GET/", "Get ", "M-SEARCH *", "\xEF\xBB\xBFGET / HTTP/1.1\r\n",
        "\xEF\xBB\xBF\xEF\xBB\xBF{}", "\xEF\xBB{", "\xEFx", "\xFE\xFF", "}\n", "\x16\x02\x01", "\x0B",
        "ABCDEFGHIJKLMNOPQ ", "Content_", "Content\r", "contenT ", "CONTENT\n"}) {
    expect_choice(text, Protocol::unknown);
  }
}

TEST(FirstBytes, what_may_be_two_things_is_undetermined) {
  for (const std::string_view text : {"C", "CONTENT", "content", "Cont", "GET", "ABCDEFGHIJKLMNOP", " ", "\r\n\t "}) {
    expect_choice(text, Protocol::undetermined);
  }
}

TEST(FirstBytes, up_to_64_bytes_of_white_space_may_come_first) {
  expect_choice(std::string(64, ' ') + "{", Protocol::json_text);
  expect_choice(std::string(64, '\n') + "GET ", Protocol::http);
  expect_choice(std::string(64, '\t'), Protocol::undetermined);
  expect_choice(std::string(65, '\r') + "{", Protocol::unknown);
}

TEST(FirstBytes, cost_a_connection_that_says_nothing_very_little) { EXPECT_LE(sizeof(FirstBytes), 24U); }

TEST(Unknown, refuses_whatever_comes_and_closes) {
  Unknown framing;
  char input[] = "x";
  EXPECT_EQ(framing.next({input, 1}).find, Find::malformed);
  EXPECT_EQ(framing.recover({}), Recovery::close);
  EXPECT_EQ(framing.tail(), "\n");
}

}  // namespace
}  // namespace wirecall::framing
