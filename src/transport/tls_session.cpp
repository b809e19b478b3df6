// See tls_session.hpp. OpenSSL reads and writes through a BIO of ours that has no memory: it reads what `receive` was
// given, and appends to the buffer that was given for output. So no byte is copied but by the cipher.
#include "transport/tls_session.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <climits>
#include <cstring>
#include <openssl/x509v3.h>

#include "base/assert.hpp"
#include "transport/openssl.hpp"
#include "transport/setup.hpp"
#include "transport/tls_certificate.hpp"

namespace wirecall::transport {
namespace {

// A peer that has not been agreed with sends no more than that: a chain of certificates is a tenth of it.
constexpr std::uint32_t kHandshakeBytesMax = 128 * 1024;
// The most plaintext of one record.
constexpr std::size_t kRecordBytes = 16 * 1024;

// `verified` is what has been found out about the peer's certificate.
TlsFault fault_of(unsigned long error, long verified) noexcept {
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return TlsFault::other;
  if (ERR_GET_REASON(error) > SSL_AD_REASON_OFFSET) return TlsFault::alert;
  if (ERR_GET_REASON(error) != SSL_R_CERTIFICATE_VERIFY_FAILED) return TlsFault::other;
  switch (verified) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return TlsFault::name;
    case X509_V_ERR_CERT_NOT_YET_VALID:
    case X509_V_ERR_CERT_HAS_EXPIRED: return TlsFault::validity;
    case X509_V_ERR_CERT_REJECTED: return TlsFault::pin;
    default: return TlsFault::authority;
  }
}

std::string_view text_or_empty(const char* text) noexcept { return text != nullptr ? text : std::string_view{}; }

}  // namespace

int TlsSession::read_ciphertext(BIO* bio, char* to, std::size_t size, std::size_t* read) noexcept {
  BIO_clear_retry_flags(bio);
  auto& self = *static_cast<TlsSession*>(BIO_get_data(bio));
  if (self.key_updates_.exceeded()) return 0;  // OpenSSL would follow all that have come
  auto& input = self.input_;
  if (input.empty()) {
    BIO_set_retry_read(bio);
    return 0;
  }
  *read = std::min(size, input.size());
  std::memcpy(to, input.data(), *read);
  input = input.subspan(*read);
  return 1;
}

int TlsSession::write_ciphertext(BIO* bio, const char* from, std::size_t size, std::size_t* written) noexcept {
  BIO_clear_retry_flags(bio);
  auto& self = *static_cast<TlsSession*>(BIO_get_data(bio));
  try {
    self.output_->append({from, size});
  } catch (const std::bad_alloc&) {
    self.no_memory_ = true;
    return 0;
  }
  *written = size;
  return 1;
}

long TlsSession::control(BIO*, int command, long, void*) noexcept { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* TlsSession::bio_method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wirecall stream");
    if (made == nullptr) throw std::bad_alloc{};
    BIO_meth_set_read_ex(made, &read_ciphertext);
    BIO_meth_set_write_ex(made, &write_ciphertext);
    BIO_meth_set_ctrl(made, &control);
    return made;
  }();
  return method;
}

TlsSession::TlsSession(SSL_CTX* context) : ssl_(SSL_new(context)) {
  BIO* const bio = ssl_ != nullptr ? BIO_new(bio_method()) : nullptr;
  if (bio == nullptr) {
    SSL_free(ssl_);
    throw std::bad_alloc{};
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_msg_callback(ssl_, &message_seen);
  SSL_set_msg_callback_arg(ssl_, this);
}

TlsSession::TlsSession(std::shared_ptr<const TlsServerContext> context) : TlsSession(context->get()) {
  server_ = std::move(context);
  SSL_set_accept_state(ssl_);
}

TlsSession::TlsSession(std::shared_ptr<const TlsClientContext> context, const Endpoint& server)
    : TlsSession(context->get()) {
  client_ = std::move(context);
  server_name_ = std::make_unique<const std::string>(server.host() + ':' + std::to_string(server.port()));
  SSL_set_app_data(ssl_, const_cast<std::string*>(server_name_.get()));
  const bool address = is_address(server.host());
  bool told = address || SSL_set_tlsext_host_name(ssl_, server.host().c_str()) == 1;
  if (client_->verifies()) {
    SSL_set_hostflags(ssl_, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    told = told && (address ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), server.host().c_str())
                            : SSL_set1_host(ssl_, server.host().c_str())) == 1;
  }
  std::string offered{server.by_http() || server.by_websocket() ? kAlpnHttp : kAlpnOthers};
  offered.insert(offered.begin(), static_cast<char>(offered.size()));
  told = told && SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(offered.data()),
                                     static_cast<unsigned int>(offered.size())) == 0;
  if (!told) throw std::bad_alloc{};  // never without the name that is to be checked
  if (SSL_SESSION* const session = client_->take_session(*server_name_)) {
    SSL_set_session(ssl_, session);
    SSL_SESSION_free(session);
  }
  SSL_set_connect_state(ssl_);
}

TlsSession::~TlsSession() {
  // A session that has not failed can be resumed, whether its end was said or not.
  if (state_ == State::open || state_ == State::ended) SSL_set_quiet_shutdown(ssl_, 1), SSL_shutdown(ssl_);
  SSL_free(ssl_);
}

// Only new keys are counted: a handshake has its bytes counted, and a record of data costs what it brings.
void TlsSession::message_seen(int sent, int, int type, const void* bytes, std::size_t size, SSL*, void* self) noexcept {
  if (type != SSL3_RT_HANDSHAKE || sent != 0 || size == 0) return;
  if (*static_cast<const unsigned char*>(bytes) != SSL3_MT_KEY_UPDATE) return;
  using std::chrono::steady_clock;
  const auto now = std::chrono::floor<std::chrono::seconds>(steady_clock::now().time_since_epoch());
  static_cast<TlsSession*>(self)->key_updates_.spend(now);
}

void TlsSession::fail_with(std::string why, TlsFault fault) {
  state_ = State::failed;
  fault_ = fault;
  failure_ = std::move(why);
  ERR_clear_error();
}

// `result` is of a call that has not done what it should.
void TlsSession::fail(int result) {
  const int error = SSL_get_error(ssl_, result);
  if (no_memory_) return fail_with("no memory");
  if (key_updates_.exceeded()) return fail_with("the peer changes keys too often");
  if (error == SSL_ERROR_WANT_READ) return;
  const long verified = SSL_get_verify_result(ssl_);
  TlsFault fault = fault_of(ERR_peek_error(), verified);
  if (fault == TlsFault::pin && (client_ == nullptr || client_->pin().empty())) fault = TlsFault::authority;
  std::string why = take_openssl_error();
  if (fault == TlsFault::pin)
    why = "the server's certificate is not the one of tls.pin";
  else if (fault != TlsFault::other && fault != TlsFault::alert)
    why = std::string{"the peer's certificate is refused: "} + X509_verify_cert_error_string(verified);
  fail_with(std::move(why), fault);
}

void TlsSession::shake_hands() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result != 1) return fail(result);
  if (is_peer_acceptable()) state_ = State::open;
}

// What OpenSSL has not checked: of a session that is resumed the certificate that was shown when it began.
bool TlsSession::is_peer_acceptable() {
  if (server_ == nullptr || !resumed()) return true;
  X509* const certificate = SSL_get0_peer_certificate(ssl_);
  if (certificate != nullptr && X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0) {
    fail_with("the peer's certificate has expired", TlsFault::validity);
    return false;
  }
  return true;
}

TlsSession::State TlsSession::receive(std::span<const char> ciphertext, Buffer& plaintext, Buffer& output) {
  if (state_ == State::failed || state_ == State::ended) return state_;
  input_ = ciphertext;
  output_ = &output;
  if (state_ == State::handshaking) {
    handshake_bytes_ += static_cast<std::uint32_t>(std::min<std::size_t>(ciphertext.size(), kHandshakeBytesMax + 1));
    shake_hands();
    if (state_ == State::handshaking && handshake_bytes_ > kHandshakeBytesMax)
      fail_with("the peer's handshake is too long");
  }
  if (state_ == State::open) read_plaintext(plaintext);
  input_ = {};
  output_ = nullptr;
  return state_;
}

// Each read brings at most one record. When all input has been read and nothing is left of the last record, nothing can
// come.
void TlsSession::read_plaintext(Buffer& plaintext) {
  while (!input_.empty() || SSL_pending(ssl_) != 0) {
    const std::size_t room = std::clamp(plaintext.capacity() - plaintext.size(), std::size_t{4096}, kRecordBytes);
    char* const to = plaintext.reserve(room);
    std::size_t bytes = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl_, to, room, &bytes);
    if (result == 1) {
      plaintext.grow(bytes);
      continue;
    }
    if (SSL_get_error(ssl_, result) == SSL_ERROR_ZERO_RETURN) {
      state_ = State::ended;
    } else {
      fail(result);
    }
    break;
  }
  if (state_ == State::open && key_updates_.exceeded()) fail_with("the peer changes keys too often");
}

bool TlsSession::send(std::string_view plaintext, Buffer& output) {
  if (state_ == State::failed) return false;
  WIRECALL_ASSERT(state_ != State::handshaking);
  output_ = &output;
  while (!plaintext.empty()) {
    std::size_t bytes = 0;
    ERR_clear_error();
    const int result = SSL_write_ex(ssl_, plaintext.data(), plaintext.size(), &bytes);
    if (result != 1) {
      fail(result);
      if (state_ != State::failed) fail_with("nothing can be sent");
      break;
    }
    plaintext.remove_prefix(bytes);
  }
  output_ = nullptr;
  return state_ != State::failed;
}

void TlsSession::shut_down(Buffer& output) {
  if (state_ == State::failed || state_ == State::handshaking) return;
  output_ = &output;
  SSL_shutdown(ssl_);
  ERR_clear_error();
  output_ = nullptr;
}

std::string_view TlsSession::version() const noexcept { return SSL_get_version(ssl_); }
std::string_view TlsSession::cipher() const noexcept { return text_or_empty(SSL_get_cipher_name(ssl_)); }
bool TlsSession::resumed() const noexcept { return SSL_session_reused(ssl_) == 1; }

std::string_view TlsSession::protocol() const noexcept {
  const unsigned char* name = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(ssl_, &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

bool TlsSession::has_certificate() const noexcept { return SSL_get0_peer_certificate(ssl_) != nullptr; }

std::vector<std::string> TlsSession::certificate_names() const {
  X509* const certificate = SSL_get0_peer_certificate(ssl_);
  return certificate != nullptr ? alternative_names(certificate) : std::vector<std::string>{};
}

// What stood behind the certificate when a session began that has been resumed: certificate after certificate.
static STACK_OF(X509) * chain_of_ticket(SSL* ssl) noexcept {
  void* kept = nullptr;
  std::size_t bytes = 0;
  SSL_SESSION* const session = SSL_get0_session(ssl);
  if (session == nullptr || SSL_SESSION_get0_ticket_appdata(session, &kept, &bytes) != 1) return nullptr;
  STACK_OF(X509)* const chain = sk_X509_new_null();
  const auto* next = static_cast<const unsigned char*>(kept);
  for (const unsigned char* const end = next + bytes; chain != nullptr && next != end;) {
    X509* const one = d2i_X509(nullptr, &next, end - next);
    if (one == nullptr) break;
    if (sk_X509_push(chain, one) == 0) {
      X509_free(one);
      break;
    }
  }
  return chain;
}

bool TlsSession::is_accepted_by(const TlsServerContext& now) const noexcept {
  X509* const certificate = SSL_get0_peer_certificate(ssl_);
  if (certificate == nullptr || server_.get() == &now) return true;
  if (STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(ssl_)) return now.accepts(certificate, chain);
  STACK_OF(X509)* const chain = chain_of_ticket(ssl_);
  const bool accepted = now.accepts(certificate, chain);
  sk_X509_pop_free(chain, X509_free);
  return accepted;
}

}  // namespace wirecall::transport
