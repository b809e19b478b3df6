// Certificates, keys and revocation lists of a test, made by OpenSSL alone and kept in its folder as PEM.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>
#include <gtest/gtest.h>
#include <initializer_list>
#include <memory>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string>
#include <string_view>
#include <utility>

#include "tests/server/folder.hpp"
#include "transport/openssl.hpp"
#include "transport/tls_settings.hpp"

namespace wirecall::transport {

/// What a certificate says. Times are seconds from now.
struct CertificateTerms {
  std::string subject = "localhost";
  std::string names = "DNS:localhost,IP:127.0.0.1,IP:::1";  ///< as OpenSSL's configuration has them; empty for none
  std::string raw_dns = {};                                 ///< a name with any bytes, beside these
  bool authority = false;
  std::string usage = "serverAuth,clientAuth";
  long begins = -3600;
  long ends = 30L * 24 * 3600;
  bool rsa = false;
};

/// A certificate and its key.
struct Issued {
  X509Pointer certificate;
  KeyPointer key;
};

namespace certificates_detail {

inline void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

inline void add_names(X509* certificate, const CertificateTerms& terms) {
  if (terms.raw_dns.empty()) {
    if (!terms.names.empty()) add_extension(certificate, certificate, NID_subject_alt_name, terms.names);
    return;
  }
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  GENERAL_NAMES* names = GENERAL_NAMES_new();
  GENERAL_NAME* const raw = GENERAL_NAME_new();
  ASN1_IA5STRING* const text = ASN1_IA5STRING_new();
  ASN1_STRING_set(text, terms.raw_dns.data(), static_cast<int>(terms.raw_dns.size()));
  GENERAL_NAME_set0_value(raw, GEN_DNS, text);
  sk_GENERAL_NAME_push(names, raw);
  if (!terms.names.empty()) {
    X509_EXTENSION* const others = X509V3_EXT_conf_nid(nullptr, &context, NID_subject_alt_name, terms.names.c_str());
    auto* const parsed = static_cast<GENERAL_NAMES*>(X509V3_EXT_d2i(others));
    while (GENERAL_NAME* const name = sk_GENERAL_NAME_shift(parsed)) sk_GENERAL_NAME_push(names, name);
    GENERAL_NAMES_free(parsed);
    X509_EXTENSION_free(others);
  }
  X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, 0);
  GENERAL_NAMES_free(names);
}

inline long next_serial() {
  static long last = 1000;
  return ++last;
}

}  // namespace certificates_detail

/// Signed by `issuer`, or by itself.
inline Issued issue(const CertificateTerms& terms, const Issued* issuer = nullptr) {
  using namespace certificates_detail;
  Issued made{.certificate = X509Pointer{X509_new()},
              .key = KeyPointer{terms.rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256")}};
  X509* const certificate = made.certificate.get();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), next_serial());
  X509_set_version(certificate, X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate), terms.begins);
  X509_gmtime_adj(X509_getm_notAfter(certificate), terms.ends);
  X509_set_pubkey(certificate, made.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(terms.subject.c_str()), -1, -1, 0);
  X509* const signer = issuer != nullptr ? issuer->certificate.get() : certificate;
  X509_set_issuer_name(certificate, X509_get_subject_name(signer));
  if (terms.authority) {
    add_extension(certificate, signer, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(certificate, signer, NID_key_usage, "critical,keyCertSign,cRLSign");
  } else {
    add_names(certificate, terms);
    add_extension(certificate, signer, NID_basic_constraints, "critical,CA:FALSE");
    if (!terms.usage.empty()) add_extension(certificate, signer, NID_ext_key_usage, terms.usage);
  }
  add_extension(certificate, signer, NID_subject_key_identifier, "hash");
  X509_sign(certificate, issuer != nullptr ? issuer->key.get() : made.key.get(), EVP_sha256());
  return made;
}

inline std::string text_in(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

inline std::string pem_of(const Issued& issued) {
  const BioPointer bio{BIO_new(BIO_s_mem())};
  PEM_write_bio_X509(bio.get(), issued.certificate.get());
  return text_in(bio.get());
}

inline std::string key_pem_of(const Issued& issued, const std::string& passphrase = {}) {
  const BioPointer bio{BIO_new(BIO_s_mem())};
  PEM_write_bio_PrivateKey(bio.get(), issued.key.get(), passphrase.empty() ? nullptr : EVP_aes_128_cbc(),
                           reinterpret_cast<const unsigned char*>(passphrase.data()),
                           static_cast<int>(passphrase.size()), nullptr, nullptr);
  return text_in(bio.get());
}

/// The authority's list of what is revoked.
inline std::string revocation_list(const Issued& authority, std::initializer_list<const Issued*> revoked,
                                   long ends = 3600) {
  X509_CRL* const list = X509_CRL_new();
  X509_CRL_set_version(list, 1);
  X509_CRL_set_issuer_name(list, X509_get_subject_name(authority.certificate.get()));
  ASN1_TIME* const time = ASN1_TIME_new();
  X509_gmtime_adj(time, -60);
  X509_CRL_set1_lastUpdate(list, time);
  for (const Issued* const one : revoked) {
    X509_REVOKED* const entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(one->certificate.get()));
    X509_REVOKED_set_revocationDate(entry, time);
    X509_CRL_add0_revoked(list, entry);
  }
  X509_gmtime_adj(time, ends);
  X509_CRL_set1_nextUpdate(list, time);
  ASN1_TIME_free(time);
  X509_CRL_sort(list);
  X509_CRL_sign(list, authority.key.get(), EVP_sha256());
  const BioPointer bio{BIO_new(BIO_s_mem())};
  PEM_write_bio_X509_CRL(bio.get(), list);
  X509_CRL_free(list);
  return text_in(bio.get());
}

/// A folder of PEM files.
class CertificateFolder : public net::Folder {
 public:
  /// Writes the file, readable by its owner alone, and says where it is.
  std::string write(const std::string& name, std::string_view content) const {
    const std::string at = path + '/' + name;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(at.c_str(), "wb"), &std::fclose};
    std::fwrite(content.data(), 1, content.size(), file.get());
    std::filesystem::permissions(at, std::filesystem::perms{0600});
    return at;
  }
  /// The certificate, those behind it, and its key, as two files of that name.
  [[nodiscard]] TlsFiles write(const std::string& name, const Issued& issued,
                               std::initializer_list<const Issued*> chain = {}) const {
    std::string all = pem_of(issued);
    for (const Issued* const one : chain) all += pem_of(*one);
    return {.certificate = write(name + ".pem", all), .key = write(name + ".key", key_pem_of(issued))};
  }
};

/// An authority, a server for localhost and a client, as most tests need them.
struct UsualCertificates {
  CertificateFolder folder;
  Issued authority = issue({.subject = "authority", .authority = true});
  Issued server = issue({}, &authority);
  Issued client = issue({.subject = "ada", .names = "email:ada@example.com", .usage = "clientAuth"}, &authority);
  std::string cafile = folder.write("ca.pem", pem_of(authority));
  TlsFiles server_files = folder.write("server", server);
  TlsFiles client_files = folder.write("client", client);
};

/// The same ones for all tests of a program, since keys take their time.
inline const UsualCertificates& usual_certificates() {
  static const UsualCertificates made;
  return made;
}

}  // namespace wirecall::transport
