// SimulatedClient: the test's end of a simulated connection, which speaks TLS where it has a context.
#pragma once

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tests/runtime/simulated_backend.hpp"
#include "transport/tls_session.hpp"

namespace wirecall::transport {

class SimulatedClient {
 public:
  /// `tls` is null where nothing is encrypted; else the handshake begins.
  SimulatedClient(std::shared_ptr<runtime::SimulatedPeer> peer, std::shared_ptr<const TlsClientContext> tls,
                  const Endpoint& endpoint)
      : peer_(std::move(peer)) {
    if (tls == nullptr) return;
    tls_ = std::make_unique<TlsSession>(std::move(tls), endpoint);
    Buffer hello;
    tls_->start(hello);
    peer_->send(hello.view());
  }

  /// Whether it may send: no handshake is in progress, and none has failed.
  [[nodiscard]] bool open() const { return !tls_ || tls_->state() == TlsSession::State::open; }
  /// Why TLS has failed; empty where it has not.
  [[nodiscard]] std::string failure() const { return tls_ ? tls_->failure() : std::string{}; }
  [[nodiscard]] bool gone() const { return peer_->closed || peer_->reset_by_peer; }
  [[nodiscard]] bool closed() const { return peer_->closed; }

  void send(std::string_view text) {
    if (!tls_) return peer_->send(text);
    Buffer encrypted;
    EXPECT_TRUE(tls_->send(text, encrypted)) << tls_->failure();
    peer_->send(encrypted.view());
  }
  /// What has come since.
  std::string take() {
    std::string came = peer_->take();
    if (!tls_ || came.empty()) return came;
    Buffer plaintext;
    Buffer answer;
    static_cast<void>(tls_->receive(came, plaintext, answer));
    if (!gone()) peer_->send(answer.view());
    return std::string{plaintext.view()};
  }
  /// It sends nothing more.
  void finish() {
    if (tls_ && !std::exchange(said_end_, true)) {
      Buffer end;
      tls_->shut_down(end);
      peer_->send(end.view());
    }
    peer_->finish();
  }
  [[nodiscard]] runtime::SimulatedPeer& peer() const { return *peer_; }

 private:
  std::shared_ptr<runtime::SimulatedPeer> peer_;
  std::unique_ptr<TlsSession> tls_;
  bool said_end_ = false;
};

}  // namespace wirecall::transport
