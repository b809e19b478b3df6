// The replies that wirecall makes: compact, members in the order jsonrpc, result or error, id.
#include <charconv>
#include <cstring>

#include "wirecall/message.hpp"

namespace wirecall {
namespace {

constexpr std::string_view kResultHead = R"({"jsonrpc":"2.0","result":)";
constexpr std::string_view kErrorHead = R"({"jsonrpc":"2.0","error":{"code":)";
constexpr std::string_view kIdHead = R"(,"id":)";

char* put(char* to, std::string_view text) noexcept {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

void write_escaped(Buffer& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  char* p = out.reserve(6 * text.size() + 2);
  *p++ = '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      *p++ = '\\';
      *p++ = c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      p = put(p, "\\u00");
      *p++ = kHex[c >> 4];
      *p++ = kHex[c & 15];
    } else {
      *p++ = c;
    }
  }
  *p++ = '"';
  out.set_end(p);
}

}  // namespace

void begin_result(Buffer& out) { out.set_end(put(out.reserve(kResultHead.size()), kResultHead)); }

void end_reply(Buffer& out, std::string_view id_json) {
  char* p = put(out.reserve(kIdHead.size() + id_json.size() + 1), kIdHead);
  p = put(p, id_json);
  *p++ = '}';
  out.set_end(p);
}

void write_error(Buffer& out, int code, std::string_view message, std::string_view data_json,
                 std::string_view id_json) {
  char* p = put(out.reserve(kErrorHead.size() + 32), kErrorHead);
  p = std::to_chars(p, p + 12, code).ptr;
  p = put(p, R"(,"message":)");
  out.set_end(p);
  write_escaped(out, message);
  if (!data_json.empty()) {
    out.append(R"(,"data":)");
    out.append(data_json);
  }
  out.push_back('}');
  end_reply(out, id_json);
}

void write_error(Buffer& out, const Error& error, std::string_view id_json) {
  write_error(out, error.code(), error.message(), error.data(), id_json);
}

}  // namespace wirecall
