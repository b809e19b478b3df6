// EnvelopeText: parts of envelopes as constants, made for a Format at compile time from the names and strings that they
// hold. Each is short, so its head is one byte.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace wirecall::message {

template <std::size_t kSize>
struct Name {
  consteval Name(const char (&literal)[kSize]) {  // NOLINT(google-explicit-constructor): names are given as literals
    for (std::size_t i = 0; i < kSize; ++i) text[i] = literal[i];
  }
  char text[kSize];
};

/// The strings of that, one behind the other; a name of one digit is the head of a map of so many members.
template <class Format, Name... names>
class EnvelopeText {
  static constexpr std::size_t kBytes = (... + sizeof names.text);
  static consteval auto make() {
    std::array<char, kBytes> bytes{};
    std::size_t at = 0;
    const auto append = [&](std::string_view name) {
      static_assert((... && (sizeof names.text <= 16)));
      if (name.size() == 1 && name[0] >= '0' && name[0] <= '9') {
        bytes[at++] = static_cast<char>(Format::kShortMap | static_cast<unsigned char>(name[0] - '0'));
        return;
      }
      bytes[at++] = static_cast<char>(Format::kShortString | static_cast<unsigned char>(name.size()));
      for (const char c : name) bytes[at++] = c;
    };
    (append({names.text, sizeof names.text - 1}), ...);
    return std::pair{bytes, at};
  }
  static constexpr auto kText = make();

 public:
  static constexpr std::string_view view{kText.first.data(), kText.second};
};

}  // namespace wirecall::message
