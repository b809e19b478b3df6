// IoThread: a loop that receives and sends for another one, its owner. It opens ByteStreams that live on the owner's
// loop as any others do, while their sockets are here. Bytes, and what became of them, cross through channels
// (runtime/spsc_channel.hpp), those of a turn at once. So what is done with the bytes stays on one thread, and the
// system calls, which cost the most, are spread over several.
//
// Neither side wakes the other for nothing: a send of little is `sent` for its user when it has been handed over, as it
// is when a kernel has copied it, and what became of it is told with whatever comes next. What has crossed and not been
// looked at is bounded: connections that bring more wait in the kernel.
// Thread: the owner's loop's for all but `run`. Streams go before their IoThread, and that before its owner.
#pragma once

#include <atomic>
#include <functional>

#include "runtime/backend.hpp"
#include "runtime/spsc_channel.hpp"
#include "transport/byte_stream.hpp"
#include "transport/pending_connection.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::transport {

class IoThread {
 public:
  /// So many bytes may cross ahead of the owner's loop, and what one turn brings beyond them.
  static constexpr std::size_t kBytesAhead = 2 * 1024 * 1024;
  /// So many bytes of a stream may be on their way to its socket before a send has to wait for it.
  static constexpr std::size_t kSentAtOnce = 64 * 1024;
  /// How long the end of `run` waits for peers to take what is left for them.
  static constexpr std::chrono::milliseconds kLastWords{1000};

  IoThread(Loop& owner, std::unique_ptr<runtime::Backend> backend);
  IoThread(IoThread&&) = delete;
  ~IoThread();

  /// A stream on the owner's loop over what `connection` is attached to on this one. Throws std::bad_alloc.
  [[nodiscard]] std::unique_ptr<ByteStream> open(PendingConnection connection);

  [[nodiscard]] Loop& loop() noexcept { return loop_; }
  /// Serves on the thread that calls it until `stop` says so, which is asked after each turn; what the owner's loop has
  /// handed over until then is still done, but a peer that does not take what it is sent last is left after kLastWords.
  /// Throws what the loop does, but for want of memory.
  void run(const std::function<bool()>& stop);

 private:
  class RemoteStream;
  class Connection;
  class OwnerSide final : public runtime::SpscReceiver {
   public:
    explicit OwnerSide(IoThread& io) : io_(&io) {}
    void arrived(runtime::Record& record, std::span<char> bytes) override;
    void arrived(runtime::IntrusiveRecord& record) noexcept override;
    bool drain_one() override;
    [[nodiscard]] std::shared_ptr<void> lent() const noexcept override;

   private:
    IoThread* io_;
  };
  class SocketSide final : public runtime::SpscReceiver {
   public:
    explicit SocketSide(IoThread& io) : io_(&io) {}
    void arrived(runtime::Record& record, std::span<char> bytes) override;
    void arrived(runtime::IntrusiveRecord& record) noexcept override;

   private:
    IoThread* io_;
  };

  void turn(std::chrono::nanoseconds wait_max);
  void tell_taken();

  // In the order in which they need each other: what is below goes first.
  Loop* owner_;
  Loop loop_;
  OwnerSide owner_side_{*this};
  SocketSide socket_side_{*this};
  runtime::SpscChannel to_owner_{owner_side_};
  runtime::SpscChannel to_sockets_{socket_side_};
  std::atomic<bool> starved_{false};       // connections wait for the owner's loop to look at what has come
  std::atomic<bool> drained_told_{false};  // `drained_` is on its way
  runtime::IntrusiveRecord drained_;       // it has looked at enough: held connections receive again

  // The owner's side.
  std::vector<RemoteStream*> sent_;  // streams whose send has been handed over; null for one that has gone
  std::size_t sent_at_ = 0;          // the first of them that has not been told
  std::shared_ptr<Buffer> lent_;     // what came while its stream was paused, and is being looked at
  // Until both sides are done with them: made, listed and destroyed by the owner's side.
  std::vector<std::unique_ptr<Connection>> connections_;

  // The sockets' side.
  Connection* held_ = nullptr;  // those that wait for room; linked
  struct Taken {
    Connection* connection;
    Buffer buffer;
    std::size_t bytes;
  };
  std::vector<Taken> taken_;         // by the kernel, and not told yet
  std::vector<Connection*> ending_;  // closed by the owner, with bytes left to send
};

}  // namespace wirecall::transport
