// rapidjson::Document as parameter, result and member, and rapidjson::Value as result and argument, with no text in
// between. Include it beside the umbrella header; it needs RapidJSON's own headers, and nothing is linked. Of strings
// in UTF-8.
//
// A Value alone cannot be decoded, since it has no allocator. Integers keep all 64 bits, with a sign or without; other
// numbers are doubles, and one that no double holds is refused. A name that stands twice in an object is kept twice, as
// RapidJSON's parser does; its FindMember finds the first. Binary data of MessagePack is {"$bytes":"<base64>"}, which
// is written as binary data there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <rapidjson/document.h>
#include <string>
#include <string_view>
#include <type_traits>

#include "wirecall/adapt/common.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/schema.hpp"

namespace wirecall {

template <class Allocator>
struct Adapt<rapidjson::GenericValue<rapidjson::UTF8<char>, Allocator>> {
  using Value = rapidjson::GenericValue<rapidjson::UTF8<char>, Allocator>;

  static void encode(Writer& writer, const Value& value) { encode_below(writer, value, 0); }

  static std::string schema() { return "{}"; }

 private:
  static std::string_view text_of(const Value& value) { return {value.GetString(), value.GetStringLength()}; }

  static void encode_number(Writer& writer, const Value& value) {
    if (value.IsInt64()) {
      writer.integer(value.GetInt64());
    } else if (value.IsUint64()) {
      writer.unsigned_integer(value.GetUint64());
    } else {
      writer.number(value.GetDouble());
    }
  }

  static void encode_object(Writer& writer, const Value& value, std::uint32_t level) {
    if (value.MemberCount() == 1) {
      const auto& only = *value.MemberBegin();
      if (only.value.IsString() && adapt::write_base64(writer, text_of(only.name), text_of(only.value))) return;
    }
    writer.begin_object(value.MemberCount());
    for (const auto& member : value.GetObject()) {
      writer.key(text_of(member.name));
      encode_below(writer, member.value, level + 1);
    }
    writer.end_object();
  }

  static void encode_below(Writer& writer, const Value& value, std::uint32_t level) {
    switch (value.GetType()) {
      case rapidjson::kNullType: return writer.null();
      case rapidjson::kFalseType: return writer.boolean(false);
      case rapidjson::kTrueType: return writer.boolean(true);
      case rapidjson::kNumberType: return encode_number(writer, value);
      case rapidjson::kStringType: return writer.string(text_of(value));
      case rapidjson::kArrayType:
        if (level == adapt::kLevelsMax) return adapt::write_too_deep(writer);
        writer.begin_array(value.Size());
        for (const Value& element : value.GetArray()) encode_below(writer, element, level + 1);
        return writer.end_array();
      case rapidjson::kObjectType:
        if (level == adapt::kLevelsMax) return adapt::write_too_deep(writer);
        return encode_object(writer, value, level);
    }
  }
};

template <class Allocator, class StackAllocator>
struct Adapt<rapidjson::GenericDocument<rapidjson::UTF8<char>, Allocator, StackAllocator>> {
  using Document = rapidjson::GenericDocument<rapidjson::UTF8<char>, Allocator, StackAllocator>;
  using Value = typename Document::ValueType;

  static bool decode(Reader& reader, Document& out) {
    // Document is itself the handler of RapidJSON's events, from which it makes what it holds.
    bool read = false;
    const auto generate = [&reader, &read](Document& handler) { return read = generate_value(reader, handler); };
    out.Populate(generate);
    return read;
  }

  static void encode(Writer& writer, const Document& value) { Adapt<Value>::encode(writer, value); }

  static std::string schema() { return "{}"; }

 private:
  using Size = rapidjson::SizeType;

  static bool add_number(Document& handler, std::int64_t number) {
    if (number < 0) return number >= INT32_MIN ? handler.Int(static_cast<int>(number)) : handler.Int64(number);
    return add_number(handler, static_cast<std::uint64_t>(number));
  }
  static bool add_number(Document& handler, std::uint64_t number) {
    return number <= UINT32_MAX ? handler.Uint(static_cast<unsigned>(number)) : handler.Uint64(number);
  }
  static bool add_number(Document& handler, double number) { return handler.Double(number); }
  static bool add_string(Document& handler, std::string_view text) {
    return handler.String(text.data(), static_cast<Size>(text.size()), true);
  }

  static bool generate_value(Reader& reader, Document& handler) {
    switch (reader.kind()) {
      case ValueKind::null: return reader.read_null() && handler.Null();
      case ValueKind::boolean: {
        bool value = false;
        return reader.read_bool(value) && handler.Bool(value);
      }
      case ValueKind::number:
        return adapt::read_number(reader, [&handler](auto number) { add_number(handler, number); });
      case ValueKind::string: {
        std::string_view text;
        return reader.read_string(text) && add_string(handler, text);
      }
      case ValueKind::bytes:
      case ValueKind::extension: {
        std::string_view name;
        std::string_view base64;
        if (!adapt::read_as_base64(reader, name, base64)) return false;
        if (name.empty()) return add_string(handler, base64);
        return handler.StartObject() && handler.Key(name.data(), static_cast<Size>(name.size()), true) &&
               add_string(handler, base64) && handler.EndObject(1);
      }
      case ValueKind::array: return generate_array(reader, handler);
      case ValueKind::object: return generate_object(reader, handler);
    }
    return false;
  }

  static bool generate_array(Reader& reader, Document& handler) {
    if (!reader.begin_array() || !handler.StartArray()) return false;
    Size count = 0;
    for (; reader.next_element(); ++count) {
      if (!generate_value(reader, handler)) return reader.failed_at(count);
    }
    return handler.EndArray(count);
  }

  static bool generate_object(Reader& reader, Document& handler) {
    if (!reader.begin_object() || !handler.StartObject()) return false;
    Size count = 0;
    for (std::string_view name; reader.next_member(name); ++count) {
      if (!handler.Key(name.data(), static_cast<Size>(name.size()), true)) return false;
      if (!generate_value(reader, handler)) return reader.failed_at(name);
    }
    return handler.EndObject(count);
  }
};

}  // namespace wirecall
