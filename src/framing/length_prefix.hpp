// LengthPrefix: the framing in which four bytes before each message, the highest first, say how many bytes it has. The
// largest length that a connection may begin with is 2^27 or so, since its first byte is from 00 to 08.
// One connection each, on its thread.
#pragma once

#include "framing/framing.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::framing {

class LengthPrefix final : public Framing {
 public:
  /// `limits` outlive the framing.
  explicit LengthPrefix(const Limits& limits) noexcept : LengthPrefix(limits, false) {}
  /// Of a stream that carries datagrams (transport/udp_stream.hpp), where `lossy`.
  LengthPrefix(const Limits& limits, bool lossy) noexcept : limits_(&limits), lossy_(lossy) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "length-prefix"; }
  Found next(std::span<char> bytes) override;
  /// The codec is never asked for an end here.
  Found unfinished(std::string_view) override { return {Find::lost, 0, 0}; }
  Recovery recover(std::string_view) override { return Recovery::resume; }
  Found end_of_stream() override;
  [[nodiscard]] bool in_head() const noexcept override { return prefix_bytes_ != 0 && prefix_bytes_ < kPrefixBytes; }
  [[nodiscard]] bool may_lose_messages() const noexcept override { return lossy_; }
  [[nodiscard]] bool carries_binary() const noexcept override { return true; }
  [[nodiscard]] std::size_t head_bytes() const noexcept override { return kPrefixBytes; }
  void seal(Buffer& out, std::size_t begin, bool json) override;

 private:
  static constexpr std::size_t kPrefixBytes = 4;

  const Limits* limits_;
  std::uint32_t left_ = 0;         // bytes of the message that have not come
  std::uint8_t prefix_bytes_ = 0;  // that have come; all of them: within a message
  bool lossy_;
};

}  // namespace wirecall::framing
