// XdpRings: a socket of AF_XDP on the first queue of an interface, with the memory that it shares with the kernel:
// frames, and four rings of them (Documentation/networking/af_xdp.rst of the kernel). The kernel copies (XDP_COPY),
// which every interface can. Which frames come is the program's business (transport/xdp_filter.hpp). Knows no loop; one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/descriptor.hpp"

namespace wirecall::transport {

/// Memory that is mapped, until this ends.
class Mapping {
 public:
  Mapping() = default;
  /// Throws std::system_error.
  Mapping(std::size_t bytes, int descriptor, std::uint64_t offset);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  [[nodiscard]] char* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A ring of entries between two of whom one produces and the other consumes: received <= head - tail <= size.
template <class Entry>
class XdpRing {
 public:
  XdpRing() = default;
  /// Where its two numbers and its entries stand in `mapping`. `size` is a power of two.
  XdpRing(Mapping mapping, std::uint64_t producer, std::uint64_t consumer, std::uint64_t entries, std::uint32_t size);

  // For who produces.
  [[nodiscard]] bool is_full() const noexcept;
  void push(const Entry& entry) noexcept;
  // For who consumes.
  [[nodiscard]] const Entry* front() const noexcept;  ///< null for none
  void pop() noexcept;
  /// Entries that have not been consumed.
  [[nodiscard]] std::uint32_t count() const noexcept;

 private:
  Mapping mapping_;
  std::uint32_t* producer_ = nullptr;
  std::uint32_t* consumer_ = nullptr;
  Entry* entries_ = nullptr;
  std::uint32_t size_ = 0;
};

/// Of the kernel: struct xdp_desc.
struct XdpDescriptor {
  std::uint64_t at;
  std::uint32_t bytes;
  std::uint32_t options;
};

class XdpRings {
 public:
  static constexpr std::size_t kFrameBytes = 4096;

  /// Throws std::system_error, whose text is the call that failed.
  explicit XdpRings(unsigned interface);

  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

  /// The next frame that has come, lent until it is given back; empty for none.
  [[nodiscard]] std::span<char> receive() noexcept;
  void give_back(std::span<char> frame) noexcept;
  /// Room of kFrameBytes for one to send; null for none.
  [[nodiscard]] char* take() noexcept;
  /// Sends the first bytes of what has been taken, at the next flush.
  void send(char* frame, std::size_t bytes) noexcept;
  /// Has the kernel send. Returns 0 when all is sent, or an errno: then what is left goes with a later flush.
  [[nodiscard]] int flush() noexcept;

 private:
  void collect_sent() noexcept;

  runtime::Descriptor socket_;
  Mapping frames_;
  XdpRing<std::uint64_t> fill_;
  XdpRing<std::uint64_t> sent_;
  XdpRing<XdpDescriptor> received_;
  XdpRing<XdpDescriptor> to_send_;
  std::vector<char*> free_;  // for sending
};

}  // namespace wirecall::transport
