// JsonWriter: the Writer of compact JSON text. Escapes are the shortest that RFC 8259 allows; other characters are
// written as they are, after a check that they are UTF-8. NaN, infinity and invalid UTF-8 fail the writer.
//
// Doubles are the shortest text that reads back as the same double. Integral ones below 2^53 are written without point
// or exponent (3, not 3.0), which every integer parameter takes; -0.0 is -0. 64-bit integers are exact.
//
// Commas need no stack: one follows everything but an opening bracket and a key, so one flag is enough.
// Owned by one thread; the Buffer is the caller's.
#pragma once

#include "wirecall/codec.hpp"

namespace wirecall::json {

/// The longest 64-bit integer, its sign included.
inline constexpr std::size_t kIntegerBytesMax = 20;
/// Writes `value` from `to` on and returns where it ends.
char* write_integer(char* to, std::int64_t value) noexcept;

class JsonWriter final : public Writer {
 public:
  void reset(Buffer& out) override;
  void null() override;
  void boolean(bool value) override;
  void integer(std::int64_t value) override;
  void unsigned_integer(std::uint64_t value) override;
  void number(double value) override;
  void number(float value) override;
  void number_text(std::string_view text) override;
  void string(std::string_view utf8) override;
  void bytes(std::span<const std::byte> data) override;
  [[nodiscard]] bool is_json() const noexcept override { return true; }
  void extension(std::int8_t type, std::span<const std::byte> data) override;
  void begin_array(std::size_t size) override;
  void end_array() override;
  void begin_object(std::size_t size) override;
  void key(std::string_view utf8) override;
  void end_object() override;
  void json(std::string_view text) override;
  /// So many integers from 0 to 127, a byte each.
  void small_integers(const char* values, std::size_t count);

 private:
  /// Room for `bytes` and a comma, the comma written if one is due.
  char* open(std::size_t bytes);
  void close(const char* end);
  void word(std::string_view text);
  void begin(char bracket);
  void end(char bracket);
  /// Quotes, escapes and checks `utf8`, writing from `to` on, where utf8.size() + 3 bytes have been reserved.
  char* quote(char* to, std::string_view utf8);
  char* quote_slowly(char* to, std::string_view rest);
  /// An object of one member of that name, plain ASCII.
  void base64(std::string_view name, std::span<const std::byte> data);
  template <class Float>
  void floating(Float value);

  Buffer* out_ = nullptr;
  bool comma_ = false;
};

}  // namespace wirecall::json
