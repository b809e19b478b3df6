// What a single message is answered with: every row of the contract's table, through Registry::handle.
#include <expected>
#include <gtest/gtest.h>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/spec_examples.hpp"
#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/value.hpp"

namespace wirecall {
namespace {

using namespace std::string_literals;
using test::error_reply;
using test::internal_error;
using test::invalid_params;
using test::invalid_request;
using test::notification;
using test::parse_error;
using test::request;
using test::result_reply;
using test::too_large;

class Dispatch : public testing::Test {
 protected:
  Dispatch() {
    registry.method("subtract", [](int minuend, int subtrahend) { return minuend - subtrahend; },
                    {"minuend", "subtrahend"});
    registry.method("sum", [](const Rest<int>& numbers) {
      int sum = 0;
      for (const int number : numbers) sum += number;
      return sum;
    });
    registry.method("echo", [](const Value& value) { return value; }, {"value"});
    registry.method("count_calls", [this](const Rest<Value>&) { ++calls; });
    registry.method("get_data", [] { return std::pair<std::string, int>{"hello", 5}; });
    registry.set_log([this](const LogRecord& record) { log.emplace_back(record.message); });
  }

  std::string handle(std::string_view text) { return registry.handle(text); }

  Registry registry;
  std::vector<std::string> log;
  int calls = 0;
};

TEST_F(Dispatch, a_server_without_clients_that_provide_serves_nothing_that_is_addressed_to_one) {
  const std::string not_there =
      error_reply(-32001, "Provider lost",
                  R"({"reason":"no client of that name provides the method","origin":"local","delivered":"no"})");
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count_calls","to":"worker","id":1})"), not_there);
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count_calls","to":null,"id":1})"), not_there);
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"rpc.ping","to":"worker","id":1})"), not_there);
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count_calls","to":"worker"})"), "");
  EXPECT_EQ(calls, 0);
}

// ---- the specification ----

TEST_F(Dispatch, AnswersTheSpecificationsExamplesAsItDoes) {
  registry.method("update", [](const Rest<int>&) {});
  registry.method("notify_hello", [](int) {});
  registry.method("notify_sum", [](const Rest<int>&) {});
  // Without a name near one of ours that did_you_mean would tell: the specification's replies have no data.
  for (const bench::Example& example : bench::kSpecExamples) EXPECT_EQ(handle(example.request), example.reply);
}

// ---- -32700 ----

TEST_F(Dispatch, TextThatIsNotJsonIsAParseErrorWhateverComesBefore) {
  for (const std::string& text : {"{"s,
                                  ""s,
                                  " "s,
                                  "hello"s,
                                  "{\"jsonrpc\":\"2.0\",\"method\":\"sum\",\"id\":1"s,
                                  R"({"jsonrpc":"2.0","method":"subtract","params":[1,2,],"id":1})"s,
                                  R"({"jsonrpc":"2.0","method":"subtract","params":[01],"id":1})"s,
                                  R"({"jsonrpc":"2.0","method":"unknown","params":{"a":tru},"id":1})"s,
                                  R"({"jsonrpc":"2.0","method":"subtract","params":[1,2],"id":1}x)"s,
                                  R"({"jsonrpc":"2.0","method":"subtract","params":[1,2],"id":1}{})"s,
                                  R"({"jsonrpc":"1.0","id":1,"id":1,"params":"\x"})"s,
                                  R"({"jsonrpc":"2.0","result":nul})"s,
                                  "\xEF\xBB\xBF" + request("subtract", "[1,2]"),
                                  request("echo", "[\"\xC3(\"]"),
                                  request("echo", "[\"\xED\xA0\x80\"]"),
                                  request("echo", R"(["\ud800"])"),
                                  request("echo", R"(["\udc00\ud800"])"),
                                  request("echo", "[\"\x01\"]"),
                                  request("ech\xE9"),
                                  request("echo", "[\"a\0b\"]"s),
                                  request("subtract", "[1,2]") + '\0',
                                  notification("count_calls", "[1,]"),
                                  notification("count_calls", R"(["\ud800"])")}) {
    EXPECT_EQ(handle(text), parse_error()) << text;
  }
  EXPECT_EQ(calls, 0);
}

TEST_F(Dispatch, NestingOverTheLimitIsAParseErrorThatNamesIt) {
  const std::string too_deep = error_reply(-32700, "Parse error", R"({"limit":"depth"})", "null");
  // 256 levels, the message's own object among them.
  const std::string inside = std::string(255, '[') + std::string(255, ']');
  EXPECT_EQ(handle(request("echo", inside)), result_reply(std::string(254, '[') + std::string(254, ']')));
  EXPECT_EQ(handle(request("echo", '[' + inside + ']')), too_deep);
  EXPECT_EQ(handle(notification("echo", '[' + inside + ']')), too_deep);
  EXPECT_EQ(handle(std::string(257, '[')), too_deep);
  EXPECT_EQ(handle(std::string(256, '[') + "x"), parse_error());
}

// ---- -32600 ----

TEST_F(Dispatch, WhatIsNoRequestIsAnInvalidRequestWithItsIdWhereThatCanBeRead) {
  EXPECT_EQ(handle("{}"), invalid_request());
  EXPECT_EQ(handle("1"), invalid_request());
  EXPECT_EQ(handle("\"x\""), invalid_request());
  EXPECT_EQ(handle("null"), invalid_request());
  EXPECT_EQ(handle("true "), invalid_request());
  EXPECT_EQ(handle(R"({"id":5})"), invalid_request("5"));
  EXPECT_EQ(handle(R"({"method":"subtract","params":[1,2],"id":"a"})"), invalid_request("\"a\""));
  EXPECT_EQ(handle(R"({"jsonrpc":2.0,"method":"subtract","id":1})"), invalid_request("1"));
  EXPECT_EQ(handle(R"({"jsonrpc":"1.0","method":"subtract","id":1})"), invalid_request("1"));
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":1,"id":1})"), invalid_request("1"));
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":null,"id":1})"), invalid_request("1"));
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"subtract","result":1,"id":1})"), invalid_request("1"));
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"subtract","error":null,"id":1})"), invalid_request("1"));
  for (const char* params : {"1", "\"x\"", "true", "false"})
    EXPECT_EQ(handle(request("count_calls", params)), invalid_request("1"));
  for (const char* timeout : {"-1", "\"1\"", "null", "true", "[]", "{}"}) {
    EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count_calls","timeout_ms":)"s + timeout + R"(,"id":1})"),
              invalid_request("1"));
  }
  EXPECT_EQ(calls, 0);
}

TEST_F(Dispatch, InvalidRequestWithoutAnIdIsAnsweredWithNull) {
  EXPECT_EQ(handle(R"({"method":"count_calls"})"), invalid_request());
  EXPECT_EQ(handle(R"({"jsonrpc":"2","method":"count_calls"})"), invalid_request());
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":[]})"), invalid_request());
  EXPECT_EQ(handle(notification("count_calls", "\"bar\"")), invalid_request());
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count_calls","result":1})"), invalid_request());
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count_calls","timeout_ms":"1"})"), invalid_request());
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count_calls","method":"count_calls"})"), invalid_request());
  EXPECT_EQ(calls, 0);
}

TEST_F(Dispatch, IdThatCannotBeEchoedIsAnsweredAsNull) {
  for (const char* id : {"true", "false", "{}", "[]", "[1]"})
    EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count_calls","id":)"s + id + "}"), invalid_request());
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count_calls","id":1,"id":1})"), invalid_request());
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count_calls","id":1,"\u0069d":2})"), invalid_request());
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"count_calls","id":")" + std::string(65535, 'x') + R"("})"),
            error_reply(-32600, "Invalid Request", R"({"limit":"id"})", "null"));
  EXPECT_EQ(calls, 0);
}

TEST_F(Dispatch, EnvelopeNameGivenTwiceIsAnInvalidRequest) {
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","jsonrpc":"2.0","method":"sum","id":1})"), invalid_request("1"));
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"sum","m\u0065thod":"sum","id":1})"), invalid_request("1"));
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"sum","params":[1],"params":[1],"id":1})"), invalid_request("1"));
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"sum","to":1,"to":1,"id":1})"), invalid_request("1"));
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"sum","other":1,"other":1,"id":1})"), result_reply("0"));
}

// ---- responses ----

TEST_F(Dispatch, ResponseIsNeverAnswered) {
  for (const char* text :
       {R"({"jsonrpc":"2.0","result":1,"id":1})", R"({"jsonrpc":"2.0","error":{"code":1,"message":""},"id":1})",
        R"({"result":1})", R"({"error":1,"id":[]})", R"({"jsonrpc":"9","result":1,"error":1,"id":1,"id":1})",
        R"({"result":1,"params":3,"timeout_ms":"x"})"}) {
    EXPECT_EQ(handle(text), "") << text;
  }
  EXPECT_EQ(handle(R"({"result":1,"id":")" + std::string(70000, 'x') + R"("})"), "");
}

// ---- -32601 ----

TEST_F(Dispatch, UnknownMethodIsNotFound) {
  EXPECT_EQ(handle(request("quite_another")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(handle(request("")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(handle(request(std::string(1 << 16, 'x'))), error_reply(-32601, "Method not found"));
  EXPECT_EQ(handle(request("rpc.stats")), error_reply(-32601, "Method not found"));
  EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"quite_another","id":null})"),
            error_reply(-32601, "Method not found", {}, "null"));
}

TEST_F(Dispatch, UnknownMethodIsToldTheNearestName) {
  const std::string subtract = error_reply(-32601, "Method not found", R"({"did_you_mean":"subtract"})");
  for (const char* name : {"Subtract", "substract", "subtact", "subtrcat", "subtract "})
    EXPECT_EQ(handle(request(name)), subtract) << name;
  EXPECT_EQ(handle(request("summ")), error_reply(-32601, "Method not found", R"({"did_you_mean":"sum"})"));
  EXPECT_EQ(handle(request("s\\u0075mm")), error_reply(-32601, "Method not found", R"({"did_you_mean":"sum"})"));
}

TEST_F(Dispatch, SuggestedNameIsWrittenAsJson) {
  registry.method(R"(a"b\c)", [] {});
  EXPECT_EQ(handle(request(R"(a\"b\\d)")), error_reply(-32601, "Method not found", R"({"did_you_mean":"a\"b\\c"})"));
}

TEST_F(Dispatch, MethodNamesAreComparedWholeAfterUnescaping) {
  EXPECT_EQ(handle(request("s\\u0075m", "[1,2]")), result_reply("3"));
  EXPECT_EQ(handle(request("\\u0073\\u0075\\u006d", "[1,2]")), result_reply("3"));
  EXPECT_EQ(handle(request("sum\\u0000")), error_reply(-32601, "Method not found", R"({"did_you_mean":"sum"})"));
  EXPECT_EQ(handle(request("sum\\u0000\\u0000\\u0000\\u0000\\u0000")), error_reply(-32601, "Method not found"));
  registry.method("caf\xC3\xA9", [] { return 1; });
  EXPECT_EQ(handle(request("caf\\u00e9")), result_reply("1"));
  EXPECT_EQ(handle(request("caf\xC3\xA9")), result_reply("1"));
}

// ---- notifications ----

TEST_F(Dispatch, NotificationIsSilentWhateverBecomesOfIt) {
  registry.method("throws", [] { throw Error{1, "x"}; });
  registry.method("throws_else", [] { throw 1; });
  registry.method("returns", [] { return std::string(100, 'x'); });
  registry.method("expected", []() -> std::expected<int, Error> { return std::unexpected(Error{"x"}); });
  registry.method("not_encodable", [] { return "\xFF"s; });
  for (const char* method :
       {"unknown", "subtrac", "throws", "throws_else", "returns", "expected", "not_encodable", "sum"})
    EXPECT_EQ(handle(notification(method)), "") << method;
  EXPECT_EQ(handle(notification("subtract", "[1]")), "");
  EXPECT_EQ(handle(notification("subtract", R"({"minuend":"x"})")), "");
  EXPECT_EQ(handle(notification("count_calls", "[1]")), "");
  EXPECT_EQ(calls, 1);
}

// ---- ids ----

TEST_F(Dispatch, IdIsEchoedByteForByte) {
  for (const char* id : {"0", "-0", "1.5", "1e3", "1E+3", "18446744073709551616", "1e400", "null", R"("")",
                         R"("\u0061")", R"("\ud83d\ude00")", R"("\u0000")", R"("\/")", "\"\xC3\xA9\"",
                         R"("\",\"result\":\"injected\",\"x\":\"")", R"("},{\"id\":1")"}) {
    EXPECT_EQ(handle(R"({"jsonrpc":"2.0","method":"sum","id":)"s + id + "}"), result_reply("0", id));
    EXPECT_EQ(handle(R"({"jsonrpc":"2.0","id":)"s + id + R"(,"method":"quite_another"})"),
              error_reply(-32601, "Method not found", {}, id));
  }
}

// ---- what handlers raise ----

TEST_F(Dispatch, OurErrorsAreSentAsTheyAre) {
  registry.method("code", [] { throw Error{42, "the \"message\"", R"({"a":[1,2]})"}; });
  registry.method("no_code", [] { throw Error{"went wrong"}; });
  registry.method("catalogue", [] { throw Error{ErrorCode::forbidden}; });
  registry.method("expected", []() -> std::expected<int, Error> { return std::unexpected(Error{7, "m", "null"}); });
  registry.method("expected_void", []() -> std::expected<void, Error> { return std::unexpected(Error{8, "v"}); });
  EXPECT_EQ(handle(request("code")), error_reply(42, R"(the \"message\")", R"({"a":[1,2]})"));
  EXPECT_EQ(handle(request("no_code")), error_reply(-32000, "went wrong"));
  EXPECT_EQ(handle(request("catalogue")), error_reply(-32003, "Forbidden"));
  EXPECT_EQ(handle(request("expected")), error_reply(7, "m", "null"));
  EXPECT_EQ(handle(request("expected_void")), error_reply(8, "v"));
  EXPECT_TRUE(log.empty());
}

TEST_F(Dispatch, AnythingElseRaisedIsAnInternalErrorWhoseTextGoesToTheLog) {
  registry.method("exception", [] { throw std::runtime_error("secret"); });
  registry.method("int", []() -> int { throw 42; });
  registry.method("pointer", [] { throw "secret"; });
  EXPECT_EQ(handle(request("exception")), internal_error());
  ASSERT_EQ(log.size(), 1U);
  EXPECT_NE(log[0].find("exception"), std::string::npos);
  EXPECT_NE(log[0].find("secret"), std::string::npos);
  EXPECT_EQ(handle(request("int")), internal_error());
  EXPECT_EQ(handle(request("pointer")), internal_error());
  EXPECT_EQ(log.size(), 3U);
}

TEST_F(Dispatch, WhatAHandlerGetsWrongItselfIsAnInternalErrorWhoseTextGoesToTheLog) {
  registry.method("to_json", [] { return to_json(std::numeric_limits<double>::quiet_NaN()); });
  registry.method("as_int", [](const Value& value) { return value.as_int(); });
  registry.method("at", [](const Value& value) { return value.at("x"); });
  EXPECT_EQ(handle(request("to_json")), internal_error());
  EXPECT_EQ(handle(request("as_int", R"(["x"])")), internal_error());
  EXPECT_EQ(handle(request("at", "[{}]")), internal_error());
  EXPECT_EQ(log,
            (std::vector<std::string>{
                "method to_json raised: a number is NaN or infinite, which JSON cannot express",
                R"(method as_int raised: Invalid params {"loc":[],"expected":"integer from -9223372036854775808 )"
                R"(to 9223372036854775807","got":"\"x\""})",
                R"(method at raised: Invalid params {"loc":[],"expected":"object with the member x","got":"{}"})"}));
}

TEST_F(Dispatch, ErrorDataThatIsNotJsonIsLeftOutHoweverTheErrorIsRaised) {
  std::string data;
  registry.method("throws", [&data] { throw Error{5, "m", data}; });
  registry.method("expected", [&data]() -> std::expected<int, Error> { return std::unexpected(Error{5, "m", data}); });
  for (const std::string& wrong : {"not json"s, "{"s, "1,\"x\":2"s, "1}"s, "\"\xFF\""s, "\"\\ud800\""s, "1 2"s, "1\0"s,
                                   "1\0 2"s, "\0"s, " "s, "01"s, "'x'"s,
                                   "\xEF\xBB\xBF"
                                   "1"s}) {
    data = wrong;
    log.clear();
    EXPECT_EQ(handle(request("throws")), error_reply(5, "m")) << wrong;
    EXPECT_EQ(handle(request("expected")), error_reply(5, "m")) << wrong;
    EXPECT_EQ(log.size(), 2U);
  }
  for (const std::string& right : {"null"s, "1"s, "\"x\""s, "[]"s, "{}"s, "1e400"s, "\"\xC3\xA9\""s}) {
    data = right;
    EXPECT_EQ(handle(request("throws")), error_reply(5, "m", right));
    EXPECT_EQ(handle(request("expected")), error_reply(5, "m", right));
  }
}

TEST_F(Dispatch, ErrorDataIsSentCompactSoThatAReplyStaysOnOneLine) {
  registry.method("throws", [] { throw Error{5, "m", " {\n\t\"a b\" : [ 1 ,\r\n \"c \\\" d\" ] } \n"}; });
  EXPECT_EQ(handle(request("throws")), error_reply(5, "m", R"({"a b":[1,"c \" d"]})"));
}

TEST_F(Dispatch, ErrorMessageThatIsNotUtf8IsSentAsUtf8) {
  registry.method("throws", [] { throw Error{"caf\xE9"}; });
  registry.method("expected", []() -> std::expected<int, Error> { return std::unexpected(Error{"caf\xE9"}); });
  EXPECT_EQ(handle(request("throws")), error_reply(-32000, "caf\xEF\xBF\xBD"));
  EXPECT_EQ(handle(request("expected")), error_reply(-32000, "caf\xEF\xBF\xBD"));
}

// ---- results ----

TEST_F(Dispatch, NoResultIsNull) {
  registry.method("nothing", [] {});
  registry.method("expected_nothing", []() -> std::expected<void, Error> { return {}; });
  EXPECT_EQ(handle(request("nothing")), result_reply("null"));
  EXPECT_EQ(handle(request("expected_nothing")), result_reply("null"));
}

TEST_F(Dispatch, ExpectedAnswersWithItsValue) {
  registry.method("expected", [](int n) -> std::expected<int, Error> { return n + 1; });
  EXPECT_EQ(handle(request("expected", "[1]")), result_reply("2"));
}

TEST_F(Dispatch, ResultThatCannotBeEncodedIsAnInternalErrorWithNothingOfIt) {
  registry.method("not_utf8", [] { return std::vector<std::string>{"fine", "\xFF"}; });
  registry.method("nan", [] { return std::vector<double>{1, std::numeric_limits<double>::quiet_NaN()}; });
  registry.method("infinite", [] { return std::numeric_limits<double>::infinity(); });
  for (const char* method : {"not_utf8", "nan", "infinite"}) {
    log.clear();
    EXPECT_EQ(handle(request(method)), internal_error());
    EXPECT_EQ(log.size(), 1U);
  }
  EXPECT_EQ(handle(request("sum", "[1]")), result_reply("1")) << "the failure is not remembered";
}

// ---- size ----

TEST_F(Dispatch, MessageOverTheSizeLimitIsTooLarge) {
  Limits limits;
  limits.max_message_size = 100;
  registry.set_limits(limits);
  const std::string fits = request("sum") + std::string(100 - request("sum").size(), ' ');
  EXPECT_EQ(handle(fits), result_reply("0"));
  EXPECT_EQ(
      handle(fits + ' '),
      error_reply(
          -32006, "Too large",
          R"({"reason":"the message is larger than allowed","origin":"local","delivered":"no","limit":"max_message_size"})",
          "null"));
}

TEST_F(Dispatch, ResultOverTheSizeLimitIsTooLarge) {
  registry.method("make", [](std::size_t size) { return std::string(size, 'x'); });
  Limits limits;
  limits.max_message_size = 500;
  registry.set_limits(limits);
  const std::size_t fits = 500 - result_reply("\"\"").size();
  EXPECT_EQ(handle(request("make", '[' + std::to_string(fits) + ']')),
            result_reply('"' + std::string(fits, 'x') + '"'));
  EXPECT_EQ(handle(request("make", '[' + std::to_string(fits + 1) + ']')), too_large("the reply is"));
}

TEST_F(Dispatch, IntegerOverTheSizeLimitIsTooLarge) {
  registry.method("least", [] { return std::numeric_limits<std::int64_t>::min(); });
  const std::string call = R"({"jsonrpc":"2.0","method":"least","id":1})";
  const std::string reply = result_reply("-9223372036854775808");
  Limits limits;
  limits.max_message_size = reply.size();
  registry.set_limits(limits);
  EXPECT_EQ(handle(call), reply);
  limits.max_message_size = reply.size() - 1;
  registry.set_limits(limits);
  EXPECT_EQ(handle(call), too_large("the reply is"));
}

TEST_F(Dispatch, ErrorOverTheSizeLimitIsTooLarge) {
  registry.method("data", [](std::size_t size) { throw Error{1, "m", '"' + std::string(size, 'x') + '"'}; });
  registry.method("message", [](std::size_t size) { throw Error{1, std::string(size, '"')}; });
  Limits limits;
  limits.max_message_size = 500;
  registry.set_limits(limits);
  const std::size_t fits = 500 - error_reply(1, "m", "\"\"").size();
  EXPECT_EQ(handle(request("data", '[' + std::to_string(fits) + ']')),
            error_reply(1, "m", '"' + std::string(fits, 'x') + '"'));
  EXPECT_EQ(handle(request("data", '[' + std::to_string(fits + 1) + ']')), too_large("the reply is"));
  EXPECT_EQ(handle(request("message", "[300]")), too_large("the reply is"));
}

}  // namespace
}  // namespace wirecall
