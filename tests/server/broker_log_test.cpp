// What a broker's log tells of connections over real sockets: that they come, and why they end.
#include <condition_variable>
#include <gtest/gtest.h>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "wirecall/broker.hpp"
#include "wirecall/log.hpp"

namespace wirecall::net {
namespace {

class BrokerLog : public EngineTest {
 protected:
  Broker broker(LogLevel level, std::vector<Principal> principals = {}) {
    Options given = options(1);
    given.principals = std::move(principals);
    given.log_level = level;
    given.limits.max_message_size = 1000;
    given.log = [this](const LogRecord& record) {
      const std::string line = format_log(LogFormat::human, record);
      const std::scoped_lock lock{mutex_};
      lines_.push_back(line.substr(line.find(' ') + 1));
      came_.notify_all();
    };
    return Broker{std::move(given)};
  }
  /// Waits for a record that begins so, and forgets it and all before.
  std::string next(std::string_view begin) {
    std::unique_lock lock{mutex_};
    for (;;) {
      for (std::size_t i = 0; i < lines_.size(); ++i) {
        if (!lines_[i].starts_with(begin)) continue;
        std::string found = lines_[i];
        lines_.erase(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        return found;
      }
      came_.wait(lock);
    }
  }
  std::size_t waiting() {
    const std::scoped_lock lock{mutex_};
    return lines_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::string> lines_;
};

RawPeer greeted(const Endpoint& endpoint, const std::string& name) {
  RawPeer peer{endpoint};
  peer.send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":")" + name + "\"},\"id\":1}\n");
  EXPECT_NE(peer.line().find("\"result\""), std::string::npos);
  return peer;
}

TEST_P(BrokerLog, connections_are_told_with_why_they_end) {
  Broker broker = this->broker(LogLevel::debug);
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  RunningServer running{broker};
  const auto left = [&](const std::string& reason, auto&& end) {
    RawPeer peer = greeted(endpoint, "ada");
    EXPECT_EQ(next("debug a connection is"), "debug a connection is accepted");
    EXPECT_EQ(next("info"), "info a client has said hello client=ada principal=\"\" protocol=json tls=\"\"");
    end(peer);
    peer.close();
    EXPECT_TRUE(
        next("info a client has left")
            .starts_with("info a client has left client=ada principal=\"\" reason=" + reason + " connected_ms="))
        << reason;
    EXPECT_TRUE(next("debug").starts_with("debug a connection has ended reason=" + reason + " errno=")) << reason;
  };
  left("finished", [](RawPeer&) {});
  left("too_large", [](RawPeer& peer) {
    peer.send("{\"jsonrpc\":\"" + std::string(1001, 'x'));
    EXPECT_NE(peer.line().find("-32006"), std::string::npos);
  });
  RawPeer admin = greeted(endpoint, "admin");
  next("info a client has said hello client=admin");
  left("refused", [&](RawPeer& peer) {
    admin.send("{\"jsonrpc\":\"2.0\",\"method\":\"rpc.kick\",\"params\":[\"ada\"],\"id\":1}\n");
    EXPECT_EQ(peer.line(), "");
  });
}

TEST_P(BrokerLog, who_calls_before_a_token_is_told_of_with_what_it_called) {
  Principal ada;
  ada.name = "ada";
  ada.tokens = {"token-a"};
  Broker broker = this->broker(LogLevel::debug, {ada});
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  RunningServer running{broker};
  const auto told_of = [&](const std::string& sent, const std::string& record) {
    RawPeer stranger{endpoint};
    stranger.send(sent + "\n");
    EXPECT_NE(stranger.all().find("-32004"), std::string::npos) << sent;
    const std::string line = next("warning a caller is not let in");
    EXPECT_EQ(line, "warning a caller is not let in " + record + " source=127.0.0.1 reason=\"no token\" code=-32004");
  };
  told_of(R"({"jsonrpc":"2.0","method":"one","params":["a secret"],"id":1})", R"(method=one about="")");
  told_of(R"({"jsonrpc":"2.0","method":"rpc.publish","params":["news"],"id":1})", "method=rpc.publish about=news");
  told_of(R"([{"jsonrpc":"2.0","method":"two","id":1}])", R"(method=two about="")");
}

TEST_P(BrokerLog, at_level_error_nothing_is_told_of_clients) {
  Broker broker = this->broker(LogLevel::error);
  const Endpoint endpoint = broker.listen("tcp://127.0.0.1:0");
  RunningServer running{broker};
  greeted(endpoint, "ada").close();
  running.stop();
  EXPECT_EQ(waiting(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Each, BrokerLog, kEachEngine, engine_name);

}  // namespace
}  // namespace wirecall::net
