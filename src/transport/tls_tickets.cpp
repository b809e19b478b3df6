// See tls_tickets.hpp.
#include "transport/tls_tickets.hpp"

#include <algorithm>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <span>
#include <stdexcept>

#include "transport/openssl.hpp"

namespace wirecall::transport {
namespace {

// What OpenSSL is told of a ticket.
constexpr int kFailed = -1;
constexpr int kUnknown = 0;
constexpr int kGood = 1;
constexpr int kToBeRenewed = 2;

bool make(TicketKey& key, std::chrono::nanoseconds now) noexcept {
  key.made = now;
  return RAND_bytes(key.name.data(), static_cast<int>(key.name.size())) == 1 &&
         RAND_priv_bytes(key.cipher.data(), static_cast<int>(key.cipher.size())) == 1 &&
         RAND_priv_bytes(key.mac.data(), static_cast<int>(key.mac.size())) == 1;
}

bool set_mac(EVP_MAC_CTX* mac, TicketKey& key) noexcept {
  char digest[] = "SHA256";
  const OSSL_PARAM params[]{OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.mac.data(), key.mac.size()),
                            OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                            OSSL_PARAM_construct_end()};
  return EVP_MAC_CTX_set_params(mac, params) == 1;
}

// Where OpenSSL comes for the keys of one ticket.
int give_keys(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac,
              int encrypts) noexcept try {
  auto& keys = *static_cast<TicketKeys*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  if (encrypts == 1) {
    TicketKey key = keys.current();
    std::ranges::copy(key.name, name);
    const bool set = RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) == 1 &&
                     EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key.cipher.data(), iv) == 1 &&
                     set_mac(mac, key);
    return set ? kGood : kFailed;
  }
  std::optional<TicketKey> key = keys.find(name);
  if (!key) return kUnknown;
  if (!set_mac(mac, *key) || EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key->cipher.data(), iv) != 1)
    return kFailed;
  // By TLS 1.3 a ticket is used once.
  return SSL_version(ssl) == TLS1_3_VERSION || key->name != keys.current().name ? kToBeRenewed : kGood;
} catch (...) {
  return kFailed;
}

}  // namespace

TicketKey::~TicketKey() {
  OPENSSL_cleanse(cipher.data(), cipher.size());
  OPENSSL_cleanse(mac.data(), mac.size());
}

TicketKeys::TicketKeys(Clock clock) : clock_(std::move(clock)) {
  if (!make(current_, clock_()))
    throw std::invalid_argument{"tls: the system has no random numbers: " + take_openssl_error()};
}

TicketKey TicketKeys::current() {
  const std::scoped_lock lock{mutex_};
  static_cast<void>(renew());
  return current_;
}

std::optional<TicketKey> TicketKeys::find(const unsigned char* name) {
  const std::scoped_lock lock{mutex_};
  const std::chrono::nanoseconds now = renew();
  const auto is_named = [name](const TicketKey& key) {
    return std::ranges::equal(key.name, std::span{name, key.name.size()});
  };
  if (is_named(current_)) return current_;
  if (previous_ && now - previous_->made < 2 * kPeriod && is_named(*previous_)) return previous_;
  return std::nullopt;
}

// Where there are no random numbers, the old key goes on. Returns the time.
std::chrono::nanoseconds TicketKeys::renew() {
  const std::chrono::nanoseconds now = clock_();
  TicketKey next;
  if (now - current_.made < kPeriod || !make(next, now)) return now;
  previous_ = current_;
  current_ = next;
  return now;
}

void TicketKeys::use_for(SSL_CTX* context) {
  SSL_CTX_set_app_data(context, this);
  SSL_CTX_set_tlsext_ticket_key_evp_cb(context, &give_keys);
}

}  // namespace wirecall::transport
