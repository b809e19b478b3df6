#pragma once

#include <gtest/gtest.h>
#include <memory>

#include "transport/byte_stream.hpp"

namespace wirecall::transport {

/// Destroys its stream in the call that `within` names.
class LeavingUser final : public StreamUser {
 public:
  explicit LeavingUser(char within) : within_(within) {}

  void received(std::span<char>) override { called('r'); }
  void ended() override { called('e'); }
  void sent(Buffer) override { called('s'); }
  void failed(int) override { called('f'); }

  std::unique_ptr<ByteStream> stream;
  bool left = false;

 private:
  void called(char what) {
    EXPECT_FALSE(left) << "it is told of something once it has gone";
    if (what != within_ || stream == nullptr) return;
    left = true;
    stream.reset();
  }

  char within_;
};

}  // namespace wirecall::transport
