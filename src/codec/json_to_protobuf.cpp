// See protobuf_value.hpp.
#include <bit>

#include "codec/codec_number.hpp"
#include "codec/extensions.hpp"
#include "codec/protobuf_value.hpp"

namespace wirecall::codec {
namespace {

using protobuf_wire::MessageWriter;

void write_number(std::string_view text, std::uint32_t field, MessageWriter& out) {
  // -0 is an integer's text, but no integer keeps its sign.
  if (text.find_first_of(".eE") == std::string_view::npos && text != "-0") {
    std::int64_t integer = 0;
    std::uint64_t unsigned_integer = 0;
    if (parse_integer(text, integer) == Integrality::exact)
      return out.only_varint(field, field_of(ProtobufKind::integer), protobuf_wire::to_zigzag(integer));
    if (parse_integer(text, unsigned_integer) == Integrality::exact)
      return out.only_varint(field, field_of(ProtobufKind::unsigned_integer), unsigned_integer);
  } else if (double real = 0; parse_double(text, real)) {
    return out.only_fixed64(field, field_of(ProtobufKind::number), std::bit_cast<std::uint64_t>(real));
  }
  out.only_bytes(field, field_of(ProtobufKind::digits), text);
}

std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void JsonToProtobuf::operator()(std::string_view json, std::uint32_t field, MessageWriter& out, Names names) {
  counts_.read(json);
  reader_.reset(json);
  levels_.clear();
  write_value(field, out, names == Names::data);
  while (!levels_.empty()) {
    if (next(out)) {
      write_value(levels_.back().open == Open::array ? kElementField : kValueField, out, true);
    } else {
      end(out);
    }
  }
}

/// The next element or member comes, if there is one.
bool JsonToProtobuf::next(MessageWriter& out) {
  Level& level = levels_.back();
  if (level.open == Open::array) return reader_.next_element();
  if (level.at_value) {  // its name has been read
    level.at_value = false;
    return true;
  }
  std::string_view name;
  if (level.in_member) out.end();
  level.in_member = reader_.next_member(name);
  if (level.in_member) begin_member(name, out);
  return level.in_member;
}

void JsonToProtobuf::begin_member(std::string_view name, MessageWriter& out) {
  out.begin(kElementField);
  out.bytes(kNameField, name);
}

void JsonToProtobuf::end(MessageWriter& out) {
  out.end();
  out.end();
  const bool wrapped = levels_.back().wrapped;
  levels_.pop_back();
  std::string_view none;
  if (wrapped) static_cast<void>(reader_.next_member(none));
}

/// The beginning of an array or object, or else a whole value.
void JsonToProtobuf::write_value(std::uint32_t field, MessageWriter& out, bool is_data) {
  std::string_view text;
  switch (reader_.kind()) {
    case ValueKind::null: reader_.read_null(); return out.only_varint(field, field_of(ProtobufKind::null), 0);
    case ValueKind::boolean: {
      bool value = false;
      reader_.read_bool(value);
      return out.only_varint(field, field_of(ProtobufKind::boolean), value ? 1 : 0);
    }
    case ValueKind::number: reader_.read_number_text(text); return write_number(text, field, out);
    case ValueKind::string: reader_.read_string(text); return out.only_bytes(field, field_of(ProtobufKind::text), text);
    case ValueKind::array:
      reader_.begin_array();
      static_cast<void>(counts_.take());
      return begin(ProtobufKind::list, field, out, {.open = Open::array});
    default: return write_object(field, out, is_data);
  }
}

void JsonToProtobuf::begin(ProtobufKind kind, std::uint32_t field, MessageWriter& out, const Level& level) {
  out.begin(field);
  out.begin(field_of(kind));
  levels_.push_back(level);
}

void JsonToProtobuf::write_object(std::uint32_t field, MessageWriter& out, bool is_data) {
  const char* const start = reader_.mark();
  reader_.begin_object();
  if (counts_.take() != 1 || !is_data) return begin(ProtobufKind::map, field, out, {.open = Open::object});
  std::string_view name;
  reader_.next_member(name);
  if (is_user_name(name) && write_base64(name, start, field, out)) return;
  Level level{.open = Open::object, .in_member = true, .at_value = true};
  if (name == "$" && reader_.kind() == ValueKind::object && counts_.peek() == 1) level.wrapped = unwrap(name);
  begin(ProtobufKind::map, field, out, level);
  begin_member(name, out);
}

/// The value of `$` is next, an object of one member: goes on within it, at its name, if that is what `$` is for.
bool JsonToProtobuf::unwrap(std::string_view& name) {
  const char* const start = reader_.mark();
  std::string_view inner;
  reader_.begin_object();
  reader_.next_member(inner);
  if (!is_user_name(inner)) {
    reader_.rewind(start);
    return false;
  }
  static_cast<void>(counts_.take());
  name = inner;
  return true;
}

/// The name of an object's only member has been read, which begins at `start`: takes all of it if it is bytes.
bool JsonToProtobuf::write_base64(std::string_view name, const char* start, std::uint32_t field, MessageWriter& out) {
  const bool is_bytes = name == kBytes;
  if (reader_.kind() != ValueKind::string || (!is_bytes && !extension_named(name))) return false;
  const char* const value = reader_.mark();
  reader_.rewind(start);
  std::span<const std::byte> data;
  std::int8_t type = 0;
  if (is_bytes ? !reader_.read_bytes(data) : !reader_.read_extension(type, data)) {
    reader_.rewind(value);
    return false;
  }
  const ProtobufKind kind = is_bytes ? ProtobufKind::binary : kind_of_extension(type);
  out.only_bytes(field, field_of(kind), text_of(data));
  return true;
}

}  // namespace wirecall::codec
