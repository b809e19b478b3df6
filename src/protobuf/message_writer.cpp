// Writes messages as proto3 JSON, by reflection straight to a codec's Writer (docs/architecture.md says why not by
// json_util).
#include <charconv>
#include <cmath>
#include <memory>

#include "codec/base64.hpp"
#include "codec/codec_time.hpp"
#include "protobuf/message_forms.hpp"
#include "wirecall/protobuf/message_json.hpp"

namespace wirecall::protobuf {
namespace {

/// A field's value, or one element of a repeated field.
struct Place {
  const Message& message;
  const Reflection& reflection;
  const FieldDescriptor& field;
  int index = -1;  ///< -1 for a field that is not repeated
};

template <class T, T (Reflection::*Single)(const Message&, const FieldDescriptor*) const,
          T (Reflection::*Element)(const Message&, const FieldDescriptor*, int) const>
T get(const Place& at) {
  return at.index < 0 ? (at.reflection.*Single)(at.message, &at.field)
                      : (at.reflection.*Element)(at.message, &at.field, at.index);
}

std::int64_t get_int64(const Place& at) {
  return get<std::int64_t, &Reflection::GetInt64, &Reflection::GetRepeatedInt64>(at);
}
std::int32_t get_int32(const Place& at) {
  return get<std::int32_t, &Reflection::GetInt32, &Reflection::GetRepeatedInt32>(at);
}
const std::string& get_string(const Place& at, std::string& scratch) {
  return at.index < 0 ? at.reflection.GetStringReference(at.message, &at.field, &scratch)
                      : at.reflection.GetRepeatedStringReference(at.message, &at.field, at.index, &scratch);
}
const Message& get_message(const Place& at) {
  return at.index < 0 ? at.reflection.GetMessage(at.message, &at.field)
                      : at.reflection.GetRepeatedMessage(at.message, &at.field, at.index);
}

class MessageWriter {
 public:
  explicit MessageWriter(Writer& writer) noexcept : out_(writer) {}

  void message(const Message& message, int depth) {
    if (depth > kDepthMax) {
      out_.fail("a protobuf message nests deeper than 100 levels");
      return out_.null();
    }
    if (const Descriptor& type = *message.GetDescriptor(); has_form_of_its_own(type)) [[unlikely]]
      return well_known(message, type, depth);
    out_.begin_object(Writer::kUnknownSize);
    members(message, depth);
    out_.end_object();
  }

 private:
  void members(const Message& message, int depth) {
    const Descriptor& type = *message.GetDescriptor();
    const Reflection& reflection = *message.GetReflection();
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      if (field.is_repeated()) {
        const int size = reflection.FieldSize(message, &field);
        if (size == 0) continue;
        out_.key(field.json_name());
        field.is_map() ? map(message, field, size, depth) : list(message, field, size, depth);
      } else if (reflection.HasField(message, &field)) {
        out_.key(field.json_name());
        value({message, reflection, field}, depth);
      }
    }
  }

  void list(const Message& message, const FieldDescriptor& field, int size, int depth) {
    out_.begin_array(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) value({message, *message.GetReflection(), field, i}, depth);
    out_.end_array();
  }

  void map(const Message& message, const FieldDescriptor& field, int size, int depth) {
    const FieldDescriptor& key = *field.message_type()->map_key();
    const FieldDescriptor& held = *field.message_type()->map_value();
    out_.begin_object(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) {
      const Message& entry = message.GetReflection()->GetRepeatedMessage(message, &field, i);
      const Reflection& reflection = *entry.GetReflection();
      out_.key(key_text({entry, reflection, key}));
      value({entry, reflection, held}, depth + 1);
    }
    out_.end_object();
  }

  static std::string key_text(const Place& at) {
    std::string scratch;
    switch (at.field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: return std::to_string(get_int32(at));
      case FieldDescriptor::CPPTYPE_INT64: return std::to_string(get_int64(at));
      case FieldDescriptor::CPPTYPE_UINT32:
        return std::to_string(get<std::uint32_t, &Reflection::GetUInt32, &Reflection::GetRepeatedUInt32>(at));
      case FieldDescriptor::CPPTYPE_UINT64:
        return std::to_string(get<std::uint64_t, &Reflection::GetUInt64, &Reflection::GetRepeatedUInt64>(at));
      case FieldDescriptor::CPPTYPE_BOOL:
        return get<bool, &Reflection::GetBool, &Reflection::GetRepeatedBool>(at) ? "true" : "false";
      default: return get_string(at, scratch);
    }
  }

  void value(const Place& at, int depth) {
    switch (at.field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: return out_.integer(get_int32(at));
      case FieldDescriptor::CPPTYPE_UINT32:
        return out_.unsigned_integer(get<std::uint32_t, &Reflection::GetUInt32, &Reflection::GetRepeatedUInt32>(at));
      case FieldDescriptor::CPPTYPE_INT64: return integer_text(get_int64(at));
      case FieldDescriptor::CPPTYPE_UINT64:
        return integer_text(get<std::uint64_t, &Reflection::GetUInt64, &Reflection::GetRepeatedUInt64>(at));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return number(get<double, &Reflection::GetDouble, &Reflection::GetRepeatedDouble>(at));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return number(get<float, &Reflection::GetFloat, &Reflection::GetRepeatedFloat>(at));
      case FieldDescriptor::CPPTYPE_BOOL:
        return out_.boolean(get<bool, &Reflection::GetBool, &Reflection::GetRepeatedBool>(at));
      case FieldDescriptor::CPPTYPE_ENUM: return enumerator(at);
      case FieldDescriptor::CPPTYPE_STRING: return text(at);
      case FieldDescriptor::CPPTYPE_MESSAGE: return message(get_message(at), depth + 1);
    }
  }

  template <class T>
  void integer_text(T value) {
    char digits[24];
    out_.string({digits, std::to_chars(digits, digits + sizeof digits, value).ptr});
  }
  template <class T>
  void number(T value) {
    if (std::isfinite(value)) [[likely]]
      return out_.number(value);
    out_.string(std::isnan(value) ? kNotANumber : value > 0 ? kInfinity : kMinusInfinity);
  }
  void enumerator(const Place& at) {
    if (is_null_value(at.field)) return out_.null();
    const int number = get<int, &Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue>(at);
    const auto* const known = at.field.enum_type()->FindValueByNumber(number);
    known != nullptr ? out_.string(known->name()) : out_.integer(number);
  }
  void text(const Place& at) {
    std::string scratch;
    const std::string& text = get_string(at, scratch);
    if (at.field.type() != FieldDescriptor::TYPE_BYTES) return out_.string(text);
    std::string base64(codec::base64_size(text.size()), '\0');
    codec::base64_encode(std::as_bytes(std::span{text}), base64.data());
    out_.string(base64);
  }

  // ---- well-known types ----

  void well_known(const Message& message, const Descriptor& type, int depth) {
    const Reflection& reflection = *message.GetReflection();
    const auto at = [&](int number) { return Place{message, reflection, *type.FindFieldByNumber(number)}; };
    switch (type.well_known_type()) {
      case Descriptor::WELLKNOWNTYPE_TIMESTAMP: return timestamp(get_int64(at(1)), get_int32(at(2)));
      case Descriptor::WELLKNOWNTYPE_DURATION: return duration(get_int64(at(1)), get_int32(at(2)));
      case Descriptor::WELLKNOWNTYPE_FIELDMASK: return field_mask(at(1));
      case Descriptor::WELLKNOWNTYPE_ANY: return any(at(1), at(2), depth);
      case Descriptor::WELLKNOWNTYPE_STRUCT: {
        const FieldDescriptor& fields = *type.FindFieldByNumber(1);
        return map(message, fields, reflection.FieldSize(message, &fields), depth);
      }
      case Descriptor::WELLKNOWNTYPE_LISTVALUE: {
        const FieldDescriptor& values = *type.FindFieldByNumber(1);
        return list(message, values, reflection.FieldSize(message, &values), depth);
      }
      case Descriptor::WELLKNOWNTYPE_VALUE: {
        const FieldDescriptor* const set = reflection.GetOneofFieldDescriptor(message, type.oneof_decl(0));
        if (set == nullptr) {
          out_.fail("a google.protobuf.Value holds no value");
          return out_.null();
        }
        if (set->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE && !std::isfinite(reflection.GetDouble(message, set)))
          out_.fail("a google.protobuf.Value holds a number that JSON cannot");
        return value({message, reflection, *set}, depth);
      }
      default: return value(at(1), depth);  // a wrapper
    }
  }

  void timestamp(std::int64_t seconds, std::int32_t nanos) {
    if (seconds < kTimestampMin || seconds > kTimestampMax || nanos < 0 || nanos > kNanosMax) {
      out_.fail("a google.protobuf.Timestamp lies outside the years 1 to 9999");
      return out_.null();
    }
    out_.string(codec::format_time({seconds, nanos}));
  }
  void duration(std::int64_t seconds, std::int32_t nanos) {
    const bool one_sign = (seconds <= 0 || nanos >= 0) && (seconds >= 0 || nanos <= 0);
    if (!one_sign || seconds > kDurationMax || seconds < -kDurationMax || nanos > kNanosMax || nanos < -kNanosMax) {
      out_.fail("a google.protobuf.Duration lies outside of 10,000 years, or has two signs");
      return out_.null();
    }
    out_.string(format_duration(seconds, nanos));
  }
  void field_mask(const Place& paths) {
    std::string text;
    const int size = paths.reflection.FieldSize(paths.message, &paths.field);
    for (int i = 0; i < size; ++i) {
      const std::optional<std::string> path =
          camel_path(paths.reflection.GetRepeatedString(paths.message, &paths.field, i));
      if (!path) out_.fail("a google.protobuf.FieldMask holds a path that is not in snake_case");
      if (i != 0) text += ',';
      if (path) text += *path;
    }
    out_.string(text);
  }
  void any(const Place& url_at, const Place& bytes_at, int depth) {
    std::string scratch;
    const std::string url = get_string(url_at, scratch);
    out_.begin_object(Writer::kUnknownSize);
    if (const std::string& bytes = get_string(bytes_at, scratch); !url.empty() || !bytes.empty()) {
      out_.key(kAnyType);
      out_.string(url);
      packed(url, bytes, depth + 1);
    }
    out_.end_object();
  }
  void packed(std::string_view url, const std::string& bytes, int depth) {
    const Message* const prototype = find_prototype(url);
    if (prototype == nullptr)
      return out_.fail("a google.protobuf.Any holds a type that is neither linked nor registered");
    if (depth > kDepthMax) return out_.fail("a protobuf message nests deeper than 100 levels");
    const std::unique_ptr<Message> held{prototype->New()};
    if (!held->ParsePartialFromString(bytes))
      return out_.fail("a google.protobuf.Any holds no message of its type, or one that nests deeper than 100 levels");
    if (!has_form_of_its_own(*held->GetDescriptor())) return members(*held, depth);
    out_.key(kAnyValue);
    message(*held, depth);
  }

  Writer& out_;
};

}  // namespace

void write_bytes(Writer& writer, const Message& message) {
  std::string bytes;
  if (!message.SerializePartialToString(&bytes)) writer.fail("a protobuf message is larger than its bytes may be");
  writer.extension(kMessageExtension, std::as_bytes(std::span{bytes}));
}

void write(Writer& writer, const Message& message) {
  if (writer.uses_own_form()) return write_bytes(writer, message);
  MessageWriter{writer}.message(message, 1);
}

}  // namespace wirecall::protobuf
