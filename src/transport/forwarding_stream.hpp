// ForwardingStream: a ByteStream that has another one do all that it is asked: the base of those that change a part of
// that. So what they do not change, what is new here included, is the stream's below. Owned and used as any ByteStream.
#pragma once

#include <memory>
#include <utility>

#include "transport/byte_stream.hpp"

namespace wirecall::transport {

class ForwardingStream : public ByteStream {
 public:
  /// `stream` is not null.
  explicit ForwardingStream(std::unique_ptr<ByteStream> stream) : stream_(std::move(stream)) {}

  void start(StreamUser& user) override { stream_->start(user); }
  void send(Buffer bytes, bool prompt) override { stream_->send(std::move(bytes), prompt); }
  void pause() override { stream_->pause(); }
  void resume() override { stream_->resume(); }
  [[nodiscard]] std::size_t readable() const noexcept override { return stream_->readable(); }
  [[nodiscard]] std::size_t unsent() const noexcept override { return stream_->unsent(); }
  void shut_down() override { stream_->shut_down(); }
  [[nodiscard]] bool says_farewell() noexcept override { return stream_->says_farewell(); }
  void watch_peer(std::chrono::nanoseconds time) noexcept override { stream_->watch_peer(time); }
  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const override { return stream_->peer_credentials(); }
  [[nodiscard]] std::string peer_source() const override { return stream_->peer_source(); }
  [[nodiscard]] const TlsSession* tls() const noexcept override { return stream_->tls(); }

 protected:
  [[nodiscard]] ByteStream& below() const noexcept { return *stream_; }

 private:
  std::unique_ptr<ByteStream> stream_;
};

}  // namespace wirecall::transport
