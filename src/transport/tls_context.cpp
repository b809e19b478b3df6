// See tls_context.hpp.
#include "transport/tls_context.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdexcept>
#include <utility>

#include "transport/openssl.hpp"
#include "transport/openssl_use.hpp"
#include "transport/tls_certificate.hpp"

namespace wirecall::transport {
namespace {

// Those of TLS 1.2 with forward secrecy and authenticated encryption; TLS 1.3 has no others.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr const char* kGroups = "X25519:P-256:P-384";
// As long a client can resume a session, and as long its certificate was checked when it began.
constexpr long kSessionSeconds = 3600;
// Of the chain behind a client's certificate, in its ticket.
constexpr std::size_t kChainBytesMax = 8 * 1024;

[[noreturn]] void refuse(std::string_view option, const std::string& path, const std::string& cause) {
  throw std::invalid_argument{std::string{option}.append(": ").append(path).append(": ").append(cause)};
}

ContextPointer make_context(const SSL_METHOD* method) {
  OpensslUse::watch_exit();
  ContextPointer context{SSL_CTX_new(method)};
  if (context == nullptr) throw std::bad_alloc{};
  SSL_CTX* const raw = context.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                               SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_cipher_list(raw, kCiphers);
  SSL_CTX_set1_groups_list(raw, kGroups);
  SSL_CTX_set_timeout(raw, kSessionSeconds);
  return context;
}

// Loads the files, each of which has its own fault, and returns the certificates. Each file is read once: it may be a
// pipe.
std::vector<X509Pointer> load_identity(SSL_CTX* context, const TlsFiles& files, std::string_view cert_option,
                                       std::string_view key_option) {
  std::vector<X509Pointer> chain = certificates_of(content_of_file(files.certificate, cert_option));
  if (chain.empty() || SSL_CTX_use_certificate(context, chain.front().get()) != 1)
    refuse(cert_option, files.certificate, "is no certificate in PEM: " + take_openssl_error());
  for (std::size_t i = 1; i != chain.size(); ++i) SSL_CTX_add1_chain_cert(context, chain[i].get());
  std::string pem = content_of_file(files.key, key_option);
  const KeyPointer key = key_of(pem);
  OPENSSL_cleanse(pem.data(), pem.size());
  if (key == nullptr)
    refuse(key_option, files.key, "is no private key in PEM without a passphrase: " + take_openssl_error());
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    ERR_clear_error();
    refuse(key_option, files.key, "is not the key of the certificate in " + files.certificate);
  }
  return chain;
}

std::vector<X509Pointer> load_authorities(const std::string& pem, std::string_view option, const std::string& path) {
  std::vector<X509Pointer> all = certificates_of(pem);
  if (all.empty()) refuse(option, path, "holds no certificates in PEM: " + take_openssl_error());
  return all;
}

// The first of the peer's protocols that is one of ours.
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* bytes, const unsigned char* offered,
                    unsigned int size, void*) noexcept {
  std::string_view rest{reinterpret_cast<const char*>(offered), size};
  while (!rest.empty()) {
    const std::size_t length = static_cast<unsigned char>(rest[0]);
    const std::string_view one = rest.substr(1, length);
    if (one == kAlpnHttp || one == kAlpnOthers) {
      *chosen = reinterpret_cast<const unsigned char*>(one.data());
      *bytes = static_cast<unsigned char>(one.size());
      return SSL_TLSEXT_ERR_OK;
    }
    rest.remove_prefix(std::min(1 + length, rest.size()));
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// A ticket has the client's certificate, but not what stands between that and an authority, without which it could not
// be checked again.
int keep_chain(SSL* ssl, void*) noexcept {
  STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(ssl);
  if (chain == nullptr || sk_X509_num(chain) == 0) return 1;  // none, or that of the ticket which it came with
  std::array<unsigned char, kChainBytesMax> all;
  unsigned char* end = all.data();
  for (int i = 0; i != sk_X509_num(chain); ++i) {
    X509* const one = sk_X509_value(chain, i);
    const int bytes = i2d_X509(one, nullptr);
    if (bytes < 0 || bytes > all.data() + all.size() - end) break;
    i2d_X509(one, &end);
  }
  return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), all.data(), static_cast<std::size_t>(end - all.data()));
}

}  // namespace

TlsServerContext::TlsServerContext(const TlsServerSettings& settings, const TlsServerContext* former)
    : TlsServerContext(settings, former, former != nullptr ? former->tickets_ : std::make_shared<TicketKeys>()) {}

TlsServerContext::TlsServerContext(const TlsServerSettings& settings, const TlsServerContext* former,
                                   std::shared_ptr<TicketKeys> tickets)
    : client_(settings.client), tickets_(std::move(tickets)) {
  try {
    for (const TlsFiles& files : settings.identities) add(files);
    if (identities_.empty()) add_self_signed(former);
    ask_clients(settings);
  } catch (...) {
    for (const Identity& one : identities_) SSL_CTX_free(one.context);
    throw;
  }
  fingerprint_ = fingerprint_of(identities_.front().certificate);
}

TlsServerContext::~TlsServerContext() {
  for (const Identity& one : identities_) SSL_CTX_free(one.context);
}

// A certificate for the same names, with a key of another kind, is offered beside the one that is there.
void TlsServerContext::add(const TlsFiles& files) {
  ContextPointer context = make_context(TLS_server_method());
  for (const X509Pointer& one : load_identity(context.get(), files, "tls.cert", "tls.key"))
    note(one.get(), files.certificate);
  X509* const certificate = SSL_CTX_get0_certificate(context.get());
  for (const Identity& known : identities_) {
    const bool other_key = EVP_PKEY_get_base_id(X509_get0_pubkey(known.certificate)) !=
                           EVP_PKEY_get_base_id(X509_get0_pubkey(certificate));
    if (!other_key || alternative_names(known.certificate) != alternative_names(certificate)) continue;
    static_cast<void>(load_identity(known.context, files, "tls.cert", "tls.key"));
    return;
  }
  add_identity(context.release());
}

void TlsServerContext::add_self_signed(const TlsServerContext* former) {
  ContextPointer context = make_context(TLS_server_method());
  X509* const kept = former != nullptr ? SSL_CTX_get0_certificate(former->get()) : nullptr;
  if (kept != nullptr && is_self_signed(kept)) {
    SSL_CTX_use_certificate(context.get(), kept);
    SSL_CTX_use_PrivateKey(context.get(), SSL_CTX_get0_privatekey(former->get()));
  } else {
    const SelfSigned made = make_self_signed();
    SSL_CTX_use_certificate(context.get(), made.certificate.get());
    SSL_CTX_use_PrivateKey(context.get(), made.key.get());
  }
  note(SSL_CTX_get0_certificate(context.get()), {});
  add_identity(context.release());
}

void TlsServerContext::note(X509* certificate, const std::string& file) {
  const Validity valid = validity_of(certificate);
  shown_.push_back({.file = file, .subject = subject_of(certificate), .begins = valid.begins, .ends = valid.ends});
}

void TlsServerContext::add_identity(SSL_CTX* context) {
  identities_.push_back({context, SSL_CTX_get0_certificate(context)});
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // the tickets are all that is kept, by the clients
  SSL_CTX_set_num_tickets(context, 1);
  tickets_->use_for(context);
  SSL_CTX_set_alpn_select_cb(context, &choose_protocol, nullptr);
  SSL_CTX_set_tlsext_servername_callback(context, &TlsServerContext::choose_identity);
  SSL_CTX_set_tlsext_servername_arg(context, this);
}

// Another set of authorities is another context for sessions: then no ticket of before resumes one.
void TlsServerContext::ask_clients(const TlsServerSettings& settings) {
  std::vector<X509Pointer> authorities;
  std::vector<CrlPointer> lists;
  if (client_ != ClientCertificate::none) {
    client_files_ = content_of_file(settings.client_ca, "tls.client_ca");
    authorities = load_authorities(client_files_, "tls.client_ca", settings.client_ca);
  }
  if (client_ != ClientCertificate::none && !settings.client_crl.empty()) {
    const std::string pem = content_of_file(settings.client_crl, "tls.client_crl");
    lists = revocation_lists_of(pem);
    if (lists.empty())
      refuse("tls.client_crl", settings.client_crl, "holds no revocation lists in PEM: " + take_openssl_error());
    client_files_.append(1, '\0').append(pem);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  EVP_Digest(client_files_.data(), client_files_.size(), digest.data(), &bytes, EVP_sha256(), nullptr);
  for (const Identity& one : identities_) {
    SSL_CTX_set_session_id_context(one.context, digest.data(), std::min(bytes, SSL_MAX_SID_CTX_LENGTH + 0U));
    if (client_ == ClientCertificate::none) continue;
    const int must = client_ == ClientCertificate::required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
    SSL_CTX_set_verify(one.context, SSL_VERIFY_PEER | must, nullptr);
    SSL_CTX_set_session_ticket_cb(one.context, &keep_chain, nullptr, nullptr);
    X509_STORE* const store = SSL_CTX_get_cert_store(one.context);
    for (const X509Pointer& authority : authorities) {
      X509_STORE_add_cert(store, authority.get());
      SSL_CTX_add_client_CA(one.context, authority.get());
    }
    for (const CrlPointer& list : lists) X509_STORE_add_crl(store, list.get());
    if (!lists.empty()) X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  }
}

SSL_CTX* TlsServerContext::context_for(const char* name) const noexcept {
  for (const Identity& one : identities_) {
    if (X509_check_host(one.certificate, name, 0, 0, nullptr) == 1) return one.context;
  }
  return identities_.front().context;
}

int TlsServerContext::choose_identity(SSL* ssl, int*, void* self) noexcept {
  const auto& own = *static_cast<const TlsServerContext*>(self);
  const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == nullptr) return SSL_TLSEXT_ERR_NOACK;
  if (own.identities_.size() > 1) SSL_set_SSL_CTX(ssl, own.context_for(name));
  return SSL_TLSEXT_ERR_OK;
}

bool TlsServerContext::accepts(X509* certificate, void* chain) const noexcept {
  if (client_ == ClientCertificate::none) return false;
  const StoreContextPointer check{X509_STORE_CTX_new()};
  if (check == nullptr || X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(get()), certificate,
                                              static_cast<STACK_OF(X509)*>(chain)) != 1)
    return false;
  X509_STORE_CTX_set_default(check.get(), "ssl_client");
  const bool accepted = X509_verify_cert(check.get()) == 1;
  ERR_clear_error();
  return accepted;
}

// ---- the client's ----

// "sha256:" and 64 hexadecimal digits, with colons between them or not.
static std::string digits_of_pin(std::string_view pin) {
  constexpr std::string_view kKind = "sha256:";
  std::string digits;
  const auto lower = [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); };
  for (const char c : pin.substr(std::min(kKind.size(), pin.size()))) {
    if (c != ':') digits.push_back(lower(c));
  }
  const bool hexadecimal = std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (pin.starts_with(kKind) && digits.size() == 64 && hexadecimal) return digits;
  throw std::invalid_argument{
      "tls.pin is no fingerprint: give sha256: and the 64 hexadecimal digits of the server's "
      "certificate"};
}

static int keep_new_session(SSL* ssl, SSL_SESSION* session) noexcept;

// Instead of an authority's word. A session that is resumed has been begun with that certificate.
static int check_pin(X509_STORE_CTX* check, void* self) noexcept {
  X509* const shown = X509_STORE_CTX_get0_cert(check);
  try {
    if (shown != nullptr && fingerprint_of(shown) == static_cast<const TlsClientContext*>(self)->pin()) return 1;
  } catch (const std::bad_alloc&) {
    // It is not known to be the one.
  }
  X509_STORE_CTX_set_error(check, X509_V_ERR_CERT_REJECTED);
  return 0;
}

TlsClientContext::TlsClientContext(const TlsClientSettings& settings)
    : context_(nullptr),
      pin_(settings.pin.empty() ? std::string{} : digits_of_pin(settings.pin)),
      verify_(settings.verify) {
  ContextPointer context = make_context(TLS_client_method());
  SSL_CTX* const raw = context.get();
  if (!settings.cafile.empty()) {
    const std::string pem = content_of_file(settings.cafile, "cafile");
    for (const X509Pointer& authority : load_authorities(pem, "cafile", settings.cafile))
      X509_STORE_add_cert(SSL_CTX_get_cert_store(raw), authority.get());
  } else {
    SSL_CTX_set_default_verify_paths(raw);
  }
  if (settings.own.certificate.empty() != settings.own.key.empty())
    throw std::invalid_argument{"tls.client_cert and tls.client_key belong together: give both, or neither"};
  if (!settings.own.certificate.empty())
    static_cast<void>(load_identity(raw, settings.own, "tls.client_cert", "tls.client_key"));
  SSL_CTX_set_verify(raw, verifies() || !pin_.empty() ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (!pin_.empty()) SSL_CTX_set_cert_verify_callback(raw, &check_pin, this);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(raw, &keep_new_session);
  SSL_CTX_set_app_data(raw, this);
  context_ = context.release();
}

TlsClientContext::~TlsClientContext() {
  for (const auto& [server, session] : sessions_) SSL_SESSION_free(session);
  SSL_CTX_free(context_);
}

SSL_SESSION* TlsClientContext::take_session(const std::string& server) const {
  const std::scoped_lock lock{mutex_};
  const auto found = sessions_.find(server);
  if (found == sessions_.end()) return nullptr;
  SSL_SESSION* const session = found->second;
  sessions_.erase(found);
  return session;
}

void TlsClientContext::keep_session(const std::string& server, SSL_SESSION* session) const noexcept try {
  const std::scoped_lock lock{mutex_};
  SSL_SESSION*& kept = sessions_[server];
  SSL_SESSION_free(std::exchange(kept, session));
} catch (const std::bad_alloc&) {
  SSL_SESSION_free(session);
}

// Its server is the text that the session has been given (TlsSession). What it returns says that the session is kept.
static int keep_new_session(SSL* ssl, SSL_SESSION* session) noexcept {
  const auto* const context = static_cast<const TlsClientContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  const auto* const server = static_cast<const std::string*>(SSL_get_app_data(ssl));
  if (context == nullptr || server == nullptr) return 0;
  context->keep_session(*server, session);
  return 1;
}

}  // namespace wirecall::transport
