// Calls whose results come one by one, through a broker: credit stays with each stream, what a slow caller is sent is
// bounded, and callers that ask for LSP's $/progress get it.
#include <chrono>
#include <gtest/gtest.h>
#include <string>

#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::cancel_notification;
using test::Client;
using test::error_reply;
using test::id_of;
using test::notification;
using test::request;
using test::result_reply;
using test::timed_out;
using test::World;

std::string item(std::string_view id, std::string_view value = "1") {
  return notification("rpc.item", R"({"id":)" + std::string{id} + R"(,"seq":0,"value":)" + std::string{value} + "}");
}
std::string credit(std::string_view id, std::size_t items) {
  return notification("rpc.credit", R"({"id":)" + std::string{id} + R"(,"n":)" + std::to_string(items) + "}");
}
std::string progress(std::string_view token, std::string_view value) {
  return notification("$/progress", R"({"token":)" + std::string{token} + R"(,"value":)" + std::string{value} + "}");
}
std::string streaming(std::string_view credit, std::string_view id = "1") {
  return R"({"jsonrpc":"2.0","method":"count","stream":)" + std::string{credit} + R"(,"id":)" + std::string{id} + "}";
}
std::string overrun(std::string_view id = "1") {
  return error_reply(-32603, "Internal error", R"({"reason":"the provider sends more items than it has credit for"})",
                     id);
}

class Streams : public testing::Test {
 protected:
  void SetUp() override { provider.provide("count"); }
  // The caller takes no more, and more again.
  void stall() { caller.sink->messages_max = 0; }
  void drain() {
    caller.sink->messages_max = 1'000'000;
    caller.dispatcher->on_writable();
  }

  World world{Limits{.call_timeout_ms = 100}};
  Client provider{world};
  Client caller{world};
};

TEST_F(Streams, the_first_credit_passes_as_far_as_a_caller_may_have_items_waiting) {
  EXPECT_EQ((caller.send(streaming("64")), provider.received()), streaming("64", "0"));
  EXPECT_EQ((caller.send(streaming("65", "2")), provider.received()), streaming("64", "1"));
  EXPECT_EQ((caller.send(streaming("9223372036854775807", "3")), provider.received()), streaming("64", "2"));
}

TEST_F(Streams, what_is_withheld_follows_as_items_come) {
  caller.send(streaming("1000"));
  static_cast<void>(provider.received());
  provider.send(item("0"));
  EXPECT_EQ(caller.received(), item("1"));
  EXPECT_EQ(provider.received(), credit("0", 936)) << "small items: all of it";
}

TEST_F(Streams, an_item_that_names_two_calls_is_for_neither) {
  caller.send(streaming("1000"));
  static_cast<void>(provider.received());
  provider.send(notification("rpc.item", R"({"id":"other","seq":0,"value":1,"id":0})"));
  provider.send(notification("rpc.item", R"({"id":0,"seq":0,"value":1,"id":0})"));
  EXPECT_EQ(caller.received(), "");
  provider.send(item("0"));
  EXPECT_EQ(caller.received(), item("1"));
}

TEST_F(Streams, large_items_are_asked_for_a_few_at_a_time) {
  const std::string large = '"' + std::string(200'000, 'x') + '"';
  caller.send(streaming("1000"));
  static_cast<void>(provider.received());
  for (int i = 0; i < 59; ++i) provider.send(item("0", large));
  EXPECT_EQ(provider.received(), credit("0", 5)) << "half of 4 MiB is 10 of these, of which 5 may still come";
  for (int i = 0; i < 4; ++i) provider.send(item("0", large));
  EXPECT_EQ(provider.received(), "");
  provider.send(item("0", large));
  EXPECT_EQ(provider.received(), credit("0", 5));
}

TEST_F(Streams, the_room_of_a_caller_is_for_all_of_its_streams) {
  const std::string large = '"' + std::string(200'000, 'x') + '"';
  for (const std::string_view id : {"1", "2", "3", "4", "5"}) caller.send(streaming("1000", id));
  static_cast<void>(provider.received());
  for (int i = 0; i < 64; ++i) provider.send(item("0", large));
  EXPECT_EQ(provider.received(), credit("0", 1) + "\n" + credit("0", 1)) << "of ten items two are for each";
}

TEST_F(Streams, a_caller_that_does_not_read_stops_its_own_stream_and_no_other) {
  Client other{world};
  caller.send(streaming("1000000"));
  other.send(streaming("1000000", "2"));
  static_cast<void>(provider.received());
  stall();
  for (int i = 0; i < 64; ++i) {
    provider.send(item("0"));
    provider.send(item("1"));
  }
  EXPECT_EQ(provider.received().find(R"("id":0)"), std::string::npos) << "no credit for the one that does not read";
  provider.send(result_reply("null", "1"));
  world.advance(10s);
  EXPECT_EQ(caller.sink->messages.size(), 64U) << "that it waits for its caller takes none of its time";
  drain();
  EXPECT_EQ(provider.received(), credit("0", 1024));
  world.advance(110ms);
  EXPECT_EQ(caller.sink->messages.back(), timed_out()) << "now the provider is waited for";
}

TEST_F(Streams, a_provider_that_does_not_count_is_stopped_where_its_caller_has_no_room) {
  caller.send(streaming("1000"));
  static_cast<void>(provider.received());
  for (int i = 0; i < 500; ++i) provider.send(item("0"));
  EXPECT_EQ(caller.sink->messages.size(), 500U);
  stall();
  caller.sink->overfull = true;
  static_cast<void>(caller.received());
  for (int i = 0; i < 600; ++i) provider.send(item("0"));
  ASSERT_LE(caller.sink->messages.size(), 501U);
  EXPECT_EQ(caller.sink->messages.back(), overrun());
  EXPECT_TRUE(provider.received().ends_with(cancel_notification("0")));
  EXPECT_EQ(world.router.relayed_calls().in_use(), 0U);
}

TEST_F(Streams, items_beyond_what_the_caller_takes_end_the_stream) {
  caller.send(streaming("2"));
  static_cast<void>(provider.received());
  for (int i = 0; i < 4; ++i) provider.send(item("0"));
  EXPECT_EQ(caller.received(), item("1") + "\n" + item("1") + "\n" + overrun());
  EXPECT_EQ(provider.received(), cancel_notification("0"));
}

TEST_F(Streams, credit_that_comes_while_the_call_waits_counts) {
  Client worker{world};
  worker.provide("slow", R"(,"concurrency":1)");
  caller.send(request("slow", {}, "1"));
  caller.send(R"({"jsonrpc":"2.0","method":"slow","stream":2,"id":2})");
  EXPECT_EQ(worker.received(), request("slow", {}, "0"));
  caller.send(credit("2", 3));
  worker.send(result_reply("1", "0"));
  EXPECT_EQ(worker.received(), R"({"jsonrpc":"2.0","method":"slow","stream":5,"id":1})");
}

TEST_F(Streams, a_stream_without_credit_waits_for_its_caller_as_long_as_that_can_give_any) {
  caller.send(streaming("1"));
  provider.send(item("0"));
  static_cast<void>(caller.received());
  world.advance(10s);
  EXPECT_EQ(caller.received(), "");
  caller.dispatcher->peer_ended();
  world.advance(110ms);
  EXPECT_EQ(caller.received(), timed_out());
}

TEST_F(Streams, timeout_ms_is_for_the_whole_and_counts_while_it_waits_for_its_caller) {
  caller.send(R"({"jsonrpc":"2.0","method":"count","stream":1,"timeout_ms":90,"id":1})");
  provider.send(item("0"));
  static_cast<void>(caller.received());
  world.advance(100ms);
  EXPECT_EQ(caller.received(), timed_out());
}

// ---- LSP's $/progress ----

TEST_F(Streams, a_caller_that_asks_by_a_token_gets_progress_of_a_provider_that_sends_items) {
  caller.send(request("count", R"({"n":3,"partialResultToken":"t"})"));
  EXPECT_EQ(provider.received(),
            R"({"jsonrpc":"2.0","method":"count","params":{"n":3,"partialResultToken":"0"},"id":0,"stream":64})");
  provider.send(item("0", "[7]"));
  EXPECT_EQ(caller.received(), progress(R"("t")", "[7]"));
  provider.send(result_reply("null", "0"));
  EXPECT_EQ(caller.received(), result_reply("null"));
}

TEST_F(Streams, and_of_one_that_sends_progress_itself) {
  Client other{world};
  caller.send(request("count", R"({"partialResultToken":7})"));
  other.send(request("count", R"({"partialResultToken":7})"));
  static_cast<void>(provider.received());
  provider.send(progress(R"("1")", "1"));
  EXPECT_EQ(caller.received(), "");
  EXPECT_EQ(other.received(), progress("7", "1")) << "though both use one token";
  provider.send(progress(R"("0")", "2"));
  EXPECT_EQ(caller.received(), progress("7", "2"));
  EXPECT_EQ(provider.received(), "") << "it is given no credit, of which it knows nothing";
  other.send(progress(R"("0")", "3"));
  EXPECT_EQ(caller.received(), "") << "of one that was not asked";
  provider.send(progress("7", "4"));
  EXPECT_EQ(caller.received() + other.received(), "");
}

TEST_F(Streams, progress_for_a_caller_that_takes_too_little_ends_its_call) {
  caller.send(request("count", R"({"partialResultToken":7})"));
  static_cast<void>(provider.received());
  caller.sink->waiting = world.limits.soft_output + 1;
  provider.send(progress(R"("0")", "1"));
  EXPECT_EQ(caller.received(), overrun());
  EXPECT_EQ(provider.received(), cancel_notification("0"));
}

TEST_F(Streams, what_is_to_be_gathered_is_asked_for_without_a_token) {
  caller.send("[" + request("count", R"({"a":1,"partialResultToken":7})") + "]");
  EXPECT_EQ(provider.received(), request("count", R"({"a":1})", "0"));
}

TEST_F(Streams, what_only_looks_like_a_token_stays) {
  for (const std::string params : {R"({"partialResultToken":null})", R"({"a":"partialResultToken"})",
                                   R"(["partialResultToken"])", R"({"a":{"partialResultToken":7}})"}) {
    caller.send(request("count", params));
    const std::string got = provider.received();
    EXPECT_EQ(got, request("count", params, id_of(got)));
  }
}

}  // namespace
}  // namespace wirecall
