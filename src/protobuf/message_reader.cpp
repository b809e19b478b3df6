// Reads messages from proto3 JSON, by reflection straight from a codec's Reader.
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <vector>

#include "base/edit_distance.hpp"
#include "protobuf/message_forms.hpp"
#include "wirecall/detail/decode.hpp"
#include "wirecall/protobuf/message_json.hpp"

namespace wirecall::protobuf {
namespace {

/// Which of a message's fields have been given: one bit each.
class Given {
 public:
  explicit Given(int fields) {
    if (fields > 64) more_.resize(static_cast<std::size_t>(fields));
  }
  /// False when it was given before.
  bool add(int index) {
    if (!more_.empty()) {
      auto given = more_[static_cast<std::size_t>(index)];
      return given ? false : (given = true);
    }
    const std::uint64_t bit = std::uint64_t{1} << index;
    return (std::exchange(few_, few_ | bit) & bit) == 0;
  }

 private:
  std::uint64_t few_ = 0;
  std::vector<bool> more_;
};

/// Where a value goes: a field, or the end of a repeated field.
struct Target {
  Message& message;
  const Reflection& reflection;
  const FieldDescriptor& field;
};

// Sets a field, or adds to it.
#define WIRECALL_PUT(Name, T)                                                        \
  void put(const Target& to, T value) {                                              \
    to.field.is_repeated() ? to.reflection.Add##Name(&to.message, &to.field, value)  \
                           : to.reflection.Set##Name(&to.message, &to.field, value); \
  }
WIRECALL_PUT(Int32, std::int32_t)
WIRECALL_PUT(UInt32, std::uint32_t)
WIRECALL_PUT(Int64, std::int64_t)
WIRECALL_PUT(UInt64, std::uint64_t)
WIRECALL_PUT(Double, double)
WIRECALL_PUT(Float, float)
WIRECALL_PUT(Bool, bool)
#undef WIRECALL_PUT

void put_string(const Target& to, std::string value) {
  to.field.is_repeated() ? to.reflection.AddString(&to.message, &to.field, std::move(value))
                         : to.reflection.SetString(&to.message, &to.field, std::move(value));
}
void put_enum(const Target& to, int value) {
  to.field.is_repeated() ? to.reflection.AddEnumValue(&to.message, &to.field, value)
                         : to.reflection.SetEnumValue(&to.message, &to.field, value);
}
Message& put_message(const Target& to) {
  return to.field.is_repeated() ? *to.reflection.AddMessage(&to.message, &to.field)
                                : *to.reflection.MutableMessage(&to.message, &to.field);
}

// A number as the text of a JSON number; no white space, no sign before.
bool parse_double(std::string_view text, double& out) {
  if (text.empty() || (text[0] != '-' && (text[0] < '0' || text[0] > '9')) || text.starts_with("-i") ||
      text.starts_with("-n"))
    return false;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  return parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size() && std::isfinite(out);
}

template <class T>
bool parse_integer(std::string_view text, T& out) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  if (parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size()) return true;
  // 1.0 and 1e3, which no double beyond 2^53 is sure to be.
  double number = 0;
  if (!parse_double(text, number) || number != std::trunc(number) || std::abs(number) > 9'007'199'254'740'992.0)
    return false;
  const auto whole = static_cast<std::int64_t>(number);
  if (!std::in_range<T>(whole)) return false;
  out = static_cast<T>(whole);
  return true;
}

std::string_view integer_words(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_INT32 || field.cpp_type() == FieldDescriptor::CPPTYPE_INT64
             ? "integer"
             : "unsigned integer";
}

class MessageReader {
 public:
  explicit MessageReader(Reader& reader) noexcept : in_(reader) {}

  bool message(Message& out, int depth) {
    if (depth > kDepthMax) return in_.fail("no more than 100 levels of messages");
    const Descriptor& type = *out.GetDescriptor();
    if (has_form_of_its_own(type)) [[unlikely]]
      return well_known(out, type, depth);
    if (!begin(type)) return false;
    return members(out, depth, false);
  }

  /// The members of an object that has begun, to its end. `with_type`: in an Any, whose "@type" stands among them.
  bool members(Message& out, int depth, bool with_type) {
    const Descriptor& type = *out.GetDescriptor();
    const Reflection& reflection = *out.GetReflection();
    Given given{type.field_count()};
    int expected = 0;
    std::string_view name;
    while (in_.next_member(name)) {
      const FieldDescriptor* const field = find(type, name, expected);
      if (field == nullptr) {
        if (name != kAnyType || !std::exchange(with_type, false)) return refuse_name(type, name);
        static_cast<void>(in_.skip());
        continue;
      }
      expected = field->index() + 1;
      if (!given.add(field->index())) {
        in_.fail("one value");
        return in_.failed_at(name);
      }
      if (!member({out, reflection, *field}, depth)) [[unlikely]]
        return in_.failed_at(name);
    }
    if (!out.IsInitialized()) return refuse_incomplete(out);
    return true;
  }

 private:
  bool begin(const Descriptor& type) {
    if (in_.kind() != ValueKind::object) return in_.fail(type.full_name() + " object");
    return in_.begin_object();
  }

  static bool is_named(const FieldDescriptor& field, std::string_view name) {
    return field.json_name() == name || field.name() == name;
  }
  // Writers mostly keep the order, so `expected` is tried first. No name is looked for twice, so this is bounded by the
  // square of the fields of a type.
  static const FieldDescriptor* find(const Descriptor& type, std::string_view name, int expected) {
    const int count = type.field_count();
    if (expected < count && is_named(*type.field(expected), name)) [[likely]]
      return type.field(expected);
    for (int i = 0; i < count; ++i) {
      if (is_named(*type.field(i), name)) return type.field(i);
    }
    return nullptr;
  }

  bool refuse_name(const Descriptor& type, std::string_view name) {
    const std::string unknown{name};
    NearestName nearest{unknown};
    for (int i = 0; i < type.field_count(); ++i) {
      if (nearest.may_be_near(Spelling{type.field(i)->json_name()})) nearest.consider(type.field(i)->json_name());
    }
    in_.fail("nothing");
    DecodeFailure failure = in_.take_failure();
    failure.meant = nearest.found();
    in_.fail(std::move(failure));
    return in_.failed_at(unknown);
  }
  // Only proto2 has required fields.
  bool refuse_incomplete(const Message& message) {
    std::vector<std::string> missing;
    message.FindInitializationErrors(&missing);
    return in_.fail_missing(missing.empty() ? "all required fields" : missing.front());
  }

  bool member(const Target& to, int depth) {
    if (in_.kind() == ValueKind::null && !is_value(to.field) && !is_null_value(to.field)) return in_.read_null();
    if (const auto* const oneof = to.field.real_containing_oneof();
        oneof != nullptr && to.reflection.HasOneof(to.message, oneof)) [[unlikely]]
      return in_.fail("one member of " + oneof->name());
    if (!to.field.is_repeated()) return value(to, depth);
    return to.field.is_map() ? map(to, depth) : list(to, depth);
  }

  bool list(const Target& to, int depth) {
    if (in_.kind() != ValueKind::array) return in_.fail("array");
    static_cast<void>(in_.begin_array());
    for (std::size_t position = 0; in_.next_element(); ++position) {
      if (!value(to, depth)) return in_.failed_at(position);
    }
    return true;
  }

  bool map(const Target& to, int depth) {
    if (in_.kind() != ValueKind::object) return in_.fail("object");
    static_cast<void>(in_.begin_object());
    const FieldDescriptor& key_field = *to.field.message_type()->map_key();
    const FieldDescriptor& value_field = *to.field.message_type()->map_value();
    std::set<std::string_view> names;  // which last until the reader's reset
    std::string_view name;
    while (in_.next_member(name)) {
      if (!names.insert(name).second) {
        in_.fail("one value");
        return in_.failed_at(name);
      }
      Message& entry = *to.reflection.AddMessage(&to.message, &to.field);
      const Reflection& reflection = *entry.GetReflection();
      if (!key({entry, reflection, key_field}, name) || !value({entry, reflection, value_field}, depth + 1))
        return in_.failed_at(name);
    }
    return true;
  }

  template <class T>
  bool integer_key(const Target& to, std::string_view name) {
    T number{};
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size())
      return in_.fail(std::string{integer_words(to.field)} + " as name");
    put(to, number);
    return true;
  }
  bool key(const Target& to, std::string_view name) {
    switch (to.field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: return integer_key<std::int32_t>(to, name);
      case FieldDescriptor::CPPTYPE_INT64: return integer_key<std::int64_t>(to, name);
      case FieldDescriptor::CPPTYPE_UINT32: return integer_key<std::uint32_t>(to, name);
      case FieldDescriptor::CPPTYPE_UINT64: return integer_key<std::uint64_t>(to, name);
      case FieldDescriptor::CPPTYPE_BOOL:
        if (name != "true" && name != "false") return in_.fail("true or false as name");
        put(to, name == "true");
        return true;
      default: put_string(to, std::string{name}); return true;
    }
  }

  bool value(const Target& to, int depth) {
    switch (to.field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: return signed_integer<std::int32_t>(to);
      case FieldDescriptor::CPPTYPE_INT64: return signed_integer<std::int64_t>(to);
      case FieldDescriptor::CPPTYPE_UINT32: return unsigned_integer<std::uint32_t>(to);
      case FieldDescriptor::CPPTYPE_UINT64: return unsigned_integer<std::uint64_t>(to);
      case FieldDescriptor::CPPTYPE_DOUBLE: return number<double>(to);
      case FieldDescriptor::CPPTYPE_FLOAT: return number<float>(to);
      case FieldDescriptor::CPPTYPE_BOOL: {
        bool value = false;
        if (!in_.read_bool(value)) return false;
        put(to, value);
        return true;
      }
      case FieldDescriptor::CPPTYPE_ENUM: return enumerator(to);
      case FieldDescriptor::CPPTYPE_STRING: return text(to);
      case FieldDescriptor::CPPTYPE_MESSAGE: return message(put_message(to), depth + 1);
    }
    return false;
  }

  // The next value as a string, whose text becomes a T; a text that does not is not what was expected.
  template <class T>
  bool from_string(const Target& to, bool (*parse)(std::string_view, T&), std::string_view expected) {
    const char* const at = in_.mark();
    std::string_view text;
    T value{};
    if (!in_.read_string(text)) return false;
    if (!parse(text, value)) return refuse(at, expected);
    put(to, value);
    return true;
  }
  bool refuse(const char* at, std::string_view expected) {
    in_.rewind(at);
    return in_.fail(expected);
  }

  template <class T>
  bool signed_integer(const Target& to) {
    if (in_.kind() == ValueKind::string) return from_string<T>(to, &parse_integer<T>, "integer");
    std::int64_t value = 0;
    if (!in_.read_int(std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), value)) return false;
    put(to, static_cast<T>(value));
    return true;
  }
  template <class T>
  bool unsigned_integer(const Target& to) {
    if (in_.kind() == ValueKind::string) return from_string<T>(to, &parse_integer<T>, "unsigned integer");
    std::uint64_t value = 0;
    if (!in_.read_uint(std::numeric_limits<T>::max(), value)) return false;
    put(to, static_cast<T>(value));
    return true;
  }

  static bool parse_number(std::string_view text, double& out) {
    if (text == kInfinity) return out = std::numeric_limits<double>::infinity(), true;
    if (text == kMinusInfinity) return out = -std::numeric_limits<double>::infinity(), true;
    if (text == kNotANumber) return out = std::numeric_limits<double>::quiet_NaN(), true;
    return parse_double(text, out);
  }
  template <class T>
  bool number(const Target& to) {
    const char* const at = in_.mark();
    double value = 0;
    if (in_.kind() == ValueKind::string) {
      std::string_view text;
      if (!in_.read_string(text)) return false;
      if (!parse_number(text, value)) return refuse(at, "number");
    } else if (!in_.read_double(value)) {
      return false;
    }
    const T narrow = static_cast<T>(value);
    if (std::isinf(narrow) && !std::isinf(value)) return refuse(at, "number that a float holds");
    put(to, narrow);
    return true;
  }

  bool enumerator(const Target& to) {
    if (is_null_value(to.field) && in_.read_null()) return put_enum(to, 0), true;
    if (in_.kind() == ValueKind::number) {
      std::int64_t number = 0;
      if (!in_.read_int(std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(), number))
        return false;
      // A proto2 enum takes no other number.
      put_enum(to, static_cast<int>(number));
      return true;
    }
    const char* const at = in_.mark();
    std::string_view name;
    if (!in_.read_string(name)) return in_.fail(to.field.enum_type()->full_name());
    const auto* const known = to.field.enum_type()->FindValueByName(std::string{name});
    if (known == nullptr) return refuse(at, to.field.enum_type()->full_name());
    put_enum(to, known->number());
    return true;
  }

  bool text(const Target& to) {
    if (to.field.type() != FieldDescriptor::TYPE_BYTES) {
      std::string_view text;
      if (!in_.read_string(text)) return false;
      put_string(to, std::string{text});
      return true;
    }
    // As any other method takes them, too.
    if (in_.kind() == ValueKind::bytes || in_.kind() == ValueKind::object) {
      std::span<const std::byte> bytes;
      if (!in_.read_bytes(bytes)) return in_.fail("base64");
      put_string(to, std::string{reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      return true;
    }
    const char* const at = in_.mark();
    std::string_view base64;
    std::string bytes;
    if (!in_.read_string(base64)) return in_.fail("base64");
    if (!parse_base64(base64, bytes)) return refuse(at, "base64");
    put_string(to, std::move(bytes));
    return true;
  }

  // ---- well-known types ----

  bool well_known(Message& out, const Descriptor& type, int depth) {
    const Reflection& reflection = *out.GetReflection();
    const auto at = [&](int number) { return Target{out, reflection, *type.FindFieldByNumber(number)}; };
    switch (type.well_known_type()) {
      case Descriptor::WELLKNOWNTYPE_TIMESTAMP: {
        const char* const mark = in_.mark();
        std::int64_t seconds = 0;
        std::int32_t nanos = 0;
        if (!wirecall::detail::decode_time(in_, seconds, nanos)) return false;
        if (seconds < kTimestampMin || seconds > kTimestampMax) return refuse(mark, "a time of the years 1 to 9999");
        put(at(1), seconds);
        put(at(2), nanos);
        return true;
      }
      case Descriptor::WELLKNOWNTYPE_DURATION: {
        const char* const mark = in_.mark();
        std::string_view text;
        std::int64_t seconds = 0;
        std::int32_t nanos = 0;
        if (!in_.read_string(text) || !parse_duration(text, seconds, nanos))
          return refuse(mark, R"(duration as "1.5s")");
        put(at(1), seconds);
        put(at(2), nanos);
        return true;
      }
      case Descriptor::WELLKNOWNTYPE_FIELDMASK: return field_mask(at(1));
      case Descriptor::WELLKNOWNTYPE_ANY: return any(at(1), at(2), depth);
      case Descriptor::WELLKNOWNTYPE_STRUCT: return map(at(1), depth);
      case Descriptor::WELLKNOWNTYPE_LISTVALUE: return list(at(1), depth);
      case Descriptor::WELLKNOWNTYPE_VALUE: return any_value(type, out, reflection, depth);
      default: return value(at(1), depth);  // a wrapper
    }
  }

  bool any_value(const Descriptor& type, Message& out, const Reflection& reflection, int depth) {
    const auto at = [&](int number) { return Target{out, reflection, *type.FindFieldByNumber(number)}; };
    switch (in_.kind()) {
      case ValueKind::null: return enumerator(at(1));
      case ValueKind::number: return number<double>(at(2));
      case ValueKind::string: return text(at(3));
      case ValueKind::boolean: return value(at(4), depth);
      case ValueKind::object: return value(at(5), depth);
      case ValueKind::array: return value(at(6), depth);
      case ValueKind::bytes:
      case ValueKind::extension: break;
    }
    return in_.fail("a value of JSON");
  }

  bool field_mask(const Target& to) {
    const char* const at = in_.mark();
    std::string_view text;
    if (!in_.read_string(text)) return false;
    for (bool more = !text.empty(); more;) {
      const std::size_t comma = text.find(',');
      const std::optional<std::string> path = snake_path(text.substr(0, comma));
      if (!path) return refuse(at, "paths in lowerCamelCase");
      put_string(to, *path);
      more = comma != std::string_view::npos;
      if (more) text.remove_prefix(comma + 1);
    }
    return true;
  }

  bool any(const Target& url_to, const Target& bytes_to, int depth) {
    const char* const start = in_.mark();
    if (in_.kind() != ValueKind::object) return in_.fail("google.protobuf.Any object");
    static_cast<void>(in_.begin_object());
    std::string_view name;
    if (!in_.next_member(name)) return true;  // an empty one
    if (name != kAnyType && !go_to_type(start)) return false;
    const char* const at = in_.mark();
    std::string_view url;
    if (!in_.read_string(url)) return in_.failed_at(kAnyType);
    const Message* const prototype = find_prototype(url);
    if (prototype == nullptr) {
      refuse(at, "a type that is linked or registered");
      return in_.failed_at(kAnyType);
    }
    const std::unique_ptr<Message> held{prototype->New()};
    const bool type_is_first = name == kAnyType;
    if (!type_is_first) {
      in_.rewind(start);
      static_cast<void>(in_.begin_object());
    }
    if (!packed(*held, depth + 1, !type_is_first)) return false;
    put_string(url_to, std::string{url});
    put_string(bytes_to, held->SerializePartialAsString());
    return true;
  }

  // Writers put "@type" first. Where it is not, the object is read twice, of which there must not be much: Any in Any
  // would be read as often as it is deep.
  bool go_to_type(const char* start) {
    in_.rewind(start);
    const std::size_t bytes = in_.skip().size();
    in_.rewind(start);
    if (!in_.may_reread(bytes)) return in_.fail(R"(an object that begins with "@type")");
    static_cast<void>(in_.begin_object());
    std::string_view name;
    while (in_.next_member(name)) {
      if (name == kAnyType) return true;
      static_cast<void>(in_.skip());
    }
    in_.fail_missing("string");
    return in_.failed_at(kAnyType);
  }

  // What is left of the object that an Any is; `with_type`: "@type" is still to come.
  bool packed(Message& held, int depth, bool with_type) {
    if (depth > kDepthMax) return in_.fail_missing("no more than 100 levels of messages");
    if (!has_form_of_its_own(*held.GetDescriptor())) return members(held, depth, with_type);
    bool has_value = false;
    std::string_view name;
    while (in_.next_member(name)) {
      if (name == kAnyType && with_type) {
        with_type = false;
        static_cast<void>(in_.skip());
      } else if (name == kAnyValue && !has_value) {
        has_value = true;
        if (!message(held, depth)) return in_.failed_at(kAnyValue);
      } else {
        in_.fail("nothing");
        return in_.failed_at(name);
      }
    }
    if (has_value) return true;
    in_.fail_missing("a value");
    return in_.failed_at(kAnyValue);
  }

  Reader& in_;
};

}  // namespace

// Its required fields, if it has any, are looked at as they are where it is proto3 JSON.
static bool parse(Reader& reader, const char* start, std::span<const std::byte> bytes, Message& out) {
  constexpr std::size_t kBytesMax = std::numeric_limits<int>::max();
  if (bytes.size() <= kBytesMax && out.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) &&
      out.IsInitialized())
    return true;
  out.Clear();
  reader.rewind(start);
  return reader.fail("the bytes of a " + out.GetDescriptor()->full_name());
}

bool read(Reader& reader, Message& out) {
  out.Clear();
  const char* const start = reader.mark();
  if (std::span<const std::byte> bytes; reader.read_own_form(kMessageExtension, bytes))
    return parse(reader, start, bytes, out);
  return MessageReader{reader}.message(out, 1);
}

}  // namespace wirecall::protobuf
