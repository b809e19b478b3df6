// See clean_response.hpp.
#include "broker/clean_response.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "broker/splice.hpp"

namespace wirecall::broker {
namespace {

// What is read of an error object.
struct ErrorParts {
  int code = 0;
  std::string_view data;  // empty for none
};

ErrorParts parts_of(std::string_view error, Reader& reader) {
  ErrorParts parts;
  reader.reset(error);
  if (reader.kind() != ValueKind::object) return parts;
  static_cast<void>(reader.begin_object());
  for (std::string_view name; reader.next_member(name);) {
    const bool is_code = name == "code" && reader.kind() == ValueKind::number;
    const bool is_data = name == "data" && reader.kind() == ValueKind::object;
    std::int64_t code = 0;
    if (is_code && reader.read_int(std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), code)) {
      parts.code = static_cast<int>(code);
    } else if (is_code) {
      break;  // a number that is no code
    } else {
      const std::string_view value = reader.skip();
      if (is_data) parts.data = value;
    }
  }
  reader.clear_failure();
  return parts;
}

}  // namespace

CleanResponse without_origin(const Received& response, Reader& reader, Buffer& changed) {
  if (!response.has(Member::error)) [[likely]]
    return {.text = response.text, .id = response.id(), .error = {}, .code = 0};
  const std::string_view error = response[Member::error];
  const ErrorParts parts = parts_of(error, reader);
  Splice splice{response.text};
  bool any = false;
  if (!parts.data.empty()) {
    reader.reset(parts.data);
    static_cast<void>(reader.begin_object());
    for (std::string_view name; reader.next_member(name);) {
      const bool is_origin = name == "origin";
      const std::string_view value = reader.skip();
      if (!is_origin || splice.is_full()) continue;
      splice.remove(value);
      any = true;
    }
  }
  if (!any) return {.text = response.text, .id = response.id(), .error = error, .code = parts.code};
  splice.append_to(changed);
  // The id lies before all that has gone, or behind it.
  const auto id_at = static_cast<std::size_t>(response.id().data() - response.text.data());
  const bool before = response.id().data() < error.data();
  const std::size_t at = before ? id_at : changed.size() - (response.text.size() - id_at);
  const std::size_t gone = response.text.size() - changed.size();
  const auto error_at = static_cast<std::size_t>(error.data() - response.text.data());
  return {.text = changed.view(),
          .id = changed.view().substr(at, response.id().size()),
          .error = changed.view().substr(error_at, error.size() - gone),
          .code = parts.code};
}

}  // namespace wirecall::broker
