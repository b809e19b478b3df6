// See message_forms.hpp.
#include "protobuf/message_forms.hpp"

#include <charconv>

#include "codec/base64.hpp"
#include "wirecall/protobuf/message_json.hpp"

namespace wirecall::protobuf {

// Nanoseconds as the digits behind the decimal point: 3, 6 or 9 of them.
static std::string fraction_of(std::int32_t nanos) {
  std::string digits = std::to_string(1'000'000'000 + nanos).substr(1);
  while (digits.ends_with("000")) digits.resize(digits.size() - 3);
  return digits;
}

std::string format_duration(std::int64_t seconds, std::int32_t nanos) {
  std::string text = seconds < 0 || nanos < 0 ? "-" : "";
  text += std::to_string(seconds < 0 ? -seconds : seconds);
  if (nanos != 0) (text += '.') += fraction_of(nanos < 0 ? -nanos : nanos);
  return text += 's';
}

bool parse_duration(std::string_view text, std::int64_t& seconds, std::int32_t& nanos) noexcept {
  if (!text.ends_with('s')) return false;
  text.remove_suffix(1);
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view fraction = point == std::string_view::npos ? std::string_view{} : text.substr(point + 1);
  const auto is_digits = [](std::string_view digits) {
    return !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!is_digits(whole) || fraction.size() > 9) return false;
  if (point != std::string_view::npos && !is_digits(fraction)) return false;
  if (std::from_chars(whole.data(), whole.data() + whole.size(), seconds).ec != std::errc{}) return false;
  nanos = 0;
  for (std::size_t i = 0; i < 9; ++i) nanos = nanos * 10 + (i < fraction.size() ? fraction[i] - '0' : 0);
  if (seconds > kDurationMax || (seconds == kDurationMax && nanos != 0)) return false;
  if (negative) {
    seconds = -seconds;
    nanos = -nanos;
  }
  return true;
}

static bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
static bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }

std::optional<std::string> camel_path(std::string_view path) {
  if (path.empty() || path.find(',') != std::string_view::npos) return std::nullopt;
  std::string out;
  bool after_underscore = false;
  for (const char c : path) {
    if (is_upper(c) || (after_underscore && !is_lower(c))) return std::nullopt;
    if (c == '_') {
      after_underscore = true;
      continue;
    }
    out += after_underscore ? static_cast<char>(c - 'a' + 'A') : c;
    after_underscore = false;
  }
  if (after_underscore) return std::nullopt;
  return out;
}

std::optional<std::string> snake_path(std::string_view path) {
  if (path.empty()) return std::nullopt;
  std::string out;
  for (const char c : path) {
    if (c == '_') return std::nullopt;
    if (is_upper(c)) {
      (out += '_') += static_cast<char>(c - 'A' + 'a');
    } else {
      out += c;
    }
  }
  return out;
}

bool parse_base64(std::string_view text, std::string& out) {
  std::string standard{text};
  for (char& c : standard) {
    if (c == '-') c = '+';
    if (c == '_') c = '/';
  }
  while (standard.size() % 4 != 0) standard += '=';
  out.resize(standard.size() / 4 * 3);
  const std::size_t size = codec::base64_decode(standard, reinterpret_cast<std::byte*>(out.data()));
  if (size == codec::kNotBase64) return false;
  out.resize(size);
  return true;
}

}  // namespace wirecall::protobuf
