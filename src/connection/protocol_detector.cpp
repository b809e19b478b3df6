// See protocol_detector.hpp.
#include "connection/protocol_detector.hpp"

#include "framing/byte_order_mark.hpp"

namespace wirecall::net {

using framing::Protocol;
using std::chrono::milliseconds;

ProtocolDetector::ProtocolDetector(Host& host, const ChannelFactory& channels,
                                   std::unique_ptr<transport::ByteStream> stream)
    : host_(&host), channels_(&channels), stream_(std::move(stream)) {
  stream_->start(*this);
  host_->loop.start(*this, milliseconds{host_->limits.header_timeout_ms});  // last: nothing may fail while it runs
}

void ProtocolDetector::received(std::span<char> bytes) {
  if (over_) return;
  const Protocol protocol = first_.feed({bytes.data(), bytes.size()});
  if (protocol != Protocol::undetermined) return promote(protocol, bytes, false);
  if (draining_) drain_pending_ = stream_->readable() != 0;
}

void ProtocolDetector::ended() {
  if (over_) return;
  // A mark alone is text in which nothing has been said.
  const bool mark = first_.kept().starts_with(framing::kByteOrderMark);
  if (!first_.kept().empty()) return promote(mark ? Protocol::json_text : Protocol::unknown, {}, true);
  end(CloseReason::finished, 0);
}

void ProtocolDetector::promote(Protocol protocol, std::span<char> bytes, bool all) {
  std::unique_ptr<Channel> made;
  std::span<char> first = bytes.subspan(std::min(first_.skipped(), bytes.size()));
  Buffer whole;
  try {
    if (!first_.kept().empty()) {
      whole = host_->loop.take_buffer();
      whole.append(first_.kept());
      whole.append({bytes.data(), bytes.size()});
      static_cast<void>(whole.padded());
      first = {whole.data(), whole.size()};
    }
    made = channels_->make(*host_, protocol, std::move(stream_));
  } catch (const std::bad_alloc&) {
    return end(CloseReason::lost, ENOMEM);
  }
  over_ = true;
  host_->loop.stop(*this);
  Channel& channel = *made;
  host_->owner.connection_promoted(*this, std::move(made));
  if (draining_) channel.drain();
  promoting_ = true;
  channel.take(first, all);
  promoting_ = false;
  host_->loop.give_buffer(std::move(whole));
}

void ProtocolDetector::end(CloseReason why, int error) {
  if (std::exchange(over_, true)) return;
  host_->owner.connection_ended(*this, why, error);
}

void ProtocolDetector::failed(int error) { end(CloseReason::lost, error); }

void ProtocolDetector::expired() {
  if (over_) return;
  ++host_->loop_context.stats.connections_timed_out;
  end(CloseReason::silent, 0);
}

void ProtocolDetector::drain() noexcept {
  draining_ = true;
  drain_pending_ = stream_->readable() != 0;
}

// It has said nothing, so nothing is owed to it. From the turn, since the owner is walking through its connections.
void ProtocolDetector::finish() {
  host_->loop.stop(*this);
  host_->loop.start(*this, milliseconds{0});
}

}  // namespace wirecall::net
