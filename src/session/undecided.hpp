// Undecided: an accepted connection that has not said yet what is spoken on it. By its first bytes it becomes a Session
// with a framing, or an HttpSession, which takes over the stream and these bytes; when they do not come in time it
// ends. It has no buffers, so that connections which say nothing cost little. Owned by a server; lives on its loop's
// thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "framing/json_text.hpp"
#include "framing/protocol.hpp"
#include "session/channel.hpp"
#include "session/connection.hpp"
#include "session/http_access.hpp"
#include "transport/stream.hpp"
#include "wirecall/context.hpp"

namespace wirecall::session {

/// An owner of connections that have yet to be decided: a server.
class Keeper : public Owner {
 public:
  /// `decided` takes the place of `undecided`, which does nothing any more; destroy it as after connection_ended.
  virtual void connection_decided(Connection& undecided, std::unique_ptr<Connection> decided) = 0;

 protected:
  ~Keeper() = default;
};

/// What the connections of a server may speak.
struct Protocols {
  const framing::JsonTextSettings& text;
  const HttpSettings& http;
};

class Undecided final : public Connection, private transport::StreamUser, private Timer {
 public:
  /// The host's owner is `keeper`. All that is referred to outlives the connection.
  Undecided(Host& host, Keeper& keeper, const Protocols& protocols, std::unique_ptr<transport::Stream> stream);
  ~Undecided() override { host_->loop.stop(*this); }

  void drain() noexcept override;
  [[nodiscard]] bool busy() const noexcept override { return owed_; }
  void stop_calls() noexcept override {}
  [[nodiscard]] bool handler_away() const noexcept override { return passing_on_; }
  void finish() override;
  void cut() override { end(End::finished, 0); }
  void end_if_idle(std::uint8_t) override {}  // it has a timeout of its own
  [[nodiscard]] std::size_t output_bytes() const noexcept override { return 0; }

 private:
  void received(std::span<char> bytes) override;
  void ended() override;
  void sent(Buffer) override {}
  void failed(int error) override;
  void expired() override;

  void become(framing::Protocol protocol, std::span<char> bytes, bool all);
  std::unique_ptr<Channel> make(framing::Protocol protocol);
  void end(End why, int error);

  Host* host_;
  Keeper* keeper_;
  const Protocols* protocols_;
  std::unique_ptr<transport::Stream> stream_;
  framing::FirstBytes first_;
  bool draining_ = false;
  bool owed_ = false;  // bytes have arrived while draining, and are still to be received
  bool over_ = false;
  bool passing_on_ = false;  // what has come is being looked at by what it has become
};

}  // namespace wirecall::session
