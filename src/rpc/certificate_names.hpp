// Names of client certificates: a type and a subject alternative name, as "dns:desk.example", "uri:spiffe://a/b",
// "email:a@b.example" and "ip:::1". Pure. Implements docs/tls.md "Clients that show a certificate".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wirecall::rpc {

/// A text that two spellings of one name have in common, and no two names: letters do not differ by case in a DNS name,
/// in the scheme and the host of a URI and behind the @ of an email address (RFC 5280, sections 4.2.1.6, 7.2 and 7.5),
/// and an address is what it stands for. nullopt for what is no name: of another type, without text or in several
/// lines, or no address. Throws std::bad_alloc.
[[nodiscard]] std::optional<std::string> normal_certificate_name(std::string_view name);

}  // namespace wirecall::rpc
