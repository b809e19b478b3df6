// Protobuf messages as parameters and results of any method: as proto3 JSON, whatever the encoding of the connection;
// or as their own bytes, kMessageExtension, which keep unknown fields, where the caller has sent such (ChannelOptions).
//
//   64-bit integers  strings; read from strings and numbers. NaN and infinities are strings
//   bytes            a string of base64; the URL-safe alphabet and missing padding are read as well
//   names            lowerCamelCase (json_name); the names of the .proto are read as well
//   enums            the value's name; numbers are read as well, and written for values without a name
//   presence         a field that has presence is written when it is set, another when it is not its default; null is a
//                    field that is not set
//   refused          unknown names, names given twice, two members of one oneof, more than kDepthMax levels
//   extensions       (proto2) are not written, and refused as unknown names
//
// Timestamp, Duration, Struct, Value, ListValue, FieldMask, the wrappers and Any have the forms that proto3 JSON gives
// them. An Any resolves types that are linked or registered, and no others.
// Thread: the reader's or writer's; register_type any.
#pragma once

#include <concepts>
#include <google/protobuf/message.h>
#include <string>
#include <string_view>

#include "wirecall/detail/type_info.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::protobuf {

/// Levels of nested messages, the message itself being the first, as protobuf counts them in their bytes: an entry of a
/// map is one, and so each level of a Struct is three. What an Any holds counts as well. So whoever is given a message,
/// or an Any, can parse its bytes.
inline constexpr int kDepthMax = 100;

/// Reads a message, in either form. It is cleared first. After false, `reader.failure()` tells why.
bool read(Reader& reader, google::protobuf::Message& out);
/// Writes a message as proto3 JSON, unless the writer uses the form of its own. What JSON cannot hold is remembered by
/// the writer: strings that are not UTF-8, times outside the years 1 to 9999, an Any of an unknown type, more than
/// kDepthMax levels.
void write(Writer& writer, const google::protobuf::Message& message);
/// Writes a message as its own bytes, which whoever has its type can read.
void write_bytes(Writer& writer, const google::protobuf::Message& message);

/// Has Any resolve the type of `prototype`, a message that outlives all use, such as one of a DynamicMessageFactory or
/// of a library that was loaded late. Types that are linked into the program need no registration. Replaces an earlier
/// prototype of the same name.
void register_type(const google::protobuf::Message& prototype);

/// The JSON Schema of a message type, self-contained. A type is described where it occurs first; elsewhere, and within
/// itself, its name stands.
[[nodiscard]] std::string json_schema(const google::protobuf::Descriptor& type);

}  // namespace wirecall::protobuf

template <std::derived_from<google::protobuf::Message> T>
struct wirecall::Adapt<T> {
  static bool decode(Reader& reader, T& out) { return protobuf::read(reader, out); }
  static void encode(Writer& writer, const T& value) { protobuf::write(writer, value); }
  static constexpr std::string_view name = detail::kTypeNamePool<T>[0];
  static std::string schema() { return protobuf::json_schema(*T::descriptor()); }
};
