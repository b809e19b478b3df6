// See shm_segment.hpp. A page with the headers of both rings comes first, then the bytes of the server's ring, then
// those of the client's.
#include "transport/shm_segment.hpp"

#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/magic.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace wirecall::transport {

constexpr std::size_t kHeaderBytes = 4096;
static_assert(2 * sizeof(ShmRingHeader) <= kHeaderBytes);
constexpr std::size_t kRingBytesMin = 4096;
constexpr std::size_t kRingBytesMax = 64 * 1024 * 1024;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

static std::size_t segment_bytes(std::size_t ring_bytes) noexcept { return kHeaderBytes + 2 * ring_bytes; }

static char* map_whole(int descriptor, std::size_t ring_bytes) noexcept {
  void* const memory =
      ::mmap(nullptr, segment_bytes(ring_bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

std::expected<std::pair<ShmSegment, runtime::Descriptor>, int> ShmSegment::make() {
  runtime::Descriptor file{::memfd_create("wirecall", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (file.get() < 0) return std::unexpected{errno};
  const auto size = static_cast<off_t>(segment_bytes(kShmRingBytes));
  // The memory is there from the beginning: where the system has none, this says so, and not a signal later on.
  if (::ftruncate(file.get(), size) != 0 || ::fallocate(file.get(), 0, 0, size) != 0 ||
      ::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0)
    return std::unexpected{errno};
  char* const memory = map_whole(file.get(), kShmRingBytes);
  if (memory == nullptr) return std::unexpected{errno};
  ShmSegment segment{memory, kShmRingBytes};
  new (memory) ShmRingHeader[2];
  return std::pair{std::move(segment), std::move(file)};
}

std::expected<ShmSegment, std::string> ShmSegment::map(int descriptor, std::size_t ring_bytes) {
  if (!std::has_single_bit(ring_bytes) || ring_bytes < kRingBytesMin || ring_bytes > kRingBytesMax)
    return std::unexpected{"its rings have a size that cannot be"};
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals)
    return std::unexpected{"its memory is not sealed against shrinking, growing and further seals"};
  // Memory in huge pages can be sealed as well, and may be missing when it is touched.
  struct statfs system{};
  if (::fstatfs(descriptor, &system) != 0 || system.f_type != TMPFS_MAGIC)
    return std::unexpected{"its memory is not of the kind that memfd_create makes"};
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) ||
      std::cmp_not_equal(status.st_size, segment_bytes(ring_bytes)))
    return std::unexpected{"its memory has another size than it says"};
  char* const memory = map_whole(descriptor, ring_bytes);
  if (memory == nullptr) return std::unexpected{std::string{"its memory cannot be mapped: "} + std::strerror(errno)};
  return ShmSegment{memory, ring_bytes};
}

ShmSegment::ShmSegment(ShmSegment&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), ring_bytes_(other.ring_bytes_) {}

ShmSegment::~ShmSegment() {
  if (memory_ != nullptr) ::munmap(memory_, segment_bytes(ring_bytes_));
}

ShmRingHeader& ShmSegment::header(std::size_t ring) const noexcept {
  return reinterpret_cast<ShmRingHeader*>(memory_)[ring];
}

char* ShmSegment::bytes(std::size_t ring) const noexcept { return memory_ + kHeaderBytes + ring * ring_bytes_; }

}  // namespace wirecall::transport
