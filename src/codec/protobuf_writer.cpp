// See protobuf_writer.hpp.
#include "codec/protobuf_writer.hpp"

#include <bit>
#include <charconv>
#include <cmath>

#include "base/utf8.hpp"
#include "codec/codec_time.hpp"
#include "codec/protobuf_regular.hpp"

namespace wirecall::codec {

void ProtobufWriter::reset(Buffer& out) {
  out_ = &out;
  levels_.clear();
  writer_.reset();
  forget();
}

void ProtobufWriter::close() {
  if (levels_.empty()) return writer_.finish(*out_);
  if (levels_.back() == ProtobufKind::map) writer_.end();  // the member
}

void ProtobufWriter::number_field(ProtobufKind kind, std::uint64_t value) {
  writer_.only_varint(field(), field_of(kind), value);
  close();
}

void ProtobufWriter::text_field(ProtobufKind kind, std::string_view content) {
  writer_.only_bytes(field(), field_of(kind), content);
  close();
}

void ProtobufWriter::unsigned_integer(std::uint64_t value) {
  if (std::in_range<std::int64_t>(value)) return integer(static_cast<std::int64_t>(value));
  number_field(ProtobufKind::unsigned_integer, value);
}

void ProtobufWriter::number(double value) {
  if (!std::isfinite(value)) [[unlikely]]
    fail(kNotFinite);
  writer_.only_fixed64(field(), field_of(ProtobufKind::number), std::bit_cast<std::uint64_t>(value));
  close();
}

// The double that has the float's shortest text: 0.1F is 0.1, and not 0.10000000149011612.
void ProtobufWriter::number(float value) {
  char text[32];
  const std::to_chars_result written = std::to_chars(std::begin(text), std::end(text), value);
  double same = value;
  if (std::isfinite(value)) std::from_chars(std::begin(text), written.ptr, same);
  number(same);
}

void ProtobufWriter::number_text(std::string_view text) { json(text); }

void ProtobufWriter::check(std::string_view utf8) {
  const char* const end = utf8.data() + utf8.size();
  if (find_no_utf8(utf8.data(), end) != end) [[unlikely]]
    fail("a string is not UTF-8");
}

void ProtobufWriter::string(std::string_view utf8) {
  check(utf8);
  text_field(ProtobufKind::text, utf8);
}

void ProtobufWriter::bytes(std::span<const std::byte> data) {
  text_field(ProtobufKind::binary, {reinterpret_cast<const char*>(data.data()), data.size()});
}

void ProtobufWriter::extension(std::int8_t type, std::span<const std::byte> data) {
  const std::string_view content{reinterpret_cast<const char*>(data.data()), data.size()};
  if (const ProtobufKind kind = kind_of_extension(type); kind != ProtobufKind::none) return text_field(kind, content);
  if (type != kTimestampExtension) return Writer::extension(type, data);
  const std::string text = timestamp_text(data);
  if (text.empty()) fail(kNoTimestamp);
  text_field(ProtobufKind::text, text);
}

void ProtobufWriter::begin(ProtobufKind kind) {
  writer_.begin(field());
  writer_.begin(field_of(kind));
  levels_.push_back(kind);
}

void ProtobufWriter::key(std::string_view utf8) {
  check(utf8);
  writer_.begin(kElementField);
  writer_.bytes(kNameField, utf8);
}

void ProtobufWriter::end() {
  levels_.pop_back();
  writer_.end();
  writer_.end();
  close();
}

void ProtobufWriter::encoded(std::string_view value) {
  const char* content = value.data();
  const std::uint64_t size = protobuf_wire::take_varint(content);
  writer_.bytes(field(), {content, static_cast<std::size_t>(size)});
  close();
}

void ProtobufWriter::json(std::string_view text) {
  if (from_json_ == nullptr) from_json_ = std::make_unique<JsonToProtobuf>();
  Buffer padded{text};
  (*from_json_)(padded.padded(), field(), writer_);
  close();
}

}  // namespace wirecall::codec
