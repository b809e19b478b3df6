// Owners of OpenSSL's objects, and its errors in words. For the sources that speak TLS: no header of another layer
// includes OpenSSL's.
#pragma once

#include <memory>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <string>

namespace wirecall::transport {

template <auto Free>
struct FreeBy {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};

using X509Pointer = std::unique_ptr<X509, FreeBy<&X509_free>>;
using CrlPointer = std::unique_ptr<X509_CRL, FreeBy<&X509_CRL_free>>;
using KeyPointer = std::unique_ptr<EVP_PKEY, FreeBy<&EVP_PKEY_free>>;
using BioPointer = std::unique_ptr<BIO, FreeBy<&BIO_free>>;
using ContextPointer = std::unique_ptr<SSL_CTX, FreeBy<&SSL_CTX_free>>;
using StoreContextPointer = std::unique_ptr<X509_STORE_CTX, FreeBy<&X509_STORE_CTX_free>>;

/// What OpenSSL says of the last failure on this thread, and forgets of it.
[[nodiscard]] std::string take_openssl_error();
/// SHA-256 of the certificate's DER, as 64 lower-case hexadecimal digits.
[[nodiscard]] std::string fingerprint_of(X509* certificate);

}  // namespace wirecall::transport
