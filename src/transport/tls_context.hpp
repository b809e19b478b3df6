// TlsServerContext and TlsClientContext: the certificates, keys and authorities with which TLS is spoken (docs/tls.md).
// TLS 1.2 and 1.3; no compression, renegotiation or early data. Immutable once made; any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "transport/tls_settings.hpp"
#include "transport/tls_tickets.hpp"

struct ssl_st;
struct ssl_ctx_st;
struct ssl_session_st;
struct x509_st;

namespace wirecall::transport {

/// The protocols that ALPN chooses between: HTTP, and all others that a port of ours speaks.
inline constexpr std::string_view kAlpnHttp = "http/1.1";
inline constexpr std::string_view kAlpnOthers = "wirecall";

class TlsServerContext {
 public:
  /// Throws std::invalid_argument, whose text names the option, the file, the cause and the cure. With `former` the
  /// tickets that it has given stay valid, unless other authorities or revocation lists vouch for clients now; and so
  /// does a certificate that it has made itself.
  explicit TlsServerContext(const TlsServerSettings& settings, const TlsServerContext* former = nullptr);
  /// The same with keys of tickets that others have, too.
  TlsServerContext(const TlsServerSettings& settings, const TlsServerContext* former,
                   std::shared_ptr<TicketKeys> tickets);
  TlsServerContext(TlsServerContext&&) = delete;
  ~TlsServerContext();

  [[nodiscard]] ssl_ctx_st* get() const noexcept { return identities_.front().context; }
  /// SHA-256 of the first certificate, as 64 hexadecimal digits.
  [[nodiscard]] const std::string& fingerprint() const noexcept { return fingerprint_; }
  /// A certificate that is shown, or stands behind one.
  struct Shown {
    std::string file;     ///< empty for one of its own making
    std::string subject;  ///< whatever it says
    std::int64_t begins;  ///< to be valid; seconds since 1970
    std::int64_t ends;
  };
  /// All of them, file by file.
  [[nodiscard]] const std::vector<Shown>& shown() const noexcept { return shown_; }
  [[nodiscard]] bool asks_for_certificates() const noexcept { return client_ != ClientCertificate::none; }
  /// Whether others vouch for clients than do in `other`.
  [[nodiscard]] bool differs_for_clients(const TlsServerContext& other) const noexcept {
    return client_ != other.client_ || client_files_ != other.client_files_;
  }
  /// Whether a client's certificate, which was valid when it was shown, would be so now. `chain` is what the client
  /// sent with it; null for nothing.
  [[nodiscard]] bool accepts(x509_st* certificate, void* chain) const noexcept;

 private:
  struct Identity {
    ssl_ctx_st* context;
    x509_st* certificate;  // the context's
  };

  void add(const TlsFiles& files);
  void add_self_signed(const TlsServerContext* former);
  void add_identity(ssl_ctx_st* context);
  void note(x509_st* certificate, const std::string& file);
  void ask_clients(const TlsServerSettings& settings);
  [[nodiscard]] ssl_ctx_st* context_for(const char* name) const noexcept;
  static int choose_identity(ssl_st* ssl, int* alert, void* self) noexcept;

  std::vector<Identity> identities_;
  std::vector<Shown> shown_;
  std::string fingerprint_;
  ClientCertificate client_;
  std::string client_files_;  // the content of both
  std::shared_ptr<TicketKeys> tickets_;
};

class TlsClientContext {
 public:
  /// Throws as TlsServerContext.
  explicit TlsClientContext(const TlsClientSettings& settings);
  TlsClientContext(TlsClientContext&&) = delete;
  ~TlsClientContext();

  [[nodiscard]] ssl_ctx_st* get() const noexcept { return context_; }
  /// The certificate that a server has to show, as 64 hexadecimal digits; empty where authorities vouch for it.
  [[nodiscard]] const std::string& pin() const noexcept { return pin_; }
  /// Whether a server is to be found out by its name and an authority.
  [[nodiscard]] bool verifies() const noexcept { return verify_ && pin_.empty(); }

  /// A session with that server, which the caller owns, to be resumed once; null for none.
  [[nodiscard]] ssl_session_st* take_session(const std::string& server) const;
  /// Keeps the session, which it owns from now on, as the last one with that server.
  void keep_session(const std::string& server, ssl_session_st* session) const noexcept;

 private:
  ssl_ctx_st* context_;
  std::string pin_;
  bool verify_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, ssl_session_st*> sessions_;
};

}  // namespace wirecall::transport
