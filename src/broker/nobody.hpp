// Nobody: where what is for a peer goes whose connection has gone, as long as there is something left of it to be done.
// One thread.
#pragma once

#include "rpc/dispatcher.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::broker {

class Nobody final : public rpc::Outlet {
 public:
  Buffer& open_message() override { return text_; }
  void close_message() override { text_.release(); }
  void discard_message() noexcept override { text_.release(); }

 private:
  Buffer text_;
};

}  // namespace wirecall::broker
