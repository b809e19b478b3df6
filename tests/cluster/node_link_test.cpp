// A link of two nodes on a simulated bus, whose users a test plays.
#include "cluster/node_link.hpp"

#include <gtest/gtest.h>
#include <new>
#include <string>
#include <vector>

#include "tests/base/virtual_scheduler.hpp"
#include "tests/cluster/simulated_bus.hpp"

namespace wirecall::test {
namespace {

using cluster::FrameKind;
using cluster::NodeLink;
using cluster::Record;
using cluster::RecordKind;

// One side.
class LinkEnd final : private NodeLink::User {
 public:
  LinkEnd(SimulatedNetwork& network, const std::string& own, const std::string& other, std::uint64_t session)
      : bus_(network),
        link(bus_, {.own = own, .subject = other}, session, {.body_bytes_max = 1 << 20, .waiting_bytes_max = 1 << 20},
             *this) {
    bus_.subscribe(own, [this](const cluster::BusMessage& message) {
      if (const auto frame = cluster::read_frame(message.payload)) link.take(*frame);
    });
  }
  void say(std::string_view text) {
    link.begin_record({.kind = RecordKind::event}).append(text);
    link.end_record();
  }

 private:
  SimulatedBus bus_;

 public:
  NodeLink link;
  std::vector<std::string> records;
  std::vector<std::uint64_t> reached;  // of each session that has ended
  std::size_t bad_alloc_at = 0;        // at the record of that number, from 1 on

 private:
  void opened() override {}
  void ended(std::uint64_t bytes) override { reached.push_back(bytes); }
  void received(const Record& record) override {
    records.emplace_back(record.body);
    if (records.size() == bad_alloc_at) throw std::bad_alloc{};
  }
  void wants_flush() noexcept override {}
};

TEST(NodeLinkTest, WithoutMemoryForARecordTheSessionEndsAndNothingIsReceivedTwice) {
  VirtualScheduler scheduler;
  SimulatedNetwork network{scheduler};
  LinkEnd one{network, "one", "two", 1'000};
  LinkEnd two{network, "two", "one", 2'000};
  const auto settle = [&] { scheduler.advance(std::chrono::milliseconds{1}); };
  one.link.maintain();
  settle();
  ASSERT_TRUE(one.link.is_open() && two.link.is_open());
  two.bad_alloc_at = 2;
  for (const std::string_view text : {"1", "2", "3"}) one.say(text);
  one.link.flush();
  settle();
  EXPECT_FALSE(two.link.is_reading());
  EXPECT_EQ(two.records, (std::vector<std::string>{"1", "2"}));
  ASSERT_EQ(one.reached.size(), 1U);
  EXPECT_NE(one.reached.front(), 0U);  // it has come
  one.link.maintain();
  two.link.maintain();
  settle();
  ASSERT_TRUE(one.link.is_open() && two.link.is_open());
  one.say("4");
  one.link.flush();
  settle();
  EXPECT_EQ(two.records, (std::vector<std::string>{"1", "2", "4"}));
}

// Of what was written where there was no memory to flush it.
TEST(NodeLinkTest, WhatWasNotFlushedLeavesWhenTheLinkIsMaintained) {
  VirtualScheduler scheduler;
  SimulatedNetwork network{scheduler};
  LinkEnd one{network, "one", "two", 1'000};
  LinkEnd two{network, "two", "one", 2'000};
  one.link.maintain();
  scheduler.advance(std::chrono::milliseconds{1});
  one.say("1");
  one.link.maintain();
  scheduler.advance(std::chrono::milliseconds{1});
  EXPECT_EQ(two.records, (std::vector<std::string>{"1"}));
}

// As of a node that does not know of replaced processes: it begins another session with the one that has taken over.
TEST(NodeLinkTest, ALastSessionEndsWhereTheOtherSideSaysThatItHasEndedItAndNoOtherFollows) {
  VirtualScheduler scheduler;
  SimulatedNetwork network{scheduler};
  LinkEnd one{network, "one", "two", 1'000};
  LinkEnd two{network, "two", "one", 2'000};
  const auto settle = [&] { scheduler.advance(std::chrono::milliseconds{1}); };
  one.link.maintain();
  settle();
  one.link.be_last();
  Buffer other;  // of another link of that node
  cluster::append_frame_head(other, {.kind = FrameKind::open, .from_session = 3'000, .node = "two"});
  other.append('?' + std::string(16, '\0'));
  one.link.take(*cluster::read_frame(other.view()));
  EXPECT_TRUE(one.link.is_open());
  one.say("1");
  one.link.flush();
  settle();
  one.say("2");
  const std::uint64_t published = network.published;
  two.link.reset();
  settle();
  EXPECT_TRUE(one.link.has_ended());
  EXPECT_EQ(one.reached.size(), 1U);
  EXPECT_EQ(network.published - published, 2U);  // an open, and a leave
  one.link.maintain();
  two.link.maintain();
  settle();
  EXPECT_TRUE(one.link.has_ended());
  EXPECT_FALSE(two.link.is_open());
}

// Its pong would say that nothing has come of the session, which goes on with the process that has taken over.
TEST(NodeLinkTest, APingOfAnotherProcessOfThatNameIsNotAnswered) {
  VirtualScheduler scheduler;
  SimulatedNetwork network{scheduler};
  LinkEnd one{network, "one", "two", 1'000};
  LinkEnd two{network, "two", "one", 2'000};
  one.link.maintain();
  scheduler.advance(std::chrono::milliseconds{1});
  ASSERT_TRUE(one.link.is_open());
  const std::uint64_t published = network.published;
  const auto ping = [&](std::uint64_t session) {
    Buffer frame;
    cluster::append_frame_head(frame, {.kind = FrameKind::ping, .from_session = session, .node = "two"});
    frame.append(std::string(16, '\0'));
    one.link.take(*cluster::read_frame(frame.view()));
  };
  ping(3'000);
  EXPECT_EQ(network.published, published);
  ping(2'000);
  EXPECT_EQ(network.published, published + 1);
}

}  // namespace
}  // namespace wirecall::test
