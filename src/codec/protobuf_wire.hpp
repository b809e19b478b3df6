// The wire format of Protocol Buffers (protobuf.dev/programming-guides/encoding): a message is fields, each a number
// with a type behind it, in any order. FieldReader walks over them and checks every length before it is used;
// MessageWriter writes them. Neither knows what a field means.
// One owner, one thread each; a FieldReader views the caller's memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "wirecall/bytes.hpp"

namespace wirecall::protobuf_wire {

enum class WireType : std::uint8_t { varint, fixed64, length, group, group_end, fixed32 };

/// What stands in front of a field, as a number.
[[nodiscard]] constexpr std::uint32_t tag_of(std::uint32_t field, WireType type) noexcept {
  return field << 3 | static_cast<std::uint32_t>(type);
}

/// Passes a varint, not in its shortest form either; of ten bytes, the last has one bit. False where there is none in
/// front of `end`: `p` means nothing then.
[[nodiscard]] inline bool pass_varint(const char*& p, const char* end, std::uint64_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; shift < 64 && p != end; shift += 7) {
    const auto byte = static_cast<unsigned char>(*p++);
    if (shift == 63 && byte > 1) return false;
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

template <class Word>
[[nodiscard]] Word load_little_endian(const char* p) noexcept {
  Word word;
  std::memcpy(&word, p, sizeof word);
  return std::endian::native == std::endian::little ? word : std::byteswap(word);
}

struct Field {
  std::uint32_t tag = 0;
  std::uint64_t value = 0;        ///< of a varint or a fixed
  std::string_view content = {};  ///< behind a length
  const char* begin = nullptr;    ///< of its tag

  [[nodiscard]] constexpr std::uint32_t number() const noexcept { return tag >> 3; }
};

class FieldReader {
 public:
  FieldReader() = default;
  explicit FieldReader(std::string_view message) noexcept : at_(message.data()), end_(at_ + message.size()) {}
  /// The next field. Groups are passed over: nothing here has any. False behind the last, and where the bytes are none.
  [[nodiscard]] bool next(Field& out) noexcept;
  [[nodiscard]] bool malformed() const noexcept { return malformed_; }
  /// The end of the last one.
  [[nodiscard]] const char* position() const noexcept { return at_; }

 private:
  bool read_varint(std::uint64_t& out) noexcept;
  bool read_field(Field& out) noexcept;
  bool pass_group(std::uint32_t number) noexcept;

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  bool malformed_ = false;
};

/// As sint64 has it: small numbers are short, also below zero.
[[nodiscard]] constexpr std::int64_t from_zigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
}
[[nodiscard]] constexpr std::uint64_t to_zigzag(std::int64_t value) noexcept {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}

inline constexpr std::size_t kVarintBytesMax = 10;
[[nodiscard]] std::size_t varint_bytes(std::uint64_t value) noexcept;
char* write_varint(char* to, std::uint64_t value) noexcept;

/// Messages within messages have their lengths in front, which are known only behind them: so these are put in when
/// all has been written.
class MessageWriter {
 public:
  /// In place of a field: no tag, and so the length comes first.
  static constexpr std::uint32_t kNoField = 0;

  /// Drops what has been written and not finished, as where there was no memory for all of it.
  void reset() noexcept;
  /// A message within begins, and ends.
  void begin(std::uint32_t field);
  void end() noexcept;
  void varint(std::uint32_t field, std::uint64_t value);
  void fixed64(std::uint32_t field, std::uint64_t bits);
  void bytes(std::uint32_t field, std::string_view content);
  /// A message within that has but one field of that type, whose value or content that is.
  void only_varint(std::uint32_t field, std::uint32_t inner, std::uint64_t value);
  void only_fixed64(std::uint32_t field, std::uint32_t inner, std::uint64_t bits);
  void only_bytes(std::uint32_t field, std::uint32_t inner, std::string_view content);
  /// Appends all that has been written to `out`.
  void finish(Buffer& out);

 private:
  struct Length {
    std::size_t at;     ///< in text_, without any length
    std::size_t bytes;  ///< the lengths within: at first how many bytes those before it have
  };
  void tag(std::uint32_t field, WireType type);
  void raw_varint(std::uint64_t value);
  void raw_fixed64(std::uint64_t bits);

  Buffer text_;
  std::vector<Length> lengths_;      // in the order of their places
  std::vector<std::size_t> opened_;  // positions in lengths_
  std::size_t length_bytes_ = 0;     // of those that are known
};

}  // namespace wirecall::protobuf_wire
