// See protobuf_reader.hpp.
#include "codec/protobuf_reader.hpp"

#include <bit>

#include "codec/binary_head.hpp"
#include "codec/codec_number.hpp"

namespace wirecall::codec {

using protobuf_wire::end_of_regular;
using protobuf_wire::take_varint;

/// What other binary encodings say of a number by its head.
static Head head_of(const protobuf_wire::RegularValue& value) noexcept {
  Head head;
  head.value = value.number;
  switch (value.kind) {
    case ProtobufKind::integer: {
      const std::int64_t integer = protobuf_wire::from_zigzag(value.number);
      head.type = integer < 0 ? Type::negative : Type::positive;
      head.value = static_cast<std::uint64_t>(integer);
      break;
    }
    case ProtobufKind::unsigned_integer: head.type = Type::positive; break;
    case ProtobufKind::number: head.type = Type::float64; break;
    default: break;
  }
  return head;
}

void ProtobufReader::reset(std::string_view value) {
  arena_.rewind();
  levels_.clear();
  if (failed()) [[unlikely]]
    clear_failure();
  allow_rereading(value.size());
  start_ = at_ = value.data();
  end_ = start_ + value.size();
}

ValueKind ProtobufReader::kind() const {
  switch (next().kind) {
    case ProtobufKind::boolean: return ValueKind::boolean;
    case ProtobufKind::integer:
    case ProtobufKind::unsigned_integer:
    case ProtobufKind::number: return ValueKind::number;
    case ProtobufKind::text: return ValueKind::string;
    case ProtobufKind::binary: return ValueKind::bytes;
    case ProtobufKind::list: return ValueKind::array;
    case ProtobufKind::map: return ValueKind::object;
    case ProtobufKind::npy:
    case ProtobufKind::image:
    case ProtobufKind::packed:
    case ProtobufKind::message: return ValueKind::extension;
    default: return ValueKind::null;
  }
}

bool ProtobufReader::read_null() {
  const Value value = next();
  if (value.kind != ProtobufKind::none && value.kind != ProtobufKind::null) return false;
  at_ = value.end;
  return true;
}

bool ProtobufReader::read_bool(bool& out) {
  const Value value = next();
  if (value.kind != ProtobufKind::boolean) return fail("boolean");
  out = value.number != 0;
  at_ = value.end;
  return true;
}

template <class Integer>
inline bool ProtobufReader::read_integer(Integer min, Integer max, Integer& out) {
  const Value value = next();
  const std::int64_t usual = protobuf_wire::from_zigzag(value.number);
  if (value.kind == ProtobufKind::integer && std::in_range<Integer>(usual) && static_cast<Integer>(usual) >= min &&
      static_cast<Integer>(usual) <= max) [[likely]] {
    out = static_cast<Integer>(usual);
  } else if (const std::string why = integer_of(head_of(value), min, max, out); !why.empty()) {
    return fail(why);
  }
  at_ = value.end;
  return true;
}

bool ProtobufReader::read_int(std::int64_t min, std::int64_t max, std::int64_t& out) {
  return read_integer(min, max, out);
}
bool ProtobufReader::read_uint(std::uint64_t max, std::uint64_t& out) {
  return read_integer(std::uint64_t{0}, max, out);
}

bool ProtobufReader::read_double(double& out) {
  const Value value = next();
  switch (value.kind) {
    case ProtobufKind::number: out = std::bit_cast<double>(value.number); break;
    case ProtobufKind::integer: out = static_cast<double>(protobuf_wire::from_zigzag(value.number)); break;
    case ProtobufKind::unsigned_integer: out = static_cast<double>(value.number); break;
    default: return fail("number");
  }
  at_ = value.end;
  return true;
}

bool ProtobufReader::next_is_float() const { return next().kind == ProtobufKind::number; }

bool ProtobufReader::read_number_text(std::string_view& out) {
  if (kind() != ValueKind::number) return fail("number");
  return read_json(out);
}

bool ProtobufReader::read_text(ProtobufKind kind, std::string_view expected, std::string_view& out) {
  const Value value = next();
  if (value.kind != kind) return fail(expected);
  out = value.text();
  at_ = value.end;
  return true;
}

bool ProtobufReader::read_string(std::string_view& out) { return read_text(ProtobufKind::text, "string", out); }

bool ProtobufReader::read_bytes(std::span<const std::byte>& out) {
  std::string_view text;
  if (!read_text(ProtobufKind::binary, "bytes", text)) return false;
  out = std::as_bytes(std::span{text});
  return true;
}

bool ProtobufReader::read_extension(std::int8_t& type, std::span<const std::byte>& data) {
  const Value value = next();
  if (!is_extension(value.kind)) return fail("extension");
  type = extension_of(value.kind);
  data = std::as_bytes(std::span{value.text()});
  at_ = value.end;
  return true;
}

bool ProtobufReader::begin(ProtobufKind kind, std::string_view expected) {
  const Value value = next();
  if (value.kind != kind) return fail(expected);
  levels_.push_back({at_, nullptr, value.end, kind == ProtobufKind::map});
  at_ = value.content;
  return true;
}

bool ProtobufReader::read_array_of_own_form(std::string_view value, std::int8_t type,
                                            std::span<const std::byte>& data) {
  std::string_view content;
  if (type == kPackedExtension)
    content = protobuf_wire::only_content(value.data(), value.data() + value.size(), protobuf_wire::kPackedTag);
  if (content.empty()) return Reader::read_array_of_own_form(value, type, data);
  data = std::as_bytes(std::span{content});
  return took_own_form();
}

bool ProtobufReader::begin_array() { return begin(ProtobufKind::list, "array"); }
bool ProtobufReader::begin_object() { return begin(ProtobufKind::map, "object"); }

bool ProtobufReader::next_element() {
  Level& level = levels_.back();
  if (at_ == level.end) {
    levels_.pop_back();
    return false;
  }
  level.current = ++at_;  // behind the tag
  return true;
}

/// From the tag of a member to its value.
std::string_view ProtobufReader::pass_name(const char*& p) noexcept {
  ++p;
  static_cast<void>(take_varint(p));
  ++p;
  const std::uint64_t size = take_varint(p);
  const std::string_view name{p, static_cast<std::size_t>(size)};
  p += size + 1;
  return name;
}

bool ProtobufReader::next_member(std::string_view& name) {
  Level& level = levels_.back();
  if (at_ == level.end) {
    levels_.pop_back();
    return false;
  }
  name = pass_name(at_);
  level.current = at_;
  return true;
}

std::string_view ProtobufReader::skip() {
  const char* const value = at_;
  at_ = end_of_regular(at_);
  return {value, static_cast<std::size_t>(at_ - value)};
}

// What a writer has written may nest deeper than what is scanned.
ProtobufToJson::Status ProtobufReader::to_json(std::size_t bytes_max, Buffer& out) {
  const char* content = at_;
  const std::uint64_t size = take_varint(content);
  to_json_.begin_message(0);  // nothing is joined
  return to_json_({content, static_cast<std::size_t>(size)}, out, {.depth_max = kDepthMax, .bytes_max = bytes_max});
}

bool ProtobufReader::read_json(std::string_view& out) {
  Buffer text;
  if (to_json(kNoSizeMax, text) != ProtobufToJson::Status::done) return fail("value that JSON can express");
  char* const to = arena_.allocate(text.size());
  std::memcpy(to, text.data(), text.size());
  out = {to, text.size()};
  at_ = end_of_regular(at_);
  return true;
}

std::string ProtobufReader::json(std::size_t bytes_max) {
  if (at_ == end_) return "nothing";  // somebody fails after the last value
  Buffer text;
  static_cast<void>(to_json(bytes_max, text));
  return std::string{text.view().substr(0, bytes_max)};
}

// Nearly always back to where the innermost value began that has not ended.
void ProtobufReader::rewind(const char* mark) noexcept {
  while (!levels_.empty() && levels_.back().begin >= mark) levels_.pop_back();
  if (levels_.empty() ? mark != start_ : levels_.back().current != mark) return locate(mark);
  at_ = mark;
}

// Any other value from the first on. The levels it is in were open when the mark was taken, so no memory is asked for.
void ProtobufReader::locate(const char* mark) noexcept {
  levels_.clear();
  at_ = mark;
  for (const char* p = start_; p != mark && mark != end_;) {
    const Value value = protobuf_wire::regular_at(p);
    Level level{p, nullptr, value.end, value.kind == ProtobufKind::map};
    for (p = value.content; p != level.end; p = end_of_regular(p)) {
      if (level.map) {
        static_cast<void>(pass_name(p));
      } else {
        ++p;
      }
      level.current = p;
      if (end_of_regular(p) > mark) break;
    }
    levels_.push_back(level);
  }
}

}  // namespace wirecall::codec
