// What a message is: its kind, its members as sent, and why it is not well formed. How a text is found not to be JSON
// is in envelope_syntax_test.cpp.
#include "message/envelope.hpp"

#include <bit>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/message/read.hpp"

namespace wirecall {
namespace {

using test::expect_message_at_every_split;
using test::Message;

constexpr std::string_view kEnvelopeNames[] = {"jsonrpc", "method", "params",      "id",         "result",
                                               "error",   "to",     "from",        "timeout_ms", "stream",
                                               "input",   "hops",   "traceparent", "tracestate"};

// A value that is right for the member of that name.
std::string value_for(std::string_view name) {
  return name == "jsonrpc" ? "\"2.0\"" : name == "method" ? "\"f\"" : name == "params" ? "[]" : "1";
}

// A request with further members in front of its end.
std::string request_with(std::string_view members) {
  return R"({"jsonrpc":"2.0","method":"f","id":1)" + std::string{members} + "}";
}

void expect_kind(std::string_view text, MessageKind kind, Fault fault = Fault::none) {
  SCOPED_TRACE(text.substr(0, 200));
  const Message message{text};
  EXPECT_EQ(message.kind, kind);
  EXPECT_EQ(message.fault, fault);
  if (text.size() < 200) expect_message_at_every_split(text);
}

void expect_invalid(std::string_view text, std::string_view id) {
  SCOPED_TRACE(text.substr(0, 200));
  const Message message{text};
  EXPECT_EQ(message.kind, MessageKind::invalid);
  EXPECT_EQ(message.fault, Fault::invalid_request);
  EXPECT_EQ(message.id(), id);
  if (text.size() < 200) expect_message_at_every_split(text);
}

// ---- kinds ----

TEST(Envelope, ObjectWithMethodAndIdIsARequest) {
  expect_kind(R"({"jsonrpc":"2.0","method":"f","id":1})", MessageKind::request);
  expect_kind(R"({"jsonrpc":"2.0","method":"f","params":[1,{"a":"}"}],"id":"x"})", MessageKind::request);
}

TEST(Envelope, ObjectWithMethodAndWithoutIdIsANotification) {
  expect_kind(R"({"jsonrpc":"2.0","method":"f"})", MessageKind::notification);
  expect_kind(R"({"jsonrpc":"2.0","method":"f","params":{"id":1}})", MessageKind::notification);
}

TEST(Envelope, NullIdMakesARequest) {
  const Message message{R"({"jsonrpc":"2.0","method":"f","id":null})"};
  EXPECT_EQ(message.kind, MessageKind::request);
  EXPECT_TRUE(message.has(Member::id));
  EXPECT_EQ(message.id(), "null");
}

TEST(Envelope, ObjectWithoutMethodButWithResultOrErrorIsAResponse) {
  expect_kind(R"({"jsonrpc":"2.0","result":19,"id":1})", MessageKind::response);
  expect_kind(R"({"jsonrpc":"2.0","result":null,"id":"1"})", MessageKind::response);
  expect_kind(R"({"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":null})",
              MessageKind::response);
}

TEST(Envelope, ResponseIsAResponseHoweverMalformed) {
  for (const char* text :
       {R"({"result":1})", R"({"error":1})", R"({"result":1,"id":1})", R"({"jsonrpc":"2.0","result":1})",
        R"({"jsonrpc":"1.0","result":1,"id":1})", R"({"jsonrpc":"2.0","result":1,"error":{},"id":1})",
        R"({"jsonrpc":"2.0","result":1,"result":2,"id":1})", R"({"jsonrpc":"2.0","result":1,"id":1,"id":2})",
        R"({"jsonrpc":"2.0","result":1,"id":{}})", R"({"jsonrpc":"2.0","result":1,"id":true})",
        R"({"jsonrpc":"2.0","result":1,"id":1,"params":5})"}) {
    expect_kind(text, MessageKind::response, Fault::invalid_request);
  }
}

TEST(Envelope, MethodTogetherWithResultOrErrorIsInvalid) {
  expect_invalid(R"({"jsonrpc":"2.0","method":"f","result":1,"id":7})", "7");
  expect_invalid(R"({"jsonrpc":"2.0","method":"f","error":{},"id":7})", "7");
  expect_invalid(R"({"jsonrpc":"2.0","method":"f","result":1})", "null");
  expect_invalid(R"({"jsonrpc":"2.0","method":1,"result":1})", "null");
}

TEST(Envelope, ObjectWithNeitherMethodNorResultNorErrorIsInvalid) {
  expect_invalid("{}", "null");
  expect_invalid(R"({"foo":"boo"})", "null");
  expect_invalid(R"({"jsonrpc":"2.0","id":7})", "7");
  expect_invalid(R"({"jsonrpc":"2.0","params":[],"id":"7"})", "\"7\"");
}

TEST(Envelope, VersionMustBeTheStringTwoPointZero) {
  for (const char* version : {"2.0", "2", "\"2\"", "\"2.\"", "\"2.00\"", "\"2.0 \"", "\" 2.0\"", "\"1.0\"", "\"\"",
                              "null", "true", "[]", "{}", "[\"2.0\"]", R"("2\u002e1")", R"("2.0\u0000")"}) {
    expect_invalid(R"({"jsonrpc":)" + std::string{version} + R"(,"method":"f","id":5})", "5");
    expect_invalid(R"({"method":"f","jsonrpc":)" + std::string{version} + "}", "null");
  }
  expect_invalid(R"({"method":"f","id":5})", "5");
  expect_invalid(R"({"method":"f"})", "null");
}

TEST(Envelope, VersionMayBeEscaped) {
  expect_kind(R"({"jsonrpc":"2\u002e0","method":"f","id":5})", MessageKind::request);
  expect_kind(R"({"jsonrpc":"\u0032\u002E\u0030","method":"f","id":5})", MessageKind::request);
}

TEST(Envelope, MethodMustBeAString) {
  for (const char* method : {"1", "null", "true", "false", "[]", "{}", "[\"f\"]"}) {
    expect_invalid(R"({"jsonrpc":"2.0","method":)" + std::string{method} + R"(,"id":5})", "5");
    expect_invalid(R"({"jsonrpc":"2.0","method":)" + std::string{method} + "}", "null");
  }
  expect_kind(R"({"jsonrpc":"2.0","method":"","id":5})", MessageKind::request);
}

TEST(Envelope, ParamsMustNotBeAScalarOtherThanNull) {
  for (const char* params : {"1", "-1", "\"bar\"", "true", "false", "0.5"}) {
    expect_invalid(request_with(R"(,"params":)" + std::string{params}), "1");
    expect_invalid(R"({"jsonrpc":"2.0","method":"f","params":)" + std::string{params} + "}", "null");
  }
  for (const char* params : {"null", "[]", "{}", "[1]", R"({"a":1})"}) {
    const Message message{request_with(R"(,"params": )" + std::string{params} + " ")};
    EXPECT_EQ(message.kind, MessageKind::request);
    EXPECT_EQ(message[Member::params], params);
  }
}

TEST(Envelope, UnknownMembersAreIgnored) {
  for (const char* member : {R"("foo":1)", R"("":1)", R"("ID":2)", R"("Method":2)", R"("jsonrp":1)", R"("jsonrpcc":1)",
                             R"("methods":{})", R"("i":1)", R"("idd":[])", R"("parameters":1)", R"("result_":1)",
                             R"("tracepar\u0065":1)", R"("\u00e9":1)", R"("id\u0000":2)", R"("method\u0000":2)",
                             R"("\n":1)", R"("foo":1,"foo":2)", R"("traceparen\u0074s":1)", R"("\ud83d\ude00":1)"}) {
    expect_kind(request_with(',' + std::string{member}), MessageKind::request);
  }
}

TEST(Envelope, MembersComeInAnyOrderWithAnyWhiteSpace) {
  const Message message{
      "\r\n\t {\n \"id\" :\t7 ,\r\n\"params\" : [ 1 , 2 ] , \"method\" : \"f\"\n,\"jsonrpc\" : \"2.0\" } \n"};
  EXPECT_EQ(message.kind, MessageKind::request);
  EXPECT_EQ(message.id(), "7");
  EXPECT_EQ(message[Member::params], "[ 1 , 2 ]");
  EXPECT_EQ(message.method(), "f");
  EXPECT_EQ(message.text.front(), '{');
  EXPECT_EQ(message.text.back(), '}');
  expect_message_at_every_split("\r\n\t {\n \"id\" :\t7 ,\r\n\"params\" : [ 1 , 2 ] , \"method\" : \"f\"}");
}

TEST(Envelope, OptionalMembersAreKeptAsSent) {
  const Message message{request_with(
      R"(,"timeout_ms":1.5e3,"to":"gpu","from":"x","stream":8,"hops":2,"traceparent":"00-ab","tracestate":"a=b")")};
  EXPECT_EQ(message.kind, MessageKind::request);
  EXPECT_EQ(message[Member::timeout_ms], "1.5e3");
  EXPECT_EQ(message[Member::to], "\"gpu\"");
  EXPECT_EQ(message[Member::from], "\"x\"");
  EXPECT_EQ(message[Member::stream], "8");
  EXPECT_EQ(message[Member::hops], "2");
  EXPECT_EQ(message[Member::traceparent], "\"00-ab\"");
  EXPECT_EQ(message[Member::tracestate], "\"a=b\"");
  EXPECT_FALSE(message.has(Member::params));
}

TEST(Envelope, TimeoutMustBeANumberNotBelowZero) {
  for (const char* timeout : {"0", "1", "-0", "-0.0", "-0e5", "0.5", "1e3", "1e400", "18446744073709551616"}) {
    expect_kind(request_with(R"(,"timeout_ms":)" + std::string{timeout}), MessageKind::request);
  }
  for (const char* timeout : {"-1", "-0.1", "-1e-400", "-0.0000001e2", "\"5\"", "null", "true", "[]", "{}", "[5]"}) {
    expect_invalid(request_with(R"(,"timeout_ms":)" + std::string{timeout}), "1");
    expect_invalid(R"({"jsonrpc":"2.0","method":"f","timeout_ms":)" + std::string{timeout} + "}", "null");
  }
}

// ---- names given twice ----

TEST(Envelope, EachEnvelopeNameGivenTwiceIsInvalid) {
  for (const std::string_view name : kEnvelopeNames) {
    const std::string member = ",\"" + std::string{name} + "\":" + value_for(name);
    const bool there = name == "jsonrpc" || name == "method" || name == "id";
    const std::string text = request_with(there ? member : member + member);
    expect_invalid(text, name == "id" ? "null" : "1");
  }
}

TEST(Envelope, NamesAreComparedAfterUnescaping) {
  // The name with each of its letters in turn written as an escape, lower and upper case hexadecimal.
  for (const std::string_view name : kEnvelopeNames) {
    for (std::size_t at = 0; at < name.size(); ++at) {
      for (const char* digits : {"0123456789abcdef", "0123456789ABCDEF"}) {
        std::string escaped{name.substr(0, at)};
        escaped += std::string{"\\u00"} + digits[name[at] >> 4] + digits[name[at] & 15];
        escaped += name.substr(at + 1);
        const std::string value = value_for(name);
        const Message message{R"({"jsonrpc":"2.0","method":"f","params":[],"id":1,"result":1,"error":1,"timeout_ms":1,)"
                              R"("to":1,"from":1,"stream":1,"input":1,"hops":1,"traceparent":1,"tracestate":1,")" +
                              escaped + "\":" + value + "}"};
        EXPECT_EQ(message.kind, MessageKind::invalid) << escaped;
        EXPECT_EQ(message.id(), name == "id" ? "null" : "1") << escaped;
        const Message alone{"{\"" + escaped + "\":" + value + "}"};
        EXPECT_EQ(std::popcount(alone.present), 1) << escaped;
      }
    }
  }
}

TEST(Envelope, IdGivenTwiceIsAnsweredAsNullHoweverItIsWritten) {
  expect_invalid(R"({"jsonrpc":"2.0","method":"f","id":1,"id":1})", "null");
  expect_invalid(R"({"jsonrpc":"2.0","method":"f","id":1,"\u0069d":2})", "null");
  expect_invalid(R"({"jsonrpc":"2.0","method":"f","\u0069\u0064":1,"i\u0064":2})", "null");
  expect_invalid(R"({"jsonrpc":"2.0","method":"f","id":1,"id":{}})", "null");
}

TEST(Envelope, AllNamesEscapedMakeARequest) {
  const Message message{
      R"({"jsonrp\u0063":"2.0","\u006d\u0065\u0074\u0068\u006f\u0064":"f","param\u0073":[1],"i\u0064":9})"};
  EXPECT_EQ(message.kind, MessageKind::request);
  EXPECT_EQ(message.method(), "f");
  EXPECT_EQ(message[Member::params], "[1]");
  EXPECT_EQ(message.id(), "9");
}

// ---- ids ----

TEST(Envelope, IdIsKeptByteForByte) {
  for (const char* id : {"0",
                         "1",
                         "-1",
                         "-0",
                         "1.5",
                         "1.50",
                         "1e3",
                         "1E+3",
                         "1e400",
                         "0.0",
                         "18446744073709551616",
                         "9007199254740993",
                         "123456789012345678901234567890",
                         "null",
                         R"("")",
                         R"("1")",
                         R"("a b")",
                         R"("\u0061")",
                         R"("\"")",
                         R"("\\")",
                         R"("\/")",
                         R"("\",\"result\":1,\"")",
                         R"("\u0000")",
                         R"("\ud83d\ude00")",
                         "\"\xC3\xA9\xF0\x9F\x98\x80\"",
                         "\"\x7F\""}) {
    SCOPED_TRACE(id);
    const std::string text = R"({"jsonrpc":"2.0","id":)" + std::string{id} + R"(,"method":"f"})";
    const Message message{text};
    EXPECT_EQ(message.kind, MessageKind::request);
    EXPECT_EQ(message.id(), id);
    expect_message_at_every_split(text);
  }
}

TEST(Envelope, IdOfAnotherTypeIsInvalidAndAnsweredAsNull) {
  for (const char* id : {"true", "false", "[]", "{}", "[1]", R"({"a":1})"}) {
    expect_invalid(R"({"jsonrpc":"2.0","method":"f","id":)" + std::string{id} + "}", "null");
  }
}

TEST(Envelope, IdOf64KiBIsKeptAndOneByteMoreIsTooMuch) {
  static_assert(kIdBytesMax == 65536);
  const std::string string_id = '"' + std::string(kIdBytesMax - 2, 'x') + '"';
  const std::string number_id(kIdBytesMax, '1');
  for (const std::string& id : {string_id, number_id}) {
    const Message fits{R"({"jsonrpc":"2.0","method":"f","id":)" + id + "}"};
    EXPECT_EQ(fits.kind, MessageKind::request);
    EXPECT_TRUE(fits.id() == id);
    std::string longer = id;
    longer.insert(longer.size() / 2, 1, '1');
    const Message over{R"({"jsonrpc":"2.0","method":"f","id":)" + longer + "}"};
    EXPECT_EQ(over.kind, MessageKind::invalid);
    EXPECT_EQ(over.fault, Fault::id_limit);
    EXPECT_EQ(over.id(), "null");
  }
}

TEST(Envelope, IdOfAMegabyteIsTooMuch) {
  const Message message{R"({"jsonrpc":"2.0","id":")" + std::string(1U << 20U, 'x') + R"(","method":"f"})"};
  EXPECT_EQ(message.kind, MessageKind::invalid);
  EXPECT_EQ(message.fault, Fault::id_limit);
  EXPECT_EQ(message.id(), "null");
}

TEST(Envelope, ResponseWithAnIdThatIsTooLongStaysAResponse) {
  const Message message{R"({"jsonrpc":"2.0","result":1,"id":")" + std::string(kIdBytesMax, 'x') + R"("})"};
  EXPECT_EQ(message.kind, MessageKind::response);
  EXPECT_NE(message.fault, Fault::none);
}

// ---- methods ----

TEST(Envelope, MethodSaysWhetherItHoldsEscapes) {
  const Message plain{R"({"jsonrpc":"2.0","method":"sum","id":1})"};
  EXPECT_FALSE(plain.method_escaped);
  EXPECT_EQ(plain.method(), "sum");
  const Message escaped{R"({"jsonrpc":"2.0","method":"s\u0075m","id":"\n"})"};
  EXPECT_TRUE(escaped.method_escaped);
  EXPECT_EQ(escaped.method(), R"(s\u0075m)");
  const Message other{R"({"jsonrpc":"2.0","id":"\n","method":"caf)"
                      "\xC3\xA9"
                      R"(","params":["\n"]})"};
  EXPECT_FALSE(other.method_escaped);
}

// ---- batches ----

TEST(Envelope, ArrayIsABatch) {
  const Message one{R"([{"jsonrpc":"2.0","method":"f"}])"};
  EXPECT_EQ(one.kind, MessageKind::batch);
  EXPECT_EQ(one.fault, Fault::none);
  EXPECT_EQ(one.batch_size, 1U);
  const Message mixed{" [ 1 , {} , [2,3] , \"x\" , null ] "};
  EXPECT_EQ(mixed.kind, MessageKind::batch);
  EXPECT_EQ(mixed.batch_size, 5U);
  EXPECT_EQ(mixed.text, "[ 1 , {} , [2,3] , \"x\" , null ]");
  expect_message_at_every_split(R"([{"jsonrpc":"2.0","method":"f","id":[1]},[[]],{"a":{}},1.5e3,"x\n"])");
}

TEST(Envelope, EmptyArrayIsInvalid) {
  expect_invalid("[]", "null");
  expect_invalid("[ ]", "null");
}

TEST(Envelope, BatchOverTheLimitIsInvalid) {
  Limits limits;
  limits.batch = 3;
  EXPECT_EQ((Message{"[1,2,3]", limits}.kind), MessageKind::batch);
  const Message over{"[1,2,3,4]", limits};
  EXPECT_EQ(over.kind, MessageKind::invalid);
  EXPECT_EQ(over.fault, Fault::batch_limit);
  EXPECT_EQ(over.id(), "null");
}

TEST(Envelope, BatchElementsAreReadOneAfterTheOther) {
  const Message batch{
      R"([ {"jsonrpc":"2.0","method":"f","id":1} ,{"jsonrpc":"2.0","method":"g"},{"jsonrpc":"2.0","result":1,"id":2},)"
      R"({"foo":"boo","id":"q"},[{"jsonrpc":"2.0","method":"f","id":1}], 1 ,"x",null,true,{"id":1,"\u0069d":2,"method":"f"} ])"};
  ASSERT_EQ(batch.kind, MessageKind::batch);
  BatchElements elements{batch.text};
  Received element;
  std::vector<MessageKind> kinds;
  std::vector<std::string> ids;
  while (elements.next(element)) {
    kinds.push_back(element.kind);
    ids.emplace_back(element.id());
  }
  std::vector<MessageKind> expected{MessageKind::request, MessageKind::notification, MessageKind::response};
  expected.resize(10, MessageKind::invalid);
  EXPECT_EQ(kinds, expected);
  EXPECT_EQ(ids, (std::vector<std::string>{"1", "null", "2", "\"q\"", "null", "null", "null", "null", "null", "null"}));
  EXPECT_EQ(batch.batch_size, kinds.size());
  EXPECT_FALSE(elements.next(element));
}

TEST(Envelope, BatchElementKeepsTheRulesOfAMessage) {
  const Message batch{R"([{"jsonrpc":"2.0","method":"f","id":")" + std::string(kIdBytesMax, 'x') +
                      R"("},{"jsonrpc":"2.0","method":"f","timeout_ms":"1"}])"};
  BatchElements elements{batch.text};
  Received element;
  ASSERT_TRUE(elements.next(element));
  EXPECT_EQ(element.fault, Fault::id_limit);
  EXPECT_EQ(element.id(), "null");
  ASSERT_TRUE(elements.next(element));
  EXPECT_EQ(element.kind, MessageKind::invalid);
}

// ---- other values ----

TEST(Envelope, OtherValuesAreInvalid) {
  for (const char* text : {"1", "-0", "1.5e3", "\"x\"", "\"\"", "true", "false", "null", "  null  ", "\t12\n"}) {
    const Message message{text};
    EXPECT_EQ(message.kind, MessageKind::invalid) << text;
    EXPECT_EQ(message.fault, Fault::invalid_request) << text;
    EXPECT_EQ(message.id(), "null") << text;
  }
}

}  // namespace
}  // namespace wirecall
