// See arguments.hpp.
#include "cli/arguments.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <system_error>

#include "base/ascii.hpp"
#include "cli/view/blobs.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {

namespace {

using Text = std::expected<std::string, std::string>;

constexpr std::string_view kTypes = "int, float, str, bool, json, bytes and file";

/// A word as `name=value` or `name:type=value`; views into the word.
struct Named {
  std::string_view name;
  std::string_view type;  ///< empty for none
  std::string_view value;
};

bool is_json(std::string_view text) { return Value::parse(text).has_value(); }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Names are those that programming languages have, with dots and dashes: "http://host/?q=1" and "2+2=4" are values.
std::optional<Named> named(std::string_view arg) {
  const std::size_t equals = arg.find('=');
  if (equals == std::string_view::npos || is_json(arg)) return std::nullopt;
  Named result{arg.substr(0, equals), {}, arg.substr(equals + 1)};
  if (const std::size_t colon = result.name.find(':'); colon != std::string_view::npos) {
    result.type = result.name.substr(colon + 1);
    result.name = result.name.substr(0, colon);
    if (result.type.empty() || !std::ranges::all_of(result.type, is_letter)) return std::nullopt;
  }
  if (result.name.empty() || !is_letter(result.name.front())) return std::nullopt;
  const auto continues_name = [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '-'; };
  if (!std::ranges::all_of(result.name, continues_name)) return std::nullopt;
  return result;
}

Text string_json(std::string_view text) {
  try {
    return to_json(std::string{text});
  } catch (const Error&) {
    return std::unexpected("is not valid UTF-8; send it as bytes: name:bytes=…");
  }
}

// Numbers, arrays and the like keep their own text, so that all digits arrive.
Text guessed(std::string_view text) {
  if (is_json(text)) return std::string{trimmed(text)};
  return string_json(text);
}

Text typed(std::string_view type, std::string_view text) {
  if (type == "str") return string_json(text);
  if (type == "bytes") return bytes_json(text);
  const std::string_view arg = trimmed(text);
  const bool json = is_json(arg);
  if (type == "json") {
    if (!json) return std::unexpected("is not JSON; for a string write name:str=…");
  } else if (type == "bool") {
    if (arg != "true" && arg != "false") return std::unexpected("is neither true nor false");
  } else {
    const bool number = json && (is_digit(arg.front()) || arg.front() == '-');
    if (!number) return std::unexpected("is not a number");
    // Those beyond 64 bits have all digits written out, or none could tell.
    const bool integer = arg.find_first_of(".eE") == std::string_view::npos || from_json<std::int64_t>(arg);
    if (type == "int" && !integer) return std::unexpected("is not an integer");
    if (type == "float" && arg.find_first_of(".eE") == arg.npos) return std::string{arg} + ".0";
  }
  return std::string{arg};
}

// A file that is named as an array and holds none is a mistake: as a string it would fail far from here, or not at all.
Text content_of(std::string_view path, const std::string& content) {
  if (path.ends_with(".npy") && !content.starts_with("\x93NUMPY"))
    return std::unexpected("is no .npy file, though it is named so; to send what it holds write name:file=…");
  return json_of_content(content);
}

Text value_of(const Named& arg, const FileReader& read_file) {
  constexpr std::array<std::string_view, 7> known{"int", "float", "str", "bool", "json", "bytes", "file"};
  if (!arg.type.empty() && std::ranges::find(known, arg.type) == known.end()) {
    return std::unexpected(fmt::format("there is no type {}; types are {}", arg.type, kTypes));
  }
  std::string text{arg.value};
  const bool from_file = arg.type == "file" || text.starts_with('@');
  if (from_file) {
    const std::string path = text.substr(text.starts_with('@') ? 1 : 0);
    Text content = read_file(path);
    if (!content) return content;
    if (arg.type.empty()) return content_of(path, *content);
    text = *std::move(content);
  }
  if (arg.type.empty()) return guessed(text);
  return typed(arg.type == "file" ? "bytes" : arg.type, text);
}

Text with_arg(Text value, std::string_view arg) {
  if (value) return value;
  return std::unexpected(fmt::format("{}: {}", arg, value.error()));
}

Text positional_value(const std::string& arg, const FileReader& read_file) {
  if (arg.size() < 2 || !arg.starts_with('@')) return guessed(arg);
  const Text content = read_file(arg.substr(1));
  if (content) return content_of(arg.substr(1), *content);
  return std::unexpected(content.error() + "; for the text itself write it as JSON: '" + to_json(arg) + "'");
}

Text positional_params(std::span<const std::string> args, const FileReader& read_file) {
  std::string json = "[";
  for (const std::string& arg : args) {
    Text value = with_arg(positional_value(arg, read_file), arg);
    if (!value) return value;
    if (json.size() > 1) json += ',';
    json += *value;
  }
  return json + "]";
}

Text named_params(std::span<const std::string> args, const FileReader& read_file) {
  std::string json = "{";
  std::vector<std::string_view> names;
  for (const std::string& arg : args) {
    const Named member = named(arg).value();
    if (std::ranges::find(names, member.name) != names.end()) {
      return std::unexpected(fmt::format("{}: {} is given twice", arg, member.name));
    }
    names.push_back(member.name);
    Text value = with_arg(value_of(member, read_file), arg);
    if (!value) return value;
    if (json.size() > 1) json += ',';
    json += fmt::format("\"{}\":{}", member.name, *value);
  }
  return json + "}";
}

}  // namespace

std::expected<std::string, std::string> params_of(std::span<const std::string> args, const FileReader& read_file) {
  if (args.empty()) return std::string{};
  const auto is_named = [](const std::string& arg) { return named(arg).has_value(); };
  const auto named_arg = std::ranges::find_if(args, is_named);
  if (named_arg == args.end()) return positional_params(args, read_file);
  const auto positional_arg = std::ranges::find_if_not(args, is_named);
  if (positional_arg == args.end()) return named_params(args, read_file);
  return std::unexpected(
      fmt::format("{} has a name and {} has none; give all arguments by name or none (a string with = in it is "
                  "written as JSON: '\"a=b\"')",
                  *named_arg, *positional_arg));
}

std::expected<std::string, std::string> params_of_event(std::span<const std::string> args,
                                                        const FileReader& read_file) {
  Text params = params_of(args, read_file);
  if (!params || args.size() != 1) return params;
  const bool holds_one = params->starts_with("[[") || params->starts_with("[{");
  return holds_one ? params->substr(1, params->size() - 2) : params;
}

std::expected<std::string, std::string> params_of_call(const std::string& method, std::span<const std::string> args,
                                                       const FileReader& read_file) {
  Text params = params_of(args, read_file);
  if (params && !string_json(method)) return std::unexpected("METHOD is not valid UTF-8: " + method);
  return params;
}

std::expected<std::chrono::milliseconds, std::string> duration_of(std::string_view text) {
  struct Unit {
    std::string_view name;
    double ms;
  };
  constexpr std::array<Unit, 4> kUnits{{{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string_view unit_name{end, text.data() + text.size()};
  const auto unit = std::ranges::find(kUnits, unit_name, &Unit::name);
  if (error != std::errc{} || unit == kUnits.end()) {
    return std::unexpected(fmt::format("{} is no duration; write a number and ms, s, m or h: 200ms, 1.5s", text));
  }
  const double ms = std::ceil(number * unit->ms);
  if (!(ms >= 1 && ms <= std::numeric_limits<std::uint32_t>::max())) {
    return std::unexpected(fmt::format("{} is out of range; from 1ms to 1193h", text));
  }
  return std::chrono::milliseconds{static_cast<std::int64_t>(ms)};
}

std::vector<std::string> urls_of(std::string_view list) {
  std::vector<std::string> urls;
  while (!list.empty()) {
    const std::string_view url = list.substr(0, list.find(','));
    if (const std::string_view bare = trimmed(url); !bare.empty()) urls.emplace_back(bare);
    list.remove_prefix(std::min(url.size() + 1, list.size()));
  }
  return urls;
}

}  // namespace wirecall::cli
