// ProtobufWriter: the Writer of values of docs/wirecall.proto, each behind its length, as serializers of protobuf write
// them. Lengths come before what they are of, so a list or map is written to the Buffer when it is whole. Strings that
// are not UTF-8 and numbers that are not finite fail the writer. Owned by one thread; the Buffer is the caller's.
#pragma once

#include "codec/protobuf_value.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::codec {

class ProtobufWriter final : public Writer {
 public:
  void reset(Buffer& out) override;
  void null() override { number_field(ProtobufKind::null, 0); }
  void boolean(bool value) override { number_field(ProtobufKind::boolean, value ? 1 : 0); }
  void integer(std::int64_t value) override { number_field(ProtobufKind::integer, protobuf_wire::to_zigzag(value)); }
  void unsigned_integer(std::uint64_t value) override;
  void number(double value) override;
  void number(float value) override;
  void number_text(std::string_view text) override;
  void string(std::string_view utf8) override;
  void bytes(std::span<const std::byte> data) override;
  void extension(std::int8_t type, std::span<const std::byte> data) override;
  void begin_array(std::size_t) override { begin(ProtobufKind::list); }
  void end_array() override { end(); }
  void begin_object(std::size_t) override { begin(ProtobufKind::map); }
  void key(std::string_view utf8) override;
  void end_object() override { end(); }
  void json(std::string_view text) override;
  void encoded(std::string_view value) override;

 private:
  /// The number of the next value's field.
  [[nodiscard]] std::uint32_t field() const noexcept {
    if (levels_.empty()) return protobuf_wire::MessageWriter::kNoField;
    return levels_.back() == ProtobufKind::list ? kElementField : kValueField;
  }
  /// A value has been written.
  void close();
  void number_field(ProtobufKind kind, std::uint64_t value);
  void text_field(ProtobufKind kind, std::string_view content);
  void begin(ProtobufKind kind);
  void end();
  void check(std::string_view utf8);

  Buffer* out_ = nullptr;
  protobuf_wire::MessageWriter writer_;
  std::vector<ProtobufKind> levels_;           ///< lists and maps
  std::unique_ptr<JsonToProtobuf> from_json_;  ///< made when JSON text is first written
};

}  // namespace wirecall::codec
