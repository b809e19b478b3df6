// See xdp_rings.hpp.
#include "transport/xdp_rings.hpp"

#include <atomic>
#include <cerrno>
#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <system_error>
#include <utility>

namespace wirecall::transport {

// Of each ring, and so of frames to receive, and of those to send.
constexpr std::uint32_t kRingFrames = 2048;
static_assert(sizeof(XdpDescriptor) == sizeof(xdp_desc));

static std::system_error failed(const char* call) { return {errno, std::generic_category(), call}; }

// ---- Mapping ----

Mapping::Mapping(std::size_t bytes, int descriptor, std::uint64_t offset) : size_(bytes) {
  const int flags = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE;
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, static_cast<off_t>(offset));
  if (at == MAP_FAILED) throw failed("mmap");
  data_ = static_cast<char*>(at);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

// ---- XdpRing ----

static std::uint32_t load(std::uint32_t* number) noexcept {
  return std::atomic_ref{*number}.load(std::memory_order_acquire);
}
static void increase(std::uint32_t* number) noexcept {
  std::atomic_ref{*number}.store(*number + 1, std::memory_order_release);
}

template <class Entry>
XdpRing<Entry>::XdpRing(Mapping mapping, std::uint64_t producer, std::uint64_t consumer, std::uint64_t entries,
                        std::uint32_t size)
    : mapping_(std::move(mapping)),
      producer_(reinterpret_cast<std::uint32_t*>(mapping_.data() + producer)),
      consumer_(reinterpret_cast<std::uint32_t*>(mapping_.data() + consumer)),
      entries_(reinterpret_cast<Entry*>(mapping_.data() + entries)),
      size_(size) {}

template <class Entry>
bool XdpRing<Entry>::is_full() const noexcept {
  return *producer_ - load(consumer_) == size_;
}

template <class Entry>
void XdpRing<Entry>::push(const Entry& entry) noexcept {
  entries_[*producer_ & (size_ - 1)] = entry;
  increase(producer_);
}

template <class Entry>
const Entry* XdpRing<Entry>::front() const noexcept {
  return load(producer_) != *consumer_ ? &entries_[*consumer_ & (size_ - 1)] : nullptr;
}

template <class Entry>
void XdpRing<Entry>::pop() noexcept {
  increase(consumer_);
}

template <class Entry>
std::uint32_t XdpRing<Entry>::count() const noexcept {
  return load(producer_) - load(consumer_);
}

// ---- XdpRings ----

static void set(int socket, int option, std::uint32_t value, const char* call) {
  if (::setsockopt(socket, SOL_XDP, option, &value, sizeof value) != 0) throw failed(call);
}

template <class Entry>
static XdpRing<Entry> ring_of(int socket, const xdp_ring_offset& offsets, std::uint64_t page) {
  return {Mapping{offsets.desc + kRingFrames * sizeof(Entry), socket, page}, offsets.producer, offsets.consumer,
          offsets.desc, kRingFrames};
}

XdpRings::XdpRings(unsigned interface) : socket_(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)) {
  const int fd = socket_.get();
  if (fd < 0) throw failed("socket(AF_XDP)");
  frames_ = Mapping{2 * kRingFrames * kFrameBytes, -1, 0};
  xdp_umem_reg memory{};
  memory.addr = reinterpret_cast<std::uintptr_t>(frames_.data());
  memory.len = frames_.size();
  memory.chunk_size = kFrameBytes;
  if (::setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &memory, sizeof memory) != 0) throw failed("setsockopt(XDP_UMEM_REG)");
  set(fd, XDP_UMEM_FILL_RING, kRingFrames, "setsockopt(XDP_UMEM_FILL_RING)");
  set(fd, XDP_UMEM_COMPLETION_RING, kRingFrames, "setsockopt(XDP_UMEM_COMPLETION_RING)");
  set(fd, XDP_RX_RING, kRingFrames, "setsockopt(XDP_RX_RING)");
  set(fd, XDP_TX_RING, kRingFrames, "setsockopt(XDP_TX_RING)");
  xdp_mmap_offsets offsets{};
  socklen_t size = sizeof offsets;
  if (::getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &size) != 0) throw failed("getsockopt(XDP_MMAP_OFFSETS)");
  fill_ = ring_of<std::uint64_t>(fd, offsets.fr, XDP_UMEM_PGOFF_FILL_RING);
  sent_ = ring_of<std::uint64_t>(fd, offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING);
  received_ = ring_of<XdpDescriptor>(fd, offsets.rx, XDP_PGOFF_RX_RING);
  to_send_ = ring_of<XdpDescriptor>(fd, offsets.tx, XDP_PGOFF_TX_RING);
  for (std::size_t i = 0; i < kRingFrames; ++i) fill_.push(i * kFrameBytes);
  free_.reserve(kRingFrames);
  for (std::size_t i = kRingFrames; i < 2 * kRingFrames; ++i) free_.push_back(frames_.data() + i * kFrameBytes);
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_flags = XDP_COPY;
  address.sxdp_ifindex = interface;
  address.sxdp_queue_id = 0;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) throw failed("bind(AF_XDP)");
}

std::span<char> XdpRings::receive() noexcept {
  const XdpDescriptor* const next = received_.front();
  if (next == nullptr) return {};
  const std::span<char> frame{frames_.data() + next->at, next->bytes};
  received_.pop();
  return frame;
}

// There is room, since the ring has as many entries as there are frames to receive.
void XdpRings::give_back(std::span<char> frame) noexcept {
  const auto at = static_cast<std::uint64_t>(frame.data() - frames_.data());
  fill_.push(at - at % kFrameBytes);
}

char* XdpRings::take() noexcept {
  if (free_.empty()) static_cast<void>(flush());
  if (free_.empty()) return nullptr;
  char* const frame = free_.back();
  free_.pop_back();
  return frame;
}

void XdpRings::send(char* frame, std::size_t bytes) noexcept {
  to_send_.push({.at = static_cast<std::uint64_t>(frame - frames_.data()),
                 .bytes = static_cast<std::uint32_t>(bytes),
                 .options = 0});
}

// One call sends some 32 of them.
int XdpRings::flush() noexcept {
  int error = 0;
  for (std::uint32_t left = to_send_.count(); left != 0;) {
    error = ::sendto(socket_.get(), nullptr, 0, MSG_DONTWAIT, nullptr, 0) >= 0 ? 0 : errno;
    if (error == EINTR) continue;
    const std::uint32_t before = std::exchange(left, to_send_.count());
    if (left == before) break;
  }
  collect_sent();
  return to_send_.count() == 0 ? 0 : (error != 0 ? error : EAGAIN);
}

void XdpRings::collect_sent() noexcept {
  for (const std::uint64_t* at = sent_.front(); at != nullptr; at = sent_.front()) {
    free_.push_back(frames_.data() + *at);
    sent_.pop();
  }
}

}  // namespace wirecall::transport
