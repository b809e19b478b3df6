// What the connections of one principal hold together (limits.principal_bytes): unfinished messages, batches that are
// being served, and answers that nobody reads. The one that holds most gives way, and never a newcomer that holds less.
#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rpc/rendering.hpp"
#include "tests/server/several.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

constexpr std::size_t kBytesMax = 1'000'000;
constexpr int kConnectionsMax = 20;

std::string unfinished(std::size_t bytes) {
  return R"({"jsonrpc":"2.0","method":"size","params":[")" + std::string(bytes, 'x');
}
std::string numbered(std::string_view method, std::size_t number, int id = 1) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":[)" + std::to_string(number) +
         R"(],"id":)" + std::to_string(id) + "}";
}
std::string http_post(const std::string& body) {
  return "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

constexpr std::string_view kUpgrade =
    "GET /rpc HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
/// A frame of a text message of WebSocket, from a client; its mask is zero.
std::string text_frame(std::string_view text, bool last) {
  std::string frame{last ? '\x81' : '\x01'};
  const int bytes = text.size() < 126 ? 0 : text.size() < 65'536 ? 2 : 8;
  frame.push_back(static_cast<char>(0x80 | (bytes == 0 ? text.size() : bytes == 2 ? 126 : 127)));
  for (int shift = 8 * bytes - 8; shift >= 0; shift -= 8) frame.push_back(static_cast<char>(text.size() >> shift));
  return frame.append(4, '\0').append(text);
}

class PrincipalBytes : public testing::Test, public Several {
 protected:
  PrincipalBytes() : Several(Limits{.principal_bytes = kBytesMax}) {
    registry.method("size", [](const std::string& text) { return text.size(); });
    registry.method("fill", [](std::size_t bytes) { return std::string(bytes, 'y'); });
    registry.method("wait", [this](int) -> Task<int> {
      Completion<int> answer;
      waiting.push_back(answer);
      co_return co_await answer;
    });
    registry.method("text", [this](int) -> Task<std::string> {
      Completion<std::string> answer;
      texts.push_back(answer);
      co_return co_await answer;
    });
  }
  /// Streams that are gathered, since nobody has asked for their items one by one, and that never end.
  void add_gathered() {
    registry.method("gather", [this](std::size_t items) -> Stream<std::string> {
      for (std::size_t i = 0; i != items; ++i) co_yield std::string(1000, 'z');
      Completion<> more;
      gathered.push_back(more);
      co_await more;
    });
  }
  Line& connect_and_send(const std::string& bytes, std::size_t window = ~std::size_t{0}) {
    Line& line = connect();
    line.peer->window = window;
    line.send(bytes);
    turns();
    return line;
  }
  std::vector<Completion<int>> waiting;
  std::vector<Completion<std::string>> texts;
  std::vector<Completion<>> gathered;
};

TEST_F(PrincipalBytes, are_those_of_results_that_are_gathered) {
  add_gathered();
  const Line& small = connect_and_send(numbered("gather", 300) + "\n");
  const Line& heavy = connect_and_send(numbered("gather", 500) + "\n");
  EXPECT_EQ(ended(), 0);
  EXPECT_EQ(gathered.size(), 2U);
  const Line& newcomer = connect_and_send(numbered("gather", 400) + "\n");
  EXPECT_EQ(heavy.end, CloseReason::heaviest);
  EXPECT_FALSE(small.end || newcomer.end);
}

TEST_F(PrincipalBytes, are_those_of_unfinished_messages_and_the_connection_with_most_gives_way) {
  const Line& small = connect_and_send(unfinished(200'000));
  const Line& heavy = connect_and_send(unfinished(400'000));
  EXPECT_EQ(ended(), 0);
  Line& newcomer = connect_and_send(unfinished(300'000));
  EXPECT_EQ(heavy.end, CloseReason::heaviest);
  EXPECT_FALSE(small.end || newcomer.end);
  newcomer.send("\"],\"id\":1}");
  turns();
  EXPECT_EQ(newcomer.hear(), "{\"jsonrpc\":\"2.0\",\"result\":300000,\"id\":1}\n");
  EXPECT_EQ(log.size(), 1U);
  EXPECT_NE(log[0].find("limits.principal_bytes"), std::string::npos) << log[0];
}

TEST_F(PrincipalBytes, are_those_of_unfinished_messages_of_websocket) {
  const auto connect_with = [&](std::size_t bytes) -> const Line& {
    Line& line = connect_and_send(std::string{kUpgrade});
    EXPECT_TRUE(line.hear().starts_with("HTTP/1.1 101 "));
    line.send(text_frame(unfinished(bytes), false));
    turns();
    return line;
  };
  const Line& small = connect_with(200'000);
  const Line& heavy = connect_with(500'000);
  EXPECT_EQ(ended(), 0);
  const Line& newcomer = connect_with(400'000);
  EXPECT_EQ(heavy.end, CloseReason::heaviest);
  EXPECT_FALSE(small.end || newcomer.end);
  EXPECT_EQ(log.size(), 1U);
}

TEST_F(PrincipalBytes, are_those_of_answers_that_are_not_read_by_websocket) {
  const auto connect_with = [&](std::size_t bytes) -> const Line& {
    Line& line = connect_and_send(std::string{kUpgrade}, 1000);
    EXPECT_TRUE(line.hear().starts_with("HTTP/1.1 101 "));
    line.send(text_frame(numbered("fill", bytes), true));
    turns();
    return line;
  };
  const Line& small = connect_with(200'000);
  const Line& heavy = connect_with(400'000);
  const Line& newcomer = connect_with(300'000);
  EXPECT_EQ(ended(), 0) << "the system has taken some";
  const Line& last = connect_with(300'000);
  EXPECT_EQ(heavy.end, CloseReason::heaviest);
  EXPECT_FALSE(small.end || newcomer.end || last.end);
}

TEST_F(PrincipalBytes, are_counted_no_more_once_the_message_is_whole) {
  for (int i = 0; i < 20; ++i) {
    Line& line = connect_and_send(unfinished(300'000));
    line.send("\"],\"id\":1}");
    turns();
    EXPECT_EQ(line.hear(), "{\"jsonrpc\":\"2.0\",\"result\":300000,\"id\":1}\n");
  }
  EXPECT_EQ(ended(), 0);
}

TEST_F(PrincipalBytes, are_those_of_the_bodies_of_http) {
  const std::string whole = http_post(numbered("size", 1) + std::string(600'000, ' '));
  const std::string chunk = "POST /rpc HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n249f0\r\n";
  const Line& heavy = connect_and_send(whole.substr(0, 400'000));
  EXPECT_EQ(ended(), 0);
  for (int i = 0; i < kConnectionsMax && ended() == 0; ++i)
    connect_and_send(i % 2 == 0 ? whole.substr(0, 150'000) : chunk + std::string(140'000, ' '));
  EXPECT_EQ(heavy.end, CloseReason::heaviest);
  EXPECT_EQ(ended(), 1);
}

TEST_F(PrincipalBytes, are_those_of_answers_that_are_not_read) {
  const Line& small = connect_and_send(numbered("fill", 200'000), 1000);
  const Line& heavy = connect_and_send(numbered("fill", 400'000), 1000);
  EXPECT_EQ(ended(), 0);
  const Line& newcomer = connect_and_send(numbered("fill", 300'000), 1000);
  EXPECT_EQ(ended(), 0) << "the system has taken some";
  const Line& last = connect_and_send(numbered("fill", 300'000), 1000);
  EXPECT_EQ(heavy.end, CloseReason::heaviest);
  EXPECT_FALSE(small.end || newcomer.end || last.end);
}

TEST_F(PrincipalBytes, are_those_of_answers_that_wait_for_others_of_their_batch) {
  std::vector<const Line*> all;
  for (const std::size_t bytes : {400'000, 200'000, 200'000}) {
    all.push_back(&connect_and_send("[" + numbered("fill", bytes) + "," + numbered("wait", 0, 2) + "]"));
  }
  EXPECT_EQ(all[0]->end, CloseReason::heaviest);
  EXPECT_EQ(ended(), 1);
}

TEST_F(PrincipalBytes, are_those_of_late_answers_of_a_batch) {
  const Line& heavy = connect_and_send("[" + numbered("text", 0) + "," + numbered("wait", 0, 2) + "]");
  const Line& other = connect_and_send("[" + numbered("text", 0) + "," + numbered("wait", 0, 2) + "]");
  ASSERT_EQ(texts.size(), 2U);
  texts[1].set(std::string(400'000, 'y'));
  turns();
  EXPECT_EQ(ended(), 0);
  texts[0].set(std::string(700'000, 'y'));
  turns();
  EXPECT_EQ(heavy.end, CloseReason::heaviest);
  EXPECT_FALSE(other.end);
}

TEST_F(PrincipalBytes, are_those_of_a_batch_that_is_interrupted) {
  std::string batch = "[";
  for (int i = 0; i < 900; ++i) batch += numbered("fill", 5000, i) + ",";
  batch += numbered("fill", 1) + "]";
  const Line& one = connect();
  one.send(batch);
  for (int i = 0; i < 1000 && !one.end; ++i) {
    turn();
    ASSERT_TRUE(one.heard.empty());
  }
  EXPECT_EQ(one.end, CloseReason::heaviest) << "alone";
}

// ---- what nobody has asked for ----

constexpr std::string_view kSubscribe =
    R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"news"},"id":1})";

std::string publish(std::size_t bytes, bool retain = false) {
  return R"({"jsonrpc":"2.0","method":"rpc.publish","params":{"topic":"news","params":[")" + std::string(bytes, 'n') +
         (retain ? R"("],"retain":true},"id":2})" : R"("]},"id":2})");
}
std::ptrdiff_t that_heard(const std::vector<const Several::Line*>& lines, std::string_view text) {
  return std::ranges::count_if(lines, [&](const auto* line) { return line->heard.find(text) != std::string::npos; });
}
constexpr std::string_view kLagged = R"({"jsonrpc":"2.0","method":"rpc.lagged","params":{"topic":"news","dropped":1}})";

TEST_F(PrincipalBytes, cut_nobody_for_an_event_that_is_dropped_where_it_does_not_fit) {
  std::vector<const Line*> subscribers;
  for (int i = 0; i < 10; ++i) subscribers.push_back(&connect_and_send(std::string{kSubscribe}));
  Line& publisher = connect_and_send(publish(100'000));  // in one turn; in several, its own text counts too
  EXPECT_EQ(ended(), 0);
  EXPECT_EQ(that_heard(subscribers, "nnnn"), 4);
  EXPECT_EQ(that_heard(subscribers, kLagged), 6) << "at once, since nothing else may come";
  EXPECT_NE(publisher.hear().find("\"result\":4"), std::string::npos);
}

TEST_F(PrincipalBytes, cut_nobody_for_many_small_events) {
  std::vector<const Line*> subscribers;
  for (int i = 0; i < 10; ++i) subscribers.push_back(&connect_and_send(std::string{kSubscribe}, 100));
  for (int i = 0; i < 50; ++i) connect_and_send(publish(10'000));
  EXPECT_EQ(ended(), 0);
}

TEST_F(PrincipalBytes, cut_nobody_for_what_is_retained) {
  connect_and_send(publish(120'000, true));
  std::vector<const Line*> subscribers;
  for (int i = 0; i < 10; ++i) {
    subscribers.push_back(&connect_and_send(
        R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"news","last":true},"id":1})", 100));
  }
  EXPECT_EQ(ended(), 0);
  for (const Line* subscriber : subscribers) subscriber->peer->window = ~std::size_t{0};
  turns();
  EXPECT_EQ(that_heard(subscribers, "nnnn"), 4);
  EXPECT_EQ(that_heard(subscribers, kLagged), 6);
}

TEST_F(PrincipalBytes, cut_no_provider_for_what_it_is_asked) {
  for (int i = 0; i < 10; ++i) {
    connect_and_send(
        R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"p)" + std::to_string(i) + R"("},"id":1})", 100);
  }
  int refused = 0;
  for (int i = 0; i < 10; ++i) {
    Line& caller = connect_and_send(R"({"jsonrpc":"2.0","method":"p)" + std::to_string(i) + R"(","params":[")" +
                                    std::string(120'000, 'x') + R"("],"id":1})");
    if (caller.hear().find(R"("limit":"principal_bytes")") != std::string::npos) ++refused;
  }
  EXPECT_EQ(ended(), 0);
  EXPECT_EQ(refused, 6);
}

TEST_F(PrincipalBytes, cut_no_provider_for_many_small_requests_which_wait_for_room) {
  std::vector<Line*> providers;
  for (int i = 0; i < 10; ++i) {
    providers.push_back(&connect_and_send(
        R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"p)" + std::to_string(i) + R"("},"id":1})",
        100));
  }
  for (int i = 0; i < 300; ++i) {
    connect().send(R"({"jsonrpc":"2.0","method":"p)" + std::to_string(i % 10) + R"(","params":[")" +
                   std::string(4'000, 'x') + R"("],"id":1})");
    turns(5);
  }
  EXPECT_EQ(ended(), 0);
  for (Line* provider : providers) {
    provider->peer->window = ~std::size_t{0};
    turns();
    turns();
    EXPECT_GT(provider->hear().size(), 120'000U);
  }
}

std::string provide(int number, std::string_view terms = "") {
  return R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"p)" + std::to_string(number) + "\"" +
         std::string{terms} + R"(},"id":1})";
}
std::string ask(int number, std::size_t bytes) {
  return R"({"jsonrpc":"2.0","method":"p)" + std::to_string(number) + R"(","params":[")" + std::string(bytes, 'x') +
         R"("],"id":1})";
}
// The response to the first request in `heard`.
std::string answered(const std::string& heard) {
  const auto id = heard.rfind("\"id\":");
  const auto end = heard.find_first_not_of("0123456789", id + 5);
  return R"({"jsonrpc":"2.0","result":1,)" + heard.substr(id, end - id) + "}";
}

TEST_F(PrincipalBytes, cut_nobody_for_events_a_little_smaller_than_what_does_not_count) {
  for (const std::size_t bytes : {1'000, 4'000, 30'000, 60'000, 64'000}) {
    const int before = ended();
    for (int i = 0; i < 20; ++i) connect_and_send(std::string{kSubscribe}, i % 2 == 0 ? 100 : ~std::size_t{0});
    const Line& upload = connect_and_send(unfinished(150'000));
    for (std::size_t sent = 0; sent < 200'000; sent += bytes) connect_and_send(publish(bytes));
    EXPECT_EQ(ended(), before) << bytes;
    EXPECT_FALSE(upload.end) << bytes;
    lines.clear();
    turns();
  }
}

TEST_F(PrincipalBytes, cut_no_provider_for_requests_a_little_smaller_than_what_does_not_count) {
  for (const std::size_t bytes : {4'000, 30'000, 60'000, 64'000}) {
    for (int i = 0; i < 20; ++i) connect_and_send(provide(i), 100);
    for (std::size_t sent = 0; sent < 130'000; sent += bytes) {
      for (int i = 0; i < 20; ++i) {
        connect().send(ask(i, bytes));
        turns(3);
      }
    }
    EXPECT_EQ(ended(), 0) << bytes;
    lines.clear();
    turns();
  }
}

TEST_F(PrincipalBytes, of_a_call_that_waited_are_its_callers_no_more_once_it_has_been_sent) {
  std::vector<Line*> providers;
  for (int i = 0; i < 6; ++i) {
    providers.push_back(&connect_and_send(provide(i, R"(,"concurrency":1)")));
    connect_and_send(ask(i, 10));
    connect_and_send(ask(i, 150'000));
  }
  EXPECT_EQ(ended(), 0);
  for (Line* provider : providers) {
    provider->send(answered(provider->hear()));
    turns();
    EXPECT_GT(provider->heard.size(), 150'000U);
  }
  connect_and_send(unfinished(450'000));
  EXPECT_EQ(ended(), 0);
}

TEST_F(PrincipalBytes, of_a_call_that_waited_do_not_cut_the_connections_of_its_providers_principal) {
  const auto principal = [](std::string name, std::string token) {
    Principal one;
    one.name = std::move(name);
    one.tokens = {std::move(token)};
    one.call = one.provide = {"*"};
    return one;
  };
  let_in({principal("them", "t1"), principal("us", "t2"), principal("others", "t3"), principal("more", "t4")});
  const std::vector<std::string_view> callers{"t2", "t3", "t4"};
  std::vector<Line*> providers;
  std::vector<Line*> waits;
  std::vector<std::string> asked;
  for (int i = 0; i < 3; ++i) {
    Line& provider = connect("t1");
    provider.send(provide(i, R"(,"concurrency":1)"));
    turns();
    providers.push_back(&provider);
    connect(callers[static_cast<std::size_t>(i)]).send(ask(i, 10));
    turns();
    waits.push_back(&connect(callers[static_cast<std::size_t>(i)]));
    waits.back()->send(ask(i, 300'000));
    turns();
    asked.push_back(provider.hear());
  }
  const Line& upload = connect("t1");
  upload.send(unfinished(140'000));
  turns();
  EXPECT_EQ(ended(), 0);
  int refused = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    providers[i]->peer->window = 100;
    providers[i]->send(answered(asked[i]));
  }
  turns();
  EXPECT_EQ(ended(), 0);
  for (Line* line : waits) refused += line->hear().find(R"("limit":"principal_bytes")") != std::string::npos ? 1 : 0;
  EXPECT_EQ(refused, 2) << "the first has room";
}

TEST_F(PrincipalBytes, are_not_what_a_buffer_had_room_for_when_it_was_anothers) {
  for (int i = 0; i < 3; ++i) {
    Line& large = connect_and_send(numbered("fill", 10));
    large.send(unfinished(250'000));
    turns();
    large.send("\"],\"id\":1}");
    turns();
  }
  for (int i = 0; i < 10; ++i) connect_and_send(unfinished(10));
  const Line& upload = connect_and_send(unfinished(400'000));
  EXPECT_EQ(ended(), 0);
  EXPECT_FALSE(upload.end);
}

TEST_F(PrincipalBytes, stop_no_stream_that_its_caller_reads) {
  Line& provider = connect_and_send(provide(1));
  Line& caller = connect_and_send(R"({"jsonrpc":"2.0","method":"p1","params":{"partialResultToken":"t"},"id":1})");
  for (int i = 0; i < 4; ++i) connect_and_send(unfinished(80'000));
  EXPECT_NE(provider.hear().find(R"("partialResultToken":"0")"), std::string::npos);
  std::string items;
  for (int i = 0; i < 8; ++i) {
    items +=
        R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":"0","value":")" + std::string(12'000, 'v') + "\"}}";
  }
  provider.send(items);
  turns();
  provider.send(R"({"jsonrpc":"2.0","result":null,"id":0})");
  turns();
  EXPECT_NE(caller.heard.find("\"result\":null"), std::string::npos) << caller.heard.substr(0, 200);
  EXPECT_GT(caller.heard.size(), 96'000U);
}

TEST_F(PrincipalBytes, leave_nobody_without_who_has_nothing_to_read) {
  limits.soft_output = 1000;
  Line& subscriber = connect_and_send(std::string{kSubscribe});
  std::vector<Line*> uploads;
  for (int i = 0; i < 3; ++i) uploads.push_back(&connect_and_send(unfinished(140'000)));
  connect_and_send(publish(10));
  EXPECT_NE(subscriber.hear().find("nnnn"), std::string::npos);
  EXPECT_EQ(ended(), 0);
}

TEST_F(PrincipalBytes, do_not_lose_what_is_retained_for_who_reads_it) {
  for (int i = 0; i < 8; ++i) {
    connect_and_send(R"({"jsonrpc":"2.0","method":"rpc.publish","params":{"topic":"kept.)" + std::to_string(i) +
                     R"(","params":[")" + std::string(200'000, 'k') + R"("],"retain":true},"id":1})");
  }
  Line& subscriber = connect_and_send(
      R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":"kept.*","last":true},"id":1})", 100);
  subscriber.peer->window = ~std::size_t{0};
  turns();
  turns();
  EXPECT_EQ(subscriber.heard.find("rpc.lagged"), std::string::npos);
  EXPECT_GT(subscriber.heard.size(), 1'600'000U);
  EXPECT_EQ(ended(), 0);
}

// ---- ids, and documents that are being written ----

std::string with_id_of(std::string_view method, std::size_t bytes) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":[1],"id":")" + std::string(bytes, 'i') +
         R"("})";
}

TEST_F(PrincipalBytes, are_those_of_the_ids_of_calls) {
  Line& caller = connect();
  for (int i = 0; i < 15; ++i) caller.send(with_id_of("wait", 60'000));
  turns();
  EXPECT_EQ(ended(), 0);
  caller.send(with_id_of("wait", 60'000) + with_id_of("wait", 60'000));
  turns();
  EXPECT_EQ(caller.end, CloseReason::heaviest);
}

TEST_F(PrincipalBytes, are_those_of_the_ids_of_answered_calls_no_more) {
  Line& caller = connect();
  for (int i = 0; i < 30; ++i) {
    caller.send(with_id_of("wait", 60'000));
    turns();
    std::exchange(waiting, {}).at(0).set(1);
    turns();
  }
  EXPECT_EQ(ended(), 0);
}

TEST_F(PrincipalBytes, are_those_of_the_ids_of_relayed_calls) {
  Line& provider = connect_and_send(R"({"jsonrpc":"2.0","method":"rpc.register","params":{"method":"theirs"},"id":1})");
  Line& caller = connect();
  for (int i = 0; i < 15; ++i) caller.send(with_id_of("theirs", 60'000));
  turns();
  EXPECT_EQ(ended(), 0);
  EXPECT_NE(provider.hear().find("\"theirs\""), std::string::npos);
  caller.send(with_id_of("theirs", 60'000) + with_id_of("theirs", 60'000));
  turns();
  EXPECT_EQ(caller.end, CloseReason::heaviest);
  EXPECT_FALSE(provider.end);
}

// 10 KB a turn, without end.
class Endless final : public rpc::Rendering {
  bool write_piece() override {
    text_.append(std::string(10'000, 'e'));
    more_steps_ = rpc::Share::kChargeMax;
    return true;
  }
};

TEST_F(PrincipalBytes, are_those_of_a_document_that_is_being_written) {
  http.metrics = [](const rpc::Asker&) { return std::make_unique<Endless>(); };
  const Line& reader = connect();
  reader.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  for (int i = 0; i < 1000 && !reader.end; ++i) turn();
  EXPECT_EQ(reader.heard, "");
  EXPECT_EQ(reader.end, CloseReason::heaviest);
}

TEST_F(PrincipalBytes, of_connections_that_hold_little_do_not_count) {
  for (int i = 0; i < 40; ++i) connect_and_send(unfinished(30'000));
  EXPECT_EQ(ended(), 0);
}

TEST_F(PrincipalBytes, of_another_principal_are_its_own) {
  const auto user = [](std::string name) {
    return Principal{
        .name = name, .tokens = {"token-" + name}, .call = {">"}, .provide = {}, .publish = {}, .subscribe = {}};
  };
  let_in({user("a"), user("b")});
  const Line& a = connect("token-a");
  const Line& b = connect("token-b");
  a.send(unfinished(450'000));
  b.send(unfinished(400'000));
  turns();
  EXPECT_EQ(ended(), 0);
  for (int i = 0; i < kConnectionsMax && ended() == 0; ++i) {
    connect("token-b").send(unfinished(150'000));
    turns();
  }
  EXPECT_EQ(b.end, CloseReason::heaviest);
  EXPECT_EQ(ended(), 1);
  EXPECT_TRUE(std::ranges::any_of(log, [](const std::string& line) {
    return line.find("principal b ") != std::string::npos && line.find("limits.principal_bytes") != std::string::npos;
  }));
}

}  // namespace
}  // namespace wirecall::net
