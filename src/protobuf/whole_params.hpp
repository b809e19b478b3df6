// A message as all of a method's params: an object is the message itself, an array has it as its one element, and none
// are an empty one. A message whose JSON is no object (a Timestamp, a wrapper) stands in an array, or is named "value".
#pragma once

#include <string_view>

#include "protobuf/message_forms.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::protobuf {

/// Whether the JSON of the message is an object, so that it can be the params.
[[nodiscard]] inline bool is_object_form(const Descriptor& type) noexcept {
  return !has_form_of_its_own(type) || type.well_known_type() == Descriptor::WELLKNOWNTYPE_STRUCT ||
         type.well_known_type() == Descriptor::WELLKNOWNTYPE_ANY;
}
/// The name of the one param of such a message.
inline constexpr std::string_view kWholeValue = "value";

/// `params` as Call::params gives them. After false, `reader.failure()` tells why.
[[nodiscard]] bool read_params(std::string_view params, Reader& reader, Message& out);

}  // namespace wirecall::protobuf
