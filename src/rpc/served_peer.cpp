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
  use_load(*made->load);
  calls = std::move(made);
  return *calls;
}

BrokerPeer* ServedPeer::join_broker() {
  if (!broker && loop.services.broker != nullptr) {
    // Most clients of a broker have no call here that waits: their load stands there alone.
    const std::shared_ptr<PeerLoad> own = calls ? calls->load : sink.load();
    PeerLoad* const before = load;
    use_load(*own);
    try {
      broker = loop.services.broker->attach_peer(sink, own);
    } catch (...) {
      load = before;
      throw;
    }
    broker->identify(principal());
  }
  return broker.get();
}

PeerIdentity& ServedPeer::identity() {
  std::unique_ptr<PeerIdentity>& known = pending().identity;
  if (!known) known = std::make_unique<PeerIdentity>();
  return *known;
}

void ServedPeer::use_load(PeerLoad& own) {
  PeerLoad* const before = std::exchange(load, &own);
  try {
    use_account();
  } catch (...) {
    load = before;
    throw;
  }
}

void ServedPeer::use_account() {
  CallCount& count = load->calls;
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
