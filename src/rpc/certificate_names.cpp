// See certificate_names.hpp.
#include "rpc/certificate_names.hpp"

#include <algorithm>
#include <array>

#include "base/ip_address.hpp"

namespace wirecall::rpc {

static void to_lower(std::string& text, std::size_t begin, std::size_t end) noexcept {
  const auto first = text.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = text.begin() + static_cast<std::ptrdiff_t>(end);
  std::transform(first, last, first, [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
}

// "uri:scheme://user@host:port/path", of which the host may be missing, and what stands before and behind it.
static void normalize_uri(std::string& name, std::size_t begin) noexcept {
  const std::size_t colon = std::min(name.find(':', begin), name.size());
  to_lower(name, begin, colon);
  if (name.substr(colon, 3) != "://") return;
  const std::size_t authority = colon + 3;
  const std::size_t end = std::min(name.find_first_of("/?#", authority), name.size());
  const std::size_t at = std::string_view{name}.substr(0, end).rfind('@');
  to_lower(name, at != std::string::npos && at >= authority ? at + 1 : authority, end);
}

static std::optional<std::string> normal_address(std::string_view address) {
  std::array<std::uint8_t, 16> bytes{};
  const bool v4 = read_ipv4(address, bytes.data());
  if (!v4 && !read_ipv6(address, bytes)) return std::nullopt;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string normal = "ip:";
  for (std::size_t i = 0; i != (v4 ? 4U : bytes.size()); ++i) {
    normal.push_back(kDigits[bytes[i] >> 4]);
    normal.push_back(kDigits[bytes[i] & 15]);
  }
  return normal;
}

std::optional<std::string> normal_certificate_name(std::string_view name) {
  const std::size_t begin = name.find(':') + 1;
  const std::string_view type = name.substr(0, begin);
  if (begin == name.size() || name.contains('\n')) return std::nullopt;
  if (type == "ip:") return normal_address(name.substr(begin));
  std::string normal{name};
  if (type == "dns:") {
    to_lower(normal, begin, normal.size());
  } else if (type == "email:") {
    to_lower(normal, std::min(normal.rfind('@'), normal.size()), normal.size());
  } else if (type == "uri:") {
    normalize_uri(normal, begin);
  } else {
    return std::nullopt;
  }
  return normal;
}

}  // namespace wirecall::rpc
