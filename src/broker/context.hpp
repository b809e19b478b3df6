// BrokerContext: what all parts of one router share: its tables of peers, methods and topics, the loop it is on, its
// limits and settings, and the log. Owned by the Router, before its parts. One thread.
#pragma once

#include "broker/errors.hpp"
#include "broker/method_table.hpp"
#include "broker/operations_log.hpp"
#include "broker/peer.hpp"
#include "broker/peer_table.hpp"
#include "broker/realm.hpp"
#include "broker/subscriptions.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::broker {

/// What a broker is told by its options.
struct Settings {
  bool disclose_callers = false;
  std::uint32_t log_calls_every = 0;
  std::chrono::nanoseconds kick_time{0};           ///< for which who was kicked is not let in again
  std::vector<std::string> durable_patterns = {};  ///< of topics of which all is kept
};

/// Which notification is being handed on: of one that goes to subscribers and to a provider, nobody is told twice.
class PresentNotification {
 public:
  void begin() noexcept { ++number_; }
  /// One that goes to nobody but a subscription's caller.
  void begin_withheld() noexcept { withheld_ = ++number_; }
  [[nodiscard]] bool is_withheld() const noexcept { return withheld_ == number_; }
  void mark_told(Peer& peer) const noexcept { peer.last_event = number_; }
  [[nodiscard]] bool has_told(const Peer& peer) const noexcept { return peer.last_event == number_; }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  std::uint64_t number_ = 0;
  std::uint64_t withheld_ = kNone;
};

class ExclusiveLeases;
class LinkedBroker;

struct BrokerContext {
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept {
    return loop.scheduler != nullptr ? loop.scheduler->now() : std::chrono::nanoseconds{0};
  }
  /// What tells a provider whose message it is given: a name as JSON text; empty where that is not told.
  [[nodiscard]] std::string from_of(const Peer& peer) const {
    if (!settings.disclose_callers || peer.name.empty()) [[likely]]
      return {};
    return peer.name_json();
  }
  /// The same of a message of its: of one that a linked broker hands on, what that says.
  [[nodiscard]] std::string from_of(const Peer& peer, const Received& message) const {
    if (peer.linked == nullptr) [[likely]]
      return from_of(peer);
    return settings.disclose_callers && message.has(Member::from) ? std::string{message[Member::from]} : std::string{};
  }
  /// Answers a call that nobody is asked for.
  inline void refuse(Call& call, std::string_view method, const Error& error);

  const Registry& own;  ///< of the process itself, whose names nobody else may have
  const Limits& limits;
  rpc::LoopContext& loop;
  const Settings settings;
  const RelayErrors errors{};
  OperationsLog log{loop, settings.log_calls_every};
  PresentNotification notification{};
  PeerTable peers{};
  MethodTable methods{};
  Subscriptions topics{};
  std::vector<LinkedBroker*>
      links{};  ///< of other processes that take over, or are taken over from; owned by the Router
  ExclusiveLeases* leases = nullptr;  ///< of the Router
  std::unique_ptr<Realm> realm{};     ///< null without a cluster; it goes before all that is above
};

/// The caller of a call, as the broker knows it.
[[nodiscard]] inline Peer& caller_of(Call& call) { return static_cast<Peer&>(*call.broker_peer()); }

inline void BrokerContext::refuse(Call& call, std::string_view method, const Error& error) {
  log.failed(method, &caller_of(call), error);
  call.error(error);
}

}  // namespace wirecall::broker
