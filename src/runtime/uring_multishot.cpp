// What stands in the kernel for a backend on io_uring (uring.hpp): receives and accepts, from when they are asked for
// until they end, and what they bring.
#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/uring.hpp"

namespace wirecall::runtime {

// Receives are large until so many in a row would have fitted into a small buffer: parts of large messages may.
constexpr std::uint8_t kSmallInARow = 16;

void UringBackend::arm(std::uint32_t at) {
  Slot& slot = slots_[at];
  io_uring_sqe& entry = ring_->entry();
  if (slot.receiving) {
    Ring::receive(entry, slot.fd, slot.large);
    entry.user_data = key(Entry::receive, at);
  } else {
    ::io_uring_prep_multishot_accept(&entry, slot.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    entry.user_data = key(Entry::accept, at);
  }
  slot.armed = true;
  ++slot.in_flight;
}

void UringBackend::arm_later(std::uint32_t at) {
  if (!std::exchange(slots_[at].waiting, true)) to_arm_.push_back(at);
}

// Those that are the kernel's once what was lent has been given back.
unsigned UringBackend::free_buffers(bool large) const noexcept {
  const auto held = std::ranges::count_if(deferred_, [large](const RingCompletion& told) {
    return (told.flags & IORING_CQE_F_BUFFER) != 0 &&
           ReceiveBuffers::is_large(told.flags >> IORING_CQE_BUFFER_SHIFT) == large;
  });
  return (large ? ReceiveBuffers::kLargeCount : ReceiveBuffers::kCount) - static_cast<unsigned>(held);
}

// A receive ends when there is no buffer left. No more of them are begun again than there are buffers, or most would
// end for the same reason. Those that are not heavy come first, and then who has waited longest.
void UringBackend::arm_those_that_ended() {
  unsigned small = free_buffers(false);
  unsigned large = free_buffers(true);
  const auto begin = [&](bool heavies) {
    std::erase_if(to_arm_, [&](std::uint32_t at) {
      Slot& slot = slots_[at];
      if (slot.receiving && !slot.armed) {
        unsigned& left = slot.large ? large : small;
        if (left == 0 || fair_scheduler_.heavy(slot.last_bytes) != heavies) return false;
        --left;
        arm(at);
      } else if (slot.accepting && !slot.armed) {
        arm(at);
      } else if (slot.polled != 0 && slot.polling == 0) {
        arm_poll(at);
      }
      slot.waiting = false;
      return true;
    });
  };
  begin(false);
  if (!to_arm_.empty()) begin(true);
}

void UringBackend::cancel(std::uint32_t at) {
  Slot& slot = slots_[at];
  if (!slot.armed) {
    end_multishot(at, ECANCELED);
    prompt_ = true;
    return;
  }
  slot.cancelling = true;
  end_entry(at);
}

void UringBackend::end_entry(std::uint32_t at) {
  io_uring_sqe& entry = ring_->entry();
  ::io_uring_prep_cancel64(&entry, key(slots_[at].receiving ? Entry::receive : Entry::accept, at), 0);
  entry.flags |= IOSQE_CQE_SKIP_SUCCESS;
  entry.user_data = key(Entry::cancel, at);
}

void UringBackend::end_multishot(std::uint32_t at, int error) {
  KernelBackend::end_multishot(at, error);
  slots_[at].cancelling = false;
  if (error == 0 || error == ECANCELED) to_watch_.push_back(at);
}

// ---- what they bring ----

// Notes whether the entry still stands. False when the user is to hear no more of it.
bool UringBackend::multishot_completed(std::uint32_t at, const RingCompletion& told) {
  Slot& slot = slots_[at];
  if ((told.flags & IORING_CQE_F_MORE) == 0) {
    slot.armed = false;
    --slot.in_flight;
  }
  return !slot.closing;
}

// What has not been handed on yet.
std::span<char> UringBackend::rest_of(const Arrived& told) noexcept {
  char* const rest = ring_->buffers().at(told.flags >> IORING_CQE_BUFFER_SHIFT) + told.handed_on;
  if (told.handed_on != 0) *rest = told.behind;
  return {rest, static_cast<std::size_t>(told.result - told.handed_on)};
}

// The buffer stays here for the rest.
void UringBackend::hand_on_part(Arrived& told, std::size_t bytes) {
  const std::uint32_t at = slot_of(told.user_data);
  const std::span<char> part = rest_of(told).first(bytes);
  told.handed_on += static_cast<std::int32_t>(part.size());
  told.behind = std::exchange(*(part.data() + part.size()), '\0');
  complete_some(OperationKind::receive, at).bytes = part;
  parted_ = true;
}

void UringBackend::received(std::uint32_t at, const Arrived& told) {
  const unsigned buffer = told.flags >> IORING_CQE_BUFFER_SHIFT;
  if ((told.flags & IORING_CQE_F_BUFFER) != 0) lent_.push_back(buffer);
  if (!multishot_completed(at, told)) return;
  Slot& slot = slots_[at];
  if (told.result > 0) [[likely]] {
    const std::span<char> rest = rest_of(told);
    complete_some(OperationKind::receive, at).bytes = rest;
    *(rest.data() + rest.size()) = 0;
    const auto bytes = static_cast<std::uint32_t>(told.result);
    fair_scheduler_.brought(at, std::exchange(slot.last_bytes, bytes), bytes);
    size_receives(at, static_cast<std::size_t>(told.result));
    if (slot.armed) [[likely]]
      return;
  }
  slot.ended = told.result == 0;
  if (slot.ended) return end_multishot(at, 0);
  if (slot.cancelling) return end_multishot(at, ECANCELED);
  switch (-told.result) {
    case ENOBUFS:
    case EINTR:
    case EAGAIN:
    case ECANCELED:  // by ourselves: the next one is large
      return arm_later(at);
    default:
      if (told.result > 0) return arm_later(at);
      end_multishot(at, -told.result);
  }
}

// A receive that has come full, or has had room for much more, is the last of its size.
void UringBackend::size_receives(std::uint32_t at, std::size_t bytes) {
  Slot& slot = slots_[at];
  if (bytes >= ReceiveBuffers::kBytes) [[unlikely]] {
    slot.small = 0;
    if (std::exchange(slot.large, true) || !slot.armed) return;
    end_entry(at);
  } else if (slot.large && !slot.armed && ++slot.small == kSmallInARow) {
    slot.small = 0;
    slot.large = false;
  }
}

void UringBackend::accepted(std::uint32_t at, const RingCompletion& told) {
  if (!multishot_completed(at, told)) {
    if (told.result >= 0) ::close(told.result);
    return;
  }
  if (told.result >= 0) {
    complete_some(OperationKind::accept, at).descriptor = told.result;
  }
  if (slots_[at].armed) return;
  if (slots_[at].cancelling) {
    // The kernel may have told this accept alone of a connection, and no process that accepts on the socket as well.
    accept_arrivals(at);
    return end_multishot(at, ECANCELED);
  }
  if (told.result >= 0 || told.result == -EINTR || told.result == -EAGAIN || concerns_one_connection(-told.result)) {
    return arm_later(at);
  }
  // No descriptors or no memory: whoever submitted the accept submits it again when it thinks best.
  end_multishot(at, -told.result);
}

// Until the kernel has taken down the former ring, which it does when it likes, that one's accept stands first in a row
// of which only the first is told of a connection; and nobody hears it any more. A poll is told in any case.
void UringBackend::listen_for_arrivals(std::uint32_t at) {
  poll(at, Entry::arrivals, POLLIN).len = IORING_POLL_ADD_MULTI;
}

void UringBackend::accept_arrivals(std::uint32_t at) {
  for (;;) {
    const int fd = ::accept4(slots_[at].fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;  // what is wrong, the accept that stands says
    complete_some(OperationKind::accept, at).descriptor = fd;
  }
}

}  // namespace wirecall::runtime
