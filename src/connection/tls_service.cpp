// See tls_service.hpp.
#include "connection/tls_service.hpp"

#include <algorithm>

#include "rpc/share.hpp"

namespace wirecall::net {

/// A handshake in progress, which counts for its source.
class TlsService::Handshake final : public transport::TlsObserver {
 public:
  Handshake(TlsService& service, std::shared_ptr<rpc::Account> source) : service_(&service) {
    ++service_->in_progress_;
    of_source_.use(std::move(source));
    ++of_source_;
  }
  Handshake(Handshake&&) = delete;
  ~Handshake() override {
    --service_->in_progress_;
    if (!agreed_) ++service_->loop_context_->stats.tls_handshakes_refused;
  }

  [[nodiscard]] bool agreed(const transport::TlsSession& session) override {
    agreed_ = service_->agreed(session);
    return agreed_;
  }
  void refused(const transport::TlsSession& session, const std::string& source) override {
    service_->refused(session, source);
  }

 private:
  TlsService* service_;
  rpc::CallCount of_source_;
  bool agreed_ = false;
};

std::unique_ptr<transport::TlsStream> TlsService::accept(std::unique_ptr<transport::ByteStream> stream) {
  std::shared_ptr<rpc::Account> source = sources_.of(stream->peer_source(), loop_context_->now());
  if (rpc::share_left(limits_->tls_handshakes, in_progress_, source->calls) == 0) {
    ++loop_context_->stats.tls_handshakes_refused;
    return nullptr;
  }
  auto session = std::make_unique<transport::TlsSession>(context_);
  return std::make_unique<transport::TlsStream>(*loop_, std::move(stream), std::move(session),
                                                std::make_unique<Handshake>(*this, std::move(source)));
}

// Some 2 ms of the processor's, with keys on P-256.
constexpr std::uint32_t kBegunInTurn = 16;

bool TlsService::may_begin() noexcept {
  if (std::exchange(round_, loop_->rounds()) != loop_->rounds()) begun_ = 0;
  if (begun_ == kBegunInTurn) return false;
  ++begun_;
  return true;
}

bool TlsService::begin(TlsAcceptor& acceptor, std::span<char> first) {
  if (waiting_.empty() && may_begin()) {
    acceptor.shake_hands(first);
    return true;
  }
  Waiting waits{.acceptor = &acceptor, .first = loop_->take_buffer()};
  waits.first.append({first.data(), first.size()});
  static_cast<void>(waits.first.padded());
  waiting_.push_back(std::move(waits));
  if (waiting_.size() == 1) loop_->at_next_turn(*this);
  return false;
}

void TlsService::forget(const TlsAcceptor& acceptor) noexcept {
  const auto found = std::ranges::find(waiting_, &acceptor, &Waiting::acceptor);
  if (found != waiting_.end()) found->acceptor = nullptr;
}

void TlsService::next_turn() {
  while (!waiting_.empty() && (waiting_.front().acceptor == nullptr || may_begin())) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (next.acceptor != nullptr) next.acceptor->shake_hands({next.first.data(), next.first.size()});
    loop_->give_buffer(std::move(next.first));
  }
  if (!waiting_.empty()) loop_->at_next_turn(*this);
}

// Other authorities may vouch for clients than did when the handshake began.
bool TlsService::agreed(const transport::TlsSession& session) {
  if (!session.is_accepted_by(*context_)) return false;
  Stats& stats = loop_context_->stats;
  ++(session.version() == "TLSv1.2" ? stats.tls_1_2_handshakes : stats.tls_1_3_handshakes);
  if (session.resumed()) ++stats.tls_handshakes_resumed;
  return true;
}

void TlsService::refused(const transport::TlsSession& session, const std::string& source) {
  if (!refused_.admits(loop_context_->now())) return;
  (*loop_context_->log)(LogLevel::info, "a TLS handshake has failed",
                        {{"reason", session.failure()}, {"source", source}, {"failed", refused_.take_count()}});
}

void TlsService::plain_refused(const std::string& source) {
  if (!plain_.admits(loop_context_->now())) return;
  (*loop_context_->log)(LogLevel::warning,
                        "a connection from another machine is refused, since it is not encrypted; allow_plain lets "
                        "such connect",
                        {{"source", source}, {"refused", plain_.take_count()}});
}

rpc::Credential certificate_of(const transport::ByteStream& stream) {
  const transport::TlsSession* const tls = stream.tls();
  if (tls == nullptr || !tls->has_certificate()) return {};
  std::string all = rpc::certificate_credential(tls->certificate_names());
  return all.empty() ? rpc::Credential{} : rpc::Credential{rpc::kCertificateCredentials, std::move(all)};
}

}  // namespace wirecall::net
