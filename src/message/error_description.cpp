#include "message/error_description.hpp"

#include "wirecall/error.hpp"
#include "wirecall/value.hpp"

namespace wirecall::message {

static std::string text_of(const Value& value) {
  return value.is_string() ? std::string{value.as_string()} : value.dump();
}

// ["a",0,"b"] as "a.0.b".
static std::string path_of(const Value& loc) {
  if (!loc.is_array()) return loc.dump();
  std::string path;
  for (const Value& step : loc.as_array()) {
    if (!path.empty()) path += '.';
    path += text_of(step);
  }
  return path;
}

static void append(std::string& description, std::string_view separator, const std::string& more) {
  if (!description.empty()) description += separator;
  description += more;
}

static std::string description_of(const Value& data, std::string_view message) {
  std::string description;
  if (const Value* const loc = data.find("loc")) append(description, ", ", "at " + path_of(*loc));
  for (const std::string_view name : {"expected", "got", "reason", "limit"}) {
    const Value* const member = data.find(name);
    if (member == nullptr) continue;
    const std::string text = text_of(*member);
    if (name == "reason" && message.find(text) != std::string_view::npos) continue;
    append(description, ", ", name == "reason" ? text : std::string{name} + ' ' + text);
  }
  if (const Value* const wait = data.find("retry_after_ms"))
    append(description, ", ", "try again after " + text_of(*wait) + " ms");
  if (const Value* const meant = data.find("did_you_mean"))
    append(description, ", ", "did you mean '" + text_of(*meant) + "'?");
  if (const Value* const also = data.find("also"); also != nullptr && also->is_array()) {
    for (const Value& further : also->as_array()) {
      if (further.is_object()) append(description, "; ", description_of(further, message));
    }
  }
  return description;
}

std::string error_description(std::string_view message, std::string_view data) {
  if (data.empty() || data == "null") return {};
  const auto parsed = Value::parse(data);
  if (!parsed || !parsed->is_object()) return std::string{data};
  const std::string description = description_of(*parsed, message);
  return description.empty() && parsed->find("reason") == nullptr ? std::string{data} : description;
}

std::string_view no_broker_hint(int code) noexcept {
  return code == static_cast<int>(ErrorCode::method_not_found) ? "; the server is no broker" : "";
}

}  // namespace wirecall::message
