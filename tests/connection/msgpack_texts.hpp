// What peers that speak MessagePack send and are answered, as texts.
#pragma once

#include <string>
#include <string_view>

#include "tests/codec/msgpack.hpp"

namespace wirecall::net::msgpack_texts {

using packing::framed;
using packing::from_hex;
using packing::msgpack_of;
using packing::unpacked;
using packing::with;

// A value that JSON has no form for, and an array of it.
inline constexpr std::string_view kNaN = "cb7ff8000000000000";
inline constexpr std::string_view kWhyNaN = "a number is NaN or infinite, which JSON cannot express";
inline constexpr std::string_view kWhyInteger = "an integer is beyond 64 bits, which MessagePack cannot express";

inline std::string head_of(std::string_view method, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","id":)" + std::to_string(id) + "}";
}
inline std::string error(int code, std::string_view message, std::string_view why, std::string_view id) {
  std::string text = R"({"jsonrpc":"2.0","error":{"code":)" + std::to_string(code) + R"(,"message":")";
  text.append(message).append("\"");
  if (!why.empty()) text.append(R"(,"data":{"reason":")").append(why).append("\"}");
  return text.append(R"(},"id":)").append(id).append("}");
}
inline std::string bad_params(std::string_view why, int id) {
  return error(-32602, "Invalid params", why, std::to_string(id));
}
// What a method of the process's own says of params that its types do not take.
inline std::string refused(std::string_view loc, std::string_view expected, std::string_view got, int id,
                           std::string_view also = {}) {
  std::string text = R"({"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params","data":{"loc":[")";
  text.append(loc).append(R"("],"expected":")").append(expected).append(R"(","got":")").append(got);
  text.append("\"");
  if (!also.empty()) text.append(R"(,"also":[)").append(also).append("]");
  return text.append(R"(}},"id":)").append(std::to_string(id)).append("}");
}
inline std::string no_integer(std::string_view got, int id) { return refused("numbers", "array of integer", got, id); }

// By HTTP.

inline const std::string kType = "Content-Type: application/msgpack\r\n";

inline std::string ok_msgpack(std::string_view json, std::string_view status = "200 OK", std::string_view fields = {}) {
  const std::string body = msgpack_of(json);
  return "HTTP/1.1 " + std::string{status} + "\r\n" + std::string{fields} +
         "Content-Type: application/msgpack\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace wirecall::net::msgpack_texts
