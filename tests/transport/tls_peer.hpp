// A TLS peer that is OpenSSL and nothing of ours, in memory: bytes are fed and taken by the test.
#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/openssl.hpp"
#include "transport/tls_settings.hpp"

namespace wirecall::transport {

using SessionPointer = std::unique_ptr<SSL_SESSION, FreeBy<&SSL_SESSION_free>>;

struct TlsPeerSettings {
  bool server = false;
  int version_min = 0;
  int version_max = 0;
  TlsFiles own = {};
  std::string server_name = {};
  std::vector<std::string> protocols = {};
  SSL_SESSION* session = nullptr;            ///< to be resumed
  std::function<void(SSL_CTX*)> adapt = {};  ///< whatever else it needs
  std::function<void(SSL*)> adapt_ssl = {};
};

class TlsPeer {
 public:
  explicit TlsPeer(const TlsPeerSettings& settings = {})
      : context_(SSL_CTX_new(settings.server ? TLS_server_method() : TLS_client_method())) {
    SSL_CTX* const context = context_.get();
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_min_proto_version(context, settings.version_min);
    SSL_CTX_set_max_proto_version(context, settings.version_max);
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
    if (!settings.own.certificate.empty()) {
      EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context, settings.own.certificate.c_str()), 1);
      EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context, settings.own.key.c_str(), SSL_FILETYPE_PEM), 1);
    }
    std::string protocols;
    for (const std::string& one : settings.protocols) protocols += static_cast<char>(one.size()) + one;
    SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(protocols.data()),
                            static_cast<unsigned int>(protocols.size()));
    // Sessions of TLS 1.3 come behind the handshake, one after the other.
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, [](SSL* ssl, SSL_SESSION* session) {
      static_cast<TlsPeer*>(SSL_get_app_data(ssl))->session_.reset(session);
      return 1;
    });
    if (settings.adapt) settings.adapt(context);
    ssl_.reset(SSL_new(context));
    SSL_set_app_data(ssl_.get(), this);
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (!settings.server_name.empty()) SSL_set_tlsext_host_name(ssl_.get(), settings.server_name.c_str());
    if (settings.session != nullptr) SSL_set_session(ssl_.get(), settings.session);
    if (settings.adapt_ssl) settings.adapt_ssl(ssl_.get());
    settings.server ? SSL_set_accept_state(ssl_.get()) : SSL_set_connect_state(ssl_.get());
  }
  TlsPeer(TlsPeer&&) = delete;

  /// Goes on with the handshake, as far as what has been fed allows: whether it is done.
  bool shake_hands() {
    ERR_clear_error();
    return SSL_is_init_finished(ssl_.get()) == 1 || note(SSL_do_handshake(ssl_.get()));
  }
  void feed(std::string_view ciphertext) {
    BIO_write(SSL_get_rbio(ssl_.get()), ciphertext.data(), static_cast<int>(ciphertext.size()));
  }
  /// The ciphertext that it sends.
  std::string take() {
    BIO* const bio = SSL_get_wbio(ssl_.get());
    std::string all(BIO_ctrl_pending(bio), '\0');
    if (!all.empty()) BIO_read(bio, all.data(), static_cast<int>(all.size()));
    return all;
  }
  /// False where it has failed.
  bool write(std::string_view plaintext) {
    ERR_clear_error();
    return note(SSL_write(ssl_.get(), plaintext.data(), static_cast<int>(plaintext.size())));
  }
  /// What the fed ciphertext says.
  std::string read() {
    std::string all;
    char block[16384];
    for (;;) {
      ERR_clear_error();
      const int bytes = SSL_read(ssl_.get(), block, sizeof block);
      if (bytes <= 0) {
        note(bytes);
        return all;
      }
      all.append(block, static_cast<std::size_t>(bytes));
    }
  }
  void shut_down() { SSL_shutdown(ssl_.get()); }
  [[nodiscard]] bool ended() const { return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0; }
  [[nodiscard]] bool resumed() const { return SSL_session_reused(ssl_.get()) == 1; }
  [[nodiscard]] std::string version() const { return SSL_get_version(ssl_.get()); }
  [[nodiscard]] std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }
  /// The subject's common name of the peer's certificate; empty for none.
  [[nodiscard]] std::string peer_subject() const {
    X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
    char name[256] = "";
    if (certificate != nullptr)
      X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
    return name;
  }
  /// The last session that the server has given; null for none.
  [[nodiscard]] SSL_SESSION* session() const noexcept { return session_.get(); }
  [[nodiscard]] SSL* ssl() const noexcept { return ssl_.get(); }
  /// OpenSSL's reason of the first failure; empty for none.
  std::string failure;

 private:
  bool note(int result) {
    if (result > 0) return true;
    const int error = SSL_get_error(ssl_.get(), result);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_ZERO_RETURN && failure.empty())
      failure = take_openssl_error();
    return false;
  }

  SessionPointer session_;  // outlives what gives it
  ContextPointer context_;
  std::unique_ptr<SSL, FreeBy<&SSL_free>> ssl_;
};

}  // namespace wirecall::transport
