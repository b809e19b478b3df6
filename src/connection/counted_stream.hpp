// CountedStream: a ByteStream that knows how many bytes it was given to send. A client has to know what of its output
// the system may have seen; a server does not, and its connections are small because they keep nothing that they do not
// need. Owned by a connection, as any ByteStream; used on its loop's thread.
#pragma once

#include "transport/byte_stream.hpp"

namespace wirecall::net {

class CountedStream final : public transport::ByteStream {
 public:
  explicit CountedStream(std::unique_ptr<transport::ByteStream> stream) : stream_(std::move(stream)) {}

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  void start(transport::StreamUser& user) override { stream_->start(user); }
  void send(Buffer bytes, bool prompt) override {
    bytes_ += bytes.size();
    stream_->send(std::move(bytes), prompt);
  }
  void pause() override { stream_->pause(); }
  void resume() override { stream_->resume(); }
  [[nodiscard]] std::size_t readable() const noexcept override { return stream_->readable(); }
  [[nodiscard]] std::size_t unsent() const noexcept override { return stream_->unsent(); }
  void shut_down() override { stream_->shut_down(); }
  [[nodiscard]] bool says_farewell() noexcept override { return stream_->says_farewell(); }
  void watch_peer(std::chrono::nanoseconds time) noexcept override { stream_->watch_peer(time); }
  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const override { return stream_->peer_credentials(); }
  [[nodiscard]] std::string peer_source() const override { return stream_->peer_source(); }
  [[nodiscard]] const transport::TlsSession* tls() const noexcept override { return stream_->tls(); }

 private:
  std::unique_ptr<transport::ByteStream> stream_;
  std::uint64_t bytes_ = 0;
};

}  // namespace wirecall::net
