// DatagramReceiver: what the sockets of udp:// and xdp:// have in common: a user that is told what has been received,
// and that may have the socket go, or lose the loop, meanwhile. It outlives the socket until then. Lives on its loop's
// thread. For the sources of this layer alone.
#pragma once

#include <memory>
#include <utility>

#include "runtime/turn.hpp"
#include "transport/datagram_socket.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::transport {

class DatagramReceiver : public runtime::TurnUser, public std::enable_shared_from_this<DatagramReceiver> {
 public:
  explicit DatagramReceiver(Loop& loop) noexcept : loop_(&loop) {}
  DatagramReceiver(DatagramReceiver&&) = delete;

  void open(DatagramUser& user) noexcept { user_ = &user; }

 protected:
  // Of one turn: then others have theirs.
  static constexpr std::size_t kDatagramsInTurn = 256;

  // What one thread tells. A handler of the user may lose the loop, whose next turns come here as well: they go on with
  // what has been received, and the thread that comes back leaves it to them.
  class Part {
   public:
    explicit Part(DatagramReceiver& receiver) : receiver_(receiver.shared_from_this()), number_(++receiver.part_) {}
    // False where the user has gone, or others have gone on.
    [[nodiscard]] bool tell(std::string_view datagram, const DatagramAddress& source) const {
      receiver_->user_->received(datagram, source);
      return receiver_->user_ != nullptr && receiver_->part_ == number_;
    }

   private:
    std::shared_ptr<DatagramReceiver> receiver_;
    std::uint64_t number_;
  };

  ~DatagramReceiver() = default;
  // turn_ended is called.
  void mark() {
    if (!std::exchange(marked_, true)) loop_->at_turn_end(*this);
  }
  void unmark() noexcept { marked_ = false; }
  // The user has gone.
  void end() noexcept {
    user_ = nullptr;
    loop_->forget(*this);
  }
  [[nodiscard]] Loop& loop() const noexcept { return *loop_; }

 private:
  Loop* loop_;
  DatagramUser* user_ = nullptr;
  std::uint64_t part_ = 0;
  bool marked_ = false;
};

}  // namespace wirecall::transport
