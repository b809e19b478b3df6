// JsonReader: the Reader over JSON text. It trusts the syntax, because the scanner has seen the whole text before, and
// therefore keeps no state but one pointer: after `[` or `{` and after each value the next byte says what follows.
// Strings without escapes are views into the text; others are unescaped into an arena that lasts until the next reset.
// Owned by one thread. Implements docs/wire.md "Messages" for integers and "Values beyond JSON" for {"$bytes":...}.
//
// Invariant: where a value comes next, `at_` is its first byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "codec/codec_arena.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::json {

class JsonReader final : public Reader {
 public:
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
  bool begin_array() override;
  bool next_element() override;
  bool begin_object() override;
  bool next_member(std::string_view& name) override;
  std::string_view skip() override;
  std::string json(std::size_t bytes_max) override;
  [[nodiscard]] const char* mark() const noexcept override { return at_; }
  void rewind(const char* mark) noexcept override { at_ = mark; }

 private:
  bool read_int_slowly(std::int64_t min, std::int64_t max, std::int64_t& out);
  bool read_uint_slowly(std::uint64_t max, std::uint64_t& out);
  /// `at_` is behind the opening quote and moves behind the closing one.
  std::string_view string_rest();
  std::string_view unescape(const char* from, const char* first_escape);

  const char* at_ = nullptr;
  codec::Arena arena_;
};

}  // namespace wirecall::json
