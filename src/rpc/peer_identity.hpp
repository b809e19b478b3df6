// PeerIdentity: who one peer is, where peers have to say so. Owned by its PendingCalls. One thread (the loop's).
#pragma once

#include "rpc/access.hpp"
#include "rpc/loop_context.hpp"
#include "rpc/memory_budget.hpp"
#include "rpc/message_sink.hpp"
#include "wirecall/context.hpp"

namespace wirecall::rpc {

/// Closes the connection of a peer that does not say in time who it is, or holds too much until then.
class AwaitedIdentity final : public Timer, public MemoryConsumer {
 public:
  /// `time` is 0 for ever.
  AwaitedIdentity(MessageSink& sink, LoopContext& loop, std::chrono::nanoseconds time) : sink_(sink), loop_(loop) {
    if (loop.scheduler != nullptr && time != std::chrono::nanoseconds{0}) loop.scheduler->start(*this, time);
  }
  AwaitedIdentity(AwaitedIdentity&&) = delete;
  ~AwaitedIdentity() { loop_.stop(*this); }

 private:
  void evict() override { sink_.close(); }
  void expired() override {
    ++loop_.stats.connections_timed_out;
    sink_.close();
  }

  MessageSink& sink_;
  LoopContext& loop_;
};

/// Who a peer is that has to say so.
struct PeerIdentity {
  Identity shown;
  std::unique_ptr<AwaitedIdentity> awaited;  ///< as long as it has not said it
};

}  // namespace wirecall::rpc
