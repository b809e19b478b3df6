// See ring.hpp.
#include "runtime/ring.hpp"

#include <cerrno>
#include <exception>
#include <sys/socket.h>
#include <system_error>
#include <thread>

#include "runtime/descriptor.hpp"

namespace wirecall::runtime {

using std::chrono::nanoseconds;

constexpr unsigned kEntries = 256;
constexpr std::uint16_t kGroup = 0;
constexpr std::uint16_t kLargeGroup = 1;
constexpr std::size_t kPageBytes = 4096;
// How long the kernel is given to receive a byte that has arrived already.
constexpr std::chrono::seconds kTrial{1};

[[noreturn]] static void refused(int error, const char* what) {
  throw std::system_error{error, std::generic_category(), what};
}

static void try_ring() {
  const ReceiveBuffers buffers;
  Ring ring{buffers};
  ring.enable();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) refused(errno, "socketpair");
  const Descriptor ours{ends[0], "socketpair"};
  const Descriptor theirs{ends[1], "socketpair"};
  if (::send(theirs.get(), "x", 1, MSG_NOSIGNAL) != 1) refused(errno, "send");
  Ring::receive(ring.entry(), ours.get(), false);
  ring.enter(kTrial);
  int result = -ETIME;
  std::vector<RingCompletion> completions;
  completions.reserve(Ring::kCompletions);
  ring.take(completions);
  for (const RingCompletion& completion : completions) {
    const unsigned flags = IORING_CQE_F_BUFFER | IORING_CQE_F_MORE;
    result = completion.result < 0 || (completion.flags & flags) == flags ? completion.result : -EINVAL;
  }
  if (result != 1) refused(result < 0 ? -result : EIO, "io_uring's multishot receive");
}

Ring::FreeBuffers Ring::make_free_buffers() {
  static_assert(std::max(ReceiveBuffers::kCount, ReceiveBuffers::kLargeCount) * sizeof(io_uring_buf) <= kPageBytes);
  FreeBuffers free{static_cast<io_uring_buf_ring*>(std::aligned_alloc(kPageBytes, kPageBytes)), std::free};
  if (free == nullptr) throw std::bad_alloc{};
  return free;
}

Ring::Ring(const ReceiveBuffers& buffers) : buffers_(buffers) {
  io_uring_params params{};
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL |
                 IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_R_DISABLED;
  params.cq_entries = kCompletions;
  if (const int error = ::io_uring_queue_init_params(kEntries, &ring_, &params); error != 0) {
    refused(-error, "io_uring_setup");
  }
  provide(*free_, kGroup, ReceiveBuffers::kCount);
  provide(*free_large_, kLargeGroup, ReceiveBuffers::kLargeCount);
  for (unsigned buffer = 0; buffer < ReceiveBuffers::kNumbers; ++buffer) give_back(buffer);
}

void Ring::provide(io_uring_buf_ring& free, std::uint16_t group, unsigned count) {
  io_uring_buf_reg wanted{};
  wanted.ring_addr = reinterpret_cast<std::uintptr_t>(&free);
  wanted.ring_entries = count;
  wanted.bgid = group;
  ::io_uring_buf_ring_init(&free);
  if (const int error = ::io_uring_register_buf_ring(&ring_, &wanted, 0); error != 0) {
    ::io_uring_queue_exit(&ring_);
    refused(-error, "io_uring_register");
  }
}

void Ring::enable() {
  const int error = ::io_uring_register(static_cast<unsigned>(ring_.ring_fd), IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
  if (error < 0) refused(-error, "io_uring_register");
  enabled_ = true;
}

io_uring_sqe& Ring::entry() {
  for (;;) {
    if (io_uring_sqe* entry = ::io_uring_get_sqe(&ring_)) [[likely]]
      return *entry;
    submit();
  }
}

void Ring::submit() {
  // The kernel may take a part only when it is short of memory for a moment.
  while (::io_uring_sq_ready(&ring_) != 0) {
    const int result = ::io_uring_submit(&ring_);
    if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) refused(-result, "io_uring_enter");
  }
}

void Ring::enter(nanoseconds wait_max) {
  int result = 0;
  if (wait_max < nanoseconds{0}) {
    result = ::io_uring_submit_and_wait(&ring_, 1);
  } else if (wait_max == nanoseconds{0}) {
    result = ::io_uring_submit_and_get_events(&ring_);
  } else {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(wait_max);
    __kernel_timespec limit{.tv_sec = seconds.count(), .tv_nsec = (wait_max - seconds).count()};
    io_uring_cqe* first = nullptr;
    result = ::io_uring_submit_and_wait_timeout(&ring_, &first, 1, &limit, nullptr);
  }
  if (result < 0 && result != -ETIME && result != -EINTR && result != -EAGAIN && result != -EBUSY) [[unlikely]]
    refused(-result, "io_uring_enter");
  submit();
}

void Ring::take(std::vector<RingCompletion>& into) {
  for (;;) {
    unsigned head = 0;
    unsigned count = 0;
    const io_uring_cqe* completion = nullptr;
    io_uring_for_each_cqe(&ring_, head, completion) {
      into.push_back({.user_data = completion->user_data, .result = completion->res, .flags = completion->flags});
      ++count;
    }
    ::io_uring_cq_advance(&ring_, count);
    if (!::io_uring_cq_has_overflow(&ring_) || into.capacity() - into.size() < kCompletions) [[likely]]
      return;
    ::io_uring_get_events(&ring_);  // now that there is room in the ring
  }
}

void Ring::receive(io_uring_sqe& entry, int fd, bool large) noexcept {
  large ? ::io_uring_prep_recv(&entry, fd, nullptr, 0, 0) : ::io_uring_prep_recv_multishot(&entry, fd, nullptr, 0, 0);
  entry.flags |= IOSQE_BUFFER_SELECT;
  entry.buf_group = large ? kLargeGroup : kGroup;
}

void Ring::give_back(unsigned buffer) noexcept {
  const bool large = ReceiveBuffers::is_large(buffer);
  io_uring_buf_ring* const free = large ? free_large_.get() : free_.get();
  ::io_uring_buf_ring_add(free, buffers_.at(buffer), large ? ReceiveBuffers::kLargeBytes : ReceiveBuffers::kBytes,
                          static_cast<unsigned short>(buffer),
                          ::io_uring_buf_ring_mask(large ? ReceiveBuffers::kLargeCount : ReceiveBuffers::kCount), 0);
  ::io_uring_buf_ring_advance(free, 1);
}

std::unique_ptr<Ring> try_and_make_ring(const ReceiveBuffers& buffers) {
  std::unique_ptr<Ring> ring;
  std::exception_ptr refusal;
  std::thread{[&] {
    try {
      try_ring();
      ring = std::make_unique<Ring>(buffers);
    } catch (...) {
      refusal = std::current_exception();
    }
  }}.join();
  if (refusal != nullptr) std::rethrow_exception(refusal);
  return ring;
}

}  // namespace wirecall::runtime
