// See authentication.hpp.
#include "rpc/authentication.hpp"

#include "base/dotted_name.hpp"
#include "message/own_error.hpp"
#include "rpc/broker.hpp"
#include "rpc/refused_messages.hpp"
#include "rpc/request_subject.hpp"

namespace wirecall::rpc {

static void log_unauthenticated(const ServedPeer& peer, const Received& message) noexcept try {
  if (message.kind != MessageKind::request && message.kind != MessageKind::notification) return;
  const bool tells = is_reserved(message.method()) && message.has(Member::params);
  const Credential* const shown =
      peer.calls != nullptr && peer.calls->identity != nullptr ? &peer.calls->identity->shown.credential : nullptr;
  std::string reason{Refusals::kRemovedToken};
  if (shown == nullptr || shown->empty()) {
    reason = fault_of_unknown(peer.sink, peer.loop);
  } else if (shown->is_certificate()) {
    reason = Refusals::kRemovedCertificate;
  }
  peer.loop.refusals.log_unauthenticated(
      {.what = message.method(),
       .about = tells ? subject_of({message[Member::params], message.encoding}) : std::string{},
       .source = peer.sink.peer_source(),
       .reason = reason});
} catch (const std::bad_alloc&) {
  // The peer is told all the same.
}

std::string fault_of_unknown(const MessageSink& sink, const LoopContext& loop) {
  const std::optional<std::vector<std::string>> names = sink.certificate_names();
  const Authority* const authority = loop.services.authority.get();
  return names && authority != nullptr ? authority->fault_of_certificate(*names) : std::string{Refusals::kNoToken};
}

Error unauthenticated(const MessageSink& sink, const LoopContext& loop) {
  std::string reason{"say who you are: rpc.hello with a token that is known, or Authorization by HTTP"};
  if (sink.certificate_names()) reason.append("; the connection has shown ").append(fault_of_unknown(sink, loop));
  return message::make(ErrorCode::unauthenticated, reason, "no");
}

bool is_still_known(const ServedPeer& peer, bool was_open) noexcept {
  const Principal* const before = peer.principal();
  const Authority* const authority = peer.loop.services.authority.get();
  if (before == nullptr) return !was_open || authority == nullptr;
  const Identity& shown = peer.calls->identity->shown;
  if (shown.authority.get() == authority) return true;
  const Principal* const after = authority != nullptr ? shown.find_in(*authority) : nullptr;
  return after != nullptr && same_grants(*after, *before);
}

bool is_revoked(const ServedPeer& peer) noexcept {
  const Authority* const authority = peer.loop.services.authority.get();
  return peer.principal() != nullptr && authority != nullptr &&
         peer.calls->identity->shown.find_in(*authority) == nullptr;
}

void identify(ServedPeer& peer, const Principal* principal, Credential credential) {
  PeerIdentity& known = peer.identity();
  known.shown = {
      .authority = peer.loop.services.authority, .principal = principal, .credential = std::move(credential)};
  if (principal != nullptr) known.awaited.reset();
  peer.use_account();
  if (peer.broker) peer.broker->identify(principal);
}

bool authenticate_again(ServedPeer& peer, const Received& message, const EncodedText* encoded) {
  const bool known = peer.principal() != nullptr;
  if (known && is_still_known(peer)) {
    Identity& shown = peer.calls->identity->shown;
    const Principal* const principal = shown.find_in(*peer.loop.services.authority);
    identify(peer, principal, std::move(shown.credential));
    return true;
  }
  const bool single = message.kind == MessageKind::request || message.kind == MessageKind::notification;
  const std::string_view name = single && !message.method_escaped ? message.method() : std::string_view{};
  if (!known && (name == "rpc.hello" || name == "rpc.ping" || name == "keepAlive")) {
    const std::size_t unread = peer.sink.waiting_bytes();
    hold_unidentified(peer, unread);
    if (unread <= kUnidentifiedBytesMax) return true;
    peer.sink.close();
    return false;
  }
  const Error error = unauthenticated(peer.sink, peer.loop);
  const auto log = [&](Received refused) {
    if (encoded != nullptr) message::NativeTranscoder::restore(encoded->encoding, encoded->text, refused);
    log_unauthenticated(peer, refused);
  };
  if (message.kind == MessageKind::batch || is_batch_over_limit(message)) {
    BatchElements elements{message.text};
    for (Received element; elements.next(element);) log(element);
    refuse_batch(peer, message, error);
  } else {
    log(message);
    if (message.kind != MessageKind::notification) {
      CallState state{peer, nullptr};
      refuse(message, state, error);
    }
  }
  peer.sink.close();
  return false;
}

bool authenticate_element(const Received& element, CallState& state) {
  ServedPeer& peer = state.peer;
  if (peer.principal() != nullptr && is_still_known(peer)) return true;
  if (element.kind == MessageKind::notification) return false;
  log_unauthenticated(peer, element);
  refuse(element, state, unauthenticated(peer.sink, peer.loop));
  return false;
}

void hold_unidentified(ServedPeer& peer, std::size_t bytes) {
  if (!peer.calls || !peer.calls->identity || !peer.calls->identity->awaited) return;
  peer.loop.budgets.unidentified.hold(*peer.calls->identity->awaited, bytes, peer.limits.unidentified_bytes);
}

}  // namespace wirecall::rpc
