// OpensslUse: when a process ends, OpenSSL frees what all threads share; a thread that nobody waits for, such as one
// that connects, would go on with it, and crash or hang the process. So such a thread says with an OpensslUse that it
// uses OpenSSL. The end of the process waits for those that do, and whoever begins after that waits for the process to
// be gone; but for the thread that ends it, which nobody else would.
#pragma once

namespace wirecall::transport {

class OpensslUse {
 public:
  OpensslUse() noexcept { begin(); }
  OpensslUse(OpensslUse&&) = delete;
  ~OpensslUse() { end(); }

  /// While it exists this thread does not use OpenSSL, as while it waits for a peer.
  class Pause {
   public:
    Pause() noexcept { end(); }
    Pause(Pause&&) = delete;
    ~Pause() { begin(); }
  };

  /// Frees what OpenSSL has of this thread, which uses it no more.
  void end_thread() noexcept;

  /// From now on the end of the process waits. Called before OpenSSL is used; any thread, more than once.
  static void watch_exit() noexcept;

 private:
  static void begin() noexcept;
  static void end() noexcept;
};

}  // namespace wirecall::transport
