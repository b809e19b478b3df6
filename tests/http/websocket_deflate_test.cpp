// permessage-deflate as the two ends of a WebSocket agree on it: RFC 7692 section 7, by the grammar of RFC 6455
// section 9.1.
#include "http/websocket_deflate.hpp"

#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <string_view>

#include "http/zlib_deflate.hpp"

namespace wirecall::net {
namespace {

const std::string kBoth = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";

// ---- of a server ----

std::string answered(std::string_view offers) {
  const auto agreed = agree_on_deflate(offers);
  if (!agreed) return "malformed";
  return *agreed ? (*agreed)->answer : "none";
}

TEST(DeflateOffer, that_can_be_is_taken) {
  for (const std::string_view offer :
       {"permessage-deflate", "permessage-deflate; client_max_window_bits",
        "permessage-deflate; client_max_window_bits=8", "permessage-deflate;client_max_window_bits=\"15\"",
        "permessage-deflate; server_no_context_takeover",
        "permessage-deflate; client_no_context_takeover;server_no_context_takeover", "Permessage-Deflate",
        "permessage-deflate ;\tCLIENT_MAX_WINDOW_BITS = 10"})
    EXPECT_EQ(answered(offer), kBoth) << offer;
}

TEST(DeflateOffer, of_a_window_is_kept_to) {
  for (const std::string_view bits : {"9", "10", "11", "12", "13", "14", "15"}) {
    const std::string wanted = kBoth + "; server_max_window_bits=" + std::string{bits};
    EXPECT_EQ(answered("permessage-deflate; server_max_window_bits=" + std::string{bits}), wanted);
    EXPECT_EQ(
        answered("permessage-deflate; server_max_window_bits = \"" + std::string{bits} + "\" ; client_max_window_bits"),
        wanted);
    EXPECT_EQ((*agree_on_deflate("permessage-deflate; server_max_window_bits=" + std::string{bits}))->window_bits,
              std::stoi(std::string{bits}));
  }
  // Any character may be escaped.
  EXPECT_EQ(answered(R"(permessage-deflate; server_max_window_bits="1\2")"), kBoth + "; server_max_window_bits=12");
}

TEST(DeflateOffer, that_cannot_be_is_declined) {
  for (const std::string_view offer : {"",
                                       ",",
                                       " , ,",
                                       "x",
                                       "x; a; b=c; d=\"e\"",
                                       "x-webkit-deflate-frame",
                                       "permessage-deflatex",
                                       "permessage-deflate; server_max_window_bits=8",
                                       "permessage-deflate; server_max_window_bits=\"8\"",
                                       "permessage-deflate; server_max_window_bits=7",
                                       "permessage-deflate; server_max_window_bits=16",
                                       "permessage-deflate; server_max_window_bits=010",
                                       "permessage-deflate; server_max_window_bits=+9",
                                       "permessage-deflate; server_max_window_bits=1",
                                       "permessage-deflate; server_max_window_bits=100",
                                       "permessage-deflate; server_max_window_bits=x",
                                       "permessage-deflate; server_max_window_bits",
                                       "permessage-deflate; server_max_window_bits=10; server_max_window_bits=10",
                                       "permessage-deflate; client_max_window_bits=7",
                                       "permessage-deflate; client_max_window_bits=16",
                                       "permessage-deflate; client_max_window_bits; client_max_window_bits=10",
                                       "permessage-deflate; server_no_context_takeover=1",
                                       "permessage-deflate; client_no_context_takeover=\"true\"",
                                       "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
                                       "permessage-deflate; client_no_context_takeover; Client_No_Context_Takeover",
                                       "permessage-deflate; unknown",
                                       "permessage-deflate; unknown=1; client_max_window_bits"})
    EXPECT_EQ(answered(offer), "none") << offer;
}

TEST(DeflateOffer, is_the_first_that_can_be) {
  EXPECT_EQ(answered("permessage-deflate; server_max_window_bits=8, permessage-deflate"), kBoth);
  EXPECT_EQ(answered("permessage-deflate; mine, x; a=\"b\" , permessage-deflate; server_max_window_bits=9"),
            kBoth + "; server_max_window_bits=9");
  EXPECT_EQ(answered("permessage-deflate; server_max_window_bits=11,permessage-deflate; server_max_window_bits=9"),
            kBoth + "; server_max_window_bits=11");
  EXPECT_EQ(answered(", permessage-deflate,"), kBoth);
}

TEST(DeflateOffer, that_breaks_the_grammar_fails) {
  for (const std::string_view offer : {";",
                                       "=",
                                       "x;",
                                       "x;;a",
                                       "x; =1",
                                       "x; a=",
                                       "x; a=, y",
                                       "x; a=\"",
                                       "x; a=\"b",
                                       "x; a=\"b\\",
                                       "x; a=\"\"",
                                       "x; a=\"b c\"",
                                       "x; a=\"b,c\"",
                                       "x; a=b c",
                                       "x y",
                                       "\"x\"",
                                       "x; a=\"b\"c",
                                       "permessage-deflate; \"a\"",
                                       "permessage-deflate, x;",
                                       "permessage-deflate; server_max_window_bits=\"10",
                                       "x(",
                                       "\xce\xba"})
    EXPECT_EQ(answered(offer), "malformed") << offer;
}

// ---- of a client ----

std::string taken(std::string_view said) {
  const auto takes = takes_deflate(said);
  if (takes) return !*takes ? "no" : **takes == 15 ? "yes" : std::to_string(**takes);
  EXPECT_EQ(takes.error(),
            "the server has answered the offer of compression with what cannot be: " + std::string{said});
  return "refused";
}

TEST(DeflateAnswer, that_keeps_nothing_is_taken) {
  EXPECT_EQ(taken(""), "no");
  EXPECT_EQ(taken("permessage-deflate; server_no_context_takeover; client_no_context_takeover"), "yes");
  for (const std::string_view said :
       {"permessage-deflate; server_no_context_takeover", "Permessage-Deflate;Server_No_Context_Takeover",
        "permessage-deflate; client_no_context_takeover; server_no_context_takeover; server_max_window_bits=8",
        "permessage-deflate; server_no_context_takeover; server_max_window_bits=\"15\"",
        "permessage-deflate ; server_max_window_bits = 9 ; server_no_context_takeover,"})
    EXPECT_EQ(taken(said), "yes") << said;
}

TEST(DeflateAnswer, may_ask_for_a_smaller_window) {
  for (int bits = 8; bits < 15; ++bits) {
    const std::string said =
        "permessage-deflate; server_no_context_takeover; client_max_window_bits=" + std::to_string(bits);
    EXPECT_EQ(taken(said), std::to_string(bits));
  }
  EXPECT_EQ(taken("permessage-deflate; server_no_context_takeover; client_max_window_bits=\"15\""), "yes");
  ZlibDeflate deflate;
  EXPECT_EQ(client_packing(deflate, 10).window_bits, 10);
  EXPECT_EQ(client_packing(deflate, 8).bytes_min, std::numeric_limits<std::size_t>::max()) << "zlib has none of 8";
}

TEST(DeflateAnswer, that_was_not_offered_or_cannot_be_fails) {
  const std::string kept = "permessage-deflate; server_no_context_takeover";
  for (const std::string& said :
       {std::string{"permessage-deflate"}, std::string{"permessage-deflate; client_no_context_takeover"},
        kept + "; server_no_context_takeover", kept + "; client_no_context_takeover; client_no_context_takeover",
        kept + "=1", kept + "; client_max_window_bits", kept + "; client_max_window_bits=7",
        kept + "; client_max_window_bits=10; client_max_window_bits=10", kept + "; server_max_window_bits",
        kept + "; server_max_window_bits=7", kept + "; server_max_window_bits=16",
        kept + "; server_max_window_bits=\"\"", kept + "; server_max_window_bits=10; server_max_window_bits=10",
        kept + "; unknown", kept + ", " + kept, kept + ", x", "x, " + kept, kept + ";", std::string{";"}})
    EXPECT_EQ(taken(said), "refused") << said;
}

TEST(DeflateAnswer, is_shown_in_part_where_it_is_long) {
  EXPECT_EQ(takes_deflate("x" + std::string(10'000, 'y')).error().size(),
            std::string_view{"the server has answered the offer of compression with what cannot be: "}.size() + 512);
}

}  // namespace
}  // namespace wirecall::net
