// See protocol_detector.hpp.
#include "connection/protocol_detector.hpp"

#include "framing/byte_order_mark.hpp"

namespace wirecall::net {

using framing::Protocol;
using std::chrono::milliseconds;

ProtocolDetector::ProtocolDetector(Host& host, const ChannelFactory& channels,
                                   std::unique_ptr<transport::ByteStream> stream, const Admission& admission)
    : host_(&host), channels_(&channels), stream_(std::move(stream)), admission_(admission) {
  stream_->start(*this);
  host_->loop.start(*this, milliseconds{host_->limits.header_timeout_ms});  // last: nothing may fail while it runs
}

void ProtocolDetector::received(std::span<char> bytes) {
  if (over_) return;
  const Protocol protocol = first_.feed({bytes.data(), bytes.size()});
  if (protocol == Protocol::tls && admission_.tls != nullptr && !encrypted_) return begin_tls(bytes);
  if (protocol != Protocol::undetermined) promote(protocol, bytes, false);
}

void ProtocolDetector::ended() {
  if (over_) return;
  // A mark alone is text in which nothing has been said.
  const bool mark = first_.kept().starts_with(framing::kByteOrderMark);
  if (!first_.kept().empty()) return promote(mark ? Protocol::json_text : Protocol::unknown, {}, true);
  end(CloseReason::finished, 0);
}

// What has come, from the first byte that is not white space. `whole` holds it where it came in several pieces.
std::span<char> ProtocolDetector::first_bytes(std::span<char> bytes, Buffer& whole) {
  if (first_.kept().empty()) return bytes.subspan(std::min(first_.skipped(), bytes.size()));
  whole = host_->loop.take_buffer();
  whole.append(first_.kept());
  whole.append({bytes.data(), bytes.size()});
  static_cast<void>(whole.padded());
  return {whole.data(), whole.size()};
}

// What is encrypted is looked at as if it were the first; but TLS within TLS is nothing.
void ProtocolDetector::begin_tls(std::span<char> bytes) {
  Buffer whole;
  std::span<char> first;
  std::unique_ptr<transport::TlsStream> encrypted;
  try {
    first = first_bytes(bytes, whole);
    encrypted = admission_.tls->accept(std::move(stream_));
    if (encrypted == nullptr) return end(CloseReason::refused, 0);
    encrypted->start(*this);
    stream_ = std::move(encrypted);
    encrypted_ = true;
    admission_.plain = true;
    first_ = {};
    if (!admission_.tls->begin(*this, first)) {
      stream_->pause();
      waits_ = true;
    }
  } catch (const std::bad_alloc&) {
    return end(CloseReason::lost, ENOMEM);
  }
  host_->loop.give_buffer(std::move(whole));
}

void ProtocolDetector::shake_hands(std::span<char> first) {
  if (std::exchange(waits_, false)) stream_->resume();
  if (!over_) static_cast<transport::TlsStream&>(*stream_).take(first);
}

// A page can have a browser send its request to a port that does not speak HTTP, and what is spoken there to one that
// does: so what both have agreed on in the handshake is all that is spoken (RFC 7301; ALPACA).
Protocol ProtocolDetector::admitted(Protocol protocol) {
  if (!admission_.plain) {
    admission_.tls->plain_refused(stream_->peer_source());
    return protocol == Protocol::http ? Protocol::plain_http : Protocol::unknown;
  }
  const transport::TlsSession* const tls = stream_->tls();
  if (tls == nullptr || tls->protocol().empty()) return protocol;
  const bool http = tls->protocol() == transport::kAlpnHttp;
  return http == (protocol == Protocol::http) ? protocol : Protocol::unknown;
}

void ProtocolDetector::client_authorities_changed(const transport::TlsServerContext& now) {
  const transport::TlsSession* const tls = over_ ? nullptr : stream_->tls();
  if (tls != nullptr && !tls->is_accepted_by(now)) end(CloseReason::refused, 0);
}

void ProtocolDetector::promote(Protocol protocol, std::span<char> bytes, bool all) {
  std::unique_ptr<Channel> made;
  std::span<char> first;
  Buffer whole;
  try {
    first = first_bytes(bytes, whole);
    protocol = admitted(protocol);
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

ProtocolDetector::~ProtocolDetector() {
  host_->loop.stop(*this);
  if (waits_) admission_.tls->forget(*this);
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

// It has said nothing, so nothing is owed to it. From the turn, since the owner is walking through its connections.
void ProtocolDetector::finish() {
  host_->loop.stop(*this);
  host_->loop.start(*this, milliseconds{0});
}

}  // namespace wirecall::net
