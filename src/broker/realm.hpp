// Realm: the other brokers of a cluster, as the router of one knows them. Each is a RemoteNode behind peers of its own:
// one provides the node's methods, others call for the node's callers. Without a cluster there is none of this.
// Implemented by src/cluster, owned by the Router. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "wirecall/message.hpp"

namespace wirecall {
class Method;
namespace rpc {
class Rendering;
struct Asker;
}  // namespace rpc
}  // namespace wirecall

namespace wirecall::broker {

class Peer;

/// Why the calls end that a provider has not answered.
enum class LostBy : std::uint8_t {
  provider,  ///< it has gone
  node,      ///< its node has gone, or what was sent there was lost
  bus,       ///< which has failed
};

class RemoteNode {
 public:
  /// What a call brings with it that is no part of its message.
  struct CallFacts {
    std::string_view principal;                          ///< of its caller; empty where nobody has to authenticate
    std::optional<std::chrono::milliseconds> left = {};  ///< the time that it has, where its message does not say so
    std::optional<std::uint64_t> number = {};            ///< by which it is asked; nothing for a notification
    MessageForm form = {};                               ///< in which its caller is answered
  };
  /// The next message that is sent to the peer which provides the node's methods is a call, and has these.
  virtual void begin_call(const CallFacts& facts) noexcept = 0;
  /// A word, the same on all nodes.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Calls in progress there, by its last word.
  [[nodiscard]] virtual std::uint32_t load() const noexcept = 0;
  /// Whether a client of that name is connected there, as far as is known.
  [[nodiscard]] virtual bool has_client(std::string_view name) const noexcept = 0;
  /// From here to there and back; 0 where that is not known yet.
  [[nodiscard]] virtual std::chrono::nanoseconds latency() const noexcept = 0;
  /// The next message that is sent to that peer belongs to a call of a caller of that principal's: so it is that one's
  /// calls alone among which the node looks for it.
  virtual void begin_part(std::string_view principal) noexcept = 0;

 protected:
  ~RemoteNode() = default;
};

class Realm {
 public:
  Realm() = default;
  Realm(Realm&&) = delete;
  virtual ~Realm() = default;

  /// A client of this broker provides the method from now on, otherwise than before, or no more.
  virtual void provided_changed(std::string_view method) noexcept = 0;
  /// A client of this broker has that name from now on, or none has it any more.
  virtual void client_changed(std::string_view name) noexcept = 0;
  /// What answers calls of a method that nobody provides whom `caller` may be given: one of a node that cannot be
  /// reached, or whose session begins anew, or, where the caller is another node, any. Null for a method that is
  /// unknown.
  [[nodiscard]] virtual const Method* find_absent(const Peer& caller, std::string_view name) noexcept = 0;
  using Absent = std::function<void(std::string_view node, LostBy by)>;
  /// Calls `told` with each such node whose clients provide the method, by exactly that name, as far as is known.
  virtual void each_absent(std::string_view method, const Absent& told) const = 0;
  /// This node's own name.
  [[nodiscard]] virtual std::string_view node() const noexcept = 0;
  /// What rpc.cluster answers.
  [[nodiscard]] virtual std::shared_ptr<rpc::Rendering> tell(rpc::Asker asker) const = 0;
  /// Whether calls cannot reach other nodes.
  [[nodiscard]] virtual bool is_degraded() const noexcept = 0;
  /// The process ends: the others are told, and bring nothing new.
  virtual void drain() noexcept = 0;
  /// Another process has taken over, and is this node from now on. This one answers what is under way, and its clients
  /// call what other nodes provided until then.
  virtual void replaced() noexcept = 0;
  /// Whether calls of other nodes are in progress here.
  [[nodiscard]] virtual bool busy() const noexcept = 0;
  /// A client of this broker has had an event of that topic retained, or what was retained is `gone`.
  virtual void retained_changed(std::string_view topic, bool gone) noexcept = 0;
  /// What other nodes have provided before this process has taken over: nobody says yet that these are unknown.
  virtual void expect_methods(std::vector<std::string> names) noexcept = 0;
};

}  // namespace wirecall::broker
