// ProtobufReader: the Reader over values of docs/wirecall.proto as protobuf_regular.hpp has them, which it trusts.
// Strings and bytes are views into the message; only what has to be made (JSON text) is in an arena that lasts until
// the next reset. Owned by one thread.
//
// Invariant: `at_` is where the next value begins, or where the last one ended.
#pragma once

#include "codec/codec_arena.hpp"
#include "codec/protobuf_regular.hpp"

namespace wirecall::codec {

class ProtobufReader final : public Reader {
 public:
  [[nodiscard]] const Codec& codec() const noexcept override { return protobuf_codec(); }
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
  using Value = protobuf_wire::RegularValue;
  struct Level {
    const char* begin;    ///< of the list or map
    const char* current;  ///< where the value began that was announced last
    const char* end;
    bool map;
  };

  [[nodiscard]] Value next() const noexcept { return protobuf_wire::regular_at(at_); }
  template <class Integer>
  bool read_integer(Integer min, Integer max, Integer& out);
  bool read_text(ProtobufKind kind, std::string_view expected, std::string_view& out);
  bool begin(ProtobufKind kind, std::string_view expected);
  static std::string_view pass_name(const char*& p) noexcept;
  ProtobufToJson::Status to_json(std::size_t bytes_max, Buffer& out);
  void locate(const char* mark) noexcept;

  const char* start_ = nullptr;
  const char* end_ = nullptr;
  const char* at_ = nullptr;
  std::vector<Level> levels_;
  Arena arena_;
  ProtobufToJson to_json_;
};

}  // namespace wirecall::codec
