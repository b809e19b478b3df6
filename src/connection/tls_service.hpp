// TlsService: begins TLS on the accepted connections of one loop that ask for it, and counts how that ends. A handshake
// costs as much as hundreds of calls: so each turn of the loop begins a few, and the others wait for the next ones.
// Owned by a serving loop; used on its thread.
#pragma once

#include <deque>
#include <span>

#include "base/log_pause.hpp"
#include "rpc/access.hpp"
#include "rpc/accounts.hpp"
#include "rpc/loop_context.hpp"
#include "runtime/turn.hpp"
#include "transport/tls_stream.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::net {

/// Whose handshake begins.
class TlsAcceptor {
 public:
  /// It is its turn. `first` are the bytes with which its peer began.
  virtual void shake_hands(std::span<char> first) = 0;

 protected:
  ~TlsAcceptor() = default;
};

class TlsService final : private runtime::TurnUser {
 public:
  /// All outlive it. Throws std::bad_alloc.
  TlsService(Loop& loop, const Limits& limits, rpc::LoopContext& loop_context,
             std::shared_ptr<const transport::TlsServerContext> context)
      : loop_(&loop), limits_(&limits), loop_context_(&loop_context), context_(std::move(context)) {
    loop.admit(1);
  }
  TlsService(TlsService&&) = delete;
  ~TlsService() {
    loop_->forget(*this);
    loop_->release(1);
  }

  /// The stream behind a handshake that has yet to be made. Null where too many are in progress: all, or those of its
  /// source, which are at most half of what those of others leave. Throws std::bad_alloc.
  [[nodiscard]] std::unique_ptr<transport::TlsStream> accept(std::unique_ptr<transport::ByteStream> stream);
  /// Has it shake hands, at once or in a later turn. False where that is later. Throws std::bad_alloc.
  [[nodiscard]] bool begin(TlsAcceptor& acceptor, std::span<char> first);
  /// A connection from there is refused, since it is not encrypted: the log tells of it, once a minute at most.
  void plain_refused(const std::string& source);
  /// It goes before its turn.
  void forget(const TlsAcceptor& acceptor) noexcept;

  [[nodiscard]] const transport::TlsServerContext& context() const noexcept { return *context_; }
  /// Connections that come from now on are served by that.
  void set_context(std::shared_ptr<const transport::TlsServerContext> context) noexcept {
    context_ = std::move(context);
  }

 private:
  class Handshake;

  [[nodiscard]] bool agreed(const transport::TlsSession& session);
  void refused(const transport::TlsSession& session, const std::string& source);
  void turn_ended() override {}
  void next_turn() override;
  [[nodiscard]] bool may_begin() noexcept;

  struct Waiting {
    TlsAcceptor* acceptor;  // null once it has gone
    Buffer first;
  };

  Loop* loop_;
  const Limits* limits_;
  rpc::LoopContext* loop_context_;
  std::shared_ptr<const transport::TlsServerContext> context_;
  std::deque<Waiting> waiting_;
  std::size_t in_progress_ = 0;
  rpc::Accounts sources_;    // which count handshakes in progress where others count calls
  std::uint32_t round_ = 0;  // of the loop, in which `begun_` have begun
  std::uint32_t begun_ = 0;
  LogPause refused_;
  LogPause plain_;
};

/// What the peer's certificate says of who it is; empty where it has shown none, or one without names.
[[nodiscard]] rpc::Credential certificate_of(const transport::ByteStream& stream);

}  // namespace wirecall::net
