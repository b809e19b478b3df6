// See tls_service.hpp.
#include "connection/tls_service.hpp"

namespace wirecall::net {

// Who connects again and again must not fill the log: so long it is silent of them.
constexpr std::chrono::nanoseconds kLogPause = std::chrono::minutes{1};

std::unique_ptr<transport::TlsStream> TlsService::accept(std::unique_ptr<transport::ByteStream> stream) {
  if (in_progress_ >= limits_->tls_handshakes) {
    ++loop_context_->stats.tls_handshakes_refused;
    return nullptr;
  }
  auto session = std::make_unique<transport::TlsSession>(context_);
  auto made = std::make_unique<transport::TlsStream>(*loop_, std::move(stream), std::move(session),
                                                     static_cast<transport::TlsObserver*>(this));
  ++in_progress_;
  return made;
}

void TlsService::agreed(const transport::TlsSession& session) {
  --in_progress_;
  Stats& stats = loop_context_->stats;
  ++(session.version() == "TLSv1.2" ? stats.tls_1_2_handshakes : stats.tls_1_3_handshakes);
  if (session.resumed()) ++stats.tls_handshakes_resumed;
}

void TlsService::refused(const transport::TlsSession& session, const std::string& source) {
  --in_progress_;
  ++loop_context_->stats.tls_handshakes_refused;
  ++refused_;
  const std::chrono::nanoseconds now = loop_context_->now();
  if (logged_at_ && now - *logged_at_ < kLogPause) return;
  logged_at_ = now;
  (*loop_context_->log)(LogLevel::info, "a TLS handshake has failed",
                        {{"reason", session.failure()}, {"source", source}, {"failed", std::exchange(refused_, 0)}});
}

rpc::Credential certificate_of(const transport::ByteStream& stream) {
  const transport::TlsSession* const tls = stream.tls();
  if (tls == nullptr || !tls->has_certificate()) return {};
  std::string all;
  for (const std::string& name : tls->certificate_names()) {
    if (name.contains('\n')) continue;  // which no principal can have
    all.append(all.empty() ? "" : "\n").append(name);
  }
  return all.empty() ? rpc::Credential{} : rpc::Credential{rpc::kCertificateCredentials, std::move(all)};
}

}  // namespace wirecall::net
