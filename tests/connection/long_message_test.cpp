// Messages that are read on another thread: they are answered as short ones are, in the order in which they came, and
// whatever becomes of their connection meanwhile.
#include "connection/long_message.hpp"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "http/zlib_deflate.hpp"
#include "tests/codec/msgpack.hpp"
#include "tests/connection/peer.hpp"
#include "tests/framing/websocket_frames.hpp"
#include "tests/http/served.hpp"
#include "tests/server/engines.hpp"
#include "wirecall/broker.hpp"

namespace wirecall::net {
namespace {

using packing::framed;
using packing::msgpack_of;

std::string numbers(std::size_t bytes) {
  std::string all = "1";
  while (all.size() < bytes) all += ",1";
  return all;
}
std::string count_of(const std::string& list) { return std::to_string((list.size() + 1) / 2); }
std::string counting(const std::string& list, int id) {
  return R"({"jsonrpc":"2.0","method":"count","params":[[)" + list + R"(]],"id":)" + std::to_string(id) + "}";
}

class LongMessages : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    if (IsSkipped()) return;
    broker_.emplace(options(1));
    broker_->method("count", [](const std::vector<int>& list) { return list.size(); });
    endpoint_.emplace(broker_->listen("tcp://127.0.0.1:0"));
    running_.emplace(*broker_);
  }
  static std::string http(const std::string& body, const std::string& fields = {}) {
    return "POST /rpc HTTP/1.1\r\nHost: localhost\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }

  const std::string list_ = numbers(kLongMessageBytes + 1000);
  std::optional<Broker> broker_;
  std::optional<Endpoint> endpoint_;
  std::optional<RunningServer> running_;
};

TEST_P(LongMessages, are_answered_before_what_follows_them) {
  RawPeer peer{*endpoint_};
  peer.send(counting(list_, 1) + "\n" + counting("1,1", 2) + "\n[" + counting(list_, 3) + "," + counting("1", 4) +
            "]\n");
  EXPECT_EQ(peer.line(), result(count_of(list_), 1));
  EXPECT_EQ(peer.line(), result("2", 2));
  EXPECT_EQ(peer.line(), "[" + result(count_of(list_), 3) + "," + result("1", 4) + "]");
}

TEST_P(LongMessages, are_answered_when_the_sender_has_ended_its_side) {
  RawPeer peer{*endpoint_};
  peer.send(counting(list_, 1) + "\n");
  peer.finish();
  EXPECT_EQ(peer.all(), result(count_of(list_), 1) + "\n");
}

TEST_P(LongMessages, that_are_none_are_refused_and_reading_goes_on) {
  RawPeer peer{*endpoint_};
  std::string bad = counting(list_, 1);
  bad[bad.size() - 20] = '?';
  peer.send(bad + "\n" + counting("1", 2) + "\n");
  EXPECT_NE(peer.line().find("-32700"), std::string::npos);
  EXPECT_EQ(peer.line(), result("1", 2));
}

TEST_P(LongMessages, behind_their_length_are_answered_in_either_encoding) {
  RawPeer peer{*endpoint_};
  const std::string bad = "{" + counting(list_, 1);
  peer.send(framed(counting(list_, 1)) + framed(bad) + framed("\xEF\xBB\xBF" + counting(list_, 2)) +
            framed(counting("1", 3)));
  EXPECT_EQ(peer.take(framed(result(count_of(list_), 1)).size()), framed(result(count_of(list_), 1)));
  const std::string refused = R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})";
  EXPECT_EQ(peer.take(framed(refused).size()), framed(refused));
  EXPECT_EQ(peer.take(framed(result(count_of(list_), 2)).size()), framed(result(count_of(list_), 2)));
  EXPECT_EQ(peer.take(framed(result("1", 3)).size()), framed(result("1", 3)));
}

TEST_P(LongMessages, in_messagepack_are_handed_on_to_who_reads_json) {
  RawPeer provider{*endpoint_};
  provider.send(R"({"jsonrpc":"2.0","method":"rpc.register","params":["take"],"id":1})"
                "\n");
  EXPECT_NE(provider.line().find("result"), std::string::npos);
  std::string list = "1";
  while (list.size() < 2 * kLongMessageBytes + 1000) list += ",1";
  const std::string params = "[[" + list + "]]";
  RawPeer caller{*endpoint_};
  const std::string call = R"({"jsonrpc":"2.0","method":"take","params":)" + params + R"(,"id":5})";
  ASSERT_GT(msgpack_of(call).size(), kLongMessageBytes);
  caller.send(framed(msgpack_of(call)) + framed(msgpack_of(counting("1", 6))));
  const std::string asked = provider.line();
  EXPECT_NE(asked.find(params), std::string::npos);
  const std::string id = asked.substr(asked.rfind(':') + 1);
  provider.send(R"({"jsonrpc":"2.0","result":7,"id":)" + id + "\n");
  const std::string first = framed(msgpack_of(result("1", 6)));
  const std::string second = framed(msgpack_of(result("7", 5)));
  const std::string answers = caller.take(first.size() + second.size());
  EXPECT_NE(answers.find(first), std::string::npos);
  EXPECT_NE(answers.find(second), std::string::npos);
}

TEST_P(LongMessages, by_http_are_answered_in_their_order) {
  RawPeer peer{*endpoint_};
  peer.send(http(counting(list_, 1)) + http(counting("1,1", 2)) + http("?" + list_) +
            http(msgpack_of(counting(list_, 3)), "Content-Type: application/msgpack\r\nAccept: application/json\r\n") +
            http(counting("1", 4), "Connection: close\r\n"));
  const std::string all = peer.all();
  std::size_t at = 0;
  for (const std::string& part : {result(count_of(list_), 1), result("2", 2), std::string{"-32700"},
                                  result(count_of(list_), 3), result("1", 4)}) {
    const std::size_t next = all.find(part, at);
    ASSERT_NE(next, std::string::npos) << part << all;
    at = next;
  }
}

TEST_P(LongMessages, by_http_leave_nothing_to_the_next_request) {
  RawPeer peer{*endpoint_};
  const std::string text(2 * kLongMessageBytes, 'x');
  const std::string as_msgpack = "Content-Type: application/msgpack\r\nAccept: application/json\r\n";
  for (const std::string& params : {"[[" + list_ + "]]", R"([")" + text + R"("])"}) {
    peer.send(
        http(msgpack_of(R"({"jsonrpc":"2.0","method":"nothing","params":)" + params + R"(,"id":1})"), as_msgpack) +
        http(counting("1,1", 2), "Connection: close\r\n"));
    const std::string all = peer.all();
    EXPECT_NE(all.find("-32601"), std::string::npos) << all;
    EXPECT_NE(all.find(result("2", 2)), std::string::npos) << all;
    peer = RawPeer{*endpoint_};
  }
}

TEST_P(LongMessages, that_are_values_and_end_with_the_connection_are_answered) {
  RawPeer peer{*endpoint_};
  peer.send(std::string(kLongMessageBytes + 1000, '1'));
  peer.finish();
  EXPECT_NE(peer.all().find("-32600"), std::string::npos);
}

TEST_P(LongMessages, whose_senders_go_or_whose_server_stops_leave_nothing) {
  for (int i = 0; i < 20; ++i) {
    RawPeer raw{*endpoint_};
    raw.send(counting(list_, 1) + "\n");
    RawPeer by_http{*endpoint_};
    by_http.send(http(counting(list_, 1)));
    if (i % 2 == 0) raw.reset();
  }
  RawPeer peer{*endpoint_};
  peer.send(counting(list_, 1) + "\n");
  running_->stop();
  const std::string all = peer.all();
  // It is a call as others are: whether it comes before the end of the server, its time tells.
  EXPECT_TRUE(all.empty() || all == result(count_of(list_), 1) + "\n" || all.contains("-32009")) << all;
}

// Messages of WebSocket that are compressed, of which far fewer bytes are long.
class LongPackedMessages : public EngineTest {
 protected:
  static constexpr int kPackedText = 0xC1;
  // Of JSON text that hardly gets smaller.
  static std::string letters(std::size_t bytes) {
    std::minstd_rand random{7};
    std::string text;
    while (text.size() < bytes) text += static_cast<char>('0' + random() % 64);
    std::ranges::replace(text, '\\', '!');
    return text;
  }
  static std::string sizing(const std::string& text, int id) {
    return R"({"jsonrpc":"2.0","method":"size","params":[")" + text + R"("],"id":)" + std::to_string(id) + "}";
  }
  static std::string packed(std::string_view text) {
    ZlibDeflate deflate;
    Buffer out;
    deflate.deflate(text, 15, out);
    return std::string{out.view()};
  }
  static std::string frame(std::string_view payload) { return framing::client_frame(kPackedText, payload); }
  static std::string said(const std::string& message) { return framing::server_frame(framing::kTextFrame, message); }
  static std::string closed(int code, std::string_view reason) {
    return framing::server_frame(framing::kCloseFrame, framing::code(code).append(reason));
  }

  void SetUp() override {
    EngineTest::SetUp();
    if (IsSkipped()) return;
    Options given = options(1);
    given.websocket_deflate = true;
    given.limits.max_message_size = 3'000'000;
    server_.emplace(std::move(given));
    server_->method("size", [](const std::string& text) { return text.size(); });
    endpoint_.emplace(server_->listen("tcp://127.0.0.1:0"));
    running_.emplace(*server_);
  }
  RawPeer connect() {
    RawPeer peer{*endpoint_};
    peer.send(
        "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: "
        "13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n");
    while (peer.line() != "\r") {
    }
    return peer;
  }
  // All that a peer is sent that sends this, and then its end.
  std::string answer(const std::string& frames) {
    RawPeer peer = connect();
    peer.send(frames);
    peer.finish();
    return peer.all();
  }

  std::optional<Server> server_;
  std::optional<Endpoint> endpoint_;
  std::optional<RunningServer> running_;
};

TEST_P(LongPackedMessages, are_answered_before_what_follows_them) {
  const std::string text = letters(200'000);
  const std::string longer = text + std::string(kLongMessageBytes, 'x');
  const std::string first = packed(sizing(text, 1));
  ASSERT_GT(first.size(), kLongPackedBytes);
  EXPECT_EQ(answer(frame(first) + frame(packed(sizing("ab", 2))) + frame(packed(sizing(longer, 3))) +
                   framing::client_frame(framing::kTextFrame, sizing("abc", 4))),
            said(result(std::to_string(text.size()), 1)) + said(result("2", 2)) +
                said(result(std::to_string(longer.size()), 3)) + said(result("3", 4)) + closed(1000, ""));
}

TEST_P(LongPackedMessages, may_be_short_as_they_come) {
  const std::string spaces(kLongMessageBytes, ' ');
  const std::string payload = packed(sizing(spaces, 1));
  ASSERT_LT(payload.size(), 10'000U);
  EXPECT_EQ(answer(frame(payload) + frame(packed(sizing("ab", 2)))),
            said(result(std::to_string(spaces.size()), 1)) + said(result("2", 2)) + closed(1000, ""));
  std::string frames;
  for (std::size_t at = 0; at < payload.size(); at += 100) {
    const int first = (at == 0 ? 0x41 : 0x00) | (at + 100 >= payload.size() ? 0x80 : 0);
    frames += framing::client_frame(first, payload.substr(at, 100));
  }
  EXPECT_EQ(answer(frames), said(result(std::to_string(spaces.size()), 1)) + closed(1000, ""));
  EXPECT_EQ(answer(frame(packed(sizing(std::string(3'000'000, ' '), 1)))),
            closed(1009, "the message is larger than allowed"));
}

TEST_P(LongPackedMessages, may_come_in_fragments) {
  const std::string text = letters(200'000);
  const std::string payload = packed(sizing(text, 1));
  std::string frames;
  for (std::size_t at = 0; at < payload.size(); at += 10'000) {
    const int first = (at == 0 ? 0x41 : 0x00) | (at + 10'000 >= payload.size() ? 0x80 : 0);
    frames += framing::client_frame(first, payload.substr(at, 10'000));
  }
  EXPECT_EQ(answer(frames), said(result(std::to_string(text.size()), 1)) + closed(1000, ""));
}

TEST_P(LongPackedMessages, that_cannot_be_are_the_end) {
  const std::string text = letters(200'000);
  std::string bad = packed(sizing(text, 1));
  EXPECT_EQ(answer(frame(bad.substr(0, bad.size() - 10)) + frame(packed(sizing("ab", 2)))),
            closed(1007, "a message that cannot be unpacked"));
  EXPECT_EQ(answer(frame(packed(sizing(text + "\xff", 1)))), closed(1007, "text that is not UTF-8"));
  EXPECT_EQ(answer(frame(packed(sizing(text + std::string(3'000'000, ' '), 1)))),
            closed(1009, "the message is larger than allowed"));
  // Text that is no JSON costs itself alone.
  const std::string no_json = answer(frame(packed("?" + text)) + frame(packed(sizing("ab", 2))));
  EXPECT_TRUE(no_json.contains("-32700") && no_json.ends_with(said(result("2", 2)) + closed(1000, ""))) << no_json;
}

TEST_P(LongPackedMessages, whose_senders_go_or_whose_server_stops_leave_nothing) {
  const std::string call = frame(packed(sizing(letters(400'000), 1)));
  for (int i = 0; i < 20; ++i) {
    RawPeer peer = connect();
    peer.send(call);
    if (i % 2 == 0) peer.reset();
  }
  RawPeer last = connect();
  last.send(call);
  running_->stop();
  last.all();
}

INSTANTIATE_TEST_SUITE_P(Each, LongPackedMessages, kEachEngine, engine_name);

INSTANTIATE_TEST_SUITE_P(Each, LongMessages, kEachEngine, engine_name);

// Runs what it is given when it is told to, or has no thread.
class HandPool final : public detail::BlockingPool {
 public:
  void run(Work work) override {
    if (refuses) throw std::system_error{std::make_error_code(std::errc::resource_unavailable_try_again)};
    if (out_of_memory) throw std::bad_alloc{};
    works.push_back(std::move(work));
  }
  void run_next() {
    Work work = std::move(works.front());
    works.pop_front();
    work()();
  }

  std::deque<Work> works;
  bool refuses = false;
  bool out_of_memory = false;
};

class LongReading : public testing::Test {
 protected:
  std::shared_ptr<LongMessage> message(const std::shared_ptr<rpc::Account>& account, const std::string& name) {
    return std::make_shared<LongMessage>(
        Buffer{"{}"}, Encoding::json, limits_,
        LongMessage::Sender{
            .account = account, .received_at = {}, .hold = {}, .then = [this, name] { read_ += name; }});
  }

  const Limits limits_;
  HandPool pool_;
  LongReader reader_{pool_};
  const std::shared_ptr<rpc::Account> a_ = std::make_shared<rpc::Account>();
  const std::shared_ptr<rpc::Account> b_ = std::make_shared<rpc::Account>();
  std::string read_;
};

TEST_F(LongReading, takes_one_message_of_each_account_at_a_time) {
  const auto gone = message(a_, "gone ");
  for (const char* name : {"a1 ", "a2 "}) reader_.read(message(a_, name));
  reader_.read(gone);
  reader_.read(message(a_, "a3 "));
  reader_.read(message(b_, "b1 "));
  EXPECT_EQ(pool_.works.size(), 2U);
  gone->forget();
  while (!pool_.works.empty()) pool_.run_next();
  EXPECT_EQ(read_, "a1 b1 a2 a3 ");
  reader_.read(message(a_, "a4 "));
  EXPECT_EQ(pool_.works.size(), 1U);
}

TEST_F(LongReading, without_memory_for_one_message_goes_on_with_the_next_of_its_account) {
  pool_.out_of_memory = true;
  const auto lost = message(a_, "lost ");
  reader_.read(lost);
  EXPECT_TRUE(lost->out_of_memory);
  EXPECT_EQ(read_, "lost ") << "its connection is told, and ends";
  pool_.out_of_memory = false;
  reader_.read(message(a_, "a1 "));
  ASSERT_EQ(pool_.works.size(), 1U);
  pool_.run_next();
  EXPECT_EQ(read_, "lost a1 ");
}

TEST_F(LongReading, needs_no_thread) {
  reader_.read(message(a_, "a1 "));
  reader_.read(message(a_, "a2 "));
  pool_.refuses = true;
  reader_.read(message(b_, "b1 "));
  EXPECT_EQ(read_, "b1 ");
  pool_.run_next();
  EXPECT_EQ(read_, "b1 a1 a2 ");
}

}  // namespace
}  // namespace wirecall::net
