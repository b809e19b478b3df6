// IoThread: a loop that receives and sends for another one, its home. What it opens is a Stream at home as any other,
// whose socket is here: bytes, and what became of them, cross by lanes (runtime/lane.hpp), those of a turn at once. So
// what is done with the bytes stays on one thread, and the system calls, which cost the most, are spread over several.
//
// Neither side wakes the other for nothing: a send of little is `sent` for its user when it has been handed over, as it
// is when a kernel has copied it, and what became of it is told with whatever comes next. What has crossed and not been
// looked at is bounded: connections that bring more wait in the kernel.
// Thread: the home loop's for all but `run`. Streams go before their IoThread, and that before its home.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/backend.hpp"
#include "runtime/lane.hpp"
#include "transport/stream.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::transport {

class IoThread {
 public:
  /// So many bytes may cross ahead of the home loop, and what one turn brings beyond them.
  static constexpr std::size_t kBytesAhead = 2 * 1024 * 1024;
  /// So many bytes of a stream may be on their way to its socket before a send has to wait for it.
  static constexpr std::size_t kSentAtOnce = 64 * 1024;
  /// How long the end of `run` waits for peers to take what is left for them.
  static constexpr std::chrono::milliseconds kLastWords{1000};

  IoThread(Loop& home, std::unique_ptr<runtime::Backend> backend);
  IoThread(IoThread&&) = delete;
  ~IoThread();

  /// A stream over a connected, non-blocking socket, which is this object's from now on; not when it throws, for want
  /// of memory.
  [[nodiscard]] std::unique_ptr<Stream> open(int descriptor);

  [[nodiscard]] Loop& loop() noexcept { return loop_; }
  /// Serves on the thread that calls it until `stop` says so, which is asked after each turn; what the home loop has
  /// handed over until then is still done, but a peer that does not take what it is sent last is left after kLastWords.
  /// Throws what the loop does, but for want of memory.
  void run(const std::function<bool()>& stop);

 private:
  class RemoteStream;
  class Connection;
  class Home final : public runtime::LaneUser {
   public:
    explicit Home(IoThread& io) : io_(&io) {}
    void arrived(runtime::Parcel& parcel, std::span<char> bytes) override;
    void noticed(runtime::Notice& notice) noexcept override;
    bool go_on() override;
    [[nodiscard]] std::shared_ptr<void> lent() const noexcept override;

   private:
    IoThread* io_;
  };
  class Sockets final : public runtime::LaneUser {
   public:
    explicit Sockets(IoThread& io) : io_(&io) {}
    void arrived(runtime::Parcel& parcel, std::span<char> bytes) override;
    void noticed(runtime::Notice& notice) noexcept override;

   private:
    IoThread* io_;
  };

  void turn(std::chrono::nanoseconds wait_max);
  void tell_taken();

  // In the order in which they need each other: what is below goes first.
  Loop* home_;
  Loop loop_;
  Home at_home_{*this};
  Sockets at_sockets_{*this};
  runtime::Lane to_home_{at_home_};
  runtime::Lane to_sockets_{at_sockets_};
  std::atomic<bool> starved_{false};    // connections wait for the home loop to look at what has come
  std::atomic<bool> room_told_{false};  // that it has is on its way
  runtime::Notice room_;

  // The home's.
  std::vector<RemoteStream*> sent_;  // streams whose send has been handed over; null for one that has gone
  std::size_t sent_at_ = 0;          // the first of them that has not been told
  std::shared_ptr<Buffer> lent_;     // what came while its stream was paused, and is being looked at
  // Until both sides are done with them: made, listed and destroyed by the home.
  std::vector<std::unique_ptr<Connection>> connections_;

  // The sockets'.
  Connection* held_ = nullptr;  // those that wait for room; linked
  struct Taken {
    Connection* connection;
    Buffer buffer;
    std::size_t bytes;
  };
  std::vector<Taken> taken_;         // by the kernel, and not told yet
  std::vector<Connection*> ending_;  // closed at home, with bytes left to send
};

}  // namespace wirecall::transport
