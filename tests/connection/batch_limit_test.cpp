// A batch over its limit at a connection: who is told, in every framing, and when that is the end of it.
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/codec/msgpack.hpp"
#include "tests/http/served.hpp"

namespace wirecall::net {
namespace {

using packing::framed;
using packing::msgpack_of;

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
  expect_answer(framed(msgpack_of(kThree)) + framed(msgpack_of(request(4))),
                framed(msgpack_of(kRefused)) + framed(msgpack_of(result("19", 4))), {}, two());
  const std::string as_msgpack = "Content-Type: application/msgpack\r\n";
  const std::string body = msgpack_of(kRefused);
  expect_answer(post(msgpack_of(kThree), as_msgpack),
                "HTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\nContent-Length: " +
                    std::to_string(body.size()) + "\r\n\r\n" + body,
                {}, two());
}

TEST(BatchLimit, is_told_once_and_the_connection_ends_where_the_ids_are_too_many) {
  const std::string one = refused("null");
  expect_answer(kThree + request(4), one + "\n", {}, two(200));
  expect_answer(framed(msgpack_of(kThree)) + framed(msgpack_of(request(4))), framed(msgpack_of(one)), {}, two(200));
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

TEST(BatchLimit, is_told_once_and_the_connection_ends_where_elements_are_too_many_to_be_looked_at) {
  const auto many = [](std::string_view element, int count) {
    std::string all = "[" + request(1);
    for (int i = 1; i < count; ++i) all.append(",").append(element);
    return all + "]";
  };
  expect_answer(many("{}", 65'535) + request(4), "[" + refused("1") + "]\n" + result("19", 4) + "\n", {}, two());
  expect_answer(many("{}", 65'536) + request(4), refused("null") + "\n", {}, two());
  std::string responses = "[";
  for (int i = 0; i < 70'000; ++i) responses += R"({"result":1,"id":1},)";
  responses.back() = ']';
  expect_answer(responses + request(4), "", {}, two());
}

// Each kind of element in each place, and what is none.
TEST(BatchLimit, is_told_the_same_of_elements_in_messagepack_as_of_those_in_json) {
  const std::string_view elements[] = {
      R"({"jsonrpc":"2.0","method":"a","id":1})",
      R"({"jsonrpc":"2.0","method":"a","params":{"id":[{"id":1}]},"id":"x\"y\n"})",
      R"({"jsonrpc":"2.0","method":"a","id":null})",
      R"({"jsonrpc":"2.0","method":"a","id":-1.5})",
      R"({"jsonrpc":"2.0","method":"a","id":[1]})",
      R"({"jsonrpc":"2.0","method":"a","id":true})",
      R"({"jsonrpc":"2.0","method":"a"})",
      R"({"jsonrpc":"2.0","method":1,"id":2})",
      R"({"jsonrpc":"2.0","method":"a","result":1,"id":3})",
      R"({"jsonrpc":"2.0","result":{"id":1},"id":4})",
      R"({"error":1})",
      R"({"id":5})",
      "{}",
      "[]",
      R"([{"id":6}])",
      R"("text")",
      "1",
      "-3.5",
      "null",
  };
  for (const std::string_view first : elements) {
    for (const std::string_view second : elements) {
      for (const std::string_view third : {elements[0], elements[9], elements[16]}) {
        const std::string batch = "[" + std::string{first} + "," + std::string{second} + "," + std::string{third} + "]";
        const std::string in_json = answer({framed(batch)}, {}, two());
        const std::string told = in_json.empty() ? "" : framed(msgpack_of(std::string_view{in_json}.substr(4)));
        EXPECT_EQ(answer({framed(msgpack_of(batch))}, {}, two()), told) << batch;
      }
    }
  }
}

TEST(BatchLimit, of_messagepack_takes_no_id_of_bytes_or_that_comes_twice) {
  using packing::from_hex;
  using packing::with;
  const std::string call = R"({"jsonrpc":"2.0","method":"a"})";
  const std::string bytes = with(call, "id", "c40161");
  const std::string nan = with(call, "id", "cb7ff8000000000000");
  const std::string twice = with(request(1), "id", "02");
  const std::string long_one = with(call, "id", "db00010001") + std::string(65537, 'x');
  const std::string other_key = "\x81\x01\x01";
  EXPECT_EQ(answer({framed("\x95" + bytes + nan + twice + long_one + other_key)}, {}, two()),
            framed(msgpack_of(refused("null"))));
  EXPECT_EQ(answer({framed("\x95" + bytes + nan + twice + msgpack_of(request(7)) + other_key)}, {}, two()),
            framed(msgpack_of("[" + refused("7") + "]")));
}

}  // namespace
}  // namespace wirecall::net
