// See router.hpp.
#include "broker/router.hpp"

#include "base/random_id.hpp"

namespace wirecall::broker {

constexpr std::size_t kEpochDigits = 16;

Router::Router(const Registry& own, const Limits& limits, rpc::LoopContext& loop_context, const Settings& settings,
               std::unique_ptr<durable::Store> store)
    : context_{.own = own, .limits = limits, .loop = loop_context, .settings = settings}, store_(std::move(store)) {
  loop_context.services.own_counts = &inventory_.own_counts();
}

Router::~Router() {
  work_queues_.stop();
  links_.clear();
  context_.realm.reset();
  departures_.end_all();
  context_.loop.services.own_counts = nullptr;
}

rpc::JoinedPeer Router::attach_peer(rpc::MessageSink& sink, std::shared_ptr<rpc::PeerLoad> load) {
  rpc::JoinedPeer joined{new Peer{*this, sink, std::move(load)}};
  auto* const peer = static_cast<Peer*>(joined.get());
  peer->number = sessions_.number();
  context_.peers.add(*peer);
  return joined;
}

void Router::forget(Peer& peer) noexcept {
  if (peer.linked != nullptr) [[unlikely]]
    std::erase_if(links_, [&](const auto& link) { return link.get() == peer.linked; });
  peer.keep_last();
  if (peer.session != 0 || peer.took_part) context_.log.left(peer);
  peer.state = Peer::State::left;
  departures_.end_peer(peer);
  durable_topics_.leave(peer);
  if (const auto& account = peer.load().calls.account(); account && account->heaviest == &peer)
    account->heaviest = nullptr;
  retained_.forget(peer);
  sessions_.end(peer);
  departures_.end_calls_of(peer);
}

// An event that is still being told is not behind anybody yet.
rpc::RetainedPosition Router::retained_position() {
  if (epoch_.empty()) epoch_ = random_id().substr(2, kEpochDigits);
  const std::uint64_t told = fan_outs_.first_retained();
  const std::uint64_t last = events_.retained().last_number();
  return {.epoch = epoch_, .number = told != 0 ? told - 1 : last, .last_number = last};
}

void Router::on_writable(Peer& peer) {
  streams_.resume(peer);
  inputs_.resume(peer);
  peer.congested = false;
  // From the last on, since one that goes leaves its place to the last.
  for (std::size_t i = peer.provides.size(); i-- != 0;) {
    if (i < peer.provides.size()) relay_.free_again(*peer.provides[i]);
  }
  retained_.resume(peer);
  durable_topics_.resume(peer);
  if (!peer.is_sent_retained()) tell_lag(peer);
}

}  // namespace wirecall::broker
