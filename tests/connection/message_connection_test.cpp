// Sessions over the simulated backend and over a stream in memory: what a peer sees for what it sends, however that is
// cut; limits; half-close; resets; slow readers; and a second framing through the same session.
#include "connection/message_connection.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framing/json_text.hpp"
#include "framing/length_prefix.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "transport/socket.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using runtime::SimulatedBackend;
using runtime::SimulatedPeer;
using std::chrono::milliseconds;

constexpr std::string_view kParseError =
    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"Parse error\"},\"id\":null}\n";
constexpr std::string_view kTooDeep =
    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"Parse error\",\"data\":{\"limit\":\"depth\"}},"
    "\"id\":null}\n";
constexpr std::string_view kInvalidRequest =
    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"Invalid Request\"},\"id\":null}\n";

std::string request(int id) {
  return R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":)" + std::to_string(id) + "}";
}
std::string answer(int id) { return R"({"jsonrpc":"2.0","result":19,"id":)" + std::to_string(id) + "}\n"; }
std::string call(std::string_view method, int id, std::string_view params = "[]") {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::to_string(id) + "}";
}
std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// As LengthPrefix has it.
std::string framed(std::string_view message) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(message.size() >> shift);
  return text.append(message);
}

// Calls of `wait` wait here until the test answers them.
struct Waiting {
  Task<std::string> wait() {
    Completion<std::string> answer;
    calls.push_back(answer);
    try {
      co_return co_await answer;
    } catch (const Cancelled&) {
      ++cancelled;
      throw;
    }
  }
  void answer_all(const std::string& text) {
    for (Completion<std::string>& call : std::exchange(calls, {})) call.set(text);
  }

  std::vector<Completion<std::string>> calls;
  int cancelled = 0;
};

class Harness : public ConnectionOwner {
 public:
  explicit Harness(unsigned seed, Limits given = {})
      : limits(given), backend(new SimulatedBackend{seed}), loop(std::unique_ptr<runtime::Backend>{backend}) {
    registry.method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"});
    registry.method("big", [](std::size_t bytes) { return std::string(bytes, 'x'); }, {"bytes"});
    registry.method("wait", &Waiting::wait, waiting);
  }
  ~Harness() {
    session.reset();
    loop.turn(milliseconds{0});
  }

  // Over the socket stream and the simulated backend.
  std::shared_ptr<SimulatedPeer> open(std::unique_ptr<framing::Framing> framing = nullptr) {
    auto [descriptor, peer] = backend->pair();
    open(std::make_unique<transport::SocketStream>(loop, descriptor), std::move(framing));
    return peer;
  }
  void open(std::unique_ptr<transport::ByteStream> stream, std::unique_ptr<framing::Framing> framing = nullptr) {
    if (framing == nullptr) framing = std::make_unique<framing::JsonText>(text);
    session = std::make_unique<MessageConnection>(host, std::move(stream), std::move(framing), caller);
  }
  void turns(int count = 40) {
    for (int i = 0; i < count; ++i) turn();
  }
  void turn() {
    loop.turn(milliseconds{1});
    if (end) session.reset();
  }

  void connection_ended(Connection&, CloseReason why, int code) override {
    EXPECT_FALSE(end.has_value());
    end = why;
    error = code;
  }

  Limits limits;
  Registry registry;
  Waiting waiting;
  SimulatedBackend* backend;
  Loop loop;
  rpc::LoopContext loop_context{json_codec(), &loop, nullptr};
  framing::JsonTextSettings text{limits, "\n"};
  Host host{.loop = loop, .registry = registry, .limits = limits, .loop_context = loop_context, .owner = *this};
  ResponseHandler* caller = nullptr;
  std::unique_ptr<MessageConnection> session;
  std::optional<CloseReason> end;
  int error = 0;
};

// A stream without any loop under it: the second implementation of that seam. What is sent is there at once.
class MemoryStream final : public transport::ByteStream {
 public:
  explicit MemoryStream(std::string& out) : out_(&out) {}
  void start(transport::StreamUser& user) override { user_ = &user; }
  void send(Buffer bytes, bool) override {
    out_->append(bytes.view());
    taken_ = std::move(bytes);
    sending_ = true;
  }
  void pause() override { paused = true; }
  void resume() override { paused = false; }
  [[nodiscard]] std::size_t readable() const noexcept override { return 0; }
  [[nodiscard]] std::size_t unsent() const noexcept override { return 0; }
  void shut_down() override { out_->append("<end>"); }

  // The bytes stand in a heap block of their exact size and padding.
  void receive(std::string_view bytes) {
    const auto block = std::make_unique<char[]>(bytes.size() + kPaddingBytes);
    bytes.copy(block.get(), bytes.size());
    user_->received({block.get(), bytes.size()});
  }
  void finish() { user_->ended(); }
  void complete_send() {
    if (std::exchange(sending_, false)) user_->sent(std::move(taken_));
  }
  bool paused = false;

 private:
  std::string* out_;
  transport::StreamUser* user_ = nullptr;
  Buffer taken_;
  bool sending_ = false;
};

// A session of `harness` over one, which the session owns.
MemoryStream& open_in_memory(Harness& harness, std::string& out) {
  auto stream = std::make_unique<MemoryStream>(out);
  MemoryStream& opened = *stream;
  harness.open(std::move(stream));
  return opened;
}

// What a peer sees that sends `pieces`, each in one read, and then ends.
std::string seen(const std::vector<std::string_view>& pieces, Limits limits = {}) {
  Harness harness{1, limits};
  std::string out;
  MemoryStream& stream = open_in_memory(harness, out);
  const auto turn = [&] {
    harness.loop.turn(milliseconds{0});
    if (!harness.end) stream.complete_send();
  };
  for (const std::string_view piece : pieces) {
    if (harness.end) break;
    if (!piece.empty()) stream.receive(piece);
    turn();
    turn();
  }
  if (!harness.end) stream.finish();
  for (int i = 0; i < 5 && !harness.end; ++i) turn();
  EXPECT_TRUE(harness.end.has_value());
  return out;
}

// The same for the whole text in one read, for every cut in two, and byte by byte.
void expect_seen(std::string_view input, std::string_view expected, Limits limits = {}) {
  const std::string whole = seen({input}, limits);
  EXPECT_EQ(whole, expected) << input.substr(0, 300);
  const std::size_t step = 1 + input.size() / 300;
  for (std::size_t cut = 1; cut < input.size(); cut += step) {
    EXPECT_EQ(seen({input.substr(0, cut), input.substr(cut)}, limits), expected) << "cut at " << cut;
  }
  std::vector<std::string_view> bytes;
  for (std::size_t at = 0; at < input.size(); ++at) bytes.push_back(input.substr(at, 1));
  EXPECT_EQ(seen(bytes, limits), expected) << "byte by byte";
}

TEST(SessionInput, pipelined_requests_are_all_answered_with_and_without_newlines) {
  expect_seen(request(1) + "\n" + request(2) + request(3) + "\r\n \t" + request(4),
              answer(1) + answer(2) + answer(3) + answer(4));
}

TEST(SessionInput, notifications_and_responses_are_not_answered) {
  expect_seen(R"({"jsonrpc":"2.0","method":"subtract","params":[1,2]}{"jsonrpc":"2.0","result":1,"id":1})"
              R"({"jsonrpc":"1.0","error":{}})" +
                  request(1),
              answer(1));
}

TEST(SessionInput, bad_json_after_a_valid_call_costs_its_line_only) {
  expect_seen(request(1) + "\n{\"jsonrpc\":\"2.0\",\"method\" oops " + request(9) + "\n" + request(2),
              answer(1) + std::string{kParseError} + answer(2));
}

TEST(SessionInput, an_error_on_a_later_line_of_its_message_is_answered_and_closes) {
  expect_seen(request(1) + "\n{\"jsonrpc\":\"2.0\",\n\"method\" oops}\n" + request(2),
              answer(1) + std::string{kParseError} + "<end>");
}

TEST(SessionInput, sixteen_errors_in_a_row_close) {
  expect_seen(
      "[]" + repeated("x\n", 15) + request(1) + repeated("}\n", 20) + request(2),
      std::string{kInvalidRequest} + repeated(kParseError, 15) + answer(1) + repeated(kParseError, 16) + "<end>");
}

TEST(SessionInput, every_value_that_is_no_message_is_an_invalid_request) {
  expect_seen("[] 1 \"a\"\nnull {}", repeated(kInvalidRequest, 5));
}

TEST(SessionInput, lone_surrogates_and_broken_utf8_are_syntax_errors) {
  expect_seen("[\"\\udc00\"]\n[\"\\ud800\"]\n[\"\xC0\xAF\"]\n[\"\xFF\"]\n" + request(1),
              repeated(kParseError, 4) + answer(1));
}

TEST(SessionInput, nesting_too_deep_is_a_syntax_error_that_names_the_limit) {
  Limits limits;
  limits.depth = 4;
  expect_seen("[[[[1]]]]\n[[[[[1]]]]]\n" + request(1),
              std::string{"["} + std::string{kInvalidRequest.substr(0, kInvalidRequest.size() - 1)} + "]\n" +
                  std::string{kTooDeep} + answer(1),
              limits);
}

TEST(SessionInput, what_is_unfinished_at_the_end_is_a_syntax_error) {
  expect_seen(request(1) + R"({"jsonrpc":"2.0","meth)", answer(1) + std::string{kParseError});
  expect_seen(request(1) + " 12", answer(1) + std::string{kInvalidRequest});
}

TEST(SessionInput, a_message_may_be_as_large_as_the_limit_and_no_larger) {
  Limits limits;
  limits.max_message_size = 300;
  const std::string head = R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1,"x":")";
  const std::string largest = head + std::string(298 - head.size(), 'x') + "\"}";
  const std::string larger = head + std::string(299 - head.size(), 'x') + "\"}";
  ASSERT_EQ(largest.size(), 300U);
  const std::string too_large =
      R"({"jsonrpc":"2.0","error":{"code":-32006,"message":"Too large","data":{"reason":"the message is larger than )"
      R"(allowed","origin":"local","delivered":"no","limit":"max_message_size"}},"id":null})"
      "\n<end>";
  expect_seen(largest + largest, answer(1) + answer(1), limits);
  expect_seen(largest + larger + request(2), answer(1) + too_large, limits);
  expect_seen(largest + head + std::string(900, 'x'), answer(1) + too_large, limits);
  // An error behind the limit is not looked for; one before it is.
  expect_seen(largest + "[" + std::string(300, ' ') + "x", answer(1) + too_large, limits);
  expect_seen(largest + "[" + std::string(299, ' ') + "x\n" + request(2),
              answer(1) + std::string{kParseError} + answer(2), limits);
}

TEST(SessionInput, a_line_without_end_is_answered_once_and_closed) {
  Limits limits;
  limits.max_message_size = 1000;
  expect_seen("[]\nx" + std::string(2000, 'y'), std::string{kInvalidRequest} + std::string{kParseError} + "<end>",
              limits);
}

TEST(SessionInput, a_large_message_in_small_pieces_costs_linear_time) {
  // Were each piece a new look at all before it, this would take hours.
  Harness harness{1};
  std::string out;
  MemoryStream& stream = open_in_memory(harness, out);
  std::string message = R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1,"x":[)";
  while (message.size() < 8'000'000) message += R"("some text",12.5,{"a":null},)";
  message += "0]}";
  for (std::size_t at = 0; at < message.size(); at += 16) stream.receive(std::string_view{message}.substr(at, 16));
  harness.loop.turn(milliseconds{0});
  EXPECT_EQ(out, answer(1));
}

// ---- over the simulated backend ----

class MessageConnectionTest : public testing::TestWithParam<unsigned> {
 protected:
  Harness harness_{GetParam()};
};

TEST_P(MessageConnectionTest, everything_before_the_end_is_answered_and_then_it_is_closed) {
  const auto peer = harness_.open();
  std::string expected;
  for (int i = 0; i < 500; ++i) {
    peer->send(request(i) + (i % 3 == 0 ? "\n" : ""));
    expected += answer(i);
  }
  peer->finish();
  harness_.turns(200);
  EXPECT_EQ(peer->take(), expected);
  EXPECT_EQ(harness_.end, CloseReason::finished);
  EXPECT_TRUE(peer->closed);
}

TEST_P(MessageConnectionTest, calls_still_running_at_the_end_are_answered) {
  const auto peer = harness_.open();
  peer->send(call("wait", 1) + call("wait", 2) + R"({"jsonrpc":"2.0","method":"wait"})");
  peer->finish();
  harness_.turns();
  EXPECT_EQ(peer->take(), "");
  EXPECT_FALSE(harness_.end.has_value());
  ASSERT_EQ(harness_.waiting.calls.size(), 3U);
  harness_.waiting.answer_all("7");
  harness_.turns();
  EXPECT_EQ(peer->take(),
            "{\"jsonrpc\":\"2.0\",\"result\":\"7\",\"id\":1}\n{\"jsonrpc\":\"2.0\",\"result\":\"7\",\"id\":2}\n");
  EXPECT_EQ(harness_.end, CloseReason::finished);
}

TEST_P(MessageConnectionTest, a_notification_that_ends_silently_does_not_hold_the_connection) {
  const auto peer = harness_.open();
  peer->send(R"({"jsonrpc":"2.0","method":"wait"})");
  peer->finish();
  harness_.turns();
  EXPECT_FALSE(harness_.end.has_value());
  harness_.waiting.answer_all("7");
  harness_.turns();
  EXPECT_EQ(harness_.end, CloseReason::finished);
}

TEST_P(MessageConnectionTest, a_reset_abandons_the_calls) {
  const auto peer = harness_.open();
  peer->send(call("wait", 1));
  harness_.turns();
  ASSERT_EQ(harness_.waiting.calls.size(), 1U);
  peer->reset();
  harness_.turns();
  EXPECT_EQ(harness_.end, CloseReason::lost);
  EXPECT_EQ(harness_.error, ECONNRESET);
  EXPECT_EQ(harness_.waiting.cancelled, 1);
  harness_.waiting.answer_all("7");
  harness_.turns();
}

TEST_P(MessageConnectionTest, replies_of_one_turn_leave_in_one_send) {
  std::string out;
  MemoryStream& stream = open_in_memory(harness_, out);
  stream.receive(request(1) + request(2));
  stream.receive(request(3));
  EXPECT_EQ(out, "");
  harness_.loop.turn(milliseconds{0});
  EXPECT_EQ(out, answer(1) + answer(2) + answer(3));
}

TEST_P(MessageConnectionTest, a_refused_peer_that_goes_on_sending_reads_its_answer_and_is_closed_in_the_end) {
  const auto peer = harness_.open();
  peer->send("[\n}");
  for (int i = 0; i < 5000 && !peer->closed; ++i) {
    if (i % 4 == 0) peer->send("more and more");  // time passes in between
    harness_.turn();
  }
  EXPECT_EQ(peer->take(), kParseError);
  EXPECT_TRUE(peer->shut_down);
  EXPECT_TRUE(peer->closed);
  EXPECT_EQ(harness_.end, CloseReason::unreadable);
}

TEST_P(MessageConnectionTest, a_refused_peer_that_ends_too_is_closed_at_once) {
  const auto peer = harness_.open();
  peer->send("[\n}");
  peer->finish();
  harness_.turns();
  EXPECT_EQ(peer->take(), kParseError);
  EXPECT_TRUE(peer->closed);
}

TEST_P(MessageConnectionTest, a_draining_connection_refuses_new_calls_and_answers_the_old) {
  const auto peer = harness_.open();
  peer->send(call("wait", 1));
  harness_.turns();
  harness_.session->drain();
  peer->send(request(2));
  harness_.turns();
  EXPECT_NE(peer->take().find("-32009"), std::string::npos);
  EXPECT_TRUE(harness_.session->busy());
  harness_.waiting.answer_all("7");
  harness_.turns();
  EXPECT_EQ(peer->take(), "{\"jsonrpc\":\"2.0\",\"result\":\"7\",\"id\":1}\n");
  EXPECT_FALSE(harness_.session->busy());
}

TEST_P(MessageConnectionTest, a_draining_connection_tells_a_peer_that_has_said_hello) {
  const auto peer = harness_.open();
  peer->send(call("rpc.hello", 1));
  harness_.turns();
  EXPECT_NE(peer->take().find(R"("server":"wirecall")"), std::string::npos);
  harness_.session->drain();
  harness_.turns();
  EXPECT_EQ(peer->take(), "{\"jsonrpc\":\"2.0\",\"method\":\"rpc.draining\"}\n");
}

TEST_P(MessageConnectionTest, a_second_framing_goes_through_the_same_session) {
  const auto peer = harness_.open(std::make_unique<framing::LengthPrefix>(harness_.limits));
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    peer->send(framed(request(i)));
    const std::string reply = answer(i);
    expected += framed(std::string_view{reply}.substr(0, reply.size() - 1));
  }
  // What is wrong inside a frame costs that frame; there is no limit on how many in a row.
  for (int i = 0; i < 20; ++i) {
    peer->send(framed("{\"a\":\n oops"));
    expected += framed(kParseError.substr(0, kParseError.size() - 1));
  }
  peer->send(framed(request(7)));
  expected += framed(std::string_view{answer(7)}.substr(0, answer(7).size() - 1));
  peer->finish();
  harness_.turns(300);
  EXPECT_EQ(peer->take(), expected);
  EXPECT_EQ(harness_.end, CloseReason::finished);
}

TEST_P(MessageConnectionTest, a_length_over_the_limit_is_refused_before_it_comes) {
  harness_.limits.max_message_size = 1000;
  const auto peer = harness_.open(std::make_unique<framing::LengthPrefix>(harness_.limits));
  peer->send(std::string{"\x7F\x00\x00\x00", 4});
  peer->finish();
  harness_.turns();
  EXPECT_NE(peer->take().find("-32006"), std::string::npos);
  EXPECT_TRUE(peer->closed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, MessageConnectionTest, testing::Range(1U, 13U));

// ---- slow and greedy peers ----

Limits small_marks() {
  Limits limits;
  limits.soft_output = 10'000;
  limits.hard_output = 100'000;
  return limits;
}

class SlowPeerTest : public testing::TestWithParam<unsigned> {
 protected:
  Harness harness_{GetParam(), small_marks()};
};

TEST_P(SlowPeerTest, is_not_read_until_it_reads) {
  const auto peer = harness_.open();
  peer->window = 100;
  for (int i = 0; i < 1000; ++i) peer->send(call("big", i, "[1000]"));
  harness_.turns(200);
  // One message may carry the output over the mark; no more are looked at.
  EXPECT_LE(harness_.session->output_bytes(), 12'000U);
  std::size_t got = 0;
  for (int i = 0; i < 40'000 && got < 1'000'000; ++i) {
    got += peer->take().size();
    peer->window = 5000;
    harness_.turn();
    if (harness_.end) break;
    ASSERT_LE(harness_.session->output_bytes(), 12'000U);
  }
  EXPECT_GE(got, 1'000'000U);
  EXPECT_FALSE(harness_.end.has_value());
}

TEST_P(SlowPeerTest, is_answered_in_full_when_it_has_ended_what_it_sends) {
  const auto peer = harness_.open();
  peer->window = 100;
  for (int i = 0; i < 200; ++i) peer->send(call("big", i, "[1000]"));
  peer->finish();
  std::string got;
  for (int i = 0; i < 10'000 && !harness_.end; ++i) {
    got += peer->take();
    peer->window = 3000;
    harness_.turn();
  }
  got += peer->take();
  EXPECT_EQ(std::ranges::count(got, '\n'), 200);
  EXPECT_EQ(harness_.end, CloseReason::finished);
}

TEST_P(SlowPeerTest, is_cut_above_the_hard_mark) {
  const auto peer = harness_.open();
  peer->window = 0;
  for (int i = 0; i < 8; ++i) peer->send(call("wait", i));
  harness_.turns();
  ASSERT_EQ(harness_.waiting.calls.size(), 8U);
  for (Completion<std::string>& call : std::exchange(harness_.waiting.calls, {})) {
    call.set(std::string(30'000, 'x'));
    harness_.turn();
  }
  EXPECT_EQ(harness_.end, CloseReason::slow);
  EXPECT_EQ(harness_.loop_context.stats.slow_peers_cut, 1U);
  EXPECT_TRUE(peer->closed);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SlowPeerTest, testing::Range(1U, 9U));

TEST(GreedyPeer, has_so_many_messages_a_turn_and_the_rest_in_the_next) {
  Harness harness{1};
  std::string out;
  MemoryStream& stream = open_in_memory(harness, out);
  std::string input;
  std::string expected;
  for (int i = 0; i < 10'000; ++i) {
    input += request(i);
    expected += answer(i);
  }
  stream.receive(input);
  harness.loop.turn(milliseconds{1});
  EXPECT_TRUE(stream.paused);
  const std::size_t first = out.size();
  EXPECT_GT(first, 0U);
  EXPECT_LT(first, expected.size() / 2);
  for (int i = 0; i < 20; ++i) {
    stream.complete_send();
    harness.loop.turn(milliseconds{1});
  }
  EXPECT_EQ(out, expected);
  EXPECT_FALSE(stream.paused);
}

TEST(GreedyPeer, has_its_share_of_a_turn_however_often_it_is_received_from) {
  Harness harness{1};
  std::string out;
  MemoryStream& stream = open_in_memory(harness, out);
  std::string expected;
  for (int i = 0; i < 10'000; ++i) {
    stream.receive(request(i));
    expected += answer(i);
  }
  harness.loop.turn(milliseconds{1});
  EXPECT_GT(out.size(), 0U);
  EXPECT_LT(out.size(), expected.size() / 2);
  for (int i = 0; i < 20; ++i) {
    stream.complete_send();
    harness.loop.turn(milliseconds{1});
  }
  EXPECT_EQ(out, expected);
}

TEST(GreedyPeer, whose_calls_take_long_has_fewer_of_them_a_turn) {
  Harness harness{1};
  int served = 0;
  harness.registry.method("slow", [&] {
    harness.backend->take_time(std::chrono::microseconds{100});
    ++served;
  });
  std::string out;
  MemoryStream& stream = open_in_memory(harness, out);
  stream.receive(repeated(R"({"jsonrpc":"2.0","method":"slow"})", 1000));
  for (int turns = 0; served < 1000; ++turns) {
    ASSERT_LT(turns, 100);
    const int before = served;
    harness.loop.turn(milliseconds{0});
    EXPECT_LE(served - before, 2 * 64);  // 64 before the clock is looked at for the first time
  }
}

TEST(MessageConnection, counts_the_time_that_a_call_waits_for_one_that_came_together_with_it) {
  Harness harness{1};
  harness.registry.method("slow", [&] { harness.backend->take_time(milliseconds{10}); });
  std::string out;
  MemoryStream& stream = open_in_memory(harness, out);
  const auto timed = [](std::string_view method, std::string_view params, int id, int timeout_ms) {
    std::string text = call(method, id, params);
    return text.insert(text.size() - 1, R"(,"timeout_ms":)" + std::to_string(timeout_ms));
  };
  stream.receive(timed("slow", "[]", 1, 100) + timed("subtract", "[42,23]", 2, 10) +
                 timed("subtract", "[42,23]", 3, 11) + request(4));
  harness.turns(2);
  stream.complete_send();
  EXPECT_TRUE(out.starts_with("{\"jsonrpc\":\"2.0\",\"result\":null,\"id\":1}\n")) << out;
  EXPECT_NE(
      out.find(
          R"("data":{"reason":"the time was up before the call began","origin":"local","delivered":"no"}},"id":2})"),
      std::string::npos)
      << out;
  EXPECT_NE(out.find(answer(3) + answer(4)), std::string::npos) << out;
}

TEST(SessionDrain, is_busy_until_nothing_more_has_arrived_for_once) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    Harness harness{seed};
    const auto peer = harness.open();
    harness.turns();
    EXPECT_FALSE(harness.session->busy());
    peer->send(request(1));
    harness.session->drain();
    peer->send(request(2) + repeated(" ", 5000) + request(3));
    int turns = 0;
    while (harness.session->busy() && ++turns < 1000) harness.turn();
    harness.session->finish();
    harness.turns();
    const std::string answers = peer->take();
    for (const std::string id : {"1", "2", "3"}) {
      EXPECT_NE(answers.find(R"("delivered":"no"}},"id":)" + id + "}\n"), std::string::npos) << answers;
    }
  }
}

// ---- our own calls ----

class RecordingCaller final : public ResponseHandler {
 public:
  bool response(const Received& message) override {
    ids.emplace_back(message.id());
    return message.fault == Fault::none;
  }
  [[nodiscard]] bool waiting() const override { return is_waiting; }

  std::vector<std::string> ids;
  bool is_waiting = true;
};

TEST(SessionCaller, is_given_responses_also_those_within_a_batch) {
  Harness harness{2};
  RecordingCaller caller;
  harness.caller = &caller;
  const auto peer = harness.open();
  peer->send(R"({"jsonrpc":"2.0","result":1,"id":1}[{"jsonrpc":"2.0","result":1,"id":2},)" + request(5) +
             R"(,{"jsonrpc":"2.0","error":{"code":1,"message":""},"id":"3"}])");
  harness.turns();
  EXPECT_EQ(caller.ids, (std::vector<std::string>{"1", "2", "\"3\""}));
  EXPECT_EQ(peer->take(), "[{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":5}]\n");
  EXPECT_EQ(harness.loop_context.stats.responses_dropped, 0U);
}

TEST(SessionCaller, ends_the_session_that_it_can_make_no_sense_of) {
  Harness harness{2};
  RecordingCaller caller;
  harness.caller = &caller;
  const auto peer = harness.open();
  peer->send(R"({"jsonrpc":"2.0","result":1,"error":2,"id":1})");
  harness.turns();
  EXPECT_EQ(harness.end, CloseReason::unreadable);
}

TEST(SessionCaller, that_ends_the_session_within_a_batch_ends_it_once_and_nothing_more_is_served) {
  Harness harness{2};
  RecordingCaller caller;
  harness.caller = &caller;
  int served = 0;
  harness.registry.method("serve", [&served] { ++served; });
  const auto peer = harness.open();
  const std::string malformed = R"({"jsonrpc":"2.0","result":1,"error":2,"id":1})";
  peer->send("[" + malformed + "," + call("serve", 5) + "," + malformed + "]");
  harness.turns();
  EXPECT_EQ(harness.end, CloseReason::unreadable);
  EXPECT_EQ(caller.ids.size(), 1U);
  EXPECT_EQ(served, 0);
}

TEST(SessionCaller, does_not_wait_for_a_response_in_a_stream_that_cannot_be_read) {
  Harness harness{2};
  RecordingCaller caller;
  harness.caller = &caller;
  const auto peer = harness.open();
  peer->send("[]\n}");
  harness.turns();
  EXPECT_EQ(harness.end, CloseReason::unreadable);
}

TEST(SessionCaller, that_waits_for_nothing_lets_a_syntax_error_pass) {
  Harness harness{2};
  RecordingCaller caller;
  caller.is_waiting = false;
  harness.caller = &caller;
  const auto peer = harness.open();
  peer->send("[]\n}\n" + request(1));
  harness.turns();
  EXPECT_FALSE(harness.end.has_value());
  EXPECT_EQ(peer->take(), std::string{kInvalidRequest} + std::string{kParseError} + answer(1));
}

TEST(MessageConnection, that_nothing_is_happening_on_is_small) {
  // With its stream and framing; the allocator's own bytes are not counted.
  EXPECT_LE(sizeof(MessageConnection) + sizeof(transport::SocketStream) + sizeof(framing::JsonText), 512U);
}

}  // namespace
}  // namespace wirecall::net
