// boost::json::value, object and array as parameters, results and members, with no text in between. Include it beside
// the umbrella header; it needs Boost.JSON, to which the program links itself (or it has <boost/json/src.hpp> in one of
// its sources).
//
// Integers keep all 64 bits, with a sign or without; other numbers are doubles, and one that no double holds is
// refused. A name that stands twice in an object is refused, since Boost's objects hold it once. Binary data of
// MessagePack is {"$bytes":"<base64>"}, which is written as binary data there.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_stack.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "wirecall/adapt/common.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/schema.hpp"

namespace wirecall {

template <>
struct Adapt<boost::json::value> {
  static bool decode(Reader& reader, boost::json::value& out) {
    // What is not finished yet; most values are small.
    unsigned char memory[4096];
    boost::json::value_stack stack{boost::json::storage_ptr{}, memory, sizeof memory};
    stack.reset(out.storage());
    const char* const start = reader.mark();
    std::size_t members = 0;
    if (!push_value(reader, stack, members)) return false;
    out = stack.release();
    if (members == members_of(out)) return true;
    reader.rewind(start);
    return reader.fail("objects in which no name stands twice");
  }

  static void encode(Writer& writer, const boost::json::value& value) { encode_below(writer, value, 0); }
  static void encode(Writer& writer, const boost::json::object& value, std::uint32_t level = 0) {
    if (level == adapt::kLevelsMax) return adapt::write_too_deep(writer);
    if (value.size() == 1) {
      const auto& only = *value.begin();
      if (only.value().is_string() &&
          adapt::write_base64(writer, view_of(only.key()), view_of(only.value().get_string())))
        return;
    }
    writer.begin_object(value.size());
    for (const auto& member : value) {
      writer.key(view_of(member.key()));
      encode_below(writer, member.value(), level + 1);
    }
    writer.end_object();
  }
  static void encode(Writer& writer, const boost::json::array& value, std::uint32_t level = 0) {
    if (level == adapt::kLevelsMax) return adapt::write_too_deep(writer);
    writer.begin_array(value.size());
    for (const boost::json::value& element : value) encode_below(writer, element, level + 1);
    writer.end_array();
  }

  static std::string schema() { return "{}"; }

 private:
  template <class Text>
  static std::string_view view_of(const Text& text) {
    return {text.data(), text.size()};
  }

  static void push_number(boost::json::value_stack& stack, std::int64_t number) { stack.push_int64(number); }
  static void push_number(boost::json::value_stack& stack, std::uint64_t number) { stack.push_uint64(number); }
  static void push_number(boost::json::value_stack& stack, double number) { stack.push_double(number); }

  static bool push_value(Reader& reader, boost::json::value_stack& stack, std::size_t& members) {
    switch (reader.kind()) {
      case ValueKind::null: stack.push_null(); return reader.read_null();
      case ValueKind::boolean: {
        bool value = false;
        if (!reader.read_bool(value)) return false;
        stack.push_bool(value);
        return true;
      }
      case ValueKind::number: return adapt::read_number(reader, [&stack](auto number) { push_number(stack, number); });
      case ValueKind::string: {
        std::string_view text;
        if (!reader.read_string(text)) return false;
        stack.push_string({text.data(), text.size()});
        return true;
      }
      case ValueKind::bytes:
      case ValueKind::extension: return push_base64(reader, stack, members);
      case ValueKind::array: {
        if (!reader.begin_array()) return false;
        std::size_t count = 0;
        for (; reader.next_element(); ++count) {
          if (!push_value(reader, stack, members)) return reader.failed_at(count);
        }
        stack.push_array(count);
        return true;
      }
      case ValueKind::object: {
        if (!reader.begin_object()) return false;
        std::size_t count = 0;
        for (std::string_view name; reader.next_member(name); ++count) {
          stack.push_key({name.data(), name.size()});
          if (!push_value(reader, stack, members)) return reader.failed_at(name);
        }
        stack.push_object(count);
        members += count;
        return true;
      }
    }
    return false;
  }

  static bool push_base64(Reader& reader, boost::json::value_stack& stack, std::size_t& members) {
    std::string_view name;
    std::string_view base64;
    if (!adapt::read_as_base64(reader, name, base64)) return false;
    if (!name.empty()) stack.push_key({name.data(), name.size()});
    stack.push_string({base64.data(), base64.size()});
    if (name.empty()) return true;
    stack.push_object(1);
    ++members;
    return true;
  }

  // Of all objects: fewer than were pushed where a name has come twice.
  static std::size_t members_of(const boost::json::value& value) {
    std::size_t count = 0;
    if (const auto* const object = value.if_object()) {
      count = object->size();
      for (const auto& member : *object) {
        if (member.value().is_structured()) count += members_of(member.value());
      }
    } else if (const auto* const array = value.if_array()) {
      for (const boost::json::value& element : *array) {
        if (element.is_structured()) count += members_of(element);
      }
    }
    return count;
  }

  static void encode_below(Writer& writer, const boost::json::value& value, std::uint32_t level) {
    switch (value.kind()) {
      case boost::json::kind::null: return writer.null();
      case boost::json::kind::bool_: return writer.boolean(value.get_bool());
      case boost::json::kind::int64: return writer.integer(value.get_int64());
      case boost::json::kind::uint64: return writer.unsigned_integer(value.get_uint64());
      case boost::json::kind::double_: return writer.number(value.get_double());
      case boost::json::kind::string: return writer.string(view_of(value.get_string()));
      case boost::json::kind::array: return encode(writer, value.get_array(), level);
      case boost::json::kind::object: return encode(writer, value.get_object(), level);
    }
  }
};

template <>
struct Adapt<boost::json::object> {
  static bool decode(Reader& reader, boost::json::object& out) {
    if (reader.kind() != ValueKind::object) return reader.fail("object");
    boost::json::value value(out.storage());
    if (!Adapt<boost::json::value>::decode(reader, value)) return false;
    out = std::move(value.get_object());
    return true;
  }
  static void encode(Writer& writer, const boost::json::object& value) {
    Adapt<boost::json::value>::encode(writer, value);
  }
  static std::string schema() { return R"({"type":"object"})"; }
};

template <>
struct Adapt<boost::json::array> {
  static bool decode(Reader& reader, boost::json::array& out) {
    if (reader.kind() != ValueKind::array) return reader.fail("array");
    boost::json::value value(out.storage());
    if (!Adapt<boost::json::value>::decode(reader, value)) return false;
    out = std::move(value.get_array());
    return true;
  }
  static void encode(Writer& writer, const boost::json::array& value) {
    Adapt<boost::json::value>::encode(writer, value);
  }
  static std::string schema() { return R"({"type":"array"})"; }
};

}  // namespace wirecall
