// UdpInput and UdpOutput: datagrams as the kernel hands them over and takes them, many by one system call. UdpInput
// cuts what UDP_GRO has joined; UdpOutput joins replies of one size to one source (UDP_SEGMENT). Both know a descriptor
// and nothing of a loop. Each belongs to one UdpSocket.
#pragma once

#include <array>
#include <memory>
#include <sys/socket.h>
#include <vector>

#include "transport/datagram_socket.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/stats.hpp"

namespace wirecall::transport {

class UdpInput {
 public:
  struct Datagram {
    std::string_view bytes;
    const DatagramAddress* source = nullptr;
    const std::shared_ptr<char[]>* room = nullptr;  ///< which has the bytes
  };

  /// The next of those that have been received; false for none. It lends the source until `receive`, and the bytes,
  /// with kPaddingBytes behind them, as well, or for as long as anybody shares the room. The first byte behind them is
  /// zero until `next`.
  [[nodiscard]] bool next(Datagram& datagram) noexcept;
  [[nodiscard]] bool has_more() const noexcept { return at_ != count_; }
  /// Receives what there is, after the last of the former: 0, or EAGAIN for nothing, or another errno. What the kernel
  /// had no room for is counted, and so is what nobody may be answered for: what has come from port 0, or to many.
  [[nodiscard]] int receive(int descriptor, Stats& stats);

 private:
  // Each has room for the largest datagram, or for what the kernel joins; a little more for what is read behind it, and
  // so that they do not all begin in the same lines of a cache.
  static constexpr std::size_t kSlots = 16;
  static constexpr std::size_t kSlotBytes = 65'536;
  static constexpr std::size_t kRoomBytes = kSlotBytes + 320;

  struct Slot {
    DatagramAddress source;
    std::size_t room = 0;  // which of the rooms it has
    std::size_t bytes = 0;
    std::size_t segment = 0;  // bytes of each of the datagrams in it but the last, which may have fewer
  };

  [[nodiscard]] bool read_control(msghdr& header, Slot& slot, Stats& stats) noexcept;

  std::array<std::shared_ptr<char[]>, kSlots> rooms_;  // made with the first receive
  std::array<Slot, kSlots> slots_;
  std::size_t count_ = 0;   // of slots that have been filled
  std::size_t at_ = 0;      // the first of them that has something left
  std::size_t offset_ = 0;  // of that in it
  char* behind_ = nullptr;  // the datagram that is lent: a zero takes the place of `covered_`
  char covered_ = 0;
  std::uint32_t dropped_ = 0;  // as the kernel counts
};

class UdpOutput {
 public:
  UdpOutput(int descriptor, Stats& stats) noexcept : descriptor_(descriptor), stats_(&stats) {}

  /// Kept until `flush`, or for less where it is much, or all that one send may join. Without memory it is lost, and
  /// counted.
  void add(std::string_view datagram, const DatagramAddress& to) noexcept;
  /// What the system has no room for is lost, and counted, as is what it refuses. Returns 0, or the errno of the last
  /// that was refused since the former flush.
  int flush() noexcept;

 private:
  // What one send may join: since Linux 6.9, and before.
  static constexpr std::size_t kSegmentsMax = 128;
  static constexpr std::size_t kSegmentsOfOldKernels = 64;
  static constexpr std::size_t kJoinedBytesMax = 64'000;
  static constexpr std::size_t kMessagesMax = 64;
  static constexpr std::size_t kBytesMax = 512 * 1024;
  static constexpr std::uint32_t kJoinLessFlushes = 1024;

  // Datagrams of one size to one address, the last of which may be smaller; they stand behind each other.
  struct Message {
    DatagramAddress to;
    std::size_t at = 0;
    std::size_t bytes = 0;
    std::size_t segment = 0;
    std::size_t count = 0;
  };

  [[nodiscard]] bool joins(const Message& last, std::string_view datagram, const DatagramAddress& to) const noexcept;
  void flush_early() noexcept;
  void send_all() noexcept;
  [[nodiscard]] bool send_apart(const Message& message) noexcept;
  void join_less(const Message& refused, int error) noexcept;
  void lost(std::size_t datagrams, int error) noexcept;
  void sent(const Message& message) noexcept;

  int descriptor_;
  Stats* stats_;
  Buffer bytes_;
  std::vector<Message> messages_;
  int refused_ = 0;  // an errno
  std::size_t segments_max_ = kSegmentsMax;
  std::size_t segment_max_ = kJoinedBytesMax;  // larger ones are not joined, since the kernel has refused to
  std::uint32_t join_less_for_ = 0;            // so many flushes; 0 where both are what they were
};

}  // namespace wirecall::transport
