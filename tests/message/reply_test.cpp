// The bytes of replies that wirecall makes, and that they are JSON whatever they are made of.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "wirecall/message.hpp"

namespace wirecall {
namespace {

using namespace std::string_literals;

std::string error_reply(int code, std::string_view message, std::string_view data = {}, std::string_view id = "1") {
  Buffer out;
  write_error(out, code, message, data, id);
  return std::string{out.view()};
}

TEST(Reply, ResultHasItsMembersInTheOrderJsonrpcResultId) {
  Buffer out;
  begin_result(out);
  out.append("19");
  end_reply(out, "1");
  EXPECT_EQ(out.view(), R"({"jsonrpc":"2.0","result":19,"id":1})");
}

TEST(Reply, ErrorHasItsMembersInTheOrderJsonrpcErrorId) {
  EXPECT_EQ(error_reply(-32601, "Method not found"),
            R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1})");
  EXPECT_EQ(error_reply(7, "m", R"({"a":[1]})", "\"x\""),
            R"({"jsonrpc":"2.0","error":{"code":7,"message":"m","data":{"a":[1]}},"id":"x"})");
}

TEST(Reply, CodesOfAllSizesAreWrittenWhole) {
  EXPECT_EQ(error_reply(-2147483647 - 1, ""), R"({"jsonrpc":"2.0","error":{"code":-2147483648,"message":""},"id":1})");
  EXPECT_EQ(error_reply(2147483647, ""), R"({"jsonrpc":"2.0","error":{"code":2147483647,"message":""},"id":1})");
  EXPECT_EQ(error_reply(0, ""), R"({"jsonrpc":"2.0","error":{"code":0,"message":""},"id":1})");
}

TEST(Reply, IdIsCopiedByteForByte) {
  for (const char* id : {"null", "1e3", "-0", R"("\u0061")", R"("\",\"result\":1,\"")", "18446744073709551616"}) {
    Buffer out;
    begin_result(out);
    out.append("null");
    end_reply(out, id);
    EXPECT_EQ(out.view(), R"({"jsonrpc":"2.0","result":null,"id":)" + std::string{id} + "}");
  }
}

TEST(Reply, MessageIsEscaped) {
  EXPECT_EQ(error_reply(1, "a\"b\\c/d"), R"({"jsonrpc":"2.0","error":{"code":1,"message":"a\"b\\c/d"},"id":1})");
  for (int byte = 0; byte < 0x20; ++byte) {
    const std::string message = "x"s + static_cast<char>(byte) + "y";
    const std::string reply = error_reply(1, message);
    EXPECT_EQ(nlohmann::json::parse(reply)["error"]["message"].get<std::string>(), message);
  }
}

TEST(Reply, MessageKeepsValidUtf8) {
  const std::string message =
      "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xEF\xBF\xBF \xED\x9F\xBF \xF4\x8F\xBF\xBF\x7F";
  EXPECT_EQ(error_reply(1, message), R"({"jsonrpc":"2.0","error":{"code":1,"message":")" + message + R"("},"id":1})");
}

TEST(Reply, MessageThatIsNotUtf8IsSentAsUtf8) {
  for (const std::string& wrong :
       {"\x80"s, "\xC3"s, "\xC0\xAF"s, "\xE0\x80\xAF"s, "\xE2\x82"s, "\xED\xA0\x80"s, "\xF0\x9F\x98"s,
        "\xF4\x90\x80\x80"s, "\xFF"s, "\xC3\"\\"s, "\xE2\n"s, "caf\xE9"s, "\xF0\x9F\x98\x80\x80"s}) {
    for (const std::string& behind : {""s, "behind"s, "\xC3\xA9"s}) {
      const std::string reply = error_reply(1, "before" + wrong + behind);
      EXPECT_TRUE(nlohmann::json::accept(reply)) << reply;
      const auto read = nlohmann::json::parse(reply)["error"]["message"].get<std::string>();
      EXPECT_TRUE(read.starts_with("before") && read.ends_with(behind)) << read;
      EXPECT_NE(read.find("\xEF\xBF\xBD"), read.npos) << "the replacement character stands for what was wrong";
    }
  }
}

TEST(Reply, WritesBehindWhatIsThere) {
  Buffer out{"["};
  write_error(out, Error{ErrorCode::parse_error}, "null");
  EXPECT_EQ(out.view(), R"([{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null})");
}

}  // namespace
}  // namespace wirecall
