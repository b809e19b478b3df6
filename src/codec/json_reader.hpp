// JsonReader: the Reader over JSON text. It trusts the syntax, because the scanner has seen the whole text before, and
// therefore keeps no state but one pointer: after `[` or `{` and after each value the next byte says what follows.
// Strings without escapes are views into the text; others are unescaped into an arena that lasts until the next reset.
// Owned by one thread. Implements docs/wire.md "Parameters" for integers and "Values beyond JSON" for {"$bytes":...}.
//
// Invariant: where a value comes next, `at_` is its first byte; everywhere else white space may come first.
#pragma once

#include "codec/codec_arena.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::json {

class JsonReader final : public Reader {
 public:
  JsonReader() noexcept : Reader(true) {}
  [[nodiscard]] const Codec& codec() const noexcept override { return json_codec(); }
  void reset(std::string_view value) override;
  [[nodiscard]] ValueKind kind() const override;
  bool read_null() override;
  bool read_bool(bool& out) override;
  bool read_int(std::int64_t min, std::int64_t max, std::int64_t& out) override;
  bool read_uint(std::uint64_t max, std::uint64_t& out) override;
  bool read_double(double& out) override;
  bool read_number_text(std::string_view& out) override;
  bool read_string(std::string_view& out) override;
  bool read_bytes(std::span<const std::byte>& out) override;
  bool read_extension(std::int8_t& type, std::span<const std::byte>& data) override;
  bool begin_array() override;
  bool next_element() override;
  bool begin_object() override;
  bool next_member(std::string_view& name) override;
  std::string_view skip() override;
  bool read_json(std::string_view& out) override;
  std::string json(std::size_t bytes_max) override;
  [[nodiscard]] const char* mark() const noexcept override { return at_; }
  void rewind(const char* mark) noexcept override { at_ = mark; }

 private:
  static const char* skip_space(const char* p) noexcept;
  template <class Integer>
  bool read_slowly(Integer min, Integer max, Integer& out);
  /// An object of one member, which is base64, and its name; consumes nothing when it is something else.
  bool read_base64(std::string_view& name, std::span<const std::byte>& out);
  /// `at_` is behind the opening quote and moves behind the closing one.
  std::string_view string_rest();
  std::string_view unescape(const char* from, const char* first_escape);

  const char* at_ = nullptr;
  codec::Arena arena_;
};

// What most params consist of, inline for dispatch, which knows that it reads JSON.

inline const char* JsonReader::skip_space(const char* p) noexcept {
  // Nearly all texts are compact: one comparison, then the loop that is rarely entered.
  while (static_cast<unsigned char>(*p) <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) ++p;
  return p;
}

// Eighteen digits fit 64 bits without a check; longer integers, fractions and exponents take the slow way.
inline bool JsonReader::read_int(std::int64_t min, std::int64_t max, std::int64_t& out) {
  const char* p = at_;
  const bool negative = *p == '-';
  if (negative) ++p;
  const char* const digits = p;
  std::uint64_t magnitude = 0;
  for (std::uint64_t digit; (digit = static_cast<unsigned char>(*p) - std::uint64_t{'0'}) <= 9; ++p)
    magnitude = magnitude * 10 + digit;
  const auto count = static_cast<std::size_t>(p - digits);
  const auto value = static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
  if (count - 1 >= 18 || *p == '.' || (*p | 0x20) == 'e' || value < min || value > max) [[unlikely]]
    return read_slowly(min, max, out);
  out = value;
  at_ = p;
  return true;
}

inline bool JsonReader::begin_array() {
  if (*at_ != '[') return fail("array");
  ++at_;
  return true;
}

// No value begins with a comma, so a comma here means that an element came before and another follows.
inline bool JsonReader::next_element() {
  const char* p = skip_space(at_);
  if (*p == ']') {
    at_ = p + 1;
    return false;
  }
  at_ = *p == ',' ? skip_space(p + 1) : p;
  return true;
}

}  // namespace wirecall::json
