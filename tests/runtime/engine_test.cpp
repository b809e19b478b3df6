// Which backend a loop gets: io_uring where the kernel allows it, and epoll, with a line in the log, where a filter
// forbids it. Filters cannot be taken off again, so each is tried in a process of its own.
#include "wirecall/engine.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <poll.h>
#include <string>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

#include "runtime/backend.hpp"
#include "tests/base/forbid.hpp"
#include "tests/runtime/backend_world.hpp"

namespace wirecall::runtime {
namespace {

using test::forbid;

struct Line {
  LogLevel level;
  std::string text;
};

LogSink into(std::vector<Line>& lines) {
  return [&lines](const LogRecord& record) { lines.push_back({record.level, std::string{record.message}}); };
}

// Whether this process has an io_uring, as the kernel says.
bool ring_is_open() {
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone).string().find("io_uring") != std::string::npos) return true;
  }
  return false;
}

// What `body` returns, from a process that ends with it.
std::string in_a_child(const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  std::fflush(nullptr);  // or the child would say it again
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text = body();
    const bool written = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 2);
  }
  ::close(ends[1]);
  std::string text;
  char block[4096];
  ssize_t got;
  while ((got = ::read(ends[0], block, sizeof block)) > 0) text.append(block, static_cast<std::size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return text;
}

// A backend that works: the level and the text of what was logged, and whether it turned out to be a ring.
std::string report(Engine engine) {
  std::vector<Line> lines;
  const std::unique_ptr<Backend> backend = make_backend(engine, into(lines));
  backend->wake();
  static_cast<void>(backend->turn({}, backend->now() + std::chrono::hours{1}));
  std::string text = ring_is_open() ? "ring;" : "no ring;";
  for (const Line& line : lines) text += std::to_string(static_cast<int>(line.level)) + " " + line.text + "\n";
  return text;
}

TEST(Engine, io_uring_is_in_use_where_the_kernel_allows_it) {
  if (!kRingsAreFollowed) GTEST_SKIP() << "ThreadSanitizer cannot follow io_uring";
  try {
    static_cast<void>(make_uring_backend());
  } catch (const std::system_error& refusal) {
    GTEST_SKIP() << "the kernel refuses io_uring: " << refusal.what();
  }
  EXPECT_EQ(report(Engine::automatic), "ring;");
  EXPECT_EQ(report(Engine::uring), "ring;");
  EXPECT_EQ(report(Engine::epoll), "no ring;");
}

TEST(Engine, a_filter_that_forbids_io_uring_leads_to_epoll_with_the_cause_and_the_cure_in_the_log) {
  for (const long call : {__NR_io_uring_setup, __NR_io_uring_register, __NR_io_uring_enter}) {
    const std::string said = in_a_child([call] {
      forbid(call, EPERM);
      return report(Engine::uring);
    });
    EXPECT_TRUE(said.starts_with("no ring;2 io_uring refused: ")) << said;
    EXPECT_NE(said.find("Operation not permitted"), std::string::npos) << said;
    EXPECT_NE(said.find("likely seccomp"), std::string::npos) << said;
    EXPECT_TRUE(said.ends_with("; using epoll\n")) << said;
  }
}

// A ring whose turns are taken over by another thread, when the kernel would give no ring for that, or no descriptor.
std::string taken_over(const std::function<void()>& prepare) {
  const std::unique_ptr<Backend> backend = make_uring_backend();
  prepare();
  std::string text;
  std::shared_ptr<void> lent;
  bool taken = true;
  try {
    lent = backend->keep_lent();
  } catch (const std::system_error& refusal) {
    text = std::string{refusal.what()} + ";";
    taken = false;
  }
  const auto turn = [&] {
    backend->wake();
    static_cast<void>(backend->turn({}, backend->now() + std::chrono::hours{1}));
  };
  if (taken) {
    std::thread{turn}.join();
  } else {
    turn();
  }
  return text + "a turn was made";
}

TEST(Engine, a_loop_stays_with_its_thread_when_the_kernel_has_no_ring_for_another) {
  if (report(Engine::automatic) != "ring;") GTEST_SKIP() << "there are no rings here";
  EXPECT_EQ(in_a_child([] { return taken_over([] { forbid(__NR_io_uring_setup, ENOMEM); }); }),
            "io_uring_setup: Cannot allocate memory;a turn was made");
}

TEST(Engine, a_loop_is_taken_over_by_another_thread_though_there_is_no_further_descriptor) {
  if (report(Engine::automatic) != "ring;") GTEST_SKIP() << "there are no rings here";
  // UndefinedBehaviorSanitizer needs a pipe for each class of an object that it meets for the first time.
  const std::system_error refusal{EMFILE, std::generic_category()};
  EXPECT_EQ(refusal.code(), std::errc::too_many_files_open);
  EXPECT_EQ(taken_over([] {}), "a turn was made");

  const auto use_up_descriptors = [] {
    rlimit few{.rlim_cur = 64, .rlim_max = 64};
    ::setrlimit(RLIMIT_NOFILE, &few);
    while (::dup(0) >= 0) {
    }
  };
  EXPECT_EQ(in_a_child([&] { return taken_over(use_up_descriptors); }), "a turn was made");
}

TEST(Engine, where_nobody_asked_for_io_uring_its_absence_is_no_warning) {
  if (!kRingsAreFollowed) GTEST_SKIP() << "under ThreadSanitizer it is not missed";
  const std::string said = in_a_child([] {
    forbid(__NR_io_uring_setup, ENOSYS);
    return report(Engine::automatic);
  });
  EXPECT_TRUE(said.starts_with("no ring;1 io_uring refused: ")) << said;
  EXPECT_NE(said.find("without it"), std::string::npos) << said;
}

TEST(Engine, whoever_makes_and_destroys_a_backend_that_another_thread_used_is_not_interrupted) {
  if (!kRingsAreFollowed) GTEST_SKIP() << "ThreadSanitizer cannot follow io_uring";
  for (int i = 0; i < 5; ++i) {
    auto backend = make_backend(Engine::automatic, {});
    std::thread{[&] {
      backend->wake();
      static_cast<void>(backend->turn({}, backend->now() + std::chrono::hours{1}));
    }}.join();
    backend.reset();
    // The kernel lets go of a ring a little later, so there is something to wait for here.
    EXPECT_EQ(::poll(nullptr, 0, 20), 0) << errno;
  }
}

TEST(Engine, threads_that_come_and_go_use_a_backend_one_after_the_other) {
  // The system likes to give a new thread what it knew the last one by.
  for (const Engine engine : {Engine::epoll, Engine::automatic}) {
    const auto backend = make_backend(engine, {});
    for (int i = 0; i < 5; ++i) {
      std::thread{[&] {
        backend->wake();
        EXPECT_NO_THROW(static_cast<void>(backend->turn({}, backend->now() + std::chrono::hours{1})));
      }}.join();
    }
  }
}

TEST(Engine, without_a_log_the_fallback_is_silent) {
  const std::string said = in_a_child([] {
    forbid(__NR_io_uring_setup, EPERM);
    static_cast<void>(make_backend(Engine::automatic, {}));
    return std::string{"done"};
  });
  EXPECT_EQ(said, "done");
}

}  // namespace
}  // namespace wirecall::runtime
