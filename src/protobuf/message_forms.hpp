// What reading and writing of proto3 JSON share: one value of a message by reflection, and the texts of values that are
// strings in JSON. Pure functions.
#pragma once

#include <cstdint>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <optional>
#include <string>
#include <string_view>

namespace wirecall::protobuf {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

inline constexpr std::string_view kAnyType = "@type";
inline constexpr std::string_view kAnyValue = "value";
inline constexpr std::string_view kInfinity = "Infinity";
inline constexpr std::string_view kMinusInfinity = "-Infinity";
inline constexpr std::string_view kNotANumber = "NaN";

/// The seconds of the years 1 to 9999, and of 10,000 years.
inline constexpr std::int64_t kTimestampMin = -62'135'596'800;
inline constexpr std::int64_t kTimestampMax = 253'402'300'799;
inline constexpr std::int64_t kDurationMax = 315'576'000'000;
inline constexpr std::int32_t kNanosMax = 999'999'999;

/// Whether its JSON is no object with its fields as members, or holds other names than theirs.
[[nodiscard]] inline bool has_form_of_its_own(const Descriptor& type) noexcept {
  return type.well_known_type() != Descriptor::WELLKNOWNTYPE_UNSPECIFIED;
}
[[nodiscard]] inline bool is_null_value(const FieldDescriptor& field) noexcept {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM &&
         field.enum_type()->full_name() == "google.protobuf.NullValue";
}
[[nodiscard]] inline bool is_value(const FieldDescriptor& field) noexcept {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field.message_type()->well_known_type() == Descriptor::WELLKNOWNTYPE_VALUE;
}

/// "1.5s"; nanoseconds have the sign of the seconds.
[[nodiscard]] std::string format_duration(std::int64_t seconds, std::int32_t nanos);
[[nodiscard]] bool parse_duration(std::string_view text, std::int64_t& seconds, std::int32_t& nanos) noexcept;
/// One path of a FieldMask: snake_case to camelCase, and back. None where the way back would lead elsewhere, and for
/// the empty path and one with a comma, which separates them.
[[nodiscard]] std::optional<std::string> camel_path(std::string_view path);
[[nodiscard]] std::optional<std::string> snake_path(std::string_view path);
/// Standard or URL-safe, padded or not.
[[nodiscard]] bool parse_base64(std::string_view text, std::string& out);

/// The prototype of the type that an Any's URL names; null where none is linked or registered. Thread: any.
[[nodiscard]] const Message* find_prototype(std::string_view type_url);

}  // namespace wirecall::protobuf
