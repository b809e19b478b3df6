// A backend on io_uring whose memory fails while another thread is to take its loop over: then that does not come to
// pass, and the backend goes on where it is.
#include <array>
#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

#include "base/sanitizers.hpp"
#include "runtime/backend.hpp"
#include "tests/memory/failing_memory.hpp"

namespace wirecall::runtime {
namespace {

using memory::Failing;
using memory::FailingMemory;

// One connection, whose other end is here.
class RingMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (!kRingsAreFollowed) GTEST_SKIP() << "ThreadSanitizer cannot follow io_uring";
    try {
      backend_ = make_uring_backend();
    } catch (const std::system_error& refusal) {
      GTEST_SKIP() << "the kernel refuses io_uring: " << refusal.what();
    }
    std::array<int, 2> ends;
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    const Handle handle{.slot = 0, .generation = 1};
    std::array<Operation, 2> submitted{
        Operation{.kind = OperationKind::open, .handle = handle, .descriptor = ends[0], .buffer = {}},
        Operation{.kind = OperationKind::receive, .handle = handle, .buffer = {}}};
    peer_ = ends[1];
    static_cast<void>(backend_->turn(submitted, backend_->now()));
  }
  ~RingMemory() override {
    if (peer_ >= 0) ::close(peer_);
  }

  // The bytes as they are lent, once they have come.
  std::string_view receive(std::string_view sent) {
    EXPECT_EQ(::send(peer_, sent.data(), sent.size(), MSG_NOSIGNAL), static_cast<ssize_t>(sent.size()));
    for (int turns = 0; turns < 10'000; ++turns) {
      for (const Completion& completion : backend_->turn({}, backend_->now() + std::chrono::seconds{1})) {
        if (!completion.bytes.empty()) return {completion.bytes.data(), completion.bytes.size()};
      }
    }
    return {};
  }

  std::unique_ptr<Backend> backend_;
  int peer_ = -1;
};

TEST_F(RingMemory, that_fails_for_a_further_ring_changes_nothing) {
  std::size_t number = 1;
  for (bool failed = true; failed && !HasFailure(); ++number) {
    const std::string_view lent = receive("lent");
    std::shared_ptr<void> kept;
    {
      const FailingMemory memory{number, Failing::once};
      try {
        kept = backend_->keep_lent();
      } catch (const std::bad_alloc&) {
      }
    }
    failed = FailingMemory::has_failed();
    EXPECT_EQ(kept == nullptr, failed);
    EXPECT_EQ(lent, "lent") << number;
    EXPECT_EQ(receive("more"), "more") << number;
  }
  EXPECT_GT(number, 3U) << "buffers and a ring need memory";
}

}  // namespace
}  // namespace wirecall::runtime
