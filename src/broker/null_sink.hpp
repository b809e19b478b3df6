// NullSink: drops what is sent to a peer whose connection has gone, as long as work of that peer is left.
// One thread.
#pragma once

#include "rpc/dispatcher.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::broker {

class NullSink final : public rpc::MessageSink {
 public:
  Buffer& open_message() override { return text_; }
  void close_message() override { text_.release(); }
  void discard_message() noexcept override { text_.release(); }

 private:
  Buffer text_;
};

}  // namespace wirecall::broker
