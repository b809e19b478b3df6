// See query.hpp.
#include "http/query.hpp"

#include <algorithm>

#include "framing/token.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::net {

// The nesting of a value in a query.
constexpr std::uint32_t kQueryDepth = 32;

static bool is_json(std::string_view text) {
  Buffer padded{text};
  const Scan scan = json_codec().scan(padded.padded(), kQueryDepth);
  return scan.status == ScanStatus::complete && scan.offset == text.size();
}

// The text as a JSON string; empty when it is no UTF-8.
static std::string quoted(std::string_view text) {
  try {
    return to_json(text);
  } catch (const std::exception&) {
    return {};
  }
}

bool QueryPair::take(std::string_view& query) noexcept {
  while (query.starts_with('&')) query.remove_prefix(1);
  if (query.empty()) return false;
  const std::string_view pair = query.substr(0, query.find('&'));
  query.remove_prefix(pair.size());
  name = pair.substr(0, pair.find('='));
  value = pair.substr(std::min(name.size() + 1, pair.size()));
  return true;
}

std::expected<std::string, std::string_view> decode_percent(std::string_view text, bool plus_is_space) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded += plus_is_space && text[at] == '+' ? ' ' : text[at];
      continue;
    }
    int byte = 0;
    for (int i = 0; i < 2; ++i) {
      const int digit = ++at < text.size() ? framing::hex_digit(text[at]) : -1;
      if (digit < 0) return std::unexpected{"a % without two hexadecimal digits"};
      byte = byte << 4 | digit;
    }
    decoded += static_cast<char>(byte);
  }
  return decoded;
}

std::expected<std::string, std::string_view> request_of_query(std::string_view method, std::string_view query) {
  std::string params;
  for (QueryPair pair; pair.take(query);) {
    const auto name = decode_percent(pair.name, true);
    const auto value = decode_percent(pair.value, true);
    if (!name) return name;
    if (!value) return value;
    const std::string json = is_json(*value) ? *value : quoted(*value);
    const std::string key = quoted(*name);
    if (json.empty() || key.empty()) return std::unexpected{"a name or value that is not UTF-8"};
    params.append(params.empty() ? "" : ",").append(key).append(":").append(json);
  }
  const std::string name = quoted(method);
  if (name.empty()) return std::unexpected{"a method that is not UTF-8"};
  return R"({"jsonrpc":"2.0","method":)" + name + R"(,"params":{)" + params + R"(},"id":1})";
}

}  // namespace wirecall::net
