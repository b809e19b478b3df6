// What dispatching counts: each call once, and each error that is answered, wherever it comes from.
#include "wirecall/stats.hpp"

#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"

namespace wirecall {
namespace {

using namespace std::chrono_literals;
using test::Peer;

class DispatchStats : public testing::Test {
 protected:
  DispatchStats() {
    registry_.method("same", [](int n) { return n; });
    registry_.method("fail", [](int code) { throw Error{code, "no"}; });
    registry_.method("raise", [] { throw std::runtime_error{"x"}; });
    registry_.method("nan", [] { return 0.0 / 0.0; });
    registry_.method("long", [] { return std::string(1000, 'x'); });
    registry_.method("later", [](Context context) -> Task<int> {
      co_await sleep_for(context, 10ms);
      co_return 1;
    });
  }

  Registry registry_;
};

TEST_F(DispatchStats, calls_and_notifications_are_counted_and_elements_of_batches_each) {
  Peer peer{registry_};
  peer.send(R"({"jsonrpc":"2.0","method":"same","params":[1],"id":1})");
  peer.send(R"({"jsonrpc":"2.0","method":"same","params":[1]})");
  peer.send(R"([{"jsonrpc":"2.0","method":"same","params":[1],"id":1},{"jsonrpc":"2.0","method":"same","params":[1]},)"
            R"({"jsonrpc":"2.0","method":"same","params":[2],"id":2}])");
  EXPECT_EQ(peer.stats().calls, 3U);
  EXPECT_EQ(peer.stats().notifications, 2U);
}

TEST_F(DispatchStats, each_error_that_is_answered_is_counted_once) {
  Limits limits;
  limits.max_message_size = 500;
  Peer peer{registry_, limits};
  peer.send("{");
  peer.send("1");
  peer.send(R"({"jsonrpc":"2.0","method":"none","id":1})");
  peer.send(R"({"jsonrpc":"2.0","method":"same","params":["x"],"id":1})");
  peer.send(R"({"jsonrpc":"2.0","method":"raise","id":1})");
  peer.send(R"({"jsonrpc":"2.0","method":"nan","id":1})");
  peer.send(R"({"jsonrpc":"2.0","method":"long","id":1})");
  peer.send(R"({"jsonrpc":"2.0","method":"fail","params":[-32800],"id":1})");
  peer.send(R"({"jsonrpc":"2.0","method":"fail","params":[3],"id":1})");
  peer.send(std::string(501, ' '));
  const Stats& stats = peer.stats();
  EXPECT_EQ(stats.errors_parse, 1U);
  EXPECT_EQ(stats.errors_invalid_request, 1U);
  EXPECT_EQ(stats.errors_unknown_method, 1U);
  EXPECT_EQ(stats.errors_invalid_params, 1U);
  EXPECT_EQ(stats.errors_internal, 2U);
  EXPECT_EQ(stats.errors_limit, 2U);
  EXPECT_EQ(stats.errors_cancelled, 1U);
  EXPECT_EQ(stats.errors_other, 1U);
}

TEST_F(DispatchStats, a_notification_that_fails_answers_no_error) {
  Peer peer{registry_};
  peer.send(R"({"jsonrpc":"2.0","method":"none"})");
  peer.send(R"({"jsonrpc":"2.0","method":"fail","params":[3]})");
  EXPECT_EQ(peer.received(), "");
  EXPECT_EQ(peer.stats().errors_unknown_method + peer.stats().errors_other, 0U);
}

TEST_F(DispatchStats, errors_of_our_own_methods_are_counted_too) {
  Limits limits;
  limits.max_message_size = 110;
  Peer peer{registry_, limits};
  peer.send(R"({"jsonrpc":"2.0","method":"rpc.cancel","id":1})");
  peer.send(R"({"jsonrpc":"2.0","method":"rpc.credit","params":[1,0],"id":1})");
  peer.send(R"({"jsonrpc":"2.0","method":"rpc.cancel"})");
  peer.send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"resume":"x"},"id":1})");
  peer.send(R"({"jsonrpc":"2.0","method":"rpc.hello","id":1})");
  EXPECT_EQ(peer.stats().errors_invalid_params, 2U);
  EXPECT_EQ(peer.stats().errors_other, 1U);
  EXPECT_EQ(peer.stats().errors_limit, 1U) << "what hello says is larger than a message may be here";
}

TEST_F(DispatchStats, streams_and_their_items_are_counted_however_they_are_sent) {
  registry_.method("count", [](int n) -> Stream<int> {
    for (int i = 0; i < n; ++i) co_yield i;
  });
  Peer peer{registry_};
  peer.send(R"({"jsonrpc":"2.0","method":"count","params":[3],"stream":9,"id":1})");
  EXPECT_EQ(peer.stats().streams, 1U);
  EXPECT_EQ(peer.stats().stream_items, 3U);
  peer.send(R"({"jsonrpc":"2.0","method":"count","params":[3],"stream":2,"id":2})");
  EXPECT_EQ(peer.stats().streams, 2U) << "as soon as it begins";
  EXPECT_EQ(peer.stats().stream_items, 5U);
  peer.send(R"({"jsonrpc":"2.0","method":"count","params":[4],"id":3})");
  peer.send(R"({"jsonrpc":"2.0","method":"count","params":{"arg0":1,"partialResultToken":"t"},"id":4})");
  EXPECT_EQ(peer.stats().streams, 4U);
  EXPECT_EQ(peer.stats().stream_items, 10U);
}

TEST_F(DispatchStats, calls_in_flight_go_up_and_down) {
  Peer peer{registry_};
  for (int i = 0; i < 3; ++i) peer.send(R"({"jsonrpc":"2.0","method":"later","id":1})");
  EXPECT_EQ(peer.stats().calls_in_flight, 3U);
  peer.advance(20ms);
  EXPECT_EQ(peer.stats().calls_in_flight, 0U);
  for (int i = 0; i < 2; ++i) peer.send(R"({"jsonrpc":"2.0","method":"later","id":1})");
  EXPECT_EQ(peer.stats().calls_in_flight, 2U);
  peer.dispatcher.abandon();
  EXPECT_EQ(peer.stats().calls_in_flight, 0U);
}

}  // namespace
}  // namespace wirecall
