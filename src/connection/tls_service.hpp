// TlsService: begins TLS on the accepted connections of one loop that ask for it, and counts how that ends. Owned by a
// serving loop; used on its thread.
#pragma once

#include "rpc/access.hpp"
#include "rpc/loop_context.hpp"
#include "transport/tls_stream.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::net {

class TlsService final : private transport::TlsObserver {
 public:
  /// All outlive it.
  TlsService(Loop& loop, const Limits& limits, rpc::LoopContext& loop_context,
             std::shared_ptr<const transport::TlsServerContext> context)
      : loop_(&loop), limits_(&limits), loop_context_(&loop_context), context_(std::move(context)) {}
  TlsService(TlsService&&) = delete;

  /// The stream behind a handshake that has yet to be made; null where too many are in progress. Throws std::bad_alloc.
  [[nodiscard]] std::unique_ptr<transport::TlsStream> accept(std::unique_ptr<transport::ByteStream> stream);

  [[nodiscard]] const transport::TlsServerContext& context() const noexcept { return *context_; }
  /// Connections that come from now on are served by that.
  void set_context(std::shared_ptr<const transport::TlsServerContext> context) noexcept {
    context_ = std::move(context);
  }

 private:
  void agreed(const transport::TlsSession& session) override;
  void refused(const transport::TlsSession& session, const std::string& source) override;
  void gone() noexcept override { --in_progress_; }

  Loop* loop_;
  const Limits* limits_;
  rpc::LoopContext* loop_context_;
  std::shared_ptr<const transport::TlsServerContext> context_;
  std::size_t in_progress_ = 0;
  std::int64_t refused_ = 0;  // of which the log has not been told
  std::optional<std::chrono::nanoseconds> logged_at_;
};

/// What the peer's certificate says of who it is; empty where it has shown none, or one without names.
[[nodiscard]] rpc::Credential certificate_of(const transport::ByteStream& stream);

}  // namespace wirecall::net
