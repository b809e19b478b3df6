// Authentication: who a peer is that has to say so, and what it may send before it has, or once that is known no more.
// Where nobody has to (LoopServices::authority is null), all is admitted. One thread (the loop's).
// Implements docs/access.md.
#pragma once

#include "rpc/access.hpp"
#include "rpc/pending.hpp"
#include "rpc/served_peer.hpp"
#include "wirecall/error.hpp"
#include "wirecall/message.hpp"

namespace wirecall::rpc {

/// What somebody is answered who has not said who he is, or nobody who is known. Throws std::bad_alloc.
[[nodiscard]] Error unauthenticated(const MessageSink& sink, const LoopContext& loop);
/// Why somebody is nobody who has shown no token: for the log. Throws std::bad_alloc.
[[nodiscard]] std::string fault_of_unknown(const MessageSink& sink, const LoopContext& loop);

/// Whether the peer still is who it was when the authority has become another one, and may do the same. One that has
/// not said yet who it is may still do so, unless it could do everything before: where it `was_open`.
[[nodiscard]] bool is_still_known(const ServedPeer& peer, bool was_open = true) noexcept;
/// Whether the authority knows the peer's credential no more.
[[nodiscard]] bool is_revoked(const ServedPeer& peer) noexcept;

/// A peer that has not said who it is makes its connection hold so many bytes. It may be closed for that, and so may
/// others that hold more.
void hold_unidentified(ServedPeer& peer, std::size_t bytes);

/// The peer is `principal`, null for nobody who is known. Without a credential an authority finds it again by its name.
void identify(ServedPeer& peer, const Principal* principal, Credential credential);

[[nodiscard]] bool authenticate_again(ServedPeer& peer, const Received& message, const EncodedText* encoded);
/// Whether the peer may say this. Else it is refused, and its connection closed. `encoded` is the message as it came,
/// where it did in another encoding than JSON.
[[nodiscard]] inline bool authenticate(ServedPeer& peer, const Received& message,
                                       const EncodedText* encoded = nullptr) {
  const Authority* const authority = peer.loop.services.authority.get();
  if (authority == nullptr) [[likely]]
    return true;
  const bool known = peer.principal() != nullptr && peer.calls->identity->shown.authority.get() == authority;
  return known || authenticate_again(peer, message, encoded);
}
/// The same of an element of a batch: an element before it, or a reload since the batch was interrupted, may have taken
/// from the peer what it may do. Its connection goes on.
[[nodiscard]] bool authenticate_element(const Received& element, CallState& state);

}  // namespace wirecall::rpc
