// See protobuf_value.hpp.
#include <bit>
#include <cmath>

#include "base/ascii.hpp"
#include "base/utf8.hpp"
#include "codec/protobuf_value.hpp"

namespace wirecall::codec {

using protobuf_wire::Field;
using protobuf_wire::FieldReader;
using protobuf_wire::tag_of;
using protobuf_wire::WireType;

namespace {

constexpr std::uint32_t kElementTag = tag_of(kElementField, WireType::length);
constexpr std::uint32_t kNameTag = tag_of(kNameField, WireType::length);
constexpr std::uint32_t kValueTag = tag_of(kValueField, WireType::length);

constexpr bool is_merged(ProtobufKind kind) noexcept { return kind == ProtobufKind::list || kind == ProtobufKind::map; }

/// A field of another number or type is unknown, as to any reader of protobuf.
constexpr ProtobufKind kind_of_tag(std::uint32_t tag) noexcept {
  const std::uint32_t number = tag >> 3;
  if (number == 0 || number > field_of(ProtobufKind::message)) return ProtobufKind::none;
  const auto kind = static_cast<ProtobufKind>(number);
  WireType type = WireType::length;
  if (kind <= ProtobufKind::unsigned_integer) type = WireType::varint;
  if (kind == ProtobufKind::number) type = WireType::fixed64;
  return tag == tag_of(number, type) ? kind : ProtobufKind::none;
}

bool is_text(std::string_view text, const char* readable_end) noexcept {
  return is_utf8(text.data(), text.size(), readable_end);
}

/// Whether JSON has such a number (RFC 8259 section 6).
bool is_number(std::string_view text) noexcept {
  const auto pass_digits = [&] {
    std::size_t count = 0;
    while (count != text.size() && is_digit(text[count])) ++count;
    text.remove_prefix(count);
    return count != 0;
  };
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.starts_with('0')) {
    text.remove_prefix(1);
  } else if (!pass_digits()) {
    return false;
  }
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!pass_digits()) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (!pass_digits()) return false;
  }
  return text.empty();
}

}  // namespace

ProtobufKind ProtobufToJson::kind_of(std::string_view value) noexcept { return find(value).kind; }

/// The last of the oneof. Lists that follow each other are one, and so are maps.
auto ProtobufToJson::find(std::string_view value) noexcept -> Found {
  Found found;
  found.end = value.data() + value.size();
  FieldReader fields{value};
  for (Field field; fields.next(field);) {
    const ProtobufKind kind = kind_of_tag(field.tag);
    if (kind == ProtobufKind::none || (kind == found.kind && is_merged(kind))) continue;
    found.kind = kind;
    found.field = field;
  }
  found.malformed = fields.malformed();
  return found;
}

std::optional<std::string_view> ProtobufToJson::join(std::string_view from, std::uint32_t number,
                                                     std::string_view first) {
  const std::uint32_t tag = tag_of(number, WireType::length);
  std::size_t count = 0;
  std::size_t bytes = 0;
  FieldReader fields{from};
  for (Field field; fields.next(field);) {
    if (field.tag != tag) continue;
    ++count;
    bytes += field.content.size();
  }
  if (count <= 1) return first;
  if (bytes > joinable_bytes_) return std::nullopt;
  joinable_bytes_ -= bytes;
  char* const begin = arena_.allocate(bytes);
  char* to = begin;
  fields = FieldReader{from};
  for (Field field; fields.next(field);) {
    if (field.tag != tag || field.content.empty()) continue;
    std::memcpy(to, field.content.data(), field.content.size());
    to += field.content.size();
  }
  return std::string_view{begin, bytes};
}

auto ProtobufToJson::operator()(std::string_view encoded, Buffer& out, const Limits& limits, Names names) -> Status {
  const std::size_t start = out.size();
  writer_.reset(out);
  levels_.clear();
  depth_max_ = limits.depth_max;
  no_form_ = false;
  Status status = value(encoded, names == Names::data);
  while (status == Status::done) {
    if (out.size() - start > limits.bytes_max) return Status::too_large;
    if (levels_.empty()) return no_form_ ? Status::no_form : Status::done;
    Level& level = levels_.back();
    Field field;
    if (!level.fields.next(field)) {
      if (level.fields.malformed()) return Status::malformed;
      if (level.closing == Closing::array) {
        writer_.end_array();
      } else {
        writer_.end_object();
        if (level.closing == Closing::wrapped_map) writer_.end_object();
      }
      levels_.pop_back();
    } else if (field.tag != kElementTag) {
      continue;
    } else if (level.closing == Closing::array) {
      status = value(field.content, true);
    } else {
      Member member;
      status = read_member(field.content, member);
      if (status != Status::done) return status;
      writer_.key(member.name);
      status = value(member.value, true);
    }
  }
  return status;
}

auto ProtobufToJson::value(std::string_view value, bool is_data) -> Status {
  const Found found = find(value);
  if (found.malformed) return Status::malformed;
  if (!is_merged(found.kind)) return scalar(found);
  if (levels_.size() == depth_max_) return Status::too_deep;
  const std::string_view from{found.field.begin, static_cast<std::size_t>(found.end - found.field.begin)};
  const std::optional<std::string_view> content = join(from, found.field.number(), found.field.content);
  if (!content) return Status::too_large;
  if (found.kind == ProtobufKind::map) return begin_map(*content, is_data);
  writer_.begin_array(0);
  levels_.push_back({FieldReader{*content}, Closing::array});
  return Status::done;
}

/// Of user data whose only name begins with `$` the object is wrapped.
auto ProtobufToJson::begin_map(std::string_view map, bool is_data) -> Status {
  Closing closing = Closing::map;
  FieldReader fields{map};
  std::size_t count = 0;
  std::string_view only;
  for (Field field; is_data && count < 2 && fields.next(field);) {
    if (field.tag != kElementTag) continue;
    ++count;
    only = field.content;
  }
  if (count == 1) {
    Member member;
    if (const Status status = read_member(only, member); status != Status::done) return status;
    if (is_user_name(member.name)) closing = Closing::wrapped_map;
  }
  if (closing == Closing::wrapped_map) {
    writer_.begin_object(1);
    writer_.key("$");
  }
  writer_.begin_object(0);
  levels_.push_back({FieldReader{map}, closing});
  return Status::done;
}

auto ProtobufToJson::read_member(std::string_view member, Member& out) -> Status {
  FieldReader fields{member};
  const char* const end = member.data() + member.size();
  Field first_value;
  for (Field field; fields.next(field);) {
    if (field.tag == kNameTag) {
      if (!is_text(field.content, end)) return Status::malformed;
      out.name = field.content;
    } else if (field.tag == kValueTag && first_value.begin == nullptr) {
      first_value = field;
    }
  }
  if (fields.malformed()) return Status::malformed;
  if (first_value.begin == nullptr) return Status::done;
  const std::string_view from{first_value.begin, static_cast<std::size_t>(end - first_value.begin)};
  const std::optional<std::string_view> value = join(from, kValueField, first_value.content);
  if (!value) return Status::too_large;
  out.value = *value;
  return Status::done;
}

auto ProtobufToJson::scalar(const Found& found) -> Status {
  const std::uint64_t value = found.field.value;
  const std::string_view content = found.field.content;
  const std::span<const std::byte> bytes = std::as_bytes(std::span{content});
  switch (found.kind) {
    case ProtobufKind::boolean: writer_.boolean(value != 0); break;
    case ProtobufKind::integer: writer_.integer(protobuf_wire::from_zigzag(value)); break;
    case ProtobufKind::unsigned_integer: writer_.unsigned_integer(value); break;
    case ProtobufKind::number:
      if (const auto real = std::bit_cast<double>(value); std::isfinite(real)) {
        write_real(writer_, real);
        break;
      }
      no_form_ = true;
      writer_.null();
      break;
    case ProtobufKind::text:
      if (!is_text(content, found.end)) return Status::malformed;
      writer_.string(content);
      break;
    case ProtobufKind::digits:
      if (!is_number(content)) return Status::malformed;
      writer_.number_text(content);
      break;
    case ProtobufKind::binary: writer_.bytes(bytes); break;
    case ProtobufKind::npy:
    case ProtobufKind::image:
    case ProtobufKind::packed:
    case ProtobufKind::message: writer_.extension(extension_of(found.kind), bytes); break;
    case ProtobufKind::none:
    case ProtobufKind::null:
    case ProtobufKind::list:
    case ProtobufKind::map: writer_.null(); break;
  }
  return Status::done;
}

std::optional<std::string_view> ProtobufToJson::find_member(std::string_view map_value, std::string_view wanted) {
  const Found found = find(map_value);
  if (found.kind != ProtobufKind::map) return std::nullopt;
  FieldReader fields{{found.field.begin, static_cast<std::size_t>(found.end - found.field.begin)}};
  for (Field map; fields.next(map);) {
    if (map.tag != found.field.tag) continue;
    FieldReader members{map.content};
    for (Field field; members.next(field);) {
      Member member;
      if (field.tag == kElementTag && read_member(field.content, member) == Status::done && member.name == wanted)
        return member.value;
    }
  }
  return std::nullopt;
}

}  // namespace wirecall::codec
