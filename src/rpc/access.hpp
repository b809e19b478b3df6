// Who may do what: Authority knows the principals, a Credential is what a peer shows to be found among them, and
// Identity is what one connection has shown. A reload makes another Authority, in which each credential is looked up
// anew: so a kind of credential says how its principal is found, and tokens are one kind.
// Pure. Implements docs/access.md.
#pragma once

#include <memory>
#include <unordered_map>

#include "base/seeded_hash.hpp"
#include "wirecall/principal.hpp"

namespace wirecall::rpc {

// Of a principal that is null, where nobody has to authenticate, all is true.

[[nodiscard]] bool may_call(const Principal* principal, std::string_view method) noexcept;
[[nodiscard]] bool may_provide(const Principal* principal, std::string_view name_or_prefix) noexcept;
[[nodiscard]] bool may_publish(const Principal* principal, std::string_view topic) noexcept;
[[nodiscard]] bool may_subscribe(const Principal* principal, std::string_view pattern) noexcept;
[[nodiscard]] inline bool is_admin(const Principal* principal) noexcept {
  return principal == nullptr || principal->admin;
}

/// Whether the two are one principal: by name, which is unique within an Authority and survives a reload, as addresses
/// do not. Null is the one principal of those who do not have to authenticate.
[[nodiscard]] bool same_principal(const Principal* a, const Principal* b) noexcept;

/// Whether the two are the same in all but their tokens and certificates.
[[nodiscard]] bool same_grants(const Principal& a, const Principal& b) noexcept;

class Authority {
 public:
  /// Throws std::invalid_argument for principals that cannot be: the same name or token twice, or none, or what is no
  /// pattern. The text never holds a token.
  explicit Authority(std::vector<Principal> principals);

  Authority(Authority&&) = delete;

  /// Whose token that is; null for nobody's. Looks for the token by a keyed hash and compares in constant time: the
  /// time depends on the text's length, and not on how many principals there are, nor on the bytes that agree.
  [[nodiscard]] const Principal* find(std::string_view token) const noexcept;
  /// Whose client certificate that is which has these alternative names, as certificate_credential has them; null for
  /// nobody's, and where they are of two principals.
  [[nodiscard]] const Principal* find_certificate(std::string_view names) const noexcept;
  /// Why a certificate with these names is nobody's: "a certificate of nobody who is known: dns:desk.example". Throws
  /// std::bad_alloc.
  [[nodiscard]] std::string fault_of_certificate(const std::vector<std::string>& names) const;
  /// Who has that name, for credentials that prove a name; null for nobody.
  [[nodiscard]] const Principal* find_named(std::string_view name) const noexcept;

 private:
  struct Owners {
    const Principal* first = nullptr;
    bool several = false;
  };
  struct Known {
    const std::string* token;
    const Principal* principal;
  };

  [[nodiscard]] Owners owners_of(std::string_view names) const noexcept;

  std::vector<Principal> principals_;
  SeededHash hash_;
  // By hash_ of the token. No key holds a token's text, which a table would compare byte by byte.
  std::unordered_multimap<std::size_t, Known> tokens_;
  // By the names in Principal::certificates, in their normal form.
  std::unordered_map<std::string_view, const Principal*, SeededHash> certificates_;
};

/// A kind of credential: token, certificate, user of this machine. One object of each, that outlives all peers.
class CredentialKind {
 public:
  /// Why the calls end of a peer whose credential is not known any more; a constant.
  [[nodiscard]] virtual std::string_view revoked() const noexcept = 0;
  /// Whose credential `shown` is; null for nobody's.
  [[nodiscard]] virtual const Principal* find(const Authority& authority, std::string_view shown) const noexcept = 0;

 protected:
  ~CredentialKind() = default;
};

/// The kind that Authority::find knows.
extern const CredentialKind& kTokenCredentials;
/// The kind that Authority::find_certificate knows.
extern const CredentialKind& kCertificateCredentials;

/// What a certificate with these alternative names shows, as kCertificateCredentials takes it: a line each, in its
/// normal form (certificate_names.hpp); empty where none can be a principal's. Throws std::bad_alloc.
[[nodiscard]] std::string certificate_credential(const std::vector<std::string>& names);

/// What a peer has shown to be somebody, whether it is known or not.
class Credential {
 public:
  /// None.
  Credential() noexcept = default;
  /// A token; none when it is empty.
  Credential(std::string_view token)  // NOLINT(google-explicit-constructor): tokens are what most peers show
      : shown_(token) {}
  /// `shown` is what the transport has checked, such as the subject of a certificate, and not empty.
  Credential(const CredentialKind& kind, std::string shown);

  [[nodiscard]] bool empty() const noexcept { return shown_.empty(); }
  /// Whose it is; null for nobody's. It is not empty.
  [[nodiscard]] const Principal* find_in(const Authority& authority) const noexcept {
    return kind_->find(authority, shown_);
  }
  /// As its kind says.
  [[nodiscard]] std::string_view revoked() const noexcept { return kind_->revoked(); }
  [[nodiscard]] bool is_certificate() const noexcept { return !empty() && kind_ == &kCertificateCredentials; }

 private:
  const CredentialKind* kind_ = &kTokenCredentials;
  std::string shown_;
};

/// What a peer has shown of itself.
struct Identity {
  /// Who its principal is in another authority: by the credential, or without one by the name. Null for nobody.
  [[nodiscard]] const Principal* find_in(const Authority& other) const noexcept {
    return credential.empty() ? other.find_named(principal->name) : credential.find_in(other);
  }

  std::shared_ptr<const Authority> authority;  ///< that knows the principal
  const Principal* principal = nullptr;        ///< null as long as it has shown nothing
  Credential credential;
};

/// Whether two texts are the same, found out in a time that depends on their sizes alone.
[[nodiscard]] bool same_secret(std::string_view known, std::string_view given) noexcept;

}  // namespace wirecall::rpc
