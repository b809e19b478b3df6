// The second opinion on what JSON is: simdjson's DOM, and the one list of its differences from us.
// Fuzzers, soak and tests require agreement on every text, except for this list:
//
//   number_range      Numbers are text here, so an id or a relayed value keeps them whatever their size. The DOM holds
//                     each as an int64_t, uint64_t or finite double, and refuses a text with any other number.
//   empty_innermost   A level is a level here. The DOM does not count an array or object that holds nothing, so it
//                     takes an empty one just beyond its depth limit.
//
// And nothing else: byte order marks, NUL bytes, lone surrogates, invalid UTF-8, scalars on top level and what follows
// a value are all judged alike. Each entry is verified, not believed: with its cause taken out of the text, both must
// agree. One owner, one thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <simdjson.h>
#include <string>
#include <string_view>

#include "codec/json_scan.hpp"
#include "fuzz/texts.hpp"

namespace fuzz {

enum class Agreement : std::uint8_t { agreed, number_range, empty_innermost, disagreed };

/// Whether our scan accepts `padded` as one whole value with white space around it.
[[nodiscard]] inline bool is_whole(std::string_view padded, const wirecall::Scan& scan) noexcept {
  return scan.status == wirecall::ScanStatus::complete &&
         padded.find_first_not_of(" \t\r\n", scan.offset) == std::string_view::npos;
}

/// Whether a valid number is within a double's range.
[[nodiscard]] inline bool is_in_doubles_range(const std::string& number) noexcept {
  return std::isfinite(std::strtod(number.c_str(), nullptr));
}

/// Whether simdjson can hold a valid number.
[[nodiscard]] inline bool is_in_simdjsons_range(const std::string& number) noexcept {
  if (number.find_first_of(".eE") != std::string::npos) return is_in_doubles_range(number);
  const bool negative = number[0] == '-';
  const std::string_view digits = std::string_view{number}.substr(negative ? 1 : 0);
  const std::string_view largest = negative ? "9223372036854775808" : "18446744073709551615";
  return digits.size() < largest.size() || (digits.size() == largest.size() && digits <= largest);
}

/// Valid JSON text with 0 in place of every number out of range.
[[nodiscard]] inline std::string with_numbers_in_range(
    std::string_view json, bool (*is_in_range)(const std::string& number) noexcept = is_in_simdjsons_range) {
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (!quoted && (c == '-' || (c >= '0' && c <= '9'))) {
      const std::size_t end = std::min(json.find_first_not_of("+-.0123456789Ee", i), json.size());
      const std::string number{json.substr(i, end - i)};
      out += is_in_range(number) ? number : "0";
      i = end - 1;
      continue;
    }
    out += c;
    if (quoted && c == '\\') out += json[++i];
    if (c == '"') quoted = !quoted;
  }
  return out;
}

/// Valid JSON text with 0 in place of every empty array or object.
[[nodiscard]] inline std::string without_empty_containers(std::string_view json) {
  std::string out;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (!quoted && (c == '[' || c == '{')) {
      const std::size_t next = json.find_first_not_of(" \t\r\n", i + 1);
      if (json[next] == ']' || json[next] == '}') {
        out += '0';
        i = next;
        continue;
      }
    }
    out += c;
    if (quoted && c == '\\') out += json[++i];
    if (c == '"') quoted = !quoted;
  }
  return out;
}

class SimdjsonOpinion {
 public:
  /// Longer texts have no opinion: the parser's memory is allocated once.
  static constexpr std::size_t kBytesMax = std::size_t{1} << 20;

  /// `depth_max` levels of arrays and objects.
  explicit SimdjsonOpinion(std::uint32_t depth_max) : depth_max_(depth_max) {
    if (parser_.allocate(kBytesMax, depth_max + 1) != simdjson::SUCCESS) std::abort();
  }
  [[nodiscard]] bool accepts(std::string_view padded) { return parse(padded) == simdjson::SUCCESS; }
  /// Compares this opinion on `padded` with `ours`, the scan of the same text with the same depth.
  [[nodiscard]] Agreement compare(std::string_view padded, const wirecall::Scan& ours) {
    const simdjson::error_code theirs = parse(padded);
    const bool accepted = is_whole(padded, ours);
    if (accepted == (theirs == simdjson::SUCCESS)) return Agreement::agreed;
    if (accepted && theirs == simdjson::NUMBER_ERROR) {
      return accepts(PaddedText{with_numbers_in_range(padded)}.view()) ? Agreement::number_range : Agreement::disagreed;
    }
    if (!accepted && ours.status == wirecall::ScanStatus::too_deep) {
      const PaddedText filled{without_empty_containers(padded)};
      const wirecall::Scan scan = wirecall::json::scan_scalar(filled.view(), depth_max_);
      if (is_whole(filled.view(), scan)) return Agreement::empty_innermost;
    }
    return Agreement::disagreed;
  }

 private:
  simdjson::error_code parse(std::string_view padded) {
    return parser_.parse(reinterpret_cast<const std::uint8_t*>(padded.data()), padded.size(), false).error();
  }

  std::uint32_t depth_max_;
  simdjson::dom::parser parser_;
};

}  // namespace fuzz
