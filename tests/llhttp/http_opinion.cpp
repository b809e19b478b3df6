// What our HTTP parser makes of texts: cases come on standard input, each behind its length in four bytes, and for each
// goes a line to standard output: the requests that are complete, as METHOD TARGET-in-hex BODY-in-hex KEEP, with " | "
// between them, and then how it ended: "more" for text that could go on, "done" behind a request that is the last, or
// the status and cause of a refusal.
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "framing/http1.hpp"

namespace {

using namespace wirecall::framing;

constexpr std::size_t kHeadBytesMax = 1 << 20;

std::string hex(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out.empty() ? "-" : out;
}

struct Body {
  std::string data;
  std::string trouble;  // empty: complete
};

Body read_body(const HttpHead& head, std::string_view& input) {
  Body body;
  if (!head.chunked) {
    if (input.size() < head.content_length) return {{}, "more"};
    body.data = input.substr(0, head.content_length);
    input.remove_prefix(head.content_length);
    return body;
  }
  ChunkedBody chunks;
  while (!input.empty()) {
    const Found found = chunks.next(input);
    if (found.find == Find::malformed) return {{}, "400 a chunk that is malformed"};
    body.data += input.substr(found.skip, found.size);
    input.remove_prefix(found.skip + found.size);
    if (found.find == Find::message) return body;
  }
  return {{}, "more"};
}

std::string opinion(std::string_view input) {
  std::string line;
  for (;;) {
    HttpHead head;
    const std::string_view text = input;
    const HttpHeadRead read = read_http_head(input, kHeadBytesMax, head);
    if (read.status != 0) return line + std::to_string(read.status) + " " + std::string{read.cause};
    if (read.size == 0) return line + "more";
    input.remove_prefix(read.size);
    const Body body = read_body(head, input);
    if (!body.trouble.empty()) return line + body.trouble;
    const std::size_t method = text.find_first_not_of("\r\n");
    line += std::string{text.substr(method, text.find(' ') - method)} + " " + hex(head.target) + " " + hex(body.data);
    line += head.closes ? " close | " : " keep | ";
    if (head.closes) return line + "done";
  }
}

}  // namespace

int main() {
  for (;;) {
    std::uint32_t size = 0;
    for (int i = 0; i < 4; ++i) {
      const int byte = std::getchar();
      if (byte == EOF) return 0;
      size = size << 8 | static_cast<std::uint32_t>(byte);
    }
    std::string text(size, '\0');
    if (std::fread(text.data(), 1, size, stdin) != size) return 1;
    std::printf("%s\n", opinion(text).c_str());
  }
}
