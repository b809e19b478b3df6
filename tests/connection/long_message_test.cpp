// Messages that are read on another thread: they are answered as short ones are, in the order in which they came, and
// whatever becomes of their connection meanwhile.
#include "connection/long_message.hpp"

#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "tests/codec/msgpack.hpp"
#include "tests/connection/peer.hpp"
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
        Buffer{"{}"}, limits_,
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
