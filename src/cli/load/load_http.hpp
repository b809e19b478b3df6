// What of a load is HTTP: the head of its requests, and where replies begin and end. Functions of values; the bytes are
// Load's (load.hpp).
#pragma once

#include "wirecall/bytes.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/limits.hpp"

namespace wirecall::cli {

/// Of replies: the defaults.
inline constexpr Limits kReplyLimits{};

/// The head of a request whose body has so many bytes, with a token where there is one.
[[nodiscard]] std::string http_request_head(const Endpoint& endpoint, std::string_view token, std::size_t body_bytes);

struct HttpReply {
  std::size_t size = 0;          ///< bytes of the reply, its head included; 0: it has not come as a whole
  std::string_view body;         ///< empty where another head follows, which is that of the reply
  bool in_place = false;         ///< the body lies in the text that was read
  std::string cause;             ///< why there is no making sense of it; else empty
  bool unauthenticated = false;  ///< status 401, whatever its body is
};

/// Reads the reply with which `text` begins. `joined` takes the body where that comes in chunks.
[[nodiscard]] HttpReply read_http_reply(std::string_view text, Buffer& joined);

}  // namespace wirecall::cli
