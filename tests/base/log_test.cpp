// Records, their formats, and sinks that do not behave.
#include "wirecall/log.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

namespace wirecall {
namespace {

using namespace std::chrono_literals;

const auto kTime = std::chrono::sys_days{std::chrono::year{2024} / 5 / 6} + 7h + 8min + 9s + 123ms;

TEST(Log, a_record_is_one_line_for_people) {
  EXPECT_EQ(format_log(LogFormat::human, {LogLevel::warning, kTime, "a slow handler", {}}),
            "2024-05-06T07:08:09.123Z warning a slow handler");
  EXPECT_EQ(format_log(LogFormat::human,
                       {LogLevel::debug,
                        kTime,
                        "it came",
                        {{"bytes", std::int64_t{-3}}, {"peer", "127.0.0.1:80"}, {"why", "two words"}, {"none", ""}}}),
            "2024-05-06T07:08:09.123Z debug it came bytes=-3 peer=127.0.0.1:80 why=\"two words\" none=\"\"");
}

TEST(Log, a_record_is_one_object_for_machines) {
  const std::string line =
      format_log(LogFormat::json,
                 {LogLevel::error, kTime, "a \"quoted\" \\ line\nand more", {{"n", std::int64_t{7}}, {"s", "7"}}});
  EXPECT_EQ(
      line,
      R"({"time":"2024-05-06T07:08:09.123Z","level":"error","message":"a \"quoted\" \\ line\nand more","n":7,"s":"7"})");
  EXPECT_EQ(nlohmann::json::parse(line)["message"], "a \"quoted\" \\ line\nand more");
}

TEST(Log, no_bytes_of_a_peer_make_a_second_line_or_steer_a_terminal) {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  for (const LogFormat format : {LogFormat::human, LogFormat::json}) {
    const std::string line = format_log(format, {LogLevel::info, kTime, bytes, {{bytes, bytes}}});
    for (const char c : line) EXPECT_GE(c, 0x20) << line;
    EXPECT_EQ(line.find('\x7f'), std::string::npos);
  }
  EXPECT_TRUE(nlohmann::json::accept(format_log(LogFormat::json, {LogLevel::info, kTime, bytes, {{bytes, bytes}}})));
}

TEST(Log, a_sink_gets_what_its_level_lets_through) {
  std::vector<std::string> got;
  const LogSink all = [&](const LogRecord& record) { got.emplace_back(record.message); };
  const LogSink some = all.at_least(LogLevel::warning);
  for (const LogSink& sink : {all, some}) {
    sink(LogLevel::debug, "debug");
    sink(LogLevel::info, "info");
    sink(LogLevel::warning, "warning");
    sink(LogLevel::error, "error");
  }
  EXPECT_EQ(got, (std::vector<std::string>{"debug", "info", "warning", "error", "warning", "error"}));
  EXPECT_FALSE(some.takes(LogLevel::info));
  EXPECT_TRUE(some.takes(LogLevel::warning));
}

TEST(Log, a_level_may_change_while_sinks_go_by_it) {
  std::vector<std::string> got;
  const auto level = std::make_shared<std::atomic<LogLevel>>(LogLevel::warning);
  const LogSink all = [&](const LogRecord& record) { got.emplace_back(record.message); };
  const LogSink sink = all.at_least(level);
  sink(LogLevel::info, "before");
  level->store(LogLevel::debug);
  EXPECT_TRUE(sink.takes(LogLevel::debug));
  sink(LogLevel::debug, "between");
  level->store(LogLevel::error);
  sink(LogLevel::warning, "after");
  EXPECT_EQ(got, (std::vector<std::string>{"between"}));
  EXPECT_FALSE(LogSink{}.at_least(level).takes(LogLevel::error));
}

TEST(Log, a_sink_that_throws_or_is_not_there_costs_the_record_only) {
  const LogSink throws = [](const LogRecord&) { throw std::runtime_error{"disk full"}; };
  throws(LogLevel::error, "x");
  const LogSink none;
  none(LogLevel::error, "x");
  EXPECT_FALSE(none.takes(LogLevel::error));
}

/// stderr is a pipe that nobody reads until asked.
class StderrTest : public testing::Test {
 protected:
  StderrTest() {
    EXPECT_EQ(pipe2(pipe_.data(), O_CLOEXEC), 0);
    // The smallest pipe there is: one page.
    EXPECT_GT(fcntl(pipe_[1], F_SETPIPE_SZ, 4096), 0);
    dup2(pipe_[1], STDERR_FILENO);
    close(pipe_[1]);
  }
  ~StderrTest() override {
    dup2(real_, STDERR_FILENO);
    close(real_);
    close(pipe_[0]);
  }
  std::string read_once() {
    std::string text(1 << 16, '\0');
    text.resize(static_cast<std::size_t>(read(pipe_[0], text.data(), text.size())));
    return text;
  }

  int real_ = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  std::array<int, 2> pipe_{};
};

TEST_F(StderrTest, a_line_is_written_for_each_record) {
  stderr_log(LogFormat::human)(LogLevel::info, "hello");
  const std::string text = read_once();
  EXPECT_EQ(text.substr(text.find('Z')), "Z info hello\n");
}

TEST_F(StderrTest, a_reader_that_has_gone_harms_nobody) {
  close(pipe_[0]);
  stderr_log(LogFormat::human)(LogLevel::info, "into nothing");
  pipe_[0] = dup(real_);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGPIPE), 0);
}

TEST_F(StderrTest, while_nobody_reads_it_waits_for_nobody_and_says_later_how_many_were_dropped) {
  const LogSink log = stderr_log(LogFormat::human);
  const std::string page(5000, 'x');
  log(LogLevel::info, page);
  log(LogLevel::info, "dropped");
  log(LogLevel::info, "dropped as well");
  const std::string first = read_once();
  EXPECT_EQ(first.size(), 4096U);
  EXPECT_EQ(first.back(), '\n');
  log(LogLevel::info, "there again");
  const std::string told = read_once();
  EXPECT_EQ(told.find("dropped as well"), std::string::npos);
  EXPECT_LT(told.find("records=2\n"), told.find("there again\n"));
  EXPECT_NE(told.find("there again\n"), std::string::npos);
  log(LogLevel::info, "and again");
  EXPECT_EQ(read_once().find("records="), std::string::npos);
}

}  // namespace
}  // namespace wirecall
