// See tls_certificate.hpp.
#include "transport/tls_certificate.hpp"

#include <arpa/inet.h>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdexcept>
#include <unistd.h>

namespace wirecall::transport {
namespace {

constexpr const char* kOrganization = "wirecall serve --tls-self-signed";
constexpr long kSelfSignedSeconds = 30L * 24 * 3600;

// Empty for a text with a byte of zero: what stands behind that is not seen by everybody.
std::string text_of(const ASN1_STRING* text) {
  const std::string_view bytes{reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                               static_cast<std::size_t>(ASN1_STRING_length(text))};
  return bytes.contains('\0') ? std::string{} : std::string{bytes};
}

std::string address_of(const ASN1_OCTET_STRING* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = ASN1_STRING_length(address) == 4 ? AF_INET : AF_INET6;
  if (family == AF_INET6 && ASN1_STRING_length(address) != 16) return {};
  return ::inet_ntop(family, ASN1_STRING_get0_data(address), text.data(), text.size());
}

void add_extension(X509* certificate, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, FreeBy<&X509_EXTENSION_free>> extension{
      X509V3_EXT_conf_nid(nullptr, &context, kind, value)};
  if (extension == nullptr || X509_add_ext(certificate, extension.get(), -1) != 1)
    throw std::runtime_error{"cannot make a certificate: " + take_openssl_error()};
}

// As a DNS name has them: the system's may be anything.
std::string machine_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  for (const char* c = name.data(); *c != '\0'; ++c) {
    const bool plain = std::isalnum(static_cast<unsigned char>(*c)) != 0 || *c == '-' || *c == '.';
    if (!plain) return {};
  }
  return name.data();
}

}  // namespace

std::string take_openssl_error() {
  std::string text;
  while (const unsigned long code = ERR_get_error()) {
    const char* const reason = ERR_reason_error_string(code);
    if (text.empty() && reason != nullptr) text = reason;
  }
  return text.empty() ? "nothing more is known" : text;
}

std::string fingerprint_of(X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  X509_digest(certificate, EVP_sha256(), digest.data(), &bytes);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i != bytes; ++i) {
    text.push_back(kDigits[digest[i] >> 4]);
    text.push_back(kDigits[digest[i] & 15]);
  }
  return text;
}

std::vector<std::string> alternative_names(X509* certificate) {
  std::vector<std::string> all;
  const std::unique_ptr<GENERAL_NAMES, FreeBy<&GENERAL_NAMES_free>> names{
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr))};
  if (names == nullptr) return all;
  for (int i = 0; i != sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    std::string_view type;
    std::string text;
    switch (name->type) {
      case GEN_DNS: type = "dns:", text = text_of(name->d.dNSName); break;
      case GEN_URI: type = "uri:", text = text_of(name->d.uniformResourceIdentifier); break;
      case GEN_EMAIL: type = "email:", text = text_of(name->d.rfc822Name); break;
      case GEN_IPADD: type = "ip:", text = address_of(name->d.iPAddress); break;
      default: break;
    }
    if (!text.empty()) all.push_back(std::string{type} + text);
  }
  return all;
}

static std::int64_t seconds_of(const ASN1_TIME* time) noexcept {
  std::tm parts{};
  return ASN1_TIME_to_tm(time, &parts) == 1 ? ::timegm(&parts) : 0;
}

Validity validity_of(X509* certificate) noexcept {
  return {.begins = seconds_of(X509_get0_notBefore(certificate)), .ends = seconds_of(X509_get0_notAfter(certificate))};
}

std::string subject_of(X509* certificate) {
  X509_NAME* const name = X509_get_subject_name(certificate);
  std::array<char, 256> text{};
  if (X509_NAME_get_text_by_NID(name, NID_commonName, text.data(), static_cast<int>(text.size())) <= 0)
    X509_NAME_oneline(name, text.data(), static_cast<int>(text.size()));
  return text.data();
}

SelfSigned make_self_signed() {
  SelfSigned made{.certificate = X509Pointer{X509_new()}, .key = KeyPointer{EVP_EC_gen("P-256")}};
  X509* const certificate = made.certificate.get();
  if (certificate == nullptr || made.key == nullptr)
    throw std::runtime_error{"cannot make a certificate: " + take_openssl_error()};
  std::array<unsigned char, 16> serial{};
  RAND_bytes(serial.data(), serial.size());
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7F) | 0x40);  // positive, and as long as it is
  const std::unique_ptr<BIGNUM, FreeBy<&BN_free>> number{BN_bin2bn(serial.data(), serial.size(), nullptr)};
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate));
  X509_set_version(certificate, X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);  // clocks differ
  X509_gmtime_adj(X509_getm_notAfter(certificate), kSelfSignedSeconds);
  X509_set_pubkey(certificate, made.key.get());
  X509_NAME* const name = X509_get_subject_name(certificate);
  const auto add = [name](const char* field, const char* value) {
    X509_NAME_add_entry_by_txt(name, field, MBSTRING_ASC, reinterpret_cast<const unsigned char*>(value), -1, -1, 0);
  };
  add("O", kOrganization);
  add("CN", "localhost");
  X509_set_issuer_name(certificate, name);
  std::string names = "DNS:localhost,IP:127.0.0.1,IP:::1";
  if (const std::string machine = machine_name(); !machine.empty() && machine != "localhost")
    names += ",DNS:" + machine;
  add_extension(certificate, NID_subject_alt_name, names.c_str());
  add_extension(certificate, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(certificate, NID_ext_key_usage, "serverAuth");
  if (X509_sign(certificate, made.key.get(), EVP_sha256()) == 0)
    throw std::runtime_error{"cannot make a certificate: " + take_openssl_error()};
  return made;
}

bool is_self_signed(X509* certificate) {
  std::array<char, 64> organization{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_organizationName, organization.data(),
                            static_cast<int>(organization.size()));
  return std::string_view{organization.data()} == kOrganization;
}

// A key that asks for a passphrase is none: nobody is there to be asked.
static int no_passphrase(char*, int, int, void*) noexcept { return -1; }

template <class Pointer, auto Read>
static std::vector<Pointer> all_of(const std::string& pem) {
  const BioPointer text{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
  std::vector<Pointer> all;
  if (text == nullptr) return all;
  ERR_clear_error();
  while (auto* const one = Read(text.get(), nullptr, &no_passphrase, nullptr)) all.emplace_back(one);
  const unsigned long error = ERR_peek_last_error();
  const bool end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (!end) all.clear();
  if (!all.empty()) ERR_clear_error();
  return all;
}

std::vector<X509Pointer> certificates_of(const std::string& pem) {
  return all_of<X509Pointer, &PEM_read_bio_X509>(pem);
}
std::vector<CrlPointer> revocation_lists_of(const std::string& pem) {
  return all_of<CrlPointer, &PEM_read_bio_X509_CRL>(pem);
}

KeyPointer key_of(const std::string& pem) {
  const BioPointer text{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
  if (text == nullptr) return nullptr;
  ERR_clear_error();
  return KeyPointer{PEM_read_bio_PrivateKey(text.get(), nullptr, &no_passphrase, nullptr)};
}

std::string content_of_file(const std::string& path, std::string_view option) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "rbe"), &std::fclose};
  std::string content;
  if (file != nullptr) {
    std::array<char, 4096> block{};
    while (const std::size_t bytes = std::fread(block.data(), 1, block.size(), file.get()))
      content.append(block.data(), bytes);
    if (std::ferror(file.get()) == 0) return content;
  }
  throw std::invalid_argument{std::string{option} + ": " + path + " cannot be read: " + std::strerror(errno)};
}

}  // namespace wirecall::transport
