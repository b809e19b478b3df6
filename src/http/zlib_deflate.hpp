// ZlibDeflate: MessageDeflate by zlib. Its states are made when they are first needed, and shared by all connections of
// a loop, since no connection keeps any. Lives on its loop's thread.
#pragma once

#include <array>
#include <memory>

#include "framing/message_deflate.hpp"

struct z_stream_s;

namespace wirecall::net {

class ZlibDeflate final : public framing::MessageDeflate {
 public:
  ZlibDeflate();
  ZlibDeflate(ZlibDeflate&&) = delete;
  ~ZlibDeflate() override;

  [[nodiscard]] std::unique_ptr<MessageDeflate> make_another() const override {
    return std::make_unique<ZlibDeflate>();
  }
  [[nodiscard]] Outcome inflate(std::string_view packed, std::size_t bytes_max, Buffer& out) override;
  void deflate(std::string_view text, int window_bits, Buffer& out) override;

 private:
  static constexpr int kWindowBitsMin = 9;
  static constexpr int kWindowBitsMax = 15;

  struct EndInflate {
    void operator()(z_stream_s* stream) const noexcept;
  };
  struct EndDeflate {
    void operator()(z_stream_s* stream) const noexcept;
  };
  using Inflate = std::unique_ptr<z_stream_s, EndInflate>;
  using Deflate = std::unique_ptr<z_stream_s, EndDeflate>;

  [[nodiscard]] z_stream_s& inflating();
  [[nodiscard]] z_stream_s& deflating(int window_bits);

  Inflate inflate_;
  std::array<Deflate, kWindowBitsMax - kWindowBitsMin + 1> deflate_;  // by the bits of the window
};

}  // namespace wirecall::net
