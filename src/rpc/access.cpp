// See access.hpp.
#include "rpc/access.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/assert.hpp"
#include "base/dotted_name.hpp"
#include "base/printable.hpp"
#include "rpc/certificate_names.hpp"

namespace wirecall::rpc {
namespace {

// About so much is said of the names of a certificate.
constexpr std::size_t kFaultBytesMax = 256;

bool any_matches(const std::vector<std::string>& patterns, std::string_view name) noexcept {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches(pattern, name); });
}

bool any_covers(const std::vector<std::string>& patterns, std::string_view pattern) noexcept {
  return std::ranges::any_of(patterns, [&](const std::string& allowed) { return covers(allowed, pattern); });
}

// In `call`: "!gpu.reset" takes out of the others what it stands for, and is no name of a method.
bool is_exception(std::string_view pattern) noexcept { return pattern.starts_with('!'); }

bool is_grant_to_call(std::string_view text) noexcept { return is_pattern(is_exception(text) ? text.substr(1) : text); }

class TokenKind final : public CredentialKind {
 public:
  [[nodiscard]] std::string_view revoked() const noexcept override {
    return "the token that the caller has shown is not known any more";
  }
  [[nodiscard]] const Principal* find(const Authority& authority, std::string_view shown) const noexcept override {
    return authority.find(shown);
  }
};
constexpr TokenKind kTokens;

class CertificateKind final : public CredentialKind {
 public:
  [[nodiscard]] std::string_view revoked() const noexcept override {
    return "the certificate that the caller has shown is not known any more";
  }
  [[nodiscard]] const Principal* find(const Authority& authority, std::string_view shown) const noexcept override {
    return authority.find_certificate(shown);
  }
};
constexpr CertificateKind kCertificates;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("principals: " + what);
}

}  // namespace

bool may_call(const Principal* principal, std::string_view method) noexcept {
  if (principal == nullptr) return true;
  const auto grants = [&](std::string_view pattern) { return !is_exception(pattern) && matches(pattern, method); };
  const auto excepts = [&](std::string_view pattern) {
    return is_exception(pattern) && matches(pattern.substr(1), method);
  };
  return std::ranges::any_of(principal->call, grants) && std::ranges::none_of(principal->call, excepts);
}

bool may_provide(const Principal* principal, std::string_view name_or_prefix) noexcept {
  return principal == nullptr || any_covers(principal->provide, name_or_prefix);
}

bool may_publish(const Principal* principal, std::string_view topic) noexcept {
  return principal == nullptr || any_matches(principal->publish, topic);
}

bool may_subscribe(const Principal* principal, std::string_view pattern) noexcept {
  return principal == nullptr || any_covers(principal->subscribe, pattern);
}

bool same_principal(const Principal* a, const Principal* b) noexcept {
  if (a == nullptr || b == nullptr) return a == b;
  return a == b || a->name == b->name;
}

bool same_grants(const Principal& a, const Principal& b) noexcept {
  return a.name == b.name && a.call == b.call && a.provide == b.provide && a.publish == b.publish &&
         a.subscribe == b.subscribe && a.admin == b.admin;
}

bool same_secret(std::string_view known, std::string_view given) noexcept {
  // Volatile, lest the compiler finds out that the answer is known before the end.
  volatile unsigned char different = known.size() == given.size() && !given.empty() ? 0 : 1;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const char c = given.empty() ? '\0' : given[i % given.size()];
    different =
        static_cast<unsigned char>(different | (static_cast<unsigned char>(known[i]) ^ static_cast<unsigned char>(c)));
  }
  return different == 0;
}

Authority::Authority(std::vector<Principal> principals) : principals_(std::move(principals)) {
  std::set<std::string_view> names;
  std::set<std::string_view> tokens;
  for (Principal& principal : principals_) {
    require(!principal.name.empty(), "one has no name");
    require(names.insert(principal.name).second, "there are two named " + principal.name);
    for (const std::string& token : principal.tokens) {
      require(is_token(token),
              "a token of " + principal.name + " is not 1 to 4096 visible ASCII characters without white space");
      require(tokens.insert(token).second, "a token of " + principal.name + " is another's, or there twice");
      tokens_.emplace(hash_(token), Known{.token = &token, .principal = &principal});
    }
    for (std::size_t i = 0; i != principal.certificates.size(); ++i) {
      const std::string entry = "certificates of " + principal.name + ", entry " + std::to_string(i + 1);
      std::string& name = principal.certificates[i];
      std::optional<std::string> normal = normal_certificate_name(name);
      require(normal || !name.starts_with("ip:"), entry + ", is no address: write ip:192.0.2.1, or ip:2001:db8::1");
      require(normal.has_value(),
              entry + ", is no name of a certificate: write dns:, uri:, email: or ip: and the name");
      name = std::move(*normal);
      require(certificates_.emplace(name, &principal).second, entry + ", is another's, or there twice");
    }
    struct Grants {
      std::string_view name;
      std::vector<std::string>* patterns;
      bool (*is_valid)(std::string_view) noexcept = &is_pattern;
    };
    for (const auto& [name, patterns, is_valid] :
         {Grants{"call", &principal.call, &is_grant_to_call}, Grants{"provide", &principal.provide},
          Grants{"publish", &principal.publish}, Grants{"subscribe", &principal.subscribe}}) {
      // Named by its index: it may be a token that stands there by mistake.
      const auto wrong = std::ranges::find_if_not(*patterns, is_valid);
      require(wrong == patterns->end(), std::string{name} + " of " + principal.name + ", entry " +
                                            std::to_string(wrong - patterns->begin() + 1) +
                                            ", is no name and no pattern");
      // In an order of their own, so that another one in a file is no change.
      std::ranges::sort(*patterns);
      const auto again = std::ranges::unique(*patterns);
      patterns->erase(again.begin(), again.end());
    }
  }
}

const Principal* Authority::find(std::string_view token) const noexcept {
  const Principal* found = nullptr;
  const auto [first, last] = tokens_.equal_range(hash_(token));
  for (auto at = first; at != last; ++at) {
    if (same_secret(*at->second.token, token)) found = at->second.principal;
  }
  return found;
}

Authority::Owners Authority::owners_of(std::string_view names) const noexcept {
  Owners found;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find('\n'), names.size());
    const auto known = certificates_.find(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
    if (known == certificates_.end()) continue;
    found.several = found.several || (found.first != nullptr && found.first != known->second);
    if (found.first == nullptr) found.first = known->second;
  }
  return found;
}

const Principal* Authority::find_certificate(std::string_view names) const noexcept {
  const Owners owners = owners_of(names);
  return owners.several ? nullptr : owners.first;
}

std::string Authority::fault_of_certificate(const std::vector<std::string>& names) const {
  if (names.empty()) return "a certificate without alternative names";
  const Owners owners = owners_of(certificate_credential(names));
  std::string fault{owners.several            ? "a certificate of several principals: "
                    : owners.first != nullptr ? "a certificate that was nobody's when the connection began: "
                                              : "a certificate of nobody who is known: "};
  std::string_view separator;
  for (const std::string& name : names) {
    if (fault.size() > kFaultBytesMax) return fault += ", and more";
    fault.append(separator).append(printable(std::string_view{name}.substr(0, kFaultBytesMax)));
    separator = ", ";
  }
  return fault;
}

const Principal* Authority::find_named(std::string_view name) const noexcept {
  const auto found = std::ranges::find(principals_, name, &Principal::name);
  return found != principals_.end() ? &*found : nullptr;
}

constinit const CredentialKind& kTokenCredentials = kTokens;
constinit const CredentialKind& kCertificateCredentials = kCertificates;

std::string certificate_credential(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) {
    if (const std::optional<std::string> normal = normal_certificate_name(name))
      all.append(all.empty() ? "" : "\n").append(*normal);
  }
  return all;
}

Credential::Credential(const CredentialKind& kind, std::string shown) : kind_(&kind), shown_(std::move(shown)) {
  WIRECALL_ASSERT(!shown_.empty());
}

}  // namespace wirecall::rpc
