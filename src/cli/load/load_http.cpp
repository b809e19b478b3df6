// See load_http.hpp.
#include "cli/load/load_http.hpp"

#include "framing/http1.hpp"
#include "http/client.hpp"

namespace wirecall::cli {

using framing::Find;

static HttpReply bad(std::string_view cause) {
  HttpReply reply;
  reply.cause = cause;
  return reply;
}

static HttpReply join_chunks(std::string_view text, std::size_t head_bytes, Buffer& joined) {
  joined.clear();
  framing::ChunkedBody chunks;
  for (std::size_t at = head_bytes; at < text.size();) {
    const framing::Found found = chunks.next(text.substr(at));
    if (found.find == Find::malformed) return bad("a chunk that is malformed");
    joined.append(text.substr(at + found.skip, found.size));
    at += found.skip + found.size;
    if (joined.size() > kReplyLimits.max_message_size) return bad("a body that is too large");
    if (found.find == Find::message)
      return {.size = at, .body = joined.padded(), .in_place = false, .cause = {}, .unauthenticated = false};
  }
  return {};
}

std::string http_request_head(const Endpoint& endpoint, std::string_view token, std::size_t body_bytes) {
  return net::request_head_of(endpoint, token) + "Content-Length: " + std::to_string(body_bytes) + "\r\n\r\n";
}

HttpReply read_http_reply(std::string_view text, Buffer& joined) {
  framing::HttpResponseHead head;
  const framing::HttpHeadRead read = read_http_response_head(text, kReplyLimits.header_bytes, head);
  if (read.status != 0) return bad(std::string{"what is no HTTP response: "}.append(read.cause));
  if (read.size == 0) return {};
  if (head.status < 200)
    return {.size = read.size, .body = {}, .in_place = false, .cause = {}, .unauthenticated = false};
  if (head.status == 401) {
    HttpReply reply = bad("HTTP status 401 (Unauthorized)");
    reply.unauthenticated = true;
    return reply;
  }
  if (head.chunked) return join_chunks(text, read.size, joined);
  if (!head.has_body())
    return bad("HTTP status " + std::to_string(head.status) + " and nothing, where calls are answered");
  if (head.content_length > kReplyLimits.max_message_size) return bad("a body that is too large");
  if (text.size() - read.size < head.content_length) return {};
  return {.size = read.size + head.content_length,
          .body = text.substr(read.size, head.content_length),
          .in_place = true,
          .cause = {},
          .unauthenticated = false};
}

}  // namespace wirecall::cli
