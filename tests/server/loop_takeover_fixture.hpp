// A server whose methods do not return until the test releases them, for the tests of its loop takeover. Only the test
// releases a handler, never time.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tests/connection/peer.hpp"
#include "wirecall/server.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {

inline std::string call(std::string_view method, std::string_view params, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::to_string(id) + "}\n";
}
inline std::string result(std::string_view value, int id) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":)" + std::to_string(id) + "}";
}

class LoopTakeoverTest : public testing::Test {
 protected:
  LoopTakeoverTest() : server(make_options()) {
    server.method("add", [](int a, int b) { return a + b; });
    add_block(server);
    server.method("echo_late", [this](std::string_view text, std::string_view other) {
      gate.wait();
      return std::string{text} + std::string{other};
    });
    server.method("raw_late", [this](Raw value) {
      gate.wait();
      return Raw{value};
    });
    server.method("throw_late", [this](int) -> int {
      gate.wait();
      throw std::runtime_error{"late"};
    });
    server.method("on_notify", [this](int) {
      gate.wait();
      ++notified;
    });
    endpoint.emplace(server.listen("tcp://127.0.0.1:0"));
  }
  ~LoopTakeoverTest() override { gate.open(); }

  Options make_options() {
    Options options;
    options.drain_ms = 500;
    options.log = LogSink{[this](const LogRecord& record) {
      const std::scoped_lock lock{log_mutex};
      std::string line{record.message};
      for (const LogField& field : record.fields) {
        const auto* const text = std::get_if<std::string_view>(&field.value);
        line.append(" ").append(field.name).append("=");
        line.append(text != nullptr ? std::string{*text} : std::to_string(std::get<std::int64_t>(field.value)));
        if (field.name == "not_logged" && record.message.contains("not returned"))
          not_logged += static_cast<int>(std::get<std::int64_t>(field.value));
      }
      log.push_back(std::move(line));
      logged.notify_all();
    }};
    return options;
  }
  // A method that returns when the gate is open.
  void add_block(Server& to) {
    to.method("block", [this](int value) {
      gate.wait();
      return value;
    });
  }
  // Another server with such a method, which runs and has one peer that calls it.
  struct Other {
    Other(LoopTakeoverTest& test, Options options) : server(std::move(options)) {
      test.add_block(server);
      endpoint = server.listen("tcp://127.0.0.1:0");
      running.emplace(server);
      slow.emplace(*endpoint);
    }

    Server server;
    std::optional<Endpoint> endpoint;
    std::optional<RunningServer> running;
    std::optional<RawPeer> slow;
  };
  // An answered quick call shows that another thread has taken over the loop.
  void expect_served(RawPeer& peer, int id) {
    peer.send(call("add", "[1,2]", id));
    EXPECT_EQ(peer.line(), result("3", id));
  }

  // One word is the method of a log line, or the begin of its name; several words are part of the line.
  static bool is_about(const std::string& line, std::string_view words) {
    const std::string method = "method=" + std::string{words};
    return line.find(words.find(' ') == words.npos ? std::string_view{method} : words) != line.npos;
  }
  void expect_logged(std::string_view words) {
    std::unique_lock lock{log_mutex};
    EXPECT_TRUE(logged.wait_for(lock, kWatchdog, [&] {
      return std::ranges::any_of(log, [&](const std::string& line) { return is_about(line, words); });
    }));
  }

  std::size_t logged_of(std::string_view words) {
    const std::scoped_lock lock{log_mutex};
    return static_cast<std::size_t>(
        std::ranges::count_if(log, [&](const std::string& line) { return is_about(line, words); }));
  }

  Gate gate;
  std::atomic<int> notified{0};
  std::mutex log_mutex;
  std::condition_variable logged;
  std::vector<std::string> log;
  int not_logged = 0;  // handlers that had not returned, by the log
  Server server;
  std::optional<Endpoint> endpoint;
};

}  // namespace wirecall::net
