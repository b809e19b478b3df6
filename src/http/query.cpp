// See query.hpp.
#include "http/query.hpp"

#include <algorithm>

#include "framing/token.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::net {
namespace {

// The nesting of a value in a query.
constexpr std::uint32_t kQueryDepth = 32;

bool is_json(std::string_view text) {
  Buffer padded{text};
  const Scan scan = json_codec().scan(padded.padded(), kQueryDepth);
  return scan.status == ScanStatus::complete && scan.offset == text.size();
}

// The text as a JSON string; empty when it is no UTF-8.
std::string quoted(std::string_view text) {
  try {
    return to_json(text);
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

std::expected<std::string, std::string_view> decode_percent(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      decoded += text[at];
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
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    std::string pair{query.substr(0, end)};
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    std::ranges::replace(pair, '+', ' ');
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const auto name = decode_percent(std::string_view{pair}.substr(0, equals));
    const auto value = decode_percent(std::string_view{pair}.substr(std::min(equals + 1, pair.size())));
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

std::string front_page(std::span<const std::string> ways) {
  std::string calls;
  for (const std::string& way : ways)
    calls.append("  curl ").append(way).append(R"( -d '{"jsonrpc":"2.0","method":"rpc.ping","id":1}')").append("\n");
  std::string page =
      "wirecall: a JSON-RPC 2.0 server\n"
      "\n"
      "Calls go to POST /rpc, one message or batch each:\n"
      "\n"
      "CALLS"
      "\n"
      "The same port takes JSON text over TCP, messages behind a Content-Length header, and messages\n"
      "behind a length of four bytes.\n"
      "\n"
      "GET /rpc/METHOD?name=value   methods that are declared safe\n"
      "GET /openrpc.json            the methods, as OpenRPC\n"
      "GET /events?topic=PATTERN    the events of a broker, as they come\n"
      "GET /healthz                 whether this process answers\n"
      "GET /readyz                  whether it takes new calls\n"
      "GET /metrics                 its numbers, for Prometheus\n";
  constexpr std::string_view kCalls = "CALLS";
  page.replace(page.find(kCalls), kCalls.size(), calls);
  return page;
}

}  // namespace wirecall::net
