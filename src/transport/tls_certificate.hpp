// Certificates: what they name, how they are read, and one that a server makes for itself. For the sources that speak
// TLS.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transport/openssl.hpp"

namespace wirecall::transport {

/// Its subject alternative names as "dns:example.com", "uri:spiffe://a/b", "email:a@b.c" and "ip:::1", in their order.
/// Of one with a byte of zero, or of another kind, nothing is said. Throws std::bad_alloc.
[[nodiscard]] std::vector<std::string> alternative_names(X509* certificate);

/// When it is valid, in seconds since 1970.
struct Validity {
  std::int64_t begins = 0;
  std::int64_t ends = 0;
};
[[nodiscard]] Validity validity_of(X509* certificate) noexcept;
/// The name that people know it by: its common name, or else its whole subject. Throws std::bad_alloc.
[[nodiscard]] std::string subject_of(X509* certificate);

struct SelfSigned {
  X509Pointer certificate;
  KeyPointer key;
};
/// For localhost, 127.0.0.1, ::1 and the name of this machine, for 30 days, with a key on P-256. Throws
/// std::runtime_error.
[[nodiscard]] SelfSigned make_self_signed();
/// Whether it is one of these.
[[nodiscard]] bool is_self_signed(X509* certificate);

/// What PEM text holds, in its order: none where it holds none, or one that is malformed; then OpenSSL's error says
/// what is wrong. Of keys the first, without a passphrase; null for none.
[[nodiscard]] std::vector<X509Pointer> certificates_of(const std::string& pem);
[[nodiscard]] std::vector<CrlPointer> revocation_lists_of(const std::string& pem);
[[nodiscard]] KeyPointer key_of(const std::string& pem);

/// Throws std::invalid_argument: "<option>: <path> cannot be read: <cause>".
[[nodiscard]] std::string content_of_file(const std::string& path, std::string_view option);

}  // namespace wirecall::transport
