// See reply_template.hpp.
#include "cli/view/reply_template.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/core.h>

#include "wirecall/bytes.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {

using Added = std::expected<void, std::string>;

/// What stands between the quotes of a string in JSON.
static std::string unquoted(std::string_view text) {
  const std::string json = to_json(text);
  return json.substr(1, json.size() - 2);
}

std::expected<ReplyTemplate, std::string> ReplyTemplate::parse(std::string_view text) {
  ReplyTemplate made;
  const auto value = Value::parse(text);
  const Added added = value ? made.add(*value) : made.add_string(text);
  if (!added) return std::unexpected(added.error());
  return made;
}

void ReplyTemplate::add_json(std::string_view json) {
  if (pieces_.empty() || pieces_.back().param != kNone) pieces_.emplace_back();
  pieces_.back().json += json;
}

Added ReplyTemplate::add(const Value& value) {
  if (value.is_string()) return add_string(value.as_string());
  const bool object = value.is_object();
  if (!object && !value.is_array()) {
    add_json(value.dump());
    return {};
  }
  std::string_view before = object ? "{" : "[";
  const auto add_next = [&](const std::string& name, const Value& next) {
    add_json(std::exchange(before, ","));
    add_json(name);
    return add(next);
  };
  if (object) {
    for (const auto& [name, member] : value.as_object()) {
      if (Added added = add_next(to_json(name) + ":", member); !added) return added;
    }
  } else {
    for (const Value& element : value.as_array()) {
      if (Added added = add_next("", element); !added) return added;
    }
  }
  if (value.size() == 0) add_json(before);
  add_json(object ? "}" : "]");
  return {};
}

Added ReplyTemplate::add_string(std::string_view text) {
  const bool only_a_placeholder =
      text.size() > 1 && text.front() == '{' && text[1] != '{' && text.find('}') + 1 == text.size();
  std::string json = only_a_placeholder ? "" : "\"";
  while (!text.empty()) {
    const std::size_t brace = std::min(text.find_first_of("{}"), text.size());
    json += unquoted(text.substr(0, brace));
    text.remove_prefix(brace);
    if (text.empty()) break;
    const char which = text.front();
    text.remove_prefix(1);
    const bool doubled = text.starts_with(which);
    if (which == '}' || doubled) {
      json += which;
      text.remove_prefix(doubled ? 1 : 0);
      continue;
    }
    const std::size_t end = text.find_first_of("{}");
    if (end == text.npos || text[end] == '{') return std::unexpected("a { has no }; write {{ for a brace");
    const auto param = param_of(text.substr(0, end));
    if (!param) return std::unexpected(param.error());
    add_json(std::exchange(json, {}));
    pieces_.back().param = *param;
    pieces_.back().in_text = !only_a_placeholder;
    text.remove_prefix(end + 1);
  }
  add_json(json + (only_a_placeholder ? "" : "\""));
  return {};
}

std::expected<std::size_t, std::string> ReplyTemplate::param_of(std::string_view placeholder) {
  std::size_t position = next_;
  const auto [end, error] = std::from_chars(placeholder.data(), placeholder.data() + placeholder.size(), position);
  const bool number = error != std::errc::invalid_argument && end == placeholder.data() + placeholder.size();
  if (error == std::errc::result_out_of_range) position = kParamsMax;
  if (placeholder.empty()) ++next_;
  (placeholder.empty() || number ? by_position_ : by_name_) = true;
  if (by_name_ && by_position_) {
    return std::unexpected("a call gives its params by name or by position, not both: write {0} or {name} throughout");
  }
  if (by_name_) {
    const auto known = std::ranges::find(names_, placeholder);
    position = static_cast<std::size_t>(known - names_.begin());
    if (known == names_.end()) names_.emplace_back(placeholder);
  }
  if (position >= kParamsMax) return std::unexpected(fmt::format("there may be {} params at most", kParamsMax));
  while (names_.size() <= position) names_.push_back(fmt::format("arg{}", names_.size()));
  return position;
}

std::expected<std::string, Error> ReplyTemplate::fill(std::string_view params) const {
  std::vector<std::string> given(names_.size());
  Buffer text{params.empty() ? "[]" : params};
  const std::unique_ptr<Reader> reader = json_codec().reader();
  reader->reset(text.padded());
  const bool by_name = reader->kind() == ValueKind::object;
  if (by_name && reader->begin_object()) {
    for (std::string_view name; reader->next_member(name);) {
      const auto at = static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
      const std::string_view value = reader->skip();
      if (at < given.size()) given[at] = to_json(Raw{value});
    }
  } else if (reader->kind() == ValueKind::array && reader->begin_array()) {
    for (std::size_t at = 0; reader->next_element(); ++at) {
      const std::string_view value = reader->skip();
      if (at < given.size()) given[at] = to_json(Raw{value});
    }
  }
  std::string filled;
  for (const Piece& piece : pieces_) {
    filled += piece.json;
    if (piece.param == kNone) continue;
    const std::string& value = given[piece.param];
    if (value.empty()) {
      const std::string& name = names_[piece.param];
      return std::unexpected(
          Error::with_data(ErrorCode::invalid_params,
                           fmt::format(R"({{"loc":[{}],"expected":"any value","got":"nothing"}})", to_json(name))));
    }
    const bool string = value.front() == '"';
    if (!piece.in_text) {
      filled += value;
    } else {
      filled += string ? value.substr(1, value.size() - 2) : unquoted(value);
    }
  }
  return filled;
}

}  // namespace wirecall::cli
