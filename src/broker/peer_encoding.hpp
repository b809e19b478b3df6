// In which encodings others' messages go to a peer as they are. One thread.
#pragma once

#include "broker/peer.hpp"

namespace wirecall::broker {

/// Whether messages of that encoding go to the peer as they came: it has spoken the same; or it is another node, which
/// hands them on to who does, and the encoding is one that all brokers have.
[[nodiscard]] inline bool takes_as_it_is(const Peer& peer, Encoding encoding) noexcept {
  if (!peer.of_node) [[likely]]
    return peer.sink().encoding() == encoding;
  return encoding <= Encoding::protobuf;
}

}  // namespace wirecall::broker
