// The end of a process while another of its threads uses OpenSSL.
#include "transport/openssl_use.hpp"

#include <cstdlib>
#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <semaphore>
#include <thread>
#include <unistd.h>

namespace wirecall::transport {
namespace {

using namespace std::chrono_literals;

std::counting_semaphore<8> begun{0};
std::counting_semaphore<8> exits{0};
std::counting_semaphore<8> openssl_ended{0};

// The functions for the exit are called the other way round: OpenSSL's own between these two. A thread that is wrong
// has a moment to say so.
void exit_beside(void (*thread)()) {
  std::atexit([] {
    openssl_ended.release();
    std::this_thread::sleep_for(50ms);
  });
  OpensslUse::watch_exit();
  std::atexit([] { exits.release(); });
  std::thread{thread}.detach();
  begun.acquire();
  std::exit(0);
}

class OpensslUseDeathTest : public testing::Test {
 protected:
  OpensslUseDeathTest() { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

TEST_F(OpensslUseDeathTest, the_end_of_a_process_waits_for_a_thread_that_uses_it) {
  const auto uses_it = [] {
    const OpensslUse use;
    begun.release();
    exits.acquire();
    if (openssl_ended.try_acquire_for(100ms) || OPENSSL_init_crypto(0, nullptr) != 1) ::_exit(1);
  };
  EXPECT_EXIT(exit_beside(uses_it), testing::ExitedWithCode(0), "");
}

TEST_F(OpensslUseDeathTest, a_thread_does_not_begin_to_use_it_once_the_process_ends) {
  const auto begins_late = [] {
    begun.release();
    openssl_ended.acquire();
    const OpensslUse use;
    ::_exit(1);
  };
  EXPECT_EXIT(exit_beside(begins_late), testing::ExitedWithCode(0), "");
}

TEST_F(OpensslUseDeathTest, the_thread_that_ends_the_process_may_use_it_to_the_last) {
  const auto ends = [] {
    std::atexit([] {
      const OpensslUse use;
      ::_exit(0);
    });
    OpensslUse::watch_exit();
    std::exit(1);
  };
  EXPECT_EXIT(ends(), testing::ExitedWithCode(0), "");
}

TEST_F(OpensslUseDeathTest, a_thread_that_pauses_may_go_on_for_as_long_as_the_process_does) {
  const auto pauses = [] {
    const OpensslUse use;
    const OpensslUse::Pause pause;
    begun.release();
    for (;;) ::pause();
  };
  EXPECT_EXIT(exit_beside(pauses), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace wirecall::transport
