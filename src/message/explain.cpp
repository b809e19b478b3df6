// See explain.hpp.
#include "message/explain.hpp"

#include <algorithm>

#include "codec/json_writer.hpp"

namespace wirecall::message {
namespace {

constexpr std::array<std::string_view, 14> kNames{"jsonrpc", "method", "params",      "id",        "timeout_ms",
                                                  "result",  "error",  "to",          "from",      "stream",
                                                  "input",   "hops",   "traceparent", "tracestate"};

std::string_view name_of(ValueKind kind) noexcept {
  switch (kind) {
    case ValueKind::null: return "null";
    case ValueKind::boolean: return "a boolean";
    case ValueKind::number: return "a number";
    case ValueKind::string: return "a string";
    case ValueKind::array: return "an array";
    case ValueKind::object: return "an object";
    default: return "something else";
  }
}

std::string is(std::string_view member, ValueKind kind) {
  return std::string{member}.append(" is ").append(name_of(kind));
}

struct Found {
  std::array<std::optional<ValueKind>, kNames.size()> kinds;
  std::string_view twice;
  bool is_version = false;

  [[nodiscard]] std::optional<ValueKind> operator[](std::string_view name) const {
    return kinds[static_cast<std::size_t>(std::ranges::find(kNames, name) - kNames.begin())];
  }
};

Found find_members(std::string_view object) {
  Found found;
  const std::unique_ptr<Reader> reader = json_codec().reader();
  reader->reset(object);
  if (!reader->begin_object()) return found;
  for (std::string_view name; reader->next_member(name);) {
    const auto known = std::ranges::find(kNames, name);
    if (known == kNames.end()) {
      static_cast<void>(reader->skip());
      continue;
    }
    std::optional<ValueKind>& kind = found.kinds[static_cast<std::size_t>(known - kNames.begin())];
    if (kind) found.twice = *known;
    kind = reader->kind();
    std::string_view text;
    if (*known == "jsonrpc" && kind == ValueKind::string) {
      found.is_version = reader->read_string(text) && text == "2.0";
    } else {
      static_cast<void>(reader->skip());
    }
  }
  return found;
}

// Unless `is_json`, what stands for params and id of a wrong type is not what was sent.
std::string why_object_is_invalid(std::string_view object, bool is_json) {
  const Found found = find_members(object);
  if (!found.twice.empty()) return std::string{found.twice} + " is there twice";
  if (!found.is_version) return R"("jsonrpc" must be "2.0")";
  const std::optional<ValueKind> method = found["method"];
  if (!method) return "method is missing";
  if (*method != ValueKind::string) return is("method", *method);
  const std::optional<ValueKind> params = found["params"];
  const bool structured = !params || *params == ValueKind::array || *params == ValueKind::object;
  if (!structured && *params != ValueKind::null)
    return is_json ? is("params", *params) : "params is neither an array nor a map";
  const std::optional<ValueKind> id = found["id"];
  if (id && (*id == ValueKind::boolean || *id == ValueKind::array || *id == ValueKind::object))
    return is_json ? is("id", *id) : "id is neither a string nor a number";
  if (found["timeout_ms"]) return "timeout_ms must be a number from 0";
  return found["result"] ? "a request with a result" : "a request with an error";
}

}  // namespace

std::string why_unreadable(ScanStatus status, const Unreadable& where) {
  if (!where.cause.empty()) return std::string{where.cause};
  const std::string position = "byte " + std::to_string(where.offset);
  if (status == ScanStatus::too_deep) return position + " nests deeper than allowed";
  if (!where.byte) return "the text ends at " + position;
  const unsigned char byte = *where.byte;
  if (byte > ' ' && byte < 0x7F) return position + " is '" + static_cast<char>(byte) + "'";
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return (position + " is 0x") + kDigits[byte >> 4] + kDigits[byte & 15];
}

std::string why_invalid(const Received& message, bool in_batch) {
  if (message.fault == Fault::id_limit) return "the id has more than " + std::to_string(kIdBytesMax) + " bytes";
  const std::string_view text = message.text;
  if (text.starts_with('{')) return why_object_is_invalid(text, message.is_json());
  if (text.starts_with('[')) return in_batch ? "an array within a batch is no request" : "the batch is empty";
  const std::unique_ptr<Reader> reader = json_codec().reader();
  reader->reset(text);
  return std::string{name_of(reader->kind())} + " is no request";
}

std::string refusal_data(std::string_view reason, std::string_view limit) {
  if (reason.empty() && limit.empty()) return {};
  Buffer text;
  json::JsonWriter writer;
  writer.reset(text);
  writer.begin_object(Writer::kUnknownSize);
  if (!reason.empty()) {
    writer.key("reason");
    writer.string(reason);
  }
  if (!limit.empty()) {
    writer.key("limit");
    writer.string(limit);
  }
  writer.end_object();
  return std::string{text.view()};
}

}  // namespace wirecall::message
