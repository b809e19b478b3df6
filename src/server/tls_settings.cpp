// See tls_settings.hpp.
#include "server/tls_settings.hpp"

#include <array>
#include <ctime>
#include <stdexcept>

#include "base/open_file.hpp"

namespace wirecall::net {

static transport::TlsServerSettings tls_settings_of(const Options& options) {
  using transport::ClientCertificate;
  const TlsOptions& tls = options.tls;
  if (tls.cert.size() != tls.key.size()) {
    throw std::invalid_argument{"tls.key names " + std::to_string(tls.key.size()) + " files and tls.cert " +
                                std::to_string(tls.cert.size()) + ": give a key for each certificate, in their order"};
  }
  if (tls.self_signed && !tls.cert.empty())
    throw std::invalid_argument{"tls.self_signed is true, and tls.cert is not empty: give one of them"};
  const bool asks = tls.client_auth != ClientAuth::none;
  if (asks && !tls.on()) {
    throw std::invalid_argument{
        "tls.client_auth asks clients for certificates, and the server speaks no TLS: give tls.cert and tls.key"};
  }
  if (asks && tls.client_ca.empty()) {
    throw std::invalid_argument{
        "tls.client_auth asks clients for certificates, and tls.client_ca is empty: name the authorities that vouch "
        "for them"};
  }
  if (!asks && !tls.client_ca.empty())
    throw std::invalid_argument{
        "tls.client_ca names authorities, and tls.client_auth is none: set it to optional or required"};
  if (tls.client_ca.empty() && !tls.client_crl.empty())
    throw std::invalid_argument{"tls.client_crl is given, and tls.client_ca is empty: name the authorities as well"};
  transport::TlsServerSettings settings{.identities = {},
                                        .self_signed = tls.self_signed,
                                        .client = static_cast<ClientCertificate>(tls.client_auth),
                                        .client_ca = tls.client_ca,
                                        .client_crl = tls.client_crl};
  for (std::size_t i = 0; i != tls.cert.size(); ++i) {
    settings.identities.push_back({.certificate = tls.cert[i], .key = tls.key[i]});
    warn_of_open_file(options.log, tls.key[i], "tls.key", "a private key");
  }
  return settings;
}

// As RFC 3339 has it.
static std::string date_of(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  std::array<char, 32> text{};
  if (::gmtime_r(&time, &parts) == nullptr) return {};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

static void warn_of_validity(const LogSink& log, const transport::TlsServerContext& context) {
  constexpr std::int64_t kSoonSeconds = 14 * std::int64_t{24} * 3600;
  const std::int64_t now = std::time(nullptr);
  for (const transport::TlsServerContext::Shown& one : context.shown()) {
    const std::string file = one.file.empty() ? "tls.self_signed" : one.file;
    if (now < one.begins) {
      log(LogLevel::warning, "a certificate is not valid yet: clients refuse it",
          {{"file", file}, {"subject", one.subject}, {"begins", date_of(one.begins)}});
    } else if (one.ends <= now) {
      log(LogLevel::warning, "a certificate has expired: clients refuse it",
          {{"file", file}, {"subject", one.subject}, {"ended", date_of(one.ends)}});
    } else if (one.ends - now < kSoonSeconds) {
      log(LogLevel::warning, "a certificate is about to expire",
          {{"file", file}, {"subject", one.subject}, {"ends", date_of(one.ends)}});
    }
  }
}

std::shared_ptr<const transport::TlsServerContext> make_tls_context(const Options& options,
                                                                    const transport::TlsServerContext* former) {
  const transport::TlsServerSettings settings = tls_settings_of(options);
  if (!options.tls.on()) return nullptr;
  auto context = std::make_shared<const transport::TlsServerContext>(settings, former);
  warn_of_validity(options.log, *context);
  return context;
}

}  // namespace wirecall::net
