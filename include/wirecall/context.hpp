// What a handler may know of the call it serves and may ask of its surroundings: Scheduler (timers), Context.
// The surroundings are interfaces, so handlers run the same on a loop, on a simulated one, or without any.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace wirecall {

namespace rpc {
class CallerLink;
}

/// Something that waits to be woken once. Owned by whoever waits; a started timer must be stopped or must have
/// expired before it is destroyed.
class Timer {
 public:
  virtual void expired() = 0;

 protected:
  ~Timer() = default;

 private:
  friend class Scheduler;
  std::uint64_t place_ = 0;  ///< where the scheduler on which it runs has it; that scheduler's
};

/// Timers of one thread: the loop's, or a simulated clock's. Called on that thread only.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// `timer.expired()` is called once, from the thread's turn, not before `delay` has passed, never from within start.
  virtual void start(Timer& timer, std::chrono::nanoseconds delay) = 0;
  /// The timer does not expire any more. No effect on one that is not running.
  virtual void stop(Timer& timer) noexcept = 0;
  /// The time that the timers go by: it only ever grows, and has nothing to do with the calendar.
  [[nodiscard]] virtual std::chrono::nanoseconds now() const noexcept = 0;

 protected:
  /// 0 for a timer that has never been started.
  static std::uint64_t& place(Timer& timer) noexcept { return timer.place_; }
};

/// No end to a call's time.
inline constexpr std::chrono::nanoseconds kNoDeadline = std::chrono::nanoseconds::max();

/// How far a call may go.
struct CallBounds {
  std::chrono::nanoseconds began{0};                ///< when its last byte came, by Scheduler::now
  std::chrono::nanoseconds deadline = kNoDeadline;  ///< by Scheduler::now
  std::uint32_t hops = 0;                           ///< calls within which it was made
};

/// Who is at the other end of a connection, as the kernel vouches: the process that connected (or listened, where we
/// connected), as it was then.
struct PeerCredentials {
  pid_t pid;  ///< 0 for a process that ours cannot see, in another container
  uid_t uid;
  gid_t gid;
};

/// One call, as its handler sees it. A handler that takes `Context` by value as its first parameter is given it; it
/// may be copied into coroutines and outlives the frame. Thread: the one the handler runs on.
class Context {
 public:
  Context() = default;
  Context(std::string method, std::string id_json, std::stop_token stop, Scheduler* scheduler, CallBounds bounds = {},
          std::shared_ptr<rpc::CallerLink> caller_link = {}, std::optional<PeerCredentials> peer_credentials = {},
          std::string caller = {})
      : method_(std::move(method)),
        id_(std::move(id_json)),
        stop_(std::move(stop)),
        scheduler_(scheduler),
        bounds_(bounds),
        caller_link_(std::move(caller_link)),
        peer_credentials_(peer_credentials),
        caller_(std::move(caller)) {}

  [[nodiscard]] const std::string& method() const noexcept { return method_; }
  /// The request's id as sent, as JSON text; empty for a notification.
  [[nodiscard]] const std::string& id() const noexcept { return id_; }
  /// Stop is requested when the call is cancelled, its time is up, or its caller has gone: nobody waits for the answer.
  [[nodiscard]] const std::stop_token& stop_token() const noexcept { return stop_; }
  [[nodiscard]] bool cancelled() const noexcept { return stop_.stop_requested(); }
  /// Timers of the thread that serves the call; null where there is no loop (a registry called directly).
  [[nodiscard]] Scheduler* scheduler() const noexcept { return scheduler_; }
  /// When the call is answered -32002 if it has not been before, by scheduler()->now(); kNoDeadline for a stream whose
  /// caller has set none, and where there are no timers.
  [[nodiscard]] std::chrono::nanoseconds deadline() const noexcept { return bounds_.deadline; }
  /// The time until then; 0 once it has passed, kNoDeadline for none.
  [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept {
    if (bounds_.deadline == kNoDeadline) return kNoDeadline;
    const std::chrono::nanoseconds left = bounds_.deadline - scheduler_->now();
    return left.count() > 0 ? left : std::chrono::nanoseconds{0};
  }
  /// How many calls this one was made within: 0 for one that a peer has made of itself.
  [[nodiscard]] std::uint32_t hops() const noexcept { return bounds_.hops; }
  /// The name that the caller has at a broker, given by its rpc.hello, never by its own word alone: for a method of the
  /// broker's process that of its connection; for one that a client provides, what the broker says of it, if its option
  /// `disclose_callers` is set. Empty where there is none.
  [[nodiscard]] const std::string& caller() const noexcept { return caller_; }
  /// Whose program the caller is, on connections by unix sockets, whatever is spoken there; by inproc and stdio it is
  /// this process itself. nullopt by all others, and where there is no connection.
  [[nodiscard]] const std::optional<PeerCredentials>& peer_credentials() const noexcept { return peer_credentials_; }
  /// For Peer (peer.hpp).
  [[nodiscard]] const std::shared_ptr<rpc::CallerLink>& caller_link() const noexcept { return caller_link_; }

 private:
  std::string method_;
  std::string id_;
  std::stop_token stop_;
  Scheduler* scheduler_ = nullptr;
  CallBounds bounds_;
  std::shared_ptr<rpc::CallerLink> caller_link_;
  std::optional<PeerCredentials> peer_credentials_;
  std::string caller_;
};

}  // namespace wirecall
