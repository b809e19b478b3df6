// In which encodings others' messages go to a peer as they are. One thread.
#pragma once

#include "broker/peer.hpp"
#include "message/message_codec.hpp"

namespace wirecall::broker {

/// Whether messages of that encoding go to the peer as they came: it has spoken the same; or it is another node, and
/// params and results may stay in the encoding.
[[nodiscard]] inline bool takes_as_it_is(const Peer& peer, Encoding encoding) noexcept {
  if (!peer.of_node) [[likely]]
    return peer.sink().encoding() == encoding;
  return encoding == Encoding::json || message::codec_of(encoding).is_native;
}

}  // namespace wirecall::broker
