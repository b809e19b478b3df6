// Broker and BrokerPeer: what the dispatchers of one thread ask of a broker, and what they tell it, so that connections
// can provide methods for each other. A dispatcher knows no other connection; this is where it hands over what concerns
// one. Without a broker nothing is asked. Implemented by src/broker. One thread (the loop's).
#pragma once

#include <functional>

#include "rpc/openrpc.hpp"
#include "rpc/rendering.hpp"
#include "rpc/retained_reader.hpp"
#include "rpc/served_peer.hpp"
#include "wirecall/call.hpp"
#include "wirecall/error.hpp"
#include "wirecall/message.hpp"
#include "wirecall/principal.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/stats.hpp"

namespace wirecall {
class Loop;
}

namespace wirecall::rpc {

struct ReservedMethod;

/// What rpc.hello gives a peer.
struct HelloResult {
  std::string name;     ///< empty for none
  std::string session;  ///< the secret by which it comes back
};

/// One connection as the broker knows it. Owned by the connection's dispatcher, and by the broker once it has left.
class BrokerPeer {
 public:
  /// The connection has gone, and nothing is sent to its sink any more: its registrations end, what it was asked to
  /// do fails, and what it has asked for is given up. Much of that takes several turns. Then the peer is destroyed.
  virtual void leave() noexcept = 0;

  /// The method of that name that a connection provides, as far as this peer may know of it, or that serves the message
  /// under a reserved name; null for none. To be invoked at once, with a call of this peer's.
  [[nodiscard]] virtual const Method* find(std::string_view name, const Received& message) = 0;
  /// The name nearest to one that nobody provides, as Registry::nearest, among those that the peer may call.
  [[nodiscard]] virtual std::string_view nearest(std::string_view name) const = 0;
  /// The broker's own method under a reserved name; null for none.
  [[nodiscard]] virtual const ReservedMethod* find_reserved(std::string_view name) const noexcept = 0;
  /// Who the peer is, as far as it has to show that.
  virtual void identify(const Principal* principal) noexcept = 0;
  /// The name that it has been given by then; empty for none.
  [[nodiscard]] virtual const std::string& name_given() const noexcept = 0;
  /// rpc.hello with that name and the secret of an earlier session, each empty for none. Throws Error.
  virtual HelloResult hello(std::string_view name, std::string_view resume) = 0;

  /// Whether a response in another encoding than JSON, of which the envelope has been read alone, may be handed on as
  /// it is.
  [[nodiscard]] virtual bool takes_encoded(const Received& message) const noexcept = 0;
  /// A response; false when it answers nothing that this peer was asked. Its spans last until this returns.
  [[nodiscard]] virtual bool response(const Received& message) = 0;
  /// Whether the peer may have been asked for anything: it provides methods.
  [[nodiscard]] virtual bool awaits_responses() const noexcept = 0;
  /// Whether others rely on this peer, since it provides methods.
  [[nodiscard]] virtual bool provides_any() const noexcept = 0;
  [[nodiscard]] virtual bool subscribes_any() const noexcept = 0;
  /// A notification of this peer's, before any method is looked for: it is an event for those who subscribe to its
  /// name.
  virtual void notified(const Received& message, std::string_view name) = 0;
  /// A call of this peer's is about to run, of whichever method; asked where Broker::is_tapped.
  virtual void tapped(Call& call, std::string_view name) = 0;
  /// A call of this peer's to a method under a reserved name has been refused; `params` are as they came, valid and
  /// with padding behind them; empty for none.
  virtual void refused(std::string_view name, EncodedText params, const Error& error) noexcept = 0;
  /// A call of this peer's to a method that it may not call has been answered as one to an unknown method.
  virtual void not_granted(std::string_view name) noexcept = 0;
  /// What nobody waits for may be sent again.
  virtual void on_writable() = 0;
  /// What the method under a reserved name that has just been served is answered with, once the peer's input is looked
  /// at again; null for what it has returned.
  [[nodiscard]] virtual std::shared_ptr<Rendering> take_answer() noexcept = 0;
  /// What a method under a reserved name has to send behind its answer, which has been given.
  virtual void reserved_answered() = 0;
  /// Cancels this peer's relayed calls with that id, byte for byte. Returns how many.
  virtual std::size_t cancel(std::string_view id_json) = 0;
  /// Gives the provider of this peer's relayed stream of that id more credit. Returns whether there is one.
  virtual bool grant(std::string_view id_json, std::uint64_t more) = 0;
  /// What Broker::attach_peer has been given.
  [[nodiscard]] virtual const std::shared_ptr<PeerLoad>& shared_load() const noexcept = 0;
  /// Relayed calls of this peer that have not been answered yet.
  [[nodiscard]] virtual std::size_t in_flight() const noexcept = 0;
  /// Of those of the peer's account the connection with the most gives one up, where that is another. False for none.
  virtual bool shed_call() noexcept = 0;
  /// Answers them all with `error`.
  virtual void end_calls(const Error& error) noexcept = 0;
  /// Of this peer's relayed calls the first `kept` go on, until `until` at most; the others are answered with `error`.
  virtual void limit_calls(std::size_t kept, std::chrono::nanoseconds until, const Error& error) noexcept = 0;
  /// Another process serves from now on, where the peer may provide the same: it is asked nothing new here. False while
  /// calls wait for it: then it is as it was.
  [[nodiscard]] virtual bool release() noexcept = 0;
  /// Another process has taken over: what is unknown here may be known there.
  [[nodiscard]] virtual bool is_replaced() const noexcept = 0;
  /// The peer says nothing any more: it provides nothing from now on.
  virtual void peer_ended() noexcept = 0;

 protected:
  ~BrokerPeer() = default;
};

/// Where the dispatchers of one thread get a BrokerPeer, and the methods that connections provide. Outlives them.
class Broker : public MethodSource {
 public:
  virtual ~Broker() = default;
  Broker(Broker&&) = delete;

  /// Of the peer behind `sink`, whose calls in progress `load` counts.
  [[nodiscard]] virtual JoinedPeer attach_peer(MessageSink& sink, std::shared_ptr<PeerLoad> load) = 0;
  /// The process ends: nothing new begins.
  virtual void drain() noexcept = 0;
  /// Another process is about to take over: what it would have to do once more is not begun. Whether nothing of it is
  /// at work.
  [[nodiscard]] virtual bool settle() noexcept { return true; }
  /// What the broker of another process has to know that takes over now; that may open what only one may have open.
  /// Throws std::bad_alloc.
  [[nodiscard]] virtual std::string hand_over() = 0;
  /// It has taken over.
  virtual void replaced() noexcept = 0;
  /// It has not: after `settle`, with or without `hand_over`, all is as it was.
  virtual void stay() noexcept {}
  /// This one is about to take over, and the other stands still: opens what only one may have open. Throws
  /// std::runtime_error.
  virtual void open_store() {}
  /// It is the one at the other end of `link`, whose clients and those of this one reach each other. Throws
  /// std::bad_alloc.
  virtual void link_to_successor(BrokerPeer& link) = 0;
  /// That is the only connection left.
  virtual void nobody_left() noexcept = 0;
  /// The same, as this one is told before it serves anybody. `link` is the broker that it takes over from, which
  /// answers for those who provide methods there; its connection is closed once nobody does, or all have come here, and
  /// no client is left there.
  /// Throws std::invalid_argument for other text, and std::bad_alloc.
  virtual void take_over(std::string_view state, BrokerPeer& link) = 0;
  /// Whether anybody is at work on what none of the process's connections has asked for.
  [[nodiscard]] virtual bool busy() const noexcept { return false; }
  /// Why some calls cannot be taken although the process is well; empty for no reason.
  [[nodiscard]] virtual std::string_view degraded() const noexcept { return {}; }
  /// What /metrics tells who asks.
  [[nodiscard]] virtual std::unique_ptr<Rendering> metrics(Asker asker) const = 0;
  /// Where it is in the numbers of what it retains. May throw std::bad_alloc.
  [[nodiscard]] virtual RetainedPosition retained_position() = 0;
  /// Where the numbers of the whole process come from; without it, they are this loop's.
  virtual void count_by(std::function<Stats()> counters) = 0;
  /// Whether somebody looks on.
  [[nodiscard]] bool is_tapped() const noexcept { return tapped_; }

 protected:
  Broker() = default;
  bool tapped_ = false;
};

/// The loop that a broker is made for. All referred to outlive it.
struct BrokerHost {
  const Registry& registry;  ///< the methods of the process itself
  const Limits& limits;
  LoopContext& loop_context;
  Loop* loop = nullptr;  ///< the loop itself, for what waits for descriptors; null where there is none
};

/// Makes the broker of a loop. By it a server is given its broker, and knows no more of it than what is in this file.
using BrokerFactory = std::function<std::unique_ptr<Broker>(const BrokerHost& host)>;

}  // namespace wirecall::rpc
