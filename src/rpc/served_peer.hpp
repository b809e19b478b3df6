// ServedPeer: one peer as it is served: what it is served with, and what has been made for it so far. The parts of
// dispatch (admission, authentication, invocation, batches) work on one; it belongs to a Dispatcher. One thread (the
// loop's).
#pragma once

#include "rpc/loop_context.hpp"
#include "rpc/message_sink.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/message.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::rpc {

class BrokerPeer;
class CallerLink;
struct PeerIdentity;

/// Has the broker forget a peer whose connection has gone (BrokerPeer::leave).
struct LeavesBroker {
  void operator()(BrokerPeer* peer) const noexcept;
};
using JoinedPeer = std::unique_ptr<BrokerPeer, LeavesBroker>;

class ServedPeer {
 public:
  static constexpr std::uint32_t kNoTimeout = ~std::uint32_t{0};

  ServedPeer(const Registry& registry, MessageSink& sink, const Limits& limits, LoopContext& loop,
             PeerLoad* load) noexcept
      : registry(registry), middleware(registry.middleware()), sink(sink), limits(limits), loop(loop), load(load) {}
  ServedPeer(ServedPeer&&) = delete;

  /// The table of its calls and what stands beside it; made at its first use.
  PendingCalls& pending() { return calls != nullptr ? *calls : make_pending(); }
  /// The peer as the broker knows it, made when the broker is first asked; null without a broker.
  [[nodiscard]] BrokerPeer* join_broker();
  /// What the connection has in use and is counted for; made at its first use.
  [[nodiscard]] const std::shared_ptr<PeerLoad>& shared_load();
  /// Who has authenticated; null for nobody.
  [[nodiscard]] inline const Principal* principal() const noexcept;  // rpc/pending.hpp
  [[nodiscard]] PeerIdentity& identity();
  /// What the connection uses is on the account of its principal from now on; before it has one, of where it comes
  /// from.
  void use_account();
  /// By which a handler calls its caller; null where that cannot be called.
  [[nodiscard]] std::shared_ptr<CallerLink> caller_link();
  /// Calls that have not been answered yet.
  [[nodiscard]] std::size_t in_flight() const noexcept {
    return calls == nullptr && broker == nullptr ? 0 : waiting_calls();
  }

  const Registry& registry;
  const std::vector<Middleware>& middleware;  ///< the registry's
  MessageSink& sink;
  const Limits& limits;
  LoopContext& loop;
  PeerLoad* load;                       ///< the connection's; null until it is first used, by this peer or another
  std::shared_ptr<PendingCalls> calls;  ///< null before the first use
  JoinedPeer broker;                    ///< null as long as no broker has been asked
  std::uint32_t timeout_max_ms = kNoTimeout;
  MessageForm form;                 ///< of the answers to the message that is served
  bool greeted = false;             ///< by rpc.hello
  bool draining : 1 = false;        ///< new requests are answered -32009
  bool asked_to_leave : 1 = false;  ///< by rpc.draining
  bool trusted : 1 = false;         ///< it is a broker that stands for others

 private:
  PendingCalls& make_pending();
  void put_on_account(PeerLoad& own);
  [[nodiscard]] std::size_t waiting_calls() const noexcept;
};

}  // namespace wirecall::rpc
