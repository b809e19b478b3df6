// The extensions that have a form in JSON, and what they are there: an object of one member with that name, whose value
// is base64 (docs/wire.md, "Values beyond JSON").
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "wirecall/codec.hpp"

namespace wirecall::codec {

struct NamedExtension {
  std::int8_t type;
  std::string_view name;
};
inline constexpr std::array kNamedExtensions{
    NamedExtension{kNpyExtension, "$npy"}, NamedExtension{kImageExtension, "$image"},
    NamedExtension{kMessageExtension, "$message"}, NamedExtension{kPackedExtension, "$packed"}};

[[nodiscard]] constexpr std::optional<std::int8_t> extension_named(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kNamedExtensions, name, &NamedExtension::name);
  return found == kNamedExtensions.end() ? std::nullopt : std::optional{found->type};
}

/// Empty for one that has no form in JSON.
[[nodiscard]] constexpr std::string_view name_of_extension(std::int8_t type) noexcept {
  const auto* const found = std::ranges::find(kNamedExtensions, type, &NamedExtension::type);
  return found == kNamedExtensions.end() ? std::string_view{} : found->name;
}

}  // namespace wirecall::codec
