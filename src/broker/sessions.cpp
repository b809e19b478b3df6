// See sessions.hpp.
#include "broker/sessions.hpp"

#include <chrono>
#include <string>
#include <utility>

#include "base/dotted_name.hpp"
#include "message/own_error.hpp"
#include "rpc/access.hpp"

namespace wirecall::broker {

using std::chrono::nanoseconds;

namespace {

// So long after it began a session can be resumed whose connection has gone.
constexpr std::chrono::hours kSessionLifetime{24};

std::string_view name_of(const Principal* principal) noexcept {
  return principal == nullptr ? std::string_view{} : std::string_view{principal->name};
}

}  // namespace

rpc::HelloResult Sessions::hello(Peer& peer, std::string_view name, std::string_view resume) {
  if (name.size() > kNameBytesMax) {
    throw Error{ErrorCode::invalid_params, std::string{message_of(ErrorCode::invalid_params)},
                R"({"loc":["name"],"expected":"string of 1 to 255 bytes"})"};
  }
  refuse_kicked(peer, name, resume);
  if (!resume.empty()) take_over(peer, name, resume);
  if (!name.empty()) give_name(peer, name);
  if (peer.session == 0) {
    peer.session = peer.number;
    context_->log.greeted(peer);
  }
  return {.name = peer.name, .session = keys_.secret_of(peer.session, name_of(peer.principal))};
}

// Whoever was kicked is answered when it may come again, and its connection closed.
void Sessions::refuse_kicked(Peer& peer, std::string_view name, std::string_view resume) {
  const std::string_view principal = name_of(peer.principal);
  const std::uint64_t session = resume.empty() ? 0 : keys_.find(resume, principal).value_or(0);
  const nanoseconds left = kicked_.left({.name = name, .principal = principal, .session = session}, context_->now());
  if (left == nanoseconds{0}) return;
  peer.sink().close();
  throw message::make(
      {.code = ErrorCode::forbidden,
       .reason = "an administrator has ended this client, which is not let in again for a time",
       .delivered = "no",
       .retry_after_ms = static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count())});
}

// The connection of that session, if it is still there, is replaced by this peer's: its calls end, and its name goes on
// without anybody being told that it went.
void Sessions::take_over(Peer& peer, std::string_view name, std::string_view resume) {
  const auto session = keys_.find(resume, name_of(peer.principal));
  Peer* const known = session ? peers_->find(*session) : nullptr;
  Peer* const found = known != nullptr && known->session == *session ? known : nullptr;
  const bool expired = session && found == nullptr && context_->now() - SessionKeys::began(*session) > kSessionLifetime;
  if (!session || expired) {
    throw message::make({.code = ErrorCode::unauthenticated, .reason = "there is no such session", .delivered = "no"});
  }
  if (found == nullptr || found == &peer) return;
  Peer& old = *found;
  relay_->end_calls(old, nullptr);
  departures_->end_peer(old);
  old.session = 0;
  old.took_part = false;  // it goes on as the other one
  if (!old.name.empty() && peer.name.empty() && (name.empty() || name == old.name)) {
    peers_->hand_name(old, peer);
  } else if (!old.name.empty()) {
    peers_->take_name(old);
    announcer_->announce(old, "rpc.client.left");
    old.name.clear();
  }
  context_->log.resumed(peer);
  old.sink().close();
}

void Sessions::give_name(Peer& peer, std::string_view name) {
  if (const Peer* const known = peers_->find(name)) {
    if (known == &peer) return;
    if (!rpc::same_principal(known->principal, peer.principal))
      throw conflict("a client of another principal has that name");
  }
  std::string given = peers_->free_name(peer, name);
  if (given == peer.name) return;
  const bool joins = peer.name.empty();
  peers_->rename(peer, std::move(given));
  if (joins) announcer_->announce(peer, "rpc.client.joined");
}

bool Sessions::kick(const Peer& by, std::string_view name) {
  Peer* const found = peers_->find(name);
  if (found == nullptr) return false;
  context_->log.kicked(by, name);
  Peer& peer = *found;
  if (context_->settings.kick_time > nanoseconds{0}) {
    kicked_.add({.name = name, .principal = name_of(peer.principal), .session = peer.session},
                context_->now() + context_->settings.kick_time);
  }
  peer.sink().close();
  return true;
}

void Sessions::end(Peer& peer) noexcept {
  if (!peer.name.empty()) {
    peers_->take_name(peer);
    announcer_->announce(peer, "rpc.client.left");
  }
  peers_->remove(peer);
}

}  // namespace wirecall::broker
