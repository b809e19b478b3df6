// Context: the call that a handler serves: its id, deadline, cancellation and caller, as gRPC's ServerContext.
// Scheduler: the timers of its thread, an interface, so that handlers run the same on a loop, on a simulated one, or on
// none.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <sys/types.h>

namespace wirecall {

namespace rpc {
class CallerLink;
}

/// A one-shot timer. Whoever waits owns it. It must not be destroyed between Scheduler::start and its expiry or stop.
class Timer {
 public:
  virtual void expired() = 0;

 protected:
  ~Timer() = default;

 private:
  friend class Scheduler;
  std::uint64_t index_ = 0;  ///< where the scheduler on which it runs has it; that scheduler's
};

/// The timers of one thread, by its loop's clock or a simulated one. Thread: that one.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  /// Calls `timer.expired()` once, `delay` nanoseconds from now or later, from a turn of the loop; never from within
  /// start.
  virtual void start(Timer& timer, std::chrono::nanoseconds delay) = 0;
  /// Stops the timer, so that it does not expire. No effect on one that is not running.
  virtual void stop(Timer& timer) noexcept = 0;
  /// The monotonic clock of the timers, in nanoseconds since an arbitrary moment. Any thread.
  [[nodiscard]] virtual std::chrono::nanoseconds now() const noexcept = 0;

 protected:
  /// 0 for a timer that has never been started.
  static std::uint64_t& index(Timer& timer) noexcept { return timer.index_; }
};

/// The deadline of a call without one.
inline constexpr std::chrono::nanoseconds kNoDeadline = std::chrono::nanoseconds::max();

/// The bounds of one call: its time and its hops.
struct CallBounds {
  std::chrono::nanoseconds began{0};                ///< when its last byte was received, by Scheduler::now
  std::chrono::nanoseconds deadline = kNoDeadline;  ///< by Scheduler::now
  std::uint32_t hops = 0;                           ///< calls within which it is made; 0 for none
};

/// The process at the other end of a unix socket, as the kernel reports it (SO_PEERCRED): its ids when it connected, or
/// when it began to listen where we connected.
struct PeerCredentials {
  pid_t pid;  ///< 0 for a process outside our pid namespace
  uid_t uid;
  gid_t gid;
};

/// One call, as its handler sees it. A handler gets it by declaring `Context` as its first parameter, by value. Copies
/// may outlive the call. Thread: the one that the handler runs on.
class Context {
 public:
  Context() = default;
  Context(std::string method, std::string id_json, std::stop_token stop, Scheduler* scheduler, CallBounds bounds = {},
          std::shared_ptr<rpc::CallerLink> caller_link = {}, std::optional<PeerCredentials> peer_credentials = {},
          std::string caller_name = {})
      : method_(std::move(method)),
        id_(std::move(id_json)),
        stop_(std::move(stop)),
        scheduler_(scheduler),
        bounds_(bounds),
        caller_link_(std::move(caller_link)),
        peer_credentials_(peer_credentials),
        caller_name_(std::move(caller_name)) {}

  [[nodiscard]] const std::string& method() const noexcept { return method_; }
  /// The request's id as sent, as JSON text; empty for a notification.
  [[nodiscard]] const std::string& id() const noexcept { return id_; }
  /// Stop is requested when the call is cancelled, its deadline has passed, or its caller has disconnected: the answer
  /// is not sent to anybody any more.
  [[nodiscard]] const std::stop_token& stop_token() const noexcept { return stop_; }
  [[nodiscard]] bool cancelled() const noexcept { return stop_.stop_requested(); }
  /// The timers of the thread that serves the call; null without a loop (Registry::handle), and where the handler may
  /// go on after its server (a generated protobuf service).
  [[nodiscard]] Scheduler* scheduler() const noexcept { return scheduler_; }
  /// When the call fails with timeout (-32002): a time of scheduler()->now(), of the steady clock where that is null.
  /// kNoDeadline for a stream whose caller has set no timeout, and without a loop.
  [[nodiscard]] std::chrono::nanoseconds deadline() const noexcept { return bounds_.deadline; }
  /// Nanoseconds until the deadline: 0 once it has passed, kNoDeadline where there is none.
  [[nodiscard]] std::chrono::nanoseconds remaining() const noexcept {
    if (bounds_.deadline == kNoDeadline) return kNoDeadline;
    const std::chrono::nanoseconds now =
        scheduler_ != nullptr ? scheduler_->now() : std::chrono::steady_clock::now().time_since_epoch();
    const std::chrono::nanoseconds left = bounds_.deadline - now;
    return left.count() > 0 ? left : std::chrono::nanoseconds{0};
  }
  /// How many calls this one was made within: 0 for a call that no handler has made.
  [[nodiscard]] std::uint32_t hops() const noexcept { return bounds_.hops; }
  /// The name of the client that made the call, also behind a broker, which granted the name in answer to rpc.hello. A
  /// method of the broker's own process always gets it; a method that a client provides gets it where the broker's
  /// option `disclose_callers` is set. Empty otherwise.
  [[nodiscard]] const std::string& caller_name() const noexcept { return caller_name_; }
  /// The caller's process, on connections by unix socket, in any protocol. By inproc and stdio it is this process.
  /// nullopt on all other connections, and without a connection.
  [[nodiscard]] const std::optional<PeerCredentials>& peer_credentials() const noexcept { return peer_credentials_; }
  /// Used by Caller (caller.hpp).
  [[nodiscard]] const std::shared_ptr<rpc::CallerLink>& caller_link() const noexcept { return caller_link_; }

 private:
  std::string method_;
  std::string id_;
  std::stop_token stop_;
  Scheduler* scheduler_ = nullptr;
  CallBounds bounds_;
  std::shared_ptr<rpc::CallerLink> caller_link_;
  std::optional<PeerCredentials> peer_credentials_;
  std::string caller_name_;
};

}  // namespace wirecall
