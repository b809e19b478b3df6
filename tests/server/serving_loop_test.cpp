// A loop of a server over the simulated backend, where hours pass in no time: which of its connections are idle, that
// those are closed, and how many there may be.
#include "server/serving_loop.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker_server/broker_factory.hpp"
#include "framing/json_text.hpp"
#include "http/browser_access.hpp"
#include "rpc/access.hpp"
#include "tests/framing/websocket_frames.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using runtime::SimulatedBackend;
using runtime::SimulatedPeer;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::string_view kRequest = R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1})";
constexpr std::string_view kAnswer = "{\"jsonrpc\":\"2.0\",\"result\":19,\"id\":1}\n";
constexpr std::string_view kHold = R"({"jsonrpc":"2.0","method":"hold","id":1})";

Options of_keepalive(std::uint32_t milliseconds) {
  Options options;
  options.limits.keepalive_timeout_ms = milliseconds;
  options.limits.header_timeout_ms = 3000;
  options.limits.call_timeout_ms = 1000 * 60 * 60;
  options.takeover_ms = 0;
  return options;
}

class Serving : public testing::Test {
 protected:
  explicit Serving(const Options& options, bool broker = false)
      : options_(options),
        shared_{.options = options_,
                .registry = registry_,
                .http = http_,
                .make_broker = broker ? broker_factory(options_) : nullptr} {
    registry_.method("subtract", [](int a, int b) { return a - b; });
    registry_.method("hold", [this]() -> Task<int> { co_return co_await held_; });
  }

  std::shared_ptr<SimulatedPeer> open() {
    auto [descriptor, peer] = backend_->pair();
    serving_.open(transport::PendingConnection{descriptor});
    return peer;
  }
  /// Serves until `end` says so; it is asked in every turn, and turns are as far apart as something is due.
  template <class End>
  void serve_until(End end) {
    serving_.run(end, [] { return true; });
  }
  [[nodiscard]] nanoseconds now() const { return backend_->now(); }

  SimulatedBackend* backend_ = new SimulatedBackend{1};
  Options options_;
  Registry registry_;
  HttpSettings http_;
  Completion<int> held_;
  ServerShared shared_;
  ServingLoop serving_{std::unique_ptr<runtime::Backend>{backend_}, shared_};
};

class SilentProviders : public Serving, private Timer {
 protected:
  static constexpr std::string_view kPing = R"({"jsonrpc":"2.0","method":"rpc.ping","id":"rpc.ping"})";
  static constexpr std::string_view kPong = R"({"jsonrpc":"2.0","result":"pong","id":"rpc.ping"})";

  SilentProviders() : Serving(of_keepalive(8000), true) { expired(); }
  ~SilentProviders() override { serving_.loop().stop(*this); }
  // The test looks often.
  void expired() override { serving_.loop().start(*this, 100ms); }
  std::shared_ptr<SimulatedPeer> provider(std::string_view hello) {
    auto peer = open();
    peer->send(hello);
    peer->send(R"({"jsonrpc":"2.0","method":"rpc.register","params":["add"],"id":"r"})");
    return peer;
  }
};

TEST_F(SilentProviders, are_asked_for_a_sign_of_life_and_closed_when_there_is_none) {
  const auto peer = provider(R"({"jsonrpc":"2.0","method":"rpc.hello"})");
  std::string heard;
  nanoseconds asked{};
  nanoseconds closed{};
  serve_until([&] {
    heard += peer->take();
    if (asked == 0ns && heard.find(kPing) != std::string::npos) asked = now();
    if (peer->closed && closed == 0ns) closed = now();
    return closed != 0ns || now() > 60s;
  });
  EXPECT_GE(asked, 4s);
  EXPECT_LE(asked, 6200ms) << "a quarter more";
  EXPECT_GE(closed, 8s);
  EXPECT_LE(closed, 12s);
  EXPECT_EQ(serving_.stats().connections_timed_out, 1U);
}

TEST_F(SilentProviders, that_answer_stay_for_ever) {
  const auto peer = provider(R"({"jsonrpc":"2.0","method":"rpc.hello"})");
  std::string heard;
  int asked = 0;
  bool closed = false;
  serve_until([&] {
    heard += peer->take();
    if (heard.find(kPing) != std::string::npos) {
      heard.clear();
      ++asked;
      peer->send(kPong);
    }
    closed = peer->closed;
    return closed || now() > 300s;
  });
  EXPECT_FALSE(closed) << now().count();
  EXPECT_GE(asked, 300 / 7);
  EXPECT_EQ(serving_.stats().responses_dropped, 0U);
}

TEST_F(SilentProviders, that_have_not_said_hello_are_for_the_system_to_watch) {
  const auto peer = provider(" ");
  std::string heard;
  bool closed = false;
  serve_until([&] {
    heard += peer->take();
    closed = peer->closed;
    return closed || now() > 60s;
  });
  EXPECT_FALSE(closed);
  EXPECT_EQ(heard, "{\"jsonrpc\":\"2.0\",\"result\":1,\"id\":\"r\"}\n");
}

TEST_F(SilentProviders, by_websocket_are_sent_a_ping_whether_they_said_hello_or_not) {
  const auto peer = open();
  peer->send(
      "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  peer->send(framing::client_frame(framing::kTextFrame,
                                   R"({"jsonrpc":"2.0","method":"rpc.register","params":["add"],"id":1})"));
  const std::string ping = framing::server_frame(framing::kPingFrame, "");
  std::string heard;
  int asked = 0;
  nanoseconds closed{};
  serve_until([&] {
    heard += peer->take();
    if (heard.ends_with(ping)) {
      heard.clear();
      // Three times it is still there.
      if (++asked <= 3) peer->send(framing::client_frame(framing::kPongFrame, ""));
    }
    if (peer->closed && closed == 0ns) closed = now();
    return closed != 0ns || now() > 120s;
  });
  EXPECT_GE(asked, 4);
  EXPECT_GE(closed, 16s);
  EXPECT_LE(closed, 45s);
}

TEST_F(SilentProviders, are_subscribers_too) {
  const auto peer = open();
  peer->send(R"({"jsonrpc":"2.0","method":"rpc.hello"})");
  peer->send(R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":["news"]})");
  bool closed = false;
  serve_until([&] {
    closed = peer->closed;
    return closed || now() > 60s;
  });
  EXPECT_TRUE(closed);
}

Options of_registration(std::uint32_t milliseconds) {
  Options options = of_keepalive(60'000);
  options.limits.registration_timeout_ms = milliseconds;
  return options;
}

class UnknownPeers : public Serving {
 protected:
  UnknownPeers() : Serving(of_registration(5000), true) {
    serving_.set_authority(std::make_shared<const rpc::Authority>(std::vector<Principal>{{.name = "a",
                                                                                          .tokens = {"secret"},
                                                                                          .call = {},
                                                                                          .provide = {},
                                                                                          .publish = {},
                                                                                          .subscribe = {},
                                                                                          .admin = false}}));
  }
};

TEST_F(UnknownPeers, are_closed_when_they_do_not_say_in_time_who_they_are) {
  const auto unknown = open();
  unknown->send(R"({"jsonrpc":"2.0","method":"rpc.ping"})");
  const auto slow = open();
  slow->send(R"({"jsonrpc":)");
  const auto known = open();
  known->send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"token":"secret"},"id":1})");
  nanoseconds unknown_shut{};
  nanoseconds slow_shut{};
  bool known_shut = false;
  serve_until([&] {
    if (unknown->shut_down && unknown_shut == 0ns) unknown_shut = now();
    if (slow->shut_down && slow_shut == 0ns) slow_shut = now();
    known_shut = known->shut_down;
    return known_shut || now() > 30s;
  });
  EXPECT_GE(unknown_shut, 5s);
  EXPECT_LE(unknown_shut, 7s);
  EXPECT_GE(slow_shut, 5s);
  EXPECT_LE(slow_shut, 7s);
  EXPECT_FALSE(known_shut);
  EXPECT_EQ(serving_.stats().connections_timed_out, 2U);
}

class IdleConnections : public Serving {
 protected:
  IdleConnections() : Serving(of_keepalive(8000)) {}
  nanoseconds shut_down_while_sending(const std::vector<std::string_view>& parts);
};

TEST_F(IdleConnections, are_closed_in_order_after_the_timeout) {
  const auto peer = open();
  peer->send(kRequest);
  nanoseconds shut{};
  serve_until([&] {
    if (peer->shut_down && shut == 0ns) {
      shut = now();
      peer->finish();
    }
    return peer->closed;
  });
  EXPECT_EQ(peer->take(), kAnswer);
  EXPECT_GE(shut, 8s);
  EXPECT_LE(shut, 12s) << "a quarter more, and a second until the test looks";
  EXPECT_EQ(serving_.stats().connections_timed_out, 1U);
  EXPECT_EQ(serving_.stats().connections_open, 0U);
}

/// The test looks often, also when nothing is due.
class OtherTimeouts : public IdleConnections, private Timer {
 protected:
  OtherTimeouts() { expired(); }
  ~OtherTimeouts() override { serving_.loop().stop(*this); }
  void expired() override { serving_.loop().start(*this, 100ms); }
  void give(std::uint32_t keepalive_ms) { serving_.set_limits(of_keepalive(keepalive_ms).limits, nullptr); }
};

TEST_F(OtherTimeouts, that_a_server_is_given_hold_from_then_on) {
  const auto peer = open();
  peer->send(kRequest);
  int given = 0;
  nanoseconds shut{};
  serve_until([&] {
    if (given == 0 && now() >= 4s) {
      give(0);
      ++given;
    } else if (given == 1 && now() >= 60s) {
      EXPECT_FALSE(peer->shut_down) << "none is closed at 0";
      give(4000);
      ++given;
    }
    if (peer->shut_down && shut == 0ns) {
      shut = now();
      peer->finish();
    }
    return peer->closed || now() > 100s;
  });
  EXPECT_GE(shut, 60s);
  EXPECT_LE(shut, 67s);
}

TEST_F(IdleConnections, are_not_closed_before_the_timeout) {
  const auto peer = open();
  peer->send(kRequest);
  const auto silent = open();  // whose end, after three seconds, is between two looks
  nanoseconds last{};
  serve_until([&] {
    if (now() >= 3s && last == 0ns) {
      last = now();
      peer->send(" ");
    }
    return peer->shut_down;
  });
  EXPECT_LT(last, 4s);
  EXPECT_GE(now(), last + 8s);
}

TEST_F(IdleConnections, are_not_those_on_which_something_comes) {
  const auto peer = open();
  const auto other = open();
  other->send(kRequest);
  nanoseconds last{};
  peer->send(kRequest);
  serve_until([&] {
    if (now() >= last + 6s && now() < 60s) {
      last = now();
      EXPECT_FALSE(peer->shut_down) << now().count();
      peer->send(" ");
    }
    return peer->shut_down;
  });
  EXPECT_GE(now(), last + 8s);
  EXPECT_TRUE(other->closed) << "its second of taking leave is over, though it never answered";
}

// Sends the parts, one every two seconds and the last again and again for a minute at most, until the connection is
// shut down: when that was.
nanoseconds IdleConnections::shut_down_while_sending(const std::vector<std::string_view>& parts) {
  const auto peer = open();
  std::size_t at = 0;
  nanoseconds last = -2s;
  serve_until([&] {
    if (now() >= last + 2s && !peer->shut_down && now() < 60s) {
      last = now();
      peer->send(parts[at]);
      at = std::min(at + 1, parts.size() - 1);
    }
    return peer->shut_down;
  });
  return now();
}

TEST_F(IdleConnections, are_those_on_which_a_message_does_not_come_on) {
  EXPECT_LE(shut_down_while_sending({"[", " "}), 12s);
  EXPECT_EQ(serving_.stats().connections_timed_out, 1U);
}

TEST_F(IdleConnections, have_the_whole_time_for_a_message_whenever_it_begins) {
  struct Beginning final : Timer {
    void expired() override {
      at = loop->now();
      peer->send("[");
    }
    Loop* loop = nullptr;
    std::shared_ptr<SimulatedPeer> peer;
    nanoseconds at{};
  };
  std::array<Beginning, 10> beginnings;
  for (std::size_t i = 0; i < beginnings.size(); ++i) {
    beginnings[i].loop = &serving_.loop();
    beginnings[i].peer = open();
    beginnings[i].peer->send(kRequest);
    serving_.loop().start(beginnings[i], 300ms * i);
  }
  std::size_t shut = 0;
  serve_until([&] {
    for (Beginning& beginning : beginnings) {
      if (!beginning.peer->shut_down || beginning.at == 0ns) continue;
      ++shut;
      EXPECT_GE(now() - std::exchange(beginning.at, 0ns), 8s);
    }
    return shut == beginnings.size();
  });
  EXPECT_LE(now(), 16s);
}

TEST_F(IdleConnections, are_those_on_which_a_header_does_not_come_on) {
  EXPECT_LE(shut_down_while_sending({"Content-Length: 90\r\n", "X"}), 12s);
}

TEST_F(IdleConnections, are_not_those_on_which_a_message_comes_bit_by_bit) {
  const std::string spaces(1100, ' ');
  EXPECT_GE(shut_down_while_sending({"[", spaces}), 60s);
}

TEST_F(IdleConnections, are_not_those_on_which_messages_end_though_one_is_always_begun) {
  const std::string_view request{kRequest};
  const std::string end_and_begin = std::string{request.substr(20)} + std::string{request.substr(0, 20)};
  EXPECT_GE(shut_down_while_sending({request.substr(0, 20), end_and_begin}), 60s);
}

TEST_F(IdleConnections, are_not_those_that_wait_for_an_answer) {
  const auto peer = open();
  peer->send(kHold);
  bool answered = false;
  serve_until([&] {
    if (now() >= 60s && !answered) {
      answered = true;
      EXPECT_FALSE(peer->shut_down);
      held_.set(19);
    }
    return peer->shut_down;
  });
  EXPECT_EQ(peer->take(), kAnswer);
  EXPECT_GE(now(), 68s);
}

TEST_F(IdleConnections, are_cut_when_they_take_nothing_of_their_answer) {
  const auto peer = open();
  peer->window = 3;
  peer->send(kRequest);
  serve_until([&] { return peer->closed; });
  EXPECT_EQ(peer->take(), kAnswer.substr(0, 3));
  EXPECT_GE(now(), 8s);
  EXPECT_LE(now(), 12s);
  EXPECT_EQ(serving_.stats().slow_peers_closed, 1U);
}

TEST_F(IdleConnections, are_not_those_that_take_their_answer_bit_by_bit) {
  const auto peer = open();
  peer->window = 1;
  peer->send(kRequest);
  nanoseconds last = now();
  serve_until([&] {
    if (now() >= last + 2s && peer->from_us.size() < kAnswer.size()) {
      last = now();
      ++peer->window;
    }
    return peer->closed || peer->shut_down;
  });
  EXPECT_EQ(peer->take(), kAnswer);
  EXPECT_GE(now(), 60s);
}

TEST_F(IdleConnections, are_cut_each_by_itself) {
  std::vector<std::shared_ptr<SimulatedPeer>> peers;
  for (int i = 0; i < 6; ++i) {
    peers.push_back(open());
    peers.back()->window = i % 2 == 0 ? 3 : 1000;
    peers.back()->send(i % 2 == 0 ? kRequest : kHold);
  }
  serve_until([&] { return peers[0]->closed && peers[2]->closed && peers[4]->closed; });
  EXPECT_LE(now(), 12s);
  EXPECT_EQ(serving_.stats().slow_peers_closed, 3U);
}

// It is owed an answer, and is said nothing more to: but it goes on sending, and takes nothing.
TEST_F(IdleConnections, are_cut_when_they_take_nothing_of_a_refusal) {
  const auto peer = open();
  peer->window = 3;
  peer->send("Content-Length: " + std::to_string(kRequest.size()) + "\r\n\r\n" + std::string{kRequest} +
             "Content-Length: nonsense\r\n\r\n");
  std::size_t taken = 0;
  serve_until([&] {
    if (now() < 8s && peer->to_us.empty() && taken < 1'000'000) {
      taken += 1000;
      peer->send(std::string(1000, 'x'));
    }
    return peer->closed;
  });
  EXPECT_LE(now(), 12s);
  EXPECT_LE(taken, 10'000U) << "what is not wanted is not read either";
}

TEST_F(IdleConnections, of_http_are_closed_as_well) {
  const auto peer = open();
  peer->send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  serve_until([&] { return peer->shut_down; });
  EXPECT_NE(peer->take().find("HTTP/1.1 200 OK\r\n"), std::string::npos);
  EXPECT_GE(now(), 8s);
  EXPECT_LE(now(), 12s);
}

class ConnectionsForEver : public Serving {
 protected:
  ConnectionsForEver() : Serving(of_keepalive(0)) {}
};

TEST_F(ConnectionsForEver, are_never_idle) {
  const auto peer = open();
  peer->send(kRequest);
  class Noon final : public Timer {
    void expired() override {}
  } noon;
  serving_.loop().start(noon, 100h);
  serve_until([&] { return now() >= 100h; });
  EXPECT_EQ(serving_.stats().connections_timed_out, 0U);
}

const std::string kFull = "connections are refused: there are limits.connections of them already; turned_away=";

class FewConnections : public Serving {
 protected:
  FewConnections() : Serving(two_at_once()) {}

  Options two_at_once() {
    Options options = of_keepalive(0);
    options.limits.connections = 2;
    options.log = LogSink{[this](const LogRecord& record) {
                    ASSERT_EQ(record.fields.size(), 1U);
                    const LogField& field = *record.fields.begin();
                    log_.push_back(std::string{record.message} + "; " + std::string{field.name} + "=" +
                                   std::to_string(std::get<std::int64_t>(field.value)));
                  }}.at_least(LogLevel::info);
    return options;
  }

  std::vector<std::string> log_;
};

TEST_F(FewConnections, are_served_and_those_beyond_are_closed_at_once) {
  const auto first = open();
  const auto second = open();
  const auto third = open();
  const auto fourth = open();
  for (const auto& peer : {first, second, third, fourth}) peer->send(kRequest);
  std::shared_ptr<SimulatedPeer> fifth;
  std::string answer;
  serve_until([&] {
    if (!fifth && third->closed && fourth->closed && first->from_us == kAnswer && second->from_us == kAnswer) {
      first->finish();
      if (!first->closed) return false;
      fifth = open();
      fifth->send(kRequest);
    }
    if (fifth) answer += fifth->take();
    return answer == kAnswer;
  });
  EXPECT_EQ(third->take(), "");
  EXPECT_EQ(serving_.stats().connections_accepted, 3U);
  EXPECT_EQ(serving_.stats().connections_refused, 2U);
  EXPECT_EQ(log_, std::vector<std::string>{kFull + "1"});
  EXPECT_EQ(shared_.connections_open, 0U);
}

// For 150 seconds, in each: one that is served takes the last place, ten are turned away, and it leaves.
TEST_F(FewConnections, that_come_and_go_by_the_thousand_cost_the_log_one_line_a_minute) {
  struct Peers final : Timer {
    Peers(Loop& of, std::function<std::shared_ptr<SimulatedPeer>()> connect) : loop(of), open(std::move(connect)) {
      loop.start(*this, 500ms);
    }
    void expired() override {
      loop.start(*this, 500ms);
      if (served) return std::exchange(served, {})->finish();
      served = open();
      served->send(kRequest);
      for (int i = 0; i < 10; ++i) static_cast<void>(open());
    }
    Loop& loop;
    std::function<std::shared_ptr<SimulatedPeer>()> open;
    std::shared_ptr<SimulatedPeer> served;
  };
  const auto first = open();
  first->send(kRequest);
  Peers peers{serving_.loop(), [this] { return open(); }};
  serve_until([&] { return now() >= 150s; });
  serving_.loop().stop(peers);
  const Stats stats = serving_.stats();
  EXPECT_GT(stats.connections_accepted, 100U);
  EXPECT_GT(stats.connections_refused, 1000U);
  ASSERT_EQ(log_.size(), 3U);
  EXPECT_EQ(log_[0], kFull + "1");
  const auto told = [&](std::size_t line) { return std::stoull(log_[line].substr(kFull.size())); };
  EXPECT_GE(told(1), 590U);
  EXPECT_LE(told(1), 610U) << "in a minute";
  EXPECT_LE(1 + told(1) + told(2), stats.connections_refused);
}

TEST_F(FewConnections, are_of_all_loops_together) {
  shared_.connections_open = 1;
  const auto first = open();
  const auto second = open();
  second->send(kRequest);
  first->send(kRequest);
  serve_until([&] { return second->closed && first->from_us == kAnswer; });
  EXPECT_EQ(second->take(), "");
  EXPECT_EQ(shared_.connections_open, 1U);
}

}  // namespace
}  // namespace wirecall::net
