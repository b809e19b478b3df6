// See protocol.hpp. No protocol's first bytes are the beginning of another's, so that the choice needs no order.
#include "framing/protocol.hpp"

#include <algorithm>

#include "base/ascii.hpp"
#include "base/assert.hpp"
#include "framing/byte_order_mark.hpp"
#include "framing/token.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::framing {
namespace {

constexpr std::string_view kHeaderName = "content-";
constexpr std::size_t kMethodBytesMax = 16;
// A record of TLS: its type and the first byte of its version.
constexpr char kTlsHandshake = 0x16;
constexpr char kTlsMajorVersion = 0x03;
constexpr std::string_view kJsonStarts = "{[\"-0123456789tfn";

bool begins_json(char c) noexcept { return kJsonStarts.find(c) != kJsonStarts.npos; }

// A byte order mark is one of JSON text where that follows it, be it behind white space.
Protocol choose_behind_mark(std::string_view text) noexcept {
  if (!text.starts_with(kByteOrderMark)) {
    return kByteOrderMark.starts_with(text) ? Protocol::undetermined : Protocol::unknown;
  }
  const std::size_t at = text.find_first_not_of(" \t\r\n", kByteOrderMark.size());
  if (at != text.npos) return begins_json(text[at]) ? Protocol::json_text : Protocol::unknown;
  return text.size() < FirstBytes::kDecisiveBytes ? Protocol::undetermined : Protocol::json_text;
}

// `text` begins with the first byte that is not white space, and has as many as are known.
Protocol choose(std::string_view text) noexcept {
  const char first = text[0];
  if (begins_json(first)) return Protocol::json_text;
  if (first == kByteOrderMark[0]) return choose_behind_mark(text);
  if (static_cast<unsigned char>(first) <= 8) return Protocol::length_prefix;
  if (first == kTlsHandshake) {
    if (text.size() == 1) return Protocol::undetermined;
    return text[1] == kTlsMajorVersion ? Protocol::tls : Protocol::unknown;
  }

  std::size_t same = 0;
  while (same < text.size() && same < kHeaderName.size() && lower(text[same]) == kHeaderName[same]) ++same;
  if (same == kHeaderName.size()) return Protocol::content_length;
  if (same == text.size()) return Protocol::undetermined;

  std::size_t capitals = 0;
  while (capitals < text.size() && text[capitals] >= 'A' && text[capitals] <= 'Z') ++capitals;
  if (capitals > kMethodBytesMax) return Protocol::unknown;
  if (capitals == text.size()) return Protocol::undetermined;
  return capitals != 0 && text[capitals] == ' ' ? Protocol::http : Protocol::unknown;
}

}  // namespace

Protocol FirstBytes::feed(std::string_view input) noexcept {
  WIRECALL_ASSERT(!input.empty());
  WIRECALL_ASSERT(kept_bytes_ < kDecisiveBytes);
  skipped_ = 0;
  if (kept_bytes_ == 0) {
    while (is_space(input[skipped_])) {
      if (spaces_ == kLeadingSpaceBytesMax) return Protocol::unknown;
      ++spaces_;
      if (++skipped_ == input.size()) return Protocol::undetermined;
    }
    const std::string_view text = input.substr(skipped_);
    const Protocol protocol = choose(text);
    if (protocol == Protocol::undetermined) {
      // Seventeen bytes decide, so these are fewer.
      std::copy(text.begin(), text.end(), kept_.begin());
      kept_bytes_ = static_cast<std::uint8_t>(text.size());
    }
    return protocol;
  }
  std::array<char, kDecisiveBytes> known = kept_;
  const std::size_t more = std::min(input.size(), kDecisiveBytes - kept_bytes_);
  std::copy_n(input.begin(), more, known.begin() + kept_bytes_);
  const Protocol protocol = choose({known.data(), kept_bytes_ + more});
  if (protocol == Protocol::undetermined) {
    kept_ = known;
    kept_bytes_ = static_cast<std::uint8_t>(kept_bytes_ + more);
  }
  return protocol;
}

}  // namespace wirecall::framing
