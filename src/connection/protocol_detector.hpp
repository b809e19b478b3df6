// ProtocolDetector: an accepted connection whose protocol is not known yet. Its first bytes promote it to a
// MessageConnection with a framing, or to an HttpConnection, which takes over the stream and these bytes; where they
// begin TLS, it makes the handshake first, and then looks at the first bytes that were encrypted. When they do not come
// in time it ends. It has no buffers, so that connections which say nothing cost little. Owned by a server; lives on
// its loop's thread.
#pragma once

#include "connection/channel.hpp"
#include "connection/connection.hpp"
#include "connection/tls_service.hpp"
#include "framing/protocol.hpp"
#include "transport/byte_stream.hpp"
#include "wirecall/context.hpp"

namespace wirecall::net {

/// Makes connections that speak a protocol.
class ChannelFactory {
 public:
  /// `protocol` is one that a peer has begun to speak, or Protocol::unknown. Throws std::bad_alloc.
  [[nodiscard]] virtual std::unique_ptr<Channel> make(Host& host, framing::Protocol protocol,
                                                      std::unique_ptr<transport::ByteStream> stream) const = 0;

 protected:
  ~ChannelFactory() = default;
};

/// What an accepted connection may begin with.
struct Admission {
  TlsService* tls = nullptr;  ///< null where TLS is not spoken
  bool plain = true;          ///< whether it may go without TLS
};

class ProtocolDetector final : public Connection, private transport::StreamUser, private TlsAcceptor, private Timer {
 public:
  /// All that is referred to outlives the connection.
  ProtocolDetector(Host& host, const ChannelFactory& channels, std::unique_ptr<transport::ByteStream> stream,
                   const Admission& admission = {});
  ~ProtocolDetector() override;

  void drain() noexcept override { draining_ = true; }
  [[nodiscard]] bool busy() const noexcept override { return draining_ && !over_ && stream_->readable() != 0; }
  void stop_calls() noexcept override {}
  [[nodiscard]] bool handler_off_loop() const noexcept override { return promoting_; }
  void finish() override;
  void cut() override { end(CloseReason::finished, 0); }
  void client_authorities_changed(const transport::TlsServerContext& now) override;
  void end_if_idle(std::uint8_t) override {}  // it has a timeout of its own
  [[nodiscard]] std::size_t output_bytes() const noexcept override { return 0; }

 private:
  void received(std::span<char> bytes) override;
  void ended() override;
  void sent(Buffer) override {}
  void failed(int error) override;
  void expired() override;

  void begin_tls(std::span<char> bytes);
  void shake_hands(std::span<char> first) override;
  [[nodiscard]] framing::Protocol admitted(framing::Protocol protocol);
  [[nodiscard]] std::span<char> first_bytes(std::span<char> bytes, Buffer& whole);
  void promote(framing::Protocol protocol, std::span<char> bytes, bool all);
  void end(CloseReason why, int error);

  Host* host_;
  const ChannelFactory* channels_;
  std::unique_ptr<transport::ByteStream> stream_;
  Admission admission_;
  framing::FirstBytes first_;
  bool draining_ = false;
  bool over_ = false;
  bool encrypted_ = false;  // the stream is a TlsStream
  bool waits_ = false;      // for its turn to shake hands
  bool promoting_ = false;  // the promoted connection reads the first bytes
};

}  // namespace wirecall::net
