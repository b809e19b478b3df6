// A pipe that a loop watches while its owner reads and writes it.
#include "wirecall/watch.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "runtime/backend.hpp"
#include "runtime/descriptor.hpp"
#include "wirecall/loop.hpp"

namespace wirecall {
namespace {

using runtime::Descriptor;
using std::chrono::nanoseconds;

class WatchTest : public testing::TestWithParam<Engine> {
 protected:
  WatchTest() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    reading_ = Descriptor{ends[0]};
    writing_ = Descriptor{ends[1]};
  }
  void SetUp() override {
    std::unique_ptr<runtime::Backend> backend;
    if (GetParam() == Engine::epoll) {
      backend = runtime::make_epoll_backend();
    } else if (!runtime::kRingsAreFollowed) {
      GTEST_SKIP() << "a sanitizer would see races that are none";
    } else {
      try {
        backend = runtime::make_uring_backend();
      } catch (const std::system_error& refusal) {
        GTEST_SKIP() << refusal.what();
      }
    }
    loop_.emplace(std::move(backend));
  }
  void write(std::string_view text) const {
    EXPECT_EQ(::write(writing_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string read() const {
    char block[64];
    const ssize_t got = ::read(reading_.get(), block, sizeof block);
    return got > 0 ? std::string{block, static_cast<std::size_t>(got)} : std::string{};
  }
  void turns(int count) {
    for (int i = 0; i < count; ++i) loop_->turn(nanoseconds{0});
  }
  // A function that counts.
  [[nodiscard]] WatchFunction counting() {
    return [this](Readiness, int error) {
      EXPECT_EQ(error, 0);
      ++told_;
    };
  }

  Descriptor reading_;
  Descriptor writing_;
  int told_ = 0;
  std::optional<Loop> loop_;
};

TEST_P(WatchTest, a_wait_ends_when_the_descriptor_is_ready) {
  std::string got;
  const Watch watch = loop_->watch(reading_.get(), Readiness::readable, [&](Readiness ready, int error) {
    EXPECT_EQ(ready, Readiness::readable);
    EXPECT_EQ(error, 0);
    got += read();
  });
  turns(3);
  const std::jthread writer{[this] { write("hello"); }};
  while (got.empty()) loop_->turn();
  EXPECT_EQ(got, "hello");
}

TEST_P(WatchTest, what_is_not_read_is_told_in_each_turn) {
  const Watch watch = loop_->watch(reading_.get(), Readiness::readable, counting());
  write("hello");
  turns(5);
  EXPECT_GE(told_, 3);
  EXPECT_EQ(read(), "hello");
  turns(1);
  told_ = 0;
  turns(5);
  EXPECT_EQ(told_, 0);
}

TEST_P(WatchTest, what_is_wanted_changes) {
  Watch watch = loop_->watch(writing_.get(), Readiness::none, counting());
  turns(3);
  EXPECT_EQ(told_, 0);
  watch.want(Readiness::writable);
  turns(3);
  EXPECT_GE(told_, 1);
  watch.want(Readiness::none);
  told_ = 0;
  turns(3);
  EXPECT_EQ(told_, 0);
}

TEST_P(WatchTest, the_function_may_end_its_own_watch) {
  std::optional<Watch> watch;
  const auto mark = std::make_shared<int>(0);
  watch.emplace(loop_->watch(reading_.get(), Readiness::readable, [&watch, mark](Readiness, int) {
    watch.reset();
    ++*mark;  // what the function holds is there until it returns
  }));
  write("hello");
  turns(5);
  EXPECT_EQ(*mark, 1);
  EXPECT_EQ(mark.use_count(), 1) << "and goes then";
}

TEST_P(WatchTest, the_function_may_put_another_watch_in_its_place) {
  Watch watch;
  watch = loop_->watch(reading_.get(), Readiness::readable,
                       [&](Readiness, int) { watch = loop_->watch(reading_.get(), Readiness::readable, counting()); });
  write("hello");
  turns(6);
  EXPECT_GE(told_, 1);
}

TEST_P(WatchTest, the_function_may_close_the_descriptor) {
  int closed = 0;
  std::optional<Watch> watch{loop_->watch(reading_.get(), Readiness::readable, [&](Readiness, int) {
    reading_ = Descriptor{};
    ++closed;
  })};
  write("hello");
  turns(3);
  EXPECT_GE(closed, 1);
  watch.reset();
  turns(3);
  pollfd waiting{.fd = writing_.get(), .events = POLLOUT, .revents = 0};
  EXPECT_EQ(::poll(&waiting, 1, 0), 1);
  EXPECT_NE(waiting.revents & POLLERR, 0) << "nobody reads any more";
}

TEST_P(WatchTest, what_the_function_throws_leaves_by_the_turn_and_the_watch_goes_on) {
  int thrown = 0;
  const Watch watch = loop_->watch(reading_.get(), Readiness::readable, [&](Readiness, int) {
    ++thrown;
    throw std::runtime_error("no");
  });
  const Watch other = loop_->watch(reading_.get(), Readiness::readable, counting());
  write("hello");
  for (int i = 0; i < 8; ++i) {
    try {
      loop_->turn(nanoseconds{0});
    } catch (const std::runtime_error&) {
    }
  }
  EXPECT_GE(thrown, 2);
  EXPECT_GE(told_, 2);
}

TEST_P(WatchTest, one_that_has_gone_is_told_nothing_of_what_was_found_in_the_same_turn) {
  std::optional<Watch> one;
  std::optional<Watch> other;
  int told = 0;
  one.emplace(loop_->watch(reading_.get(), Readiness::readable, [&](Readiness, int) {
    ++told;
    other.reset();
  }));
  other.emplace(loop_->watch(reading_.get(), Readiness::readable, [&](Readiness, int) {
    ++told;
    one.reset();
  }));
  write("hello");
  turns(1);
  EXPECT_EQ(told, 1);
}

TEST_P(WatchTest, goes_on_when_another_thread_turns_the_loop) {
  const Watch watch = loop_->watch(reading_.get(), Readiness::readable, counting());
  turns(3);
  write("hello");
  std::jthread{[this] {
    while (told_ < 3) loop_->turn();
  }}.join();
  EXPECT_EQ(read(), "hello");
}

TEST_P(WatchTest, a_descriptor_that_is_not_open_is_refused) {
  EXPECT_THROW(static_cast<void>(loop_->watch(1 << 24, Readiness::readable, counting())), std::system_error);
}

INSTANTIATE_TEST_SUITE_P(Engines, WatchTest, testing::Values(Engine::epoll, Engine::uring),
                         [](const auto& info) { return info.param == Engine::epoll ? "epoll" : "uring"; });

}  // namespace
}  // namespace wirecall
