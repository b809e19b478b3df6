// nlohmann::json and nlohmann::ordered_json as parameters, results and members, with no text in between. Include it
// beside the umbrella header; it needs nlohmann's own header, and nothing is linked.
//
// Integers keep all 64 bits, with a sign or without; other numbers are doubles, and one that no double holds is
// refused. A name that stands twice in an object is refused, since nlohmann's objects hold it once. Binary data of
// MessagePack is nlohmann's binary, extensions are that with a subtype; in JSON {"$bytes":"<base64>"} stays an object,
// as in a Value. A discarded value cannot be encoded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wirecall/adapt/common.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/detail/decode.hpp"
#include "wirecall/schema.hpp"

namespace wirecall {

template <class T>
concept NlohmannJson = nlohmann::detail::is_basic_json<T>::value;

template <NlohmannJson Json>
struct Adapt<Json> {
  static bool decode(Reader& reader, Json& out) {
    switch (reader.kind()) {
      case ValueKind::null: out = nullptr; return reader.read_null();
      case ValueKind::boolean: {
        bool value = false;
        if (!reader.read_bool(value)) return false;
        out = value;
        return true;
      }
      case ValueKind::number: return adapt::read_number(reader, [&out](auto number) { set_number(out, number); });
      case ValueKind::string: {
        std::string_view text;
        if (!reader.read_string(text)) return false;
        out = typename Json::string_t(text.data(), text.size());
        return true;
      }
      case ValueKind::bytes:
      case ValueKind::extension: return decode_binary(reader, out);
      case ValueKind::array: return decode_array(reader, out);
      case ValueKind::object: return decode_object(reader, out);
    }
    return false;
  }

  static void encode(Writer& writer, const Json& value) { encode_below(writer, value, 0); }

  static std::string schema() { return "{}"; }

 private:
  using Object = typename Json::object_t;
  // Of ordered_json: a vector of members, in which each look-up is a search.
  static constexpr bool kOrdered = requires(Object& object) { object.reserve(1); };

  // Where nlohmann's own parser has a signed integer, a negative one alone.
  static void set_number(Json& out, std::int64_t value) {
    if (value < 0) {
      out = static_cast<typename Json::number_integer_t>(value);
    } else {
      out = static_cast<typename Json::number_unsigned_t>(value);
    }
  }
  static void set_number(Json& out, std::uint64_t value) { out = static_cast<typename Json::number_unsigned_t>(value); }
  static void set_number(Json& out, double value) { out = static_cast<typename Json::number_float_t>(value); }

  static bool decode_binary(Reader& reader, Json& out) {
    std::span<const std::byte> data;
    std::int8_t type = 0;
    const bool plain = reader.kind() == ValueKind::bytes;
    if (!(plain ? reader.read_bytes(data) : reader.read_extension(type, data))) return false;
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(data.data());
    typename Json::binary_t::container_type bytes(begin, begin + data.size());
    out = plain ? Json::binary(std::move(bytes)) : Json::binary(std::move(bytes), static_cast<std::uint8_t>(type));
    return true;
  }

  static bool decode_array(Reader& reader, Json& out) {
    out = Json::array();
    auto& elements = out.template get_ref<typename Json::array_t&>();
    if (!reader.begin_array()) return false;
    while (reader.next_element()) {
      if (!decode(reader, elements.emplace_back())) return reader.failed_at(elements.size() - 1);
    }
    return true;
  }

  static bool decode_object(Reader& reader, Json& out) {
    out = Json::object();
    Object& members = out.template get_ref<Object&>();
    if (!reader.begin_object()) return false;
    std::string_view name;
    while (reader.next_member(name)) {
      typename Json::object_t::key_type key(name.data(), name.size());
      Json* value = nullptr;
      if constexpr (kOrdered) {
        value = &static_cast<typename Object::Container&>(members).emplace_back(std::move(key), Json{}).second;
      } else {
        // Members often come in order.
        const std::size_t before = members.size();
        value = &members.try_emplace(members.end(), std::move(key))->second;
        if (members.size() == before) return detail::fail_repeated(reader, name);
      }
      if (!decode(reader, *value)) return reader.failed_at(name);
    }
    if constexpr (kOrdered) return check_names(reader, members);
    return true;
  }

  // Sorted, since as many searches as there are members would take a peer's word for how long they may take.
  static bool check_names(Reader& reader, const Object& members) {
    std::vector<std::string_view> names;
    names.reserve(members.size());
    for (const auto& member : members) names.emplace_back(member.first);
    std::ranges::sort(names);
    const auto repeated = std::ranges::adjacent_find(names);
    return repeated == names.end() || detail::fail_repeated(reader, *repeated);
  }

  static void encode_below(Writer& writer, const Json& value, std::uint32_t level) {
    switch (value.type()) {
      case Json::value_t::null: return writer.null();
      case Json::value_t::boolean: return writer.boolean(value.template get_ref<const typename Json::boolean_t&>());
      case Json::value_t::number_integer:
        return writer.integer(value.template get_ref<const typename Json::number_integer_t&>());
      case Json::value_t::number_unsigned:
        return writer.unsigned_integer(value.template get_ref<const typename Json::number_unsigned_t&>());
      case Json::value_t::number_float:
        return writer.number(value.template get_ref<const typename Json::number_float_t&>());
      case Json::value_t::string: return writer.string(value.template get_ref<const typename Json::string_t&>());
      case Json::value_t::binary: {
        const typename Json::binary_t& data = value.get_binary();
        const auto bytes = std::as_bytes(std::span{data.data(), data.size()});
        return data.has_subtype() ? writer.extension(static_cast<std::int8_t>(data.subtype()), bytes)
                                  : writer.bytes(bytes);
      }
      case Json::value_t::array:
        if (level == adapt::kLevelsMax) return adapt::write_too_deep(writer);
        writer.begin_array(value.size());
        for (const Json& element : value) encode_below(writer, element, level + 1);
        return writer.end_array();
      case Json::value_t::object:
        if (level == adapt::kLevelsMax) return adapt::write_too_deep(writer);
        writer.begin_object(value.size());
        for (const auto& [name, member] : value.template get_ref<const Object&>()) {
          writer.key(name);
          encode_below(writer, member, level + 1);
        }
        return writer.end_object();
      case Json::value_t::discarded: writer.fail("is a discarded value"); return writer.null();
    }
  }
};

}  // namespace wirecall
