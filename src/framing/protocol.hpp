// FirstBytes: tells by the first bytes of a connection what is spoken on it (docs/wire.md "Connections"). Not a parser:
// what it has recognised begins anew with the first of these bytes that is not white space.
// A value of a few bytes, since every connection that has not said anything yet has one. Pure; one thread.
#pragma once

#include <array>

#include "framing/framing.hpp"

namespace wirecall::framing {

enum class Protocol : std::uint8_t {
  undetermined,
  json_text,       ///< what begins a JSON value, a byte order mark before it or not
  content_length,  ///< `Content-` in any case
  length_prefix,   ///< a byte from 00 to 08
  http,            ///< 1 to 16 capital letters and a space
  tls,             ///< 16 03
  plain_http,      ///< http, where that has to come by TLS and has not; FirstBytes does not know that
  unknown,         ///< anything else
};

class FirstBytes {
 public:
  /// Looks at the bytes that follow those looked at before; `input` is not empty. Not called again once decided.
  Protocol feed(std::string_view input) noexcept;
  /// Bytes of the last input that are white space in front of everything.
  [[nodiscard]] std::size_t skipped() const noexcept { return skipped_; }
  /// Bytes of earlier inputs, white space left out, that stand before the last input.
  [[nodiscard]] std::string_view kept() const noexcept { return {kept_.data(), kept_bytes_}; }

  /// A method of 16 letters and its space is the longest thing that there is to recognise.
  static constexpr std::size_t kDecisiveBytes = 17;

 private:
  std::array<char, kDecisiveBytes> kept_;
  std::uint8_t kept_bytes_ = 0;
  std::uint8_t spaces_ = 0;  // white space of all inputs
  std::uint8_t skipped_ = 0;
};

/// The framing of what is none: everything is refused in one message, and nothing follows.
class Unknown final : public Framing {
 public:
  Found next(std::span<char>) override { return {Find::malformed, 0, 0}; }
  Found unfinished(std::string_view) override { return {Find::lost, 0, 0}; }
  Recovery recover(std::string_view) override { return Recovery::close; }
  Found end_of_stream() override { return {}; }
  [[nodiscard]] std::string_view cause() const noexcept override {
    return "the first bytes begin nothing that is spoken here";
  }
  [[nodiscard]] bool sends_lines() const noexcept override { return true; }
  [[nodiscard]] std::string_view tail() const noexcept override { return "\n"; }
};

}  // namespace wirecall::framing
