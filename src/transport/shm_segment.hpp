// ShmSegment: the memory that the two ends of a connection by shared memory have in common: two rings, one each way.
// The server makes it, as a file without a name (memfd_create) that is sealed against shrinking, growing and further
// seals; the client looks at the seals and the size before it maps it, since reading what a peer has cut off would kill
// the reader (SIGBUS). The memory goes with the last of the two processes, however they end. A resource with one owner.
// Thread: any, one at a time.
#pragma once

#include <expected>
#include <string>

#include "runtime/descriptor.hpp"
#include "transport/shm_ring.hpp"

namespace wirecall::transport {

/// Bytes of one ring, as the server makes it.
inline constexpr std::size_t kShmRingBytes = 64 * 1024;

enum class ShmRole : std::uint8_t { server, client };

class ShmSegment {
 public:
  /// Makes one, and the descriptor by which the client maps it. The error is an errno.
  [[nodiscard]] static std::expected<std::pair<ShmSegment, runtime::Descriptor>, int> make();
  /// Maps what a server has sent. The error says what is wrong with it.
  [[nodiscard]] static std::expected<ShmSegment, std::string> map(int descriptor, std::size_t ring_bytes);
  ShmSegment(ShmSegment&& other) noexcept;
  ShmSegment& operator=(ShmSegment&&) = delete;
  ~ShmSegment();

  [[nodiscard]] ShmWriter writer(ShmRole role) const noexcept {
    const std::size_t ring = role == ShmRole::server ? 0 : 1;
    return {header(ring), bytes(ring), ring_bytes_};
  }
  [[nodiscard]] ShmReader reader(ShmRole role) const noexcept {
    const std::size_t ring = role == ShmRole::server ? 1 : 0;
    return {header(ring), bytes(ring), ring_bytes_};
  }

 private:
  ShmSegment(char* memory, std::size_t ring_bytes) noexcept : memory_(memory), ring_bytes_(ring_bytes) {}
  [[nodiscard]] ShmRingHeader& header(std::size_t ring) const noexcept;
  [[nodiscard]] char* bytes(std::size_t ring) const noexcept;

  char* memory_;
  std::size_t ring_bytes_;
};

}  // namespace wirecall::transport
