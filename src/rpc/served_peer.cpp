// See served_peer.hpp.
#include "rpc/served_peer.hpp"

#include "rpc/authentication.hpp"
#include "rpc/broker.hpp"
#include "rpc/peer_calls.hpp"
#include "rpc/pending.hpp"

namespace wirecall::rpc {

void LeavesBroker::operator()(BrokerPeer* peer) const noexcept { peer->leave(); }

PendingCalls& ServedPeer::make_pending() {
  auto made = std::make_shared<PendingCalls>(*this, broker ? broker->shared_load() : sink.load());
  put_on_account(*made->load);
  load = made->load.get();
  calls = std::move(made);
  return *calls;
}

BrokerPeer* ServedPeer::join_broker() {
  if (!broker && loop.services.broker != nullptr) {
    // Most clients of a broker have no call here that waits: their load stands there alone.
    const std::shared_ptr<PeerLoad> own = calls ? calls->load : sink.load();
    put_on_account(*own);
    broker = loop.services.broker->attach_peer(sink, own);
    load = own.get();
    broker->identify(principal());
  }
  return broker.get();
}

const std::shared_ptr<PeerLoad>& ServedPeer::shared_load() {
  return !calls && broker ? broker->shared_load() : pending().load;
}

PeerIdentity& ServedPeer::identity() {
  std::unique_ptr<PeerIdentity>& known = pending().identity;
  if (!known) known = std::make_unique<PeerIdentity>();
  return *known;
}

void ServedPeer::use_account() { put_on_account(*load); }

void ServedPeer::put_on_account(PeerLoad& own) {
  CallCount& count = own.calls;
  const Principal* known = principal();
  if (known != nullptr && known->name.empty()) known = nullptr;  // anybody, by datagrams
  // No name of a principal and no source is the other's.
  const std::string_view kind = known != nullptr ? "principal " : "source ";
  if (count.account()) {
    const std::string_view before = count.account()->name;
    if (before.starts_with(kind) && (known == nullptr || before.substr(kind.size()) == known->name)) return;
  }
  const std::string name = std::string{kind} + (known != nullptr ? known->name : sink.peer_source());
  count.use(loop.budgets.accounts.of(name, loop.now()));
}

std::shared_ptr<CallerLink> ServedPeer::caller_link() {
  const PeerCapabilities can = sink.capabilities();
  if (!can.calls_back && !can.events) return nullptr;
  PendingCalls& own = pending();
  if (!own.peer_calls) own.peer_calls = std::make_shared<PeerCalls>(sink, loop, limits);
  return std::make_shared<CallerLink>(own.peer_calls, own.load, limits.soft_output, limits.hard_output);
}

std::size_t ServedPeer::waiting_calls() const noexcept {
  return (calls ? calls->active : 0) + (broker ? broker->in_flight() : 0);
}

}  // namespace wirecall::rpc
