// BinaryReader: the Reader over an encoding whose values have heads, MessagePack or CBOR. It trusts what the scan has
// validated, and keeps how many values are left at each level, since no closing bracket tells. Strings and bytes are
// views into the message; only what has to be made (the text of a number, JSON text, a string that comes in chunks) is
// in an arena that lasts until the next reset.
// NaN and infinities read as doubles; they have no text. Owned by one thread.
//
// Invariant: `at_` is where the next value begins, or where the last one ended.
#pragma once

#include "codec/codec_arena.hpp"
#include "codec/transcode.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::codec {

template <class Format>
class BinaryReader final : public Reader {
 public:
  [[nodiscard]] const Codec& codec() const noexcept override;
  void reset(std::string_view value) override;
  [[nodiscard]] ValueKind kind() const override;
  bool read_null() override;
  bool read_bool(bool& out) override;
  bool read_int(std::int64_t min, std::int64_t max, std::int64_t& out) override;
  bool read_uint(std::uint64_t max, std::uint64_t& out) override;
  bool read_double(double& out) override;
  [[nodiscard]] bool next_is_float() const override;
  bool read_number_text(std::string_view& out) override;
  bool read_string(std::string_view& out) override;
  bool read_bytes(std::span<const std::byte>& out) override;
  bool read_extension(std::int8_t& type, std::span<const std::byte>& data) override;
  bool begin_array() override;
  [[nodiscard]] std::size_t elements_left() const override;
  bool next_element() override;
  bool begin_object() override;
  bool next_member(std::string_view& name) override;
  std::string_view skip() override;
  bool read_json(std::string_view& out) override;
  bool read_array_of_own_form(std::string_view value, std::int8_t type, std::span<const std::byte>& data) override;
  std::string json(std::size_t bytes_max) override;
  [[nodiscard]] const char* mark() const noexcept override { return at_; }
  void rewind(const char* mark) noexcept override;

 private:
  struct Level {
    const char* begin;    ///< of the array or map
    const char* current;  ///< where the value began that was announced last
    std::uint64_t left;   ///< behind the one that was announced last
    bool map;
  };

  [[nodiscard]] unsigned char first() const noexcept { return static_cast<unsigned char>(*at_); }
  template <class Integer>
  bool read_integer(Integer min, Integer max, Integer& out);
  template <class Integer>
  bool read_integer_slowly(Integer min, Integer max, Integer& out);
  bool read_short_string(std::string_view& out) noexcept;
  /// One that is long, or no string.
  std::string_view unusual_name();
  bool begin_short(unsigned char form, bool map);
  [[nodiscard]] std::string_view kept(std::string_view text);
  void locate(const char* mark) noexcept;

  const char* start_ = nullptr;
  const char* end_ = nullptr;
  const char* at_ = nullptr;
  std::vector<Level> levels_;
  Arena arena_;
  ToJson<Format> to_json_;
};

extern template class BinaryReader<msgpack::Format>;
extern template class BinaryReader<cbor::Format>;

}  // namespace wirecall::codec

namespace wirecall::msgpack {
using MsgpackReader = codec::BinaryReader<Format>;
}
namespace wirecall::cbor {
using CborReader = codec::BinaryReader<Format>;
}
