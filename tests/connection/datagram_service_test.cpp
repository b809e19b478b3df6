// Datagrams over a socket in memory, through a real registry and dispatcher: one message each, one reply at most, and
// never a reply that is worth a forged source.
#include "connection/datagram_service.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "rpc/access.hpp"
#include "server/loop_takeover.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "tests/transport/memory_datagrams.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using std::chrono::milliseconds;
using Replies = std::vector<std::string>;

constexpr std::string_view kParseError =
    R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})";

std::string call(std::string_view method, std::string_view params, std::string_view id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::string{id} + "}";
}
std::string result(std::string_view value, std::string_view id) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":)" + std::string{id} + "}";
}
std::string too_large(std::string_view id) {
  return R"({"jsonrpc":"2.0","error":{"code":-32006,"message":"Too large"},"id":)" + std::string{id} + "}";
}

class Datagrams : public testing::Test, protected ConnectionOwner {
 protected:
  Datagrams() : Datagrams(std::make_unique<runtime::SimulatedBackend>(7)) {}
  explicit Datagrams(std::unique_ptr<runtime::SimulatedBackend> backend)
      : simulated(backend.get()), loop(std::move(backend)) {
    registry.method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"});
    registry.method("big", [](std::size_t bytes) { return std::string(bytes, 'x'); }, {"bytes"});
    registry.method("note", [this](std::string text) { notes.push_back(std::move(text)); }, {"text"});
    registry.method("wait", [this]() -> Task<std::string> {
      Completion<std::string> answer;
      waiting.push_back(answer);
      co_return co_await answer;
    });
  }
  ~Datagrams() override {
    service.reset();
    loop.turn(milliseconds{0});
  }

  void open(DatagramService::Settings settings = {}, std::size_t bytes_max = 65'507) {
    service = std::make_unique<DatagramService>(host, std::make_unique<transport::MemoryDatagramSocket>(net, bytes_max),
                                                settings);
  }
  void send(std::string_view bytes, const std::string& from = "a") { transport::send_datagram(loop, net, from, bytes); }
  // What has been sent to `name` since this was last asked.
  Replies replies(const std::string& name = "a") {
    for (int i = 0; i < 4; ++i) loop.turn(milliseconds{0});
    return std::exchange(net->sent[name], {});
  }
  Replies ask(std::string_view bytes) {
    send(bytes);
    return replies();
  }
  void answer_all(const std::string& text) {
    for (Completion<std::string>& one : std::exchange(waiting, {})) one.set(text);
  }

  [[nodiscard]] const Stats& stats() const { return loop_context.stats; }

  void connection_ended(Connection& connection, CloseReason reason, int) override {
    EXPECT_EQ(&connection, service.get());
    EXPECT_EQ(reason, CloseReason::finished);
    ended = true;
  }

  Limits limits;
  Registry registry;
  std::vector<std::string> notes;
  std::vector<Completion<std::string>> waiting;
  std::shared_ptr<transport::MemoryDatagrams> net = std::make_shared<transport::MemoryDatagrams>();
  runtime::SimulatedBackend* simulated;
  Loop loop;
  rpc::LoopContext loop_context{json_codec(), &loop, nullptr};
  Host host{.loop = loop, .registry = registry, .limits = limits, .loop_context = loop_context, .owner = *this};
  std::unique_ptr<DatagramService> service;
  bool ended = false;
};

TEST_F(Datagrams, each_is_a_message_whose_reply_goes_where_it_came_from) {
  open();
  send(call("subtract", "[42,23]", "1"), "a");
  send(call("subtract", "[23,42]", R"("two")") + "\n", "b");
  send("\xEF\xBB\xBF" + call("subtract", "[1,1]", "3"), "b");
  EXPECT_EQ(replies("a"), Replies{result("19", "1")});
  EXPECT_EQ(replies("b"), (Replies{result("-19", R"("two")"), result("0", "3")}));
  EXPECT_EQ(stats().datagrams_in, 3U);
  EXPECT_FALSE(service->busy());
}

TEST_F(Datagrams, a_batch_is_answered_by_one) {
  open();
  EXPECT_EQ(ask("[" + call("subtract", "[3,1]", "1") + R"(,{"jsonrpc":"2.0","method":"note","params":["x"]},)" +
                call("subtract", "[5,1]", "2") + "]"),
            Replies{"[" + result("2", "1") + "," + result("4", "2") + "]"});
  EXPECT_EQ(notes, std::vector<std::string>{"x"});
}

TEST_F(Datagrams, a_notification_or_a_response_is_not_answered) {
  open();
  EXPECT_EQ(ask(R"({"jsonrpc":"2.0","method":"note","params":["x"]})"), Replies{});
  EXPECT_EQ(notes, std::vector<std::string>{"x"});
  EXPECT_EQ(ask(result("1", "1")), Replies{});
  EXPECT_EQ(ask(std::string{kParseError}), Replies{}) << "else two servers would answer each other for ever";
  EXPECT_EQ(ask("[" + result("1", "1") + "]"), Replies{});
}

TEST_F(Datagrams, msgpack_is_answered_in_msgpack) {
  open();
  // {"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}
  EXPECT_EQ(ask("\x84\xA7jsonrpc\xA3\x32.0\xA6method\xA8subtract\xA6params\x92\x2A\x17\xA2id\x01"),
            Replies{"\x83\xA7jsonrpc\xA3\x32.0\xA6result\x13\xA2id\x01"});
}

TEST_F(Datagrams, what_is_no_message_is_refused_unless_that_is_too_much) {
  open();
  EXPECT_EQ(ask("{\"jsonrpc\":\"2.0\",\"method\":"), Replies{std::string{kParseError}}) << "78 bytes for 27";
  EXPECT_EQ(ask(call("subtract", "[1,1]", "1") + call("subtract", "[1,1]", "2")), Replies{std::string{kParseError}});
  EXPECT_EQ(ask(std::string(40, '\x92')), Replies{"\x83\xA7jsonrpc\xA3\x32.0\xA5"
                                                  "error\x82\xA4"
                                                  "code\xD1\x80\x44\xA7"
                                                  "message\xABParse error\xA2id\xC0"});
  EXPECT_EQ(stats().datagrams_too_large, 0U);
  for (const std::string_view nonsense : {"", "{", "\x93", "nonsense"}) EXPECT_EQ(ask(nonsense), Replies{});
  EXPECT_EQ(stats().datagrams_too_large, 4U);
}

TEST_F(Datagrams, no_reply_is_larger_than_three_times_its_request) {
  open();
  const std::string request = call("big", "[126]", "7");
  const std::string largest = result("\"" + std::string(126, 'x') + "\"", "7");
  ASSERT_EQ(largest.size(), 3 * request.size());
  EXPECT_EQ(ask(request), Replies{largest});
  EXPECT_EQ(ask(call("big", "[127]", "7")), Replies{too_large("7")});
  EXPECT_EQ(ask("[" + call("big", "[900]", "1") + "," + call("subtract", "[5,1]", "2") + "]"),
            Replies{"[" + too_large("1") + "," + too_large("2") + "]"});
  EXPECT_EQ(stats().datagrams_too_large, 0U);
}

TEST_F(Datagrams, a_reply_has_a_bound_of_its_own) {
  limits.datagram_reply_bytes = 100;
  open({.reply_factor_max = 1000});
  EXPECT_EQ(ask(call("big", "[64]", "1")).front().size(), 100U);
  EXPECT_EQ(ask(call("big", "[65]", "1")), Replies{too_large("1")});
  EXPECT_EQ(ask(call("big", "[65]", "\"" + std::string(60, 'i') + "\"")), Replies{}) << "with its id even that is";
  EXPECT_EQ(stats().datagrams_too_large, 1U);
}

TEST_F(Datagrams, a_batch_whose_reply_is_too_large_is_refused_for_each_id_or_for_none) {
  constexpr std::string_view kHeadOf20{"\xDC\x00\x14", 3};
  std::string batch{kHeadOf20};
  for (char id = 1; id <= 20; ++id) {
    batch +=
        "\x84\xA7jsonrpc\xA3\x32.0\xA6method\xA3"
        "big\xA6params\x91\xCC\xC8\xA2id";
    batch += id;
  }
  open({.reply_factor_max = 1000});
  const Replies all = ask(batch);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(all.front().starts_with(kHeadOf20));
  EXPECT_TRUE(all.front().ends_with("\xA2id\x14"));
  service.reset();
  limits.datagram_reply_bytes = 1000;
  open({.reply_factor_max = 1000});
  EXPECT_EQ(ask(batch), Replies{});
  EXPECT_EQ(stats().datagrams_too_large, 1U);
}

TEST_F(Datagrams, one_that_is_larger_than_a_message_may_be_is_refused) {
  limits.max_message_size = 200;
  open();
  EXPECT_EQ(ask(call("big", "[1]", "1") + std::string(148, ' ')), Replies{result(R"("x")", "1")}) << "200 bytes";
  const Replies refused = ask(call("big", "[1]", "1") + std::string(149, ' '));
  ASSERT_EQ(refused.size(), 1U);
  EXPECT_NE(refused[0].find(R"("code":-32006)"), std::string::npos) << refused[0];
  EXPECT_EQ(ask(call("big", "[1]", "2")), Replies{result(R"("x")", "2")}) << "and nothing else is";
}

TEST_F(Datagrams, none_is_larger_than_the_socket_can_send) {
  limits.datagram_reply_bytes = 65'507;
  open({.reply_factor_max = 1000}, 300);
  EXPECT_EQ(ask(call("big", "[200]", "1")).front().size(), 236U);
  EXPECT_EQ(ask(call("big", "[300]", "1")).front().find(R"("code":-32006)") != std::string::npos, true);
}

TEST_F(Datagrams, what_the_system_has_no_room_for_is_lost) {
  open();
  net->full = true;
  EXPECT_EQ(ask(call("subtract", "[42,23]", "1")), Replies{});
  net->full = false;
  EXPECT_EQ(ask(call("subtract", "[42,23]", "2")), Replies{result("19", "2")});
}

TEST_F(Datagrams, an_answer_may_come_late_and_in_any_order) {
  open();
  send(call("wait", "[]", "1"), "a");
  send(call("wait", "[]", "1"), "b");
  send(call("subtract", "[42,23]", "2"), "a");
  EXPECT_EQ(replies("a"), Replies{result("19", "2")});
  ASSERT_EQ(waiting.size(), 2U);
  EXPECT_TRUE(service->busy());
  waiting[1].set("second");
  waiting[0].set("first");
  EXPECT_EQ(replies("a"), Replies{result(R"("first")", "1")});
  EXPECT_EQ(replies("b"), Replies{result(R"("second")", "1")});
  EXPECT_FALSE(service->busy());
}

std::string too_many(std::string_view id, std::string_view limit = "in_flight",
                     std::string_view reason = "too many calls by UDP are in flight") {
  return R"({"jsonrpc":"2.0","error":{"code":-32005,"message":"Limit exceeded","data":{"reason":")" +
         std::string{reason} + R"(","origin":"local","delivered":"no","limit":")" + std::string{limit} +
         R"("}},"id":)" + std::string{id} + "}";
}

TEST_F(Datagrams, calls_beyond_the_bound_are_refused_one_by_one) {
  limits.datagram_calls = 7;
  open({.reply_factor_max = 10});
  send(call("wait", "[]", "1"), "a");
  send("[" + call("wait", "[]", "2") + "," + call("wait", "[]", "3") + "," + call("wait", "[]", "4") + "," +
           call("wait", "[]", "5") + "]",
       "b");                                                                        // half of the 6 that a leaves
  for (int i = 6; i != 106; ++i) send(call("wait", "[]", std::to_string(i)), "c");  // of 3, more than half
  const Replies to_c = replies("c");
  ASSERT_EQ(to_c.size(), 98U);
  EXPECT_EQ(to_c.front(), too_many("8"));
  EXPECT_EQ(to_c.back(), too_many("105"));
  EXPECT_EQ(waiting.size(), 6U);
  send(call("wait", "[]", "1"), "d");
  send(call("wait", "[]", "1"), "e");
  EXPECT_EQ(replies("d"), Replies{});
  EXPECT_EQ(replies("e"), Replies{too_many("1")}) << "there is none left";
  EXPECT_EQ(ask(call("wait", "[]", "2")), Replies{too_many("2")});
  answer_all("x");
  EXPECT_EQ(replies("a"), Replies{result(R"("x")", "1")});
  EXPECT_EQ(replies("b"), Replies{"[" + result(R"("x")", "2") + "," + result(R"("x")", "3") + "," +
                                  result(R"("x")", "4") + "," + too_many("5") + "]"});
  EXPECT_EQ(ask(call("wait", "[]", "6")), Replies{}) << "there is a place again";
  EXPECT_EQ(waiting.size(), 1U);
}

TEST_F(Datagrams, of_one_source_leave_others_their_place) {
  open({.reply_factor_max = 10});  // with as many calls as a server has unless it is told otherwise
  for (int i = 0; i != 5000; ++i) send(call("wait", "[]", std::to_string(i)), "a");
  const Replies refused = replies("a");
  ASSERT_EQ(refused.size(), 5000U - 2048U);
  EXPECT_EQ(refused.front(), too_many("2048"));
  for (int i = 0; i != 1100; ++i) send(call("wait", "[]", std::to_string(i)), "b");
  EXPECT_EQ(replies("b").size(), 1100U - 1024U);
  send(call("wait", "[]", "1"), "c");
  send(call("subtract", "[42,23]", "2"), "c");
  EXPECT_EQ(replies("c"), Replies{result("19", "2")});
  ASSERT_EQ(waiting.size(), 2048U + 1024U + 1U);

  // Who has fewer in progress may begin more, until all that it has are half of what others leave: of a's 3,071 that
  // is 1,536.
  const auto end_of_a = [&](std::size_t count) {
    for (std::size_t i = 0; i != count; ++i) waiting[i].set("x");
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(count));
    EXPECT_EQ(replies("a").size(), count);
  };
  end_of_a(512);
  EXPECT_EQ(ask(call("wait", "[]", "5000")), Replies{too_many("5000")});
  end_of_a(1);
  EXPECT_EQ(ask(call("wait", "[]", "5001")), Replies{});
  EXPECT_EQ(ask(call("wait", "[]", "5002")), Replies{too_many("5002")});
  answer_all("x");
}

TEST_F(Datagrams, of_one_source_together_have_the_calls_of_a_principal) {
  limits.principal_calls = 2;
  open({.reply_factor_max = 10});
  for (const char* const id : {"1", "2", "3"}) send(call("wait", "[]", id), "a");
  constexpr std::string_view kReason = "too many calls of this principal, address or user are in flight";
  EXPECT_EQ(replies("a"), Replies{too_many("3", "principal_calls", kReason)});
  send(call("wait", "[]", "1"), "b");
  EXPECT_EQ(replies("b"), Replies{});
  EXPECT_EQ(waiting.size(), 3U);
  answer_all("x");
  EXPECT_EQ(replies("a").size(), 2U);
  EXPECT_EQ(ask(call("wait", "[]", "4")), Replies{});
}

TEST_F(Datagrams, of_one_source_use_up_its_rate_alone_also_where_others_have_to_say_who_they_are) {
  limits.principal_rate = 1;
  registry.method("look", [] { return 1; }).safe();
  loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector<Principal>{
      {.name = "ada", .tokens = {"secret"}, .call = {">"}, .provide = {}, .publish = {}, .subscribe = {}}});
  open({.reply_factor_max = 10});
  for (const char* const id : {"1", "2", "3"}) send(call("look", "[]", id), "a");
  send(call("look", "[]", "1"), "b");
  const Replies to_a = replies("a");
  ASSERT_EQ(to_a.size(), 3U);
  EXPECT_EQ(to_a[0], result("1", "1"));
  EXPECT_NE(to_a[2].find("principal_rate"), std::string::npos) << to_a[2];
  EXPECT_EQ(replies("b"), Replies{result("1", "1")});
}

// A service that answers whatever comes to it would be answered for ever.
TEST_F(Datagrams, that_are_no_requests_are_refused_so_many_times_a_second) {
  open({.reply_factor_max = 10});
  const std::vector<std::string> nonsense{"{\"jsonrpc\"", "!\"#$%&'()*+,-./0123456789",
                                          R"({"status":"unknown command"})", R"([1,2,"neither is a request"])",
                                          std::string(40, '\x92')};
  const auto refused_of = [&](std::size_t count) {
    for (std::size_t i = 0; i != count; ++i) send(nonsense[i % nonsense.size()], i % 2 == 0 ? "a" : "b");
    return replies("a").size() + replies("b").size();
  };
  EXPECT_EQ(refused_of(100), 16U);
  EXPECT_EQ(stats().datagrams_dropped, 84U);
  EXPECT_EQ(ask(call("subtract", "[42,23]", "1")), Replies{result("19", "1")});
  EXPECT_EQ(ask("[" + call("subtract", "[42,23]", "1") + ",1]").size(), 1U) << "there is a request among them";
  EXPECT_EQ(ask(call("nothing", "[]", "1")).size(), 1U);
  EXPECT_EQ(ask(call("subtract", "[42,23]", "null")), Replies{result("19", "null")});
  simulated->take_time(milliseconds{500});
  EXPECT_EQ(refused_of(100), 8U);
  simulated->take_time(milliseconds{60'000});
  EXPECT_EQ(refused_of(100), 16U);
}

TEST_F(Datagrams, nothing_that_outlasts_a_reply_is_for_such_a_peer) {
  open({.reply_factor_max = 10});
  for (const std::string_view method : {"rpc.hello", "rpc.subscribe"}) {
    const Replies refused = ask(call(method, R"({"topic":"news"})", "1"));
    ASSERT_EQ(refused.size(), 1U);
    EXPECT_NE(refused[0].find("needs_connection"), std::string::npos) << refused[0];
  }
}

TEST_F(Datagrams, are_served_while_a_handler_of_one_does_not_return) {
  std::atomic<bool> released = false;
  registry.method("block", [&](std::string_view text) {
    while (!released) std::this_thread::yield();
    return std::string{text};
  });
  registry.method("release", [&] { released = true; });
  open();
  LoopTakeover takeover{host, {.after = milliseconds{1}, .logged_after = milliseconds{0}}};
  send("[" + call("block", R"(["what it reads stays"])", "1") + "," + call("subtract", "[5,1]", "2") + "]", "a");
  send(call("subtract", "[42,23]", "1"), "b");
  send(call("release", "[]", "2"), "b");
  takeover.run([&] {
    while (net->sent["a"].empty()) takeover.turn(milliseconds{0});
  });
  EXPECT_EQ(replies("b"), (Replies{result("19", "1"), result("null", "2")}));
  EXPECT_EQ(replies("a"), Replies{"[" + result(R"("what it reads stays")", "1") + "," + result("4", "2") + "]"});
  EXPECT_EQ(takeover.count(), 1U);
  EXPECT_FALSE(service->handler_off_loop());
  EXPECT_FALSE(service->busy());
}

TEST_F(Datagrams, one_that_drains_refuses_new_calls_and_ends_when_told_to) {
  open({.reply_factor_max = 10});
  send(call("wait", "[]", "1"));
  EXPECT_EQ(replies(), Replies{});
  service->drain();
  for (const std::string_view id : {"2", "3"}) {
    const Replies refused = ask(call("subtract", "[42,23]", id));
    ASSERT_EQ(refused.size(), 1U);
    EXPECT_NE(refused[0].find("-32009"), std::string::npos);
  }
  EXPECT_TRUE(service->busy());
  service->stop_calls();
  const Replies stopped = replies();
  ASSERT_EQ(stopped.size(), 1U);
  EXPECT_NE(stopped[0].find(R"("the server has shut down before the call was done")"), std::string::npos);
  service->finish();
  EXPECT_TRUE(ended);
  EXPECT_TRUE(net->closed);
  answer_all("late");
  EXPECT_EQ(ask(call("subtract", "[42,23]", "4")), Replies{});
}

}  // namespace
}  // namespace wirecall::net
