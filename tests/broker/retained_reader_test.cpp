// Peers that read the numbers of what a broker retains: what they are sent, and when they are told of which number.
#include "rpc/retained_reader.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/broker/world.hpp"

namespace wirecall {
namespace {

using test::Client;
using test::notification;
using test::request;
using test::result_reply;
using test::World;

// One that writes down what it is told, beside the messages that its sink has been sent by then.
class Reader final : public rpc::RetainedReader {
 public:
  explicit Reader(Client& client) : sink_(client.sink.get()) { sink_->reader = this; }

  std::uint64_t retained_seen() const noexcept override { return seen; }
  void set_retained_number(std::uint64_t number) noexcept override {
    told.push_back(std::to_string(number) + "@" + std::to_string(sink_->messages.size()));
  }
  void retained_lost() noexcept override { told.push_back("lost@" + std::to_string(sink_->messages.size())); }
  void retained_sent() override { told.push_back("sent@" + std::to_string(sink_->messages.size())); }

  std::uint64_t seen = 0;
  std::vector<std::string> told;

 private:
  test::RecordingSink* sink_;
};

using Told = std::vector<std::string>;

class RetainedReaders : public testing::Test {
 protected:
  void retain(std::string_view topic, int value) { publish(topic, value, R"(,"retain":true)"); }
  void publish(std::string_view topic, int value, std::string_view more = {}) {
    publisher.send(notification("rpc.publish", R"({"topic":")" + std::string{topic} + R"(","params":[)" +
                                                   std::to_string(value) + "]" + std::string{more} + "}"));
  }
  void clear(std::string_view topic) {
    publisher.send(notification("rpc.publish", R"({"topic":")" + std::string{topic} + R"(","retain":true})"));
  }
  void subscribe(std::string_view topic, bool last = true) {
    client.send(request("rpc.subscribe",
                        R"({"topic":")" + std::string{topic} + R"(","last":)" + (last ? "true" : "false") + "}"));
    EXPECT_EQ(client.received(), result_reply("true")) << "nothing is sent before it says so";
  }
  // What is sent from now on.
  std::string begin() {
    client.dispatcher->on_writable();
    return client.received();
  }
  std::uint64_t position() { return world.router.retained_position().number; }

  World world;
  Client publisher{world};
  Client client{world};
  Reader reader{client};
};

TEST_F(RetainedReaders, are_told_the_number_of_what_is_retained_around_it) {
  subscribe("a.*", false);
  retain("a.b", 1);
  publish("a.b", 2);
  retain("x", 3);
  retain("a.b", 4);
  EXPECT_EQ(reader.told, (Told{"1@0", "0@1", "3@2", "0@3"}));
  EXPECT_EQ(position(), 3U);
}

TEST_F(RetainedReaders, are_sent_what_is_newer_than_what_they_have) {
  retain("a.1", 1);
  retain("a.3", 2);
  retain("a.2", 3);
  retain("a.4", 4);
  retain("b", 5);
  retain("a.1", 6);
  clear("a.4");
  reader.seen = 2;
  subscribe("a.*");
  EXPECT_EQ(begin(), notification("a.1", "[6]") + "\n" + notification("a.2", "[3]"));
  EXPECT_EQ(reader.told, (Told{"sent@2"}));
  EXPECT_EQ(begin(), "");
  EXPECT_EQ(reader.told.size(), 1U);
}

TEST_F(RetainedReaders, have_what_others_have_whatever_number_they_give) {
  retain("a", 1);
  reader.seen = ~std::uint64_t{0};
  subscribe("a");
  EXPECT_EQ(begin(), "");
  retain("a", 2);
  EXPECT_EQ(client.received(), notification("a", "[2]"));
}

TEST_F(RetainedReaders, are_sent_each_event_once_whatever_patterns_match_it) {
  for (int i = 1; i <= 3; ++i) retain("a." + std::to_string(i), i);
  for (const char* const topic : {"a.2", "a.*", ">", "*.3", "a.2"}) subscribe(topic);
  std::string all = begin();
  EXPECT_EQ(client.sink->messages.size(), 0U);
  EXPECT_EQ(reader.told, (Told{"sent@3"}));
  for (int i = 1; i <= 3; ++i) {
    const std::string event = notification("a." + std::to_string(i), "[" + std::to_string(i) + "]");
    const std::size_t at = all.find(event);
    ASSERT_NE(at, std::string::npos) << all;
    all.erase(at, event.size());
  }
  EXPECT_EQ(all, "\n\n");
}

TEST_F(RetainedReaders, are_told_when_all_has_been_sent_and_of_no_number_before) {
  for (int i = 0; i < 5; ++i) retain("a." + std::to_string(i), i);
  subscribe("a.*");
  client.sink->overfull_from = 2;
  EXPECT_EQ(begin(), notification("a.0", "[0]") + "\n" + notification("a.1", "[1]"));
  retain("a.4", 7);  // which comes in its turn
  EXPECT_EQ(begin(), notification("a.2", "[2]") + "\n" + notification("a.3", "[3]"));
  EXPECT_EQ(reader.told, Told{});
  EXPECT_EQ(begin(), notification("a.4", "[7]"));
  EXPECT_EQ(reader.told, (Told{"sent@1"}));
  retain("a.0", 8);
  EXPECT_EQ(client.received(), notification("a.0", "[8]"));
  EXPECT_EQ(reader.told, (Told{"sent@1", "7@0", "0@1"}));
}

TEST_F(RetainedReaders, are_told_after_what_was_published_meanwhile) {
  for (int i = 0; i < 3000; ++i) retain("a." + std::to_string(10'000 + i), i);
  subscribe("a.*");
  EXPECT_NE(begin(), "");
  publish("a.b", 1);
  retain("a.10000", 2);  // which has been sent before
  while (world.scheduler.expire_one()) {
  }
  ASSERT_EQ(reader.told, (Told{"sent@" + std::to_string(client.sink->messages.size())}));
  ASSERT_TRUE(client.received().ends_with(notification("a.b", "[1]") + "\n" + notification("a.10000", "[2]")));
}

TEST_F(RetainedReaders, are_told_of_what_they_lose) {
  retain("a", 1);
  subscribe("b", false);
  subscribe("a");
  client.sink->overfull = true;
  EXPECT_EQ(begin(), "");
  publish("a", 2);
  retain("a", 3);
  retain("b", 4);
  client.sink->overfull = false;
  client.dispatcher->on_writable();
  EXPECT_EQ(reader.told, (Told{"lost@0", "sent@3"}));
  const std::string sent = client.received();
  EXPECT_EQ(sent, notification("a", "[3]") + "\n" + notification("rpc.lagged", R"({"topic":"a","dropped":1})") + "\n" +
                      notification("rpc.lagged", R"({"topic":"b","dropped":1})"));
}

TEST_F(RetainedReaders, read_where_the_broker_is_behind_what_is_still_being_told) {
  std::vector<std::unique_ptr<Client>> crowd;
  for (int i = 0; i < 1000; ++i) {
    crowd.push_back(std::make_unique<Client>(world));
    EXPECT_EQ(crowd.back()->ask(request("rpc.subscribe", R"({"topic":"news"})")), result_reply("true"));
  }
  publisher.sink->holds_input = true;
  subscribe(">", false);
  retain("a", 1);
  EXPECT_EQ(position(), 1U);
  Client other{world};
  retain("news", 2);
  EXPECT_EQ(position(), 1U) << "not all have been told";
  other.send(notification("rpc.publish", R"({"topic":"b","params":[3],"retain":true})"));
  EXPECT_EQ(position(), 1U);
  EXPECT_EQ(reader.told, (Told{"1@0", "0@1", "3@1", "0@2"})) << "it has the third, not the second";
  while (world.scheduler.expire_one()) {
  }
  EXPECT_EQ(reader.told, (Told{"1@0", "0@1", "3@1", "0@2", "2@2", "0@3"}));
  EXPECT_EQ(position(), 3U);
}

TEST_F(RetainedReaders, that_have_gone_are_told_nothing) {
  retain("a", 1);
  subscribe("a");
  client.leave();
  retain("a", 2);
  EXPECT_EQ(reader.told, Told{});
}

TEST_F(RetainedReaders, know_a_broker_by_its_epoch) {
  World other;
  const std::string epoch{world.router.retained_position().epoch};
  EXPECT_EQ(epoch.size(), 16U);
  EXPECT_EQ(epoch.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(world.router.retained_position().epoch, epoch);
  EXPECT_NE(other.router.retained_position().epoch, epoch);
}

}  // namespace
}  // namespace wirecall
