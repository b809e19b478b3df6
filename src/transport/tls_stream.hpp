// TlsStream: a ByteStream that is encrypted over another one. What has been received in a turn is decrypted at once,
// and what is sent is encrypted a part at a time, so that a long message does not hold the loop. It has no buffers
// while nothing happens. Owned by a connection, as any ByteStream; used on its loop's thread.
//
// A peer that goes without having said so has not ended: the stream fails, since anybody on the way can cut a
// connection.
#pragma once

#include "transport/byte_stream.hpp"
#include "transport/tls_session.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::transport {

/// Is told how handshakes of accepted connections end. Outlives its streams.
/// Destroyed once the handshake has ended, and told how before, unless the connection has gone first.
class TlsObserver {
 public:
  virtual ~TlsObserver() = default;
  /// False where the connection may not go on.
  [[nodiscard]] virtual bool agreed(const TlsSession& session) = 0;
  virtual void refused(const TlsSession& session, const std::string& source) = 0;
};

class TlsStream final : public ByteStream, private StreamUser {
 public:
  /// `observer` is null for nobody, and for a session whose handshake is done.
  TlsStream(Loop& loop, std::unique_ptr<ByteStream> stream, std::unique_ptr<TlsSession> session,
            std::unique_ptr<TlsObserver> observer = nullptr);
  TlsStream(TlsStream&&) = delete;
  ~TlsStream() override;

  /// Ciphertext that came before this was known to be TLS; after `start`. The user is called from within.
  void take(std::span<char> first) { received(first); }

  void start(StreamUser& user) override;
  void send(Buffer bytes, bool prompt) override;
  void pause() override { stream_->pause(); }
  void resume() override { stream_->resume(); }
  [[nodiscard]] std::size_t readable() const noexcept override { return stream_->readable(); }
  [[nodiscard]] std::size_t unsent() const noexcept override { return sends_.size() - encrypted_ + stream_->unsent(); }
  void shut_down() override;
  [[nodiscard]] bool says_farewell() noexcept override;
  void watch_peer(std::chrono::nanoseconds time) noexcept override { stream_->watch_peer(time); }
  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const override { return stream_->peer_credentials(); }
  [[nodiscard]] std::string peer_source() const override { return stream_->peer_source(); }
  [[nodiscard]] const TlsSession* tls() const noexcept override { return session_.get(); }

 private:
  void received(std::span<char> bytes) override;
  void ended() override;
  void sent(Buffer buffer) override;
  void failed(int error) override;
  [[nodiscard]] bool may_go_on(TlsSession::State before);
  void pass_on();
  bool passes_on();
  void encrypt_part();
  void fail(int error);

  Loop* loop_;
  std::unique_ptr<ByteStream> stream_;
  std::unique_ptr<TlsSession> session_;
  std::unique_ptr<TlsObserver> observer_;  // until the handshake has ended
  StreamUser* user_ = nullptr;
  bool* destroyed_ = nullptr;  // set when it is, where its user is being called
  Buffer sends_;               // the user's, while it is sent
  std::size_t encrypted_ = 0;  // bytes of it
  Buffer waiting_;             // ciphertext that is sent next
  int error_ = 0;              // with which the user is told of a failure, once its alert has been sent
  bool started_ = false;
  bool user_sends_ = false;
  bool prompt_ = false;
  bool below_sends_ = false;
  bool shuts_down_ = false;  // once nothing waits
  bool end_said_ = false;    // to the peer
  bool ends_below_ = false;  // nothing can be sent any more
  bool ended_ = false;       // the user has been told
  bool over_ = false;        // of a failure
};

}  // namespace wirecall::transport
