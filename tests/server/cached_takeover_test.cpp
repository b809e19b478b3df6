// Functions whose results are kept and which do not return: their loop goes on, and equal calls still share one run.
#include <atomic>
#include <gtest/gtest.h>
#include <string>

#include "tests/server/loop_takeover_fixture.hpp"

namespace wirecall::net {
namespace {

class CachedTakeover : public LoopTakeoverTest {
 protected:
  CachedTakeover() {
    server.method("cached",
                  [this](int n) {
                    ++runs;
                    gate.wait();
                    return n;
                  },
                  {.params = {"n"}, .cache = {.entries = 10}});
  }

  std::atomic<int> runs{0};
};

TEST_F(CachedTakeover, EqualCallsShareOneRunThatIsOffTheLoop) {
  const RunningServer running{server};
  RawPeer first{*endpoint};
  RawPeer second{*endpoint};
  RawPeer gone{*endpoint};
  RawPeer quick{*endpoint};
  first.send(call("cached", "[7]", 1));
  gate.await_inside(1);
  expect_served(quick, 1);
  second.send(call("cached", "[7.0]", 2) + call("add", "[1,2]", 3));
  EXPECT_EQ(second.line(), result("3", 3));  // so the other is waiting
  gone.send(call("cached", "[7]", 4) + call("add", "[1,2]", 5));
  EXPECT_EQ(gone.line(), result("3", 5));
  gone.close();
  expect_served(quick, 6);
  gate.open();
  EXPECT_EQ(first.line(), result("7", 1));
  EXPECT_EQ(second.line(), result("7", 2));
  quick.send(call("cached", "[7]", 7));
  EXPECT_EQ(quick.line(), result("7", 7));
  EXPECT_EQ(runs, 1);
}

TEST_F(CachedTakeover, ARunThatIsOffTheLoopOutlivesAllItsCallers) {
  const RunningServer running{server};
  RawPeer gone{*endpoint};
  RawPeer quick{*endpoint};
  gone.send(call("cached", "[7]", 1));
  gate.await_inside(1);
  gone.close();
  for (int i = 0; i < 10; ++i) expect_served(quick, i);
  gate.open();
  quick.send(call("cached", "[8]", 2));
  EXPECT_EQ(quick.line(), result("8", 2));
  EXPECT_GE(runs, 2);
}

}  // namespace
}  // namespace wirecall::net
