#include "wirecall/principal.hpp"

#include <algorithm>
#include <cstddef>

namespace wirecall {
namespace {

constexpr std::size_t kTokenBytesMax = 4096;

}  // namespace

bool is_token(std::string_view text) noexcept {
  return !text.empty() && text.size() <= kTokenBytesMax &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7F; });
}

}  // namespace wirecall
