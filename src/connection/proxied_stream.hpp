// ProxiedStream: a ByteStream that begins with a PROXY header (framing/proxy_protocol.hpp), which it takes off before
// anybody else sees a byte: then it is the stream below, of a peer whose source is the client that the header names.
// Whoever makes one has made sure that the peer is a proxy of ours. It makes nobody local: the system vouches for
// nobody behind a proxy. A header that does not come is its user's to time; one that is malformed fails the stream.
// Owned by a connection, as any ByteStream; used on its loop's thread.
#pragma once

#include <functional>

#include "framing/proxy_protocol.hpp"
#include "transport/forwarding_stream.hpp"

namespace wirecall::net {

class ProxiedStream final : public transport::ForwardingStream, private transport::StreamUser {
 public:
  /// Told once: the `cause` for which a header is refused, empty for one that has been read; and where, by what is
  /// known by then, the peer comes from.
  using Read = std::function<void(std::string_view cause, const std::string& source)>;

  ProxiedStream(std::unique_ptr<transport::ByteStream> stream, Read read)
      : ForwardingStream(std::move(stream)), read_(std::move(read)) {}
  ProxiedStream(ProxiedStream&&) = delete;

  void start(transport::StreamUser& user) override;
  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const override { return std::nullopt; }
  [[nodiscard]] std::string peer_source() const override;

 private:
  void received(std::span<char> bytes) override;
  void ended() override { user_->ended(); }
  void sent(Buffer buffer) override { user_->sent(std::move(buffer)); }
  void failed(int error) override { user_->failed(error); }
  void read_header(std::span<char> bytes);

  Read read_;
  transport::StreamUser* user_ = nullptr;
  framing::ProxyHeader header_;
  framing::ProxyHeader::State state_ = framing::ProxyHeader::State::incomplete;
};

}  // namespace wirecall::net
