// Middleware: around every call, in order, whoever answers and whenever.
#include "wirecall/middleware.hpp"

#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/rpc/peer.hpp"
#include "wirecall/registry.hpp"

namespace wirecall {
namespace {

using test::error_reply;
using test::internal_error;
using test::notification;
using test::Peer;
using test::request;
using test::result_reply;

class MiddlewareTest : public testing::Test {
 protected:
  MiddlewareTest() {
    registry.method("same", [this](int n) {
      note("handler");
      return n;
    });
    registry.method("throws", [] { throw Error{7, "x"}; });
    registry.method("raises", [] { throw std::runtime_error("x"); });
    registry.method("later", [this]() -> Task<int> { co_return co_await completion; });
    registry.set_log([this](const LogRecord& record) { log.emplace_back(record.message); });
  }
  void note(const std::string& what) { notes.push_back(what); }
  void serve(std::string_view text) { static_cast<void>(registry.handle(text)); }
  Middleware noting(const std::string& name) {
    return [this, name](Call& call, Next next) {
      note(name + " before");
      call.on_reply([this, name](const Outcome& outcome) { note(name + " reply " + std::to_string(outcome.code)); });
      next(call);
      note(name + " after");
    };
  }

  Registry registry;
  Completion<int> completion;
  std::vector<std::string> notes;
  std::vector<std::string> log;
};

using Notes = std::vector<std::string>;

TEST_F(MiddlewareTest, FirstAddedIsTheOutermost) {
  registry.use([this](Call& call, Next next) {
    note("a");
    next(call);
    note("a");
  });
  registry.use([this](Call& call, Next next) {
    note("b");
    next(call);
    note("b");
  });
  EXPECT_EQ(registry.handle(request("same", "[1]")), result_reply("1"));
  EXPECT_EQ(notes, (Notes{"a", "b", "handler", "b", "a"}));
}

TEST_F(MiddlewareTest, MayAnswerItselfInsteadOfTheHandler) {
  registry.use([](Call& call, Next next) {
    if (call.method().name() == "same") return call.error(Error{ErrorCode::forbidden});
    next(call);
  });
  EXPECT_EQ(registry.handle(request("same", "[1]")), error_reply(-32003, "Forbidden"));
  EXPECT_EQ(registry.handle(notification("same", "[1]")), "");
  EXPECT_EQ(registry.handle(request("throws")), error_reply(7, "x"));
  EXPECT_TRUE(notes.empty());
}

TEST_F(MiddlewareTest, MayAnswerWithAResult) {
  registry.use([](Call& call, Next) {
    if (Writer* writer = call.begin_result()) writer->string("from middleware");
    call.end_result();
  });
  EXPECT_EQ(registry.handle(request("same", "[1]")), result_reply("\"from middleware\""));
  EXPECT_EQ(registry.handle(notification("same", "[1]")), "");
}

TEST_F(MiddlewareTest, SeesTheCallAsItCame) {
  registry.use([this](Call& call, Next next) {
    note(call.method().name() + ' ' + std::string{call.params()} + ' ' + std::string{call.message().id()} +
         (call.is_notification() ? " silent" : ""));
    next(call);
  });
  serve(R"({"jsonrpc":"2.0","method":"s\u0061me","params":[ 1 ],"id":"\u0061"})");
  serve(notification("same"));
  EXPECT_EQ(notes, (Notes{R"(same [ 1 ] "\u0061")", "handler", "same  null silent"}));
}

TEST_F(MiddlewareTest, DoesNotSeeWhatHasNoMethod) {
  registry.use(noting("m"));
  serve(request("unknown"));
  serve("{}");
  serve("5");
  serve("{");
  EXPECT_TRUE(notes.empty());
}

TEST_F(MiddlewareTest, SeesEachElementOfABatch) {
  registry.use(noting("m"));
  EXPECT_EQ(registry.handle("[" + request("same", "[1]") + "," + notification("throws") + "]"),
            "[" + result_reply("1") + "]");
  EXPECT_EQ(notes, (Notes{"m before", "handler", "m reply 0", "m after", "m before", "m reply 7"}));
}

TEST_F(MiddlewareTest, ReplyHookHearsTheOutcomeOfEveryEnd) {
  registry.use(noting("m"));
  const auto outcome = [this](const std::string& text) {
    notes.clear();
    serve(text);
    std::string heard;
    for (const std::string& line : notes) {
      if (line.find(" reply ") != line.npos) heard += line.substr(8);
    }
    return heard;
  };
  EXPECT_EQ(outcome(request("same", "[1]")), "0");
  EXPECT_EQ(outcome(request("same", "[]")), "-32602");
  EXPECT_EQ(outcome(request("throws")), "7");
  EXPECT_EQ(outcome(request("raises")), "-32603");
  EXPECT_EQ(outcome(notification("same", "[1]")), "0");
  EXPECT_EQ(outcome(notification("same")), "-32602");
}

TEST_F(MiddlewareTest, ReplyHookHearsOfAnAnswerThatComesLater) {
  registry.use(noting("m"));
  Peer peer{registry};
  peer.send(request("later"));
  EXPECT_EQ(notes, (Notes{"m before", "m after"}));
  completion.set(5);
  EXPECT_EQ(notes, (Notes{"m before", "m after", "m reply 0"}));
  EXPECT_EQ(peer.received(), result_reply("5"));
}

TEST_F(MiddlewareTest, ReplyHookHearsThatAResultBecameAnError) {
  registry.method("nan", [] { return 0.0 / 0.0; });
  registry.method("long", [] { return std::string(1000, 'x'); });
  registry.use(noting("m"));
  Limits limits;
  limits.max_message_size = 500;
  registry.set_limits(limits);
  serve(request("nan"));
  serve(request("long"));
  EXPECT_EQ(notes, (Notes{"m before", "m reply -32603", "m after", "m before", "m reply -32006", "m after"}));
}

TEST_F(MiddlewareTest, ReplyHookThatThrowsHarmsNothing) {
  registry.use([](Call& call, Next next) {
    call.on_reply([](const Outcome&) { throw 1; });
    next(call);
  });
  EXPECT_EQ(registry.handle(request("same", "[1]")), result_reply("1"));
  EXPECT_EQ(log.size(), 1U);
}

TEST_F(MiddlewareTest, ExceptionAnswersAsAHandlersWould) {
  registry.use([](Call& call, Next next) {
    if (call.method().name() == "same") throw Error{9, "no"};
    if (call.method().name() == "later") throw std::runtime_error("secret");
    next(call);
  });
  EXPECT_EQ(registry.handle(request("same", "[1]")), error_reply(9, "no"));
  EXPECT_EQ(registry.handle(request("later")), internal_error());
  EXPECT_EQ(registry.handle(notification("later")), "");
}

TEST_F(MiddlewareTest, ExceptionAfterTheAnswerGoesToTheLogOnly) {
  registry.use([](Call& call, Next next) {
    next(call);
    throw std::runtime_error("too late");
  });
  EXPECT_EQ(registry.handle(request("same", "[1]")), result_reply("1"));
  ASSERT_EQ(log.size(), 1U);
  EXPECT_NE(log[0].find("too late"), std::string::npos);
  Peer peer{registry};
  peer.send(request("later"));
  EXPECT_EQ(peer.received(), "");
  completion.set(5);
  EXPECT_EQ(peer.received(), result_reply("5"));
}

TEST_F(MiddlewareTest, HandlersExceptionCanBeCaught) {
  registry.use([](Call& call, Next next) {
    try {
      next(call);
    } catch (const Error& error) {
      call.error(Error{error.code() + 1, "translated"});
    }
  });
  EXPECT_EQ(registry.handle(request("throws")), error_reply(8, "translated"));
}

TEST_F(MiddlewareTest, ThatNeitherAnswersNorContinuesIsAnInternalError) {
  registry.use([](Call&, Next) {});
  EXPECT_EQ(registry.handle(request("same", "[1]")), internal_error());
  EXPECT_EQ(registry.handle(notification("same", "[1]")), "");
}

TEST_F(MiddlewareTest, OnlyTheFirstAnswerCounts) {
  registry.use([](Call& call, Next next) {
    call.error(Error{1, "first"});
    next(call);  // against the rules; must do no harm
    call.error(Error{2, "third"});
    if (Writer* writer = call.begin_result()) writer->null();
    call.end_result();
  });
  EXPECT_EQ(registry.handle(request("same", "[1]")), error_reply(1, "first"));
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("later")), error_reply(1, "first"));
  completion.set(5);
  EXPECT_EQ(peer.received(), "");
}

TEST_F(MiddlewareTest, ResultBegunIsDroppedForAnError) {
  registry.use([](Call& call, Next) {
    if (Writer* writer = call.begin_result()) writer->string("half");
    throw Error{3, "instead"};
  });
  EXPECT_EQ(registry.handle(request("same", "[1]")), error_reply(3, "instead"));
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("same", "[1]")), error_reply(3, "instead"));
  EXPECT_EQ(peer.ask("[" + request("same", "[1]") + "]"), "[" + error_reply(3, "instead") + "]");
}

TEST_F(MiddlewareTest, ResultBegunTwiceIsTheSecond) {
  registry.use([](Call& call, Next next) {
    if (Writer* writer = call.begin_result()) writer->string("half");
    next(call);
  });
  Peer peer{registry};
  EXPECT_EQ(peer.ask(request("same", "[1]")), result_reply("1"));
}

}  // namespace
}  // namespace wirecall
