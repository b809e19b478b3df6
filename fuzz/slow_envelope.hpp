// A second parser of the JSON-RPC envelope, written from docs/wire.md and not from our reader: byte by byte, with
// nlohmann-json for names and strings, and free to copy. Valid JSON only. Fuzzers compare it with read_message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "wirecall/limits.hpp"
#include "wirecall/message.hpp"

namespace fuzz {

struct SlowMember {
  std::string name;
  std::string_view text;  ///< the value as sent
};

/// Where the value that begins at `at` ends.
inline std::size_t slow_end(std::string_view json, std::size_t at) {
  std::size_t depth = 0;
  bool quoted = false;
  for (;; ++at) {
    const char c = json[at];
    if (quoted) {
      if (c == '\\') ++at;
      if (c == '"') quoted = false;
      if (c == '"' && depth == 0) return at + 1;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') {
      if (--depth == 0) return at + 1;
      continue;
    }
    const bool ends =
        at + 1 == json.size() || std::string_view{" \t\r\n,:]}"}.find(json[at + 1]) != std::string_view::npos;
    if (depth == 0 && !quoted && ends) return at + 1;
  }
}

/// The values in an array, or the names and values of an object in turn.
inline std::vector<std::string_view> slow_values(std::string_view container) {
  std::vector<std::string_view> values;
  std::size_t at = 1;
  for (;;) {
    at = container.find_first_not_of(" \t\r\n,:", at);
    if (container[at] == ']' || container[at] == '}') return values;
    const std::size_t end = slow_end(container, at);
    values.push_back(container.substr(at, end - at));
    at = end;
  }
}

inline std::string slow_string(std::string_view quoted) { return nlohmann::json::parse(quoted).get<std::string>(); }

inline std::vector<SlowMember> slow_members(std::string_view object) {
  std::vector<SlowMember> members;
  const std::vector<std::string_view> values = slow_values(object);
  for (std::size_t i = 0; i < values.size(); i += 2) members.push_back({slow_string(values[i]), values[i + 1]});
  return members;
}

struct SlowMessage {
  wirecall::MessageKind kind = wirecall::MessageKind::invalid;
  wirecall::Fault fault = wirecall::Fault::invalid_request;
  bool only_known = true;  ///< no member without a rule for responses in docs/wire.md
  std::string_view id = "null";
  std::vector<SlowMember> members;
  std::vector<std::string_view> elements;

  [[nodiscard]] std::size_t count(std::string_view name) const {
    std::size_t found = 0;
    for (const SlowMember& member : members) found += member.name == name ? 1 : 0;
    return found;
  }
  /// The last value of that name; empty when there is none.
  [[nodiscard]] std::string_view find(std::string_view name) const {
    std::string_view found;
    for (const SlowMember& member : members) {
      if (member.name == name) found = member.text;
    }
    return found;
  }
};

inline constexpr std::string_view kEnvelopeNames[wirecall::kMemberCount] = {
    "jsonrpc", "method", "params", "id",    "result", "error",       "timeout_ms",
    "to",      "from",   "stream", "input", "hops",   "traceparent", "tracestate"};

inline bool is_negative(std::string_view number) {
  const std::string_view mantissa = number.substr(0, number.find_first_of("eE"));
  return number[0] == '-' && mantissa.find_first_of("123456789") != std::string_view::npos;
}

inline bool is_number_text(std::string_view text) { return text[0] == '-' || (text[0] >= '0' && text[0] <= '9'); }

/// `value` is one valid JSON value without white space around it.
inline SlowMessage read_slowly(std::string_view value, std::size_t batch_max) {
  using wirecall::Fault;
  using wirecall::MessageKind;
  SlowMessage out;
  if (value[0] == '[') {
    out.elements = slow_values(value);
    if (!out.elements.empty() && out.elements.size() <= batch_max) {
      out.kind = MessageKind::batch;
      out.fault = Fault::none;
    } else if (!out.elements.empty()) {
      out.fault = Fault::batch_limit;
    }
    return out;
  }
  if (value[0] != '{') return out;
  out.members = slow_members(value);
  bool wrong = false;
  for (const std::string_view name : kEnvelopeNames) {
    const std::size_t count = out.count(name);
    if (count > 1) wrong = true;
    if (count != 0 && name != "jsonrpc" && name != "id" && name != "result" && name != "error") out.only_known = false;
  }
  const std::string_view version = out.find("jsonrpc");
  if (version.empty() || version[0] != '"' || slow_string(version) != "2.0") wrong = true;
  const std::string_view id = out.find("id");
  if (!id.empty()) {
    const bool right = id[0] == '"' || is_number_text(id) || id == "null";
    const bool too_long = right && id.size() > wirecall::kIdBytesMax;
    if (right && !too_long && out.count("id") == 1) {
      out.id = id;
    } else {
      wrong = true;
    }
    if (too_long) out.fault = Fault::id_limit;
  }
  const std::string_view params = out.find("params");
  if (!params.empty() && params[0] != '[' && params[0] != '{' && params != "null") wrong = true;
  const std::string_view timeout = out.find("timeout_ms");
  if (!timeout.empty() && (!is_number_text(timeout) || is_negative(timeout))) wrong = true;
  const std::size_t outcomes = (out.count("result") != 0 ? 1U : 0U) + (out.count("error") != 0 ? 1U : 0U);
  const std::string_view method = out.find("method");
  if (!method.empty()) {
    if (!wrong && outcomes == 0 && method[0] == '"') {
      out.kind = id.empty() ? MessageKind::notification : MessageKind::request;
      out.fault = Fault::none;
    }
  } else if (outcomes != 0) {
    out.kind = MessageKind::response;
    if (!wrong && outcomes == 1 && !id.empty()) out.fault = Fault::none;
  }
  return out;
}

}  // namespace fuzz
