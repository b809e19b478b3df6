// A connection without a socket for the fuzzers of sessions: a loop with virtual time, a stream whose other end is the
// fuzzer's, and the session on it. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "connection/channel.hpp"
#include "fuzz/texts.hpp"
#include "runtime/backend.hpp"
#include "wirecall/registry.hpp"

namespace fuzz {

using std::chrono::nanoseconds;

// A loop without I/O.
class NoBackend final : public wirecall::runtime::Backend {
 public:
  std::span<wirecall::runtime::Completion> turn(std::span<wirecall::runtime::Operation>, nanoseconds) override {
    return {};
  }
  [[nodiscard]] std::shared_ptr<void> keep_lent() override { return nullptr; }
  [[nodiscard]] std::size_t readable(wirecall::runtime::Handle) const noexcept override { return 0; }
  [[nodiscard]] std::size_t unsent(wirecall::runtime::Handle) const noexcept override { return 0; }
  void wake() noexcept override {}
  nanoseconds now() const noexcept override { return time; }

  nanoseconds time{0};
};

// The peer's end of the stream outlives the session's.
struct Wire {
  wirecall::transport::StreamUser* user = nullptr;
  wirecall::Buffer sending;
  bool sends = false;
  bool paused = false;
  bool shut_down = false;
  std::string out;
};

class FakeStream final : public wirecall::transport::ByteStream {
 public:
  explicit FakeStream(Wire& wire) : wire_(&wire) {}
  ~FakeStream() override { wire_->user = nullptr; }
  void start(wirecall::transport::StreamUser& user) override { wire_->user = &user; }
  void send(wirecall::Buffer bytes, bool) override {
    if (wire_->sends || wire_->shut_down) std::abort();  // one at a time, and none after the end
    wire_->sends = true;
    wire_->sending = std::move(bytes);
  }
  void pause() override { wire_->paused = true; }
  void resume() override { wire_->paused = false; }
  [[nodiscard]] std::size_t readable() const noexcept override { return 0; }
  [[nodiscard]] std::size_t unsent() const noexcept override { return 0; }
  void shut_down() override { wire_->shut_down = true; }

 private:
  Wire* wire_;
};

/// Sends bytes, and collects everything sent to it.
class Peer final : wirecall::net::ConnectionOwner {
 public:
  using Make = std::function<std::unique_ptr<wirecall::net::Channel>(wirecall::net::Host&,
                                                                     std::unique_ptr<wirecall::transport::ByteStream>)>;

  /// `make` makes the session. All references outlive the peer.
  Peer(const wirecall::Registry& registry, const wirecall::Limits& limits, const Make& make) {
    auto backend = std::make_unique<NoBackend>();
    backend_ = backend.get();
    loop_ = std::make_unique<wirecall::Loop>(std::move(backend));
    loop_context_ = std::make_unique<wirecall::rpc::LoopContext>(wirecall::json_codec(), loop_.get());
    host_.reset(new wirecall::net::Host{*loop_, registry, limits, *loop_context_, *this});
    channel_ = make(*host_, std::make_unique<FakeStream>(wire_));
  }
  /// Waits until it is read, then sends.
  void send(std::string_view bytes) {
    wait_to_be_read(bytes);
    if (over_) return;
    const PaddedText padded{bytes};
    // The session may write to lent bytes; this block is ours.
    wire_.user->received({const_cast<char*>(padded.view().data()), padded.view().size()});
    turn();
  }
  /// Closes the sending side, and returns all output up to the end.
  std::string finish(std::string_view input) {
    wait_to_be_read(input);
    if (!over_) wire_.user->ended();
    for (int turns = 0; !over_; ++turns) {
      if (turns > kTurnsMax) found("a session never ends", input);
      pass_time();
      turn();
    }
    return std::move(wire_.out);
  }
  /// Whether time has passed before the input was complete: then timeouts depend on how it was cut.
  [[nodiscard]] bool has_waited() const { return has_waited_; }

 private:
  static constexpr int kTurnsMax = 10'000;
  // Work that needs no time is done in this many turns.
  static constexpr int kTurnsWithoutTime = 100;

  void connection_ended(wirecall::net::Connection&, wirecall::net::CloseReason, int) override { over_ = true; }
  void wait_to_be_read(std::string_view input) {
    for (int turns = 0; wire_.paused && !over_; ++turns) {
      if (turns > kTurnsMax) found("a session never reads on", input);
      if (turns >= kTurnsWithoutTime) {
        has_waited_ = true;
        pass_time();
      }
      turn();
    }
  }
  void pass_time() { backend_->time += std::chrono::milliseconds{1}; }
  void turn() {
    loop_->turn(nanoseconds{0});
    if (over_) return channel_.reset();
    if (!wire_.sends) return;
    wire_.sends = false;
    wire_.out += wire_.sending.view();
    wire_.user->sent(std::move(wire_.sending));
    wire_.sending = {};
  }

  NoBackend* backend_ = nullptr;
  std::unique_ptr<wirecall::Loop> loop_;
  std::unique_ptr<wirecall::rpc::LoopContext> loop_context_;
  std::unique_ptr<wirecall::net::Host> host_;
  Wire wire_;
  std::unique_ptr<wirecall::net::Channel> channel_;
  bool over_ = false;
  bool has_waited_ = false;
};

/// Sends `input` in pieces that `seed` chooses.
template <class Random>
void send_in_pieces(Peer& peer, std::string_view input, Random random) {
  const std::size_t piece_max = 1 + random.below(random.one_in(2) ? 4 : 100);
  for (std::size_t at = 0; at < input.size();) {
    const std::size_t piece = 1 + random.below(piece_max);
    peer.send(input.substr(at, piece));
    at += piece;
  }
}

}  // namespace fuzz
