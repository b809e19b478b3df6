// The replies that wirecall makes: compact, members in the order jsonrpc, result or error, id.
#include <charconv>

#include "base/utf8.hpp"
#include "message/reply_text.hpp"
#include "wirecall/message.hpp"

namespace wirecall {
namespace {

using message::put;

constexpr std::string_view kErrorHead = R"({"jsonrpc":"2.0","error":{"code":)";

// A handler's words may hold anything, but a reply is UTF-8 always: U+FFFD stands for each byte that is not.
void write_escaped(Buffer& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  const char* const end = text.data() + text.size();
  char* to = out.reserve(6 * text.size() + 2);
  *to++ = '"';
  for (const char* p = text.data(); p != end;) {
    const char c = *p;
    if (c == '"' || c == '\\') {
      *to++ = '\\';
      *to++ = c;
      ++p;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      to = put(to, "\\u00");
      *to++ = kHex[c >> 4];
      *to++ = kHex[c & 15];
      ++p;
    } else if (const std::size_t bytes = character_bytes(p, end); bytes != 0) {
      to = put(to, {p, bytes});
      p += bytes;
    } else {
      to = put(to, "\xEF\xBF\xBD");
      ++p;
    }
  }
  *to++ = '"';
  out.set_end(to);
}

}  // namespace

void begin_result(Buffer& out) { message::begin_result(out); }
void end_reply(Buffer& out, std::string_view id_json) { message::end_reply(out, id_json); }

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
