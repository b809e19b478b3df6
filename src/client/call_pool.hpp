// CallPool: lends the calls of a client to whoever makes one, and takes them back with their memory. Owns them all.
// Thread: any, without the mutex but where it says. What the driver gives back, it has again without a lock.
#pragma once

#include <atomic>
#include <deque>

#include "client/call.hpp"
#include "client/driver.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::net {

class CallPool {
 public:
  CallPool(const Driver& driver, const Codec& codec) : driver_(driver), codec_(codec) {}
  CallPool(CallPool&&) = delete;

  /// An idle call; throws std::bad_alloc.
  [[nodiscard]] ClientCall& take();
  /// Its maker and its answer have done with it.
  void give_back(ClientCall& call) noexcept;
  /// With the mutex held: what the driver has is there for other threads, which else make new ones.
  void share() noexcept {
    if (idle_.size() < own_idle_.size()) [[unlikely]]
      share_all();
  }

 private:
  void share_all() noexcept;

  const Driver& driver_;
  const Codec& codec_;
  std::vector<ClientCall*> own_idle_;  // given back by the driver
  std::atomic<bool> many_{false};      // calls: large buffers are not kept
  std::atomic<int> large_{0};          // how many have kept such, or wanted to

  // Guarded by the mutex.
  std::deque<ClientCall> calls_;
  std::vector<ClientCall*> idle_;  // has room for all
};

}  // namespace wirecall::net
