// A batch over its limit at a connection: who is told, in every framing, and when that is the end of it.
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/codec/msgpack.hpp"
#include "tests/session/http_served.hpp"

namespace wirecall::session {
namespace {

using packing::framed;
using packing::packed;

std::string refused(std::string_view id) {
  return R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request","data":{"limit":"batch"}},"id":)" +
         std::string{id} + "}";
}
Limits two(std::size_t soft_output = Limits{}.soft_output) {
  Limits limits;
  limits.batch = 2;
  limits.soft_output = soft_output;
  return limits;
}
const std::string kThree = "[" + request(1) + "," + request(2) + "," + request(3) + "]";
const std::string kRefused = "[" + refused("1") + "," + refused("2") + "," + refused("3") + "]";

TEST(BatchLimit, is_told_by_each_id_and_the_connection_goes_on) {
  expect_answer(kThree + request(4), kRefused + "\n" + result("19", 4) + "\n", {}, two());
  expect_answer(post(kThree) + post(request(4)), ok(kRefused) + ok(result("19", 4)), {}, two());
  expect_answer(framed(packed(kThree)) + framed(packed(request(4))),
                framed(packed(kRefused)) + framed(packed(result("19", 4))), {}, two());
  const std::string as_msgpack = "Content-Type: application/msgpack\r\n";
  const std::string body = packed(kRefused);
  expect_answer(post(packed(kThree), as_msgpack),
                "HTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body,
                {}, two());
}

TEST(BatchLimit, is_told_once_and_the_connection_ends_where_the_ids_are_too_many) {
  const std::string one = refused("null");
  expect_answer(kThree + request(4), one + "\n", {}, two(200));
  expect_answer(framed(packed(kThree)) + framed(packed(request(4))), framed(packed(one)), {}, two(200));
  expect_answer(post(kThree) + post(request(4)),
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: " +
                    std::to_string(one.size()) + "\r\n\r\n" + one,
                {}, two(200));
}

TEST(BatchLimit, of_nothing_that_waits_is_told_to_nobody_in_particular) {
  const std::string note = R"({"jsonrpc":"2.0","method":"subtract","params":[42,23]})";
  const std::string response = R"({"jsonrpc":"2.0","result":1,"id":1})";
  const std::string notes = "[" + note + "," + note + "," + note + "]";
  expect_answer(notes + request(4), refused("null") + "\n" + result("19", 4) + "\n", {}, two());
  const std::string responses = "[" + response + "," + response + "," + response + "]";
  expect_answer(responses + request(4), result("19", 4) + "\n", {}, two());
  expect_answer(post(responses), "HTTP/1.1 204 No Content\r\n\r\n", {}, two());
}

}  // namespace
}  // namespace wirecall::session
