// A peer whose token is taken away by a reload while calls of its are under way: each ends at once with -32004, its
// provider is told, and nothing that is still said in answer reaches it.
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server/several.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

Principal user(std::string name) {
  return {.name = name, .tokens = {"token-" + name}, .call = {">"}, .provide = {">"}, .publish = {}, .subscribe = {}};
}
std::string id_of(const std::string& request) {
  const std::size_t at = request.find("\"id\":") + 5;
  return request.substr(at, request.find_first_of(",}", at) - at);
}
constexpr std::string_view kRefused = R"({"jsonrpc":"2.0","error":{"code":-32004,)";

class Revoked : public testing::Test, public Several {
 protected:
  Revoked() {
    registry.method("own", [this]() -> Task<int> { co_return co_await held; });
    let_in({user("caller"), user("provider")});
    provider = &connect("token-provider");
    provider->send(R"({"jsonrpc":"2.0","method":"rpc.register","params":["slow"],"id":1})");
    turns();
    static_cast<void>(provider->hear());
  }
  void revoke() {
    let_in({user("provider")});
    turns();
  }
  Completion<int> held;
  Line* provider = nullptr;
};

TEST_F(Revoked, peers_stream_ends_at_once_and_no_item_follows) {
  Line& caller = connect("token-caller");
  caller.send(R"({"jsonrpc":"2.0","method":"slow","stream":5,"id":"s"})");
  turns();
  const std::string id = id_of(provider->hear());
  revoke();
  const std::string told = caller.hear();
  EXPECT_TRUE(told.starts_with(kRefused)) << told;
  EXPECT_NE(told.find("\"id\":\"s\""), std::string::npos) << told;
  EXPECT_NE(provider->hear().find("$/cancelRequest"), std::string::npos);
  provider->send(R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + id + R"(,"seq":0,"value":"secret"}})");
  provider->send(R"({"jsonrpc":"2.0","result":"secret","id":)" + id + "}");
  turns();
  EXPECT_EQ(caller.hear(), "");
}

TEST_F(Revoked, peers_calls_of_both_kinds_end_at_once_and_its_connection_when_it_has_heard) {
  Line& caller = connect("token-caller");
  caller.send(R"({"jsonrpc":"2.0","method":"slow","id":"a"}{"jsonrpc":"2.0","method":"own","id":"b"})");
  turns();
  static_cast<void>(provider->hear());
  revoke();
  const std::string told = caller.hear();
  EXPECT_NE(told.find("\"code\":-32004"), std::string::npos) << told;
  EXPECT_NE(told.find("\"id\":\"a\""), std::string::npos) << told;
  EXPECT_NE(told.find("\"id\":\"b\""), std::string::npos) << told;
  held.set(7);
  turns();
  EXPECT_EQ(caller.hear(), "");
  caller.peer->finish();
  turns();
  EXPECT_EQ(caller.end, CloseReason::refused);
}

TEST_F(Revoked, peers_calls_by_http_end_at_once) {
  Line& caller = connect();
  const std::string body = R"({"jsonrpc":"2.0","method":"slow","id":1})";
  caller.send("POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token-caller\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  turns();
  const std::string id = id_of(provider->hear());
  revoke();
  const std::string told = caller.hear();
  EXPECT_NE(told.find("\"code\":-32004"), std::string::npos) << told;
  provider->send(R"({"jsonrpc":"2.0","result":"secret","id":)" + id + "}");
  turns();
  EXPECT_EQ(caller.hear(), "");
}

// A batch that takes several turns, by HTTP, is met by a reload that leaves its caller these.
class RevokedWithinBatch : public Revoked {
 protected:
  static constexpr int kElements = 1000;

  std::string answer_after(std::vector<Principal> principals) {
    Line& caller = connect();
    const std::string head =
        R"({"jsonrpc":"2.0","method":"count","params":[")" + std::string(1024, 'x') + R"("],"id":)";
    std::string body = "[";
    for (int i = 0; i < kElements; ++i) body += head + std::to_string(i) + "},";
    body.back() = ']';
    caller.send("POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token-caller\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    for (int i = 0; i < 10'000 && counted == 0; ++i) turn();
    EXPECT_GT(counted, 0);
    EXPECT_LT(counted, kElements) << "it takes several turns";
    let_in(std::move(principals));
    counted_before = counted;
    for (int i = 0; i < 1000 && !caller.heard.ends_with(']'); ++i) turn();
    return caller.hear();
  }
  static int refused(std::string_view answer) {
    int count = 0;
    for (std::size_t at = 0; (at = answer.find("\"code\":-32004", at)) != answer.npos; ++at) ++count;
    return count;
  }

  int counted = 0;
  int counted_before = 0;
  RevokedWithinBatch() {
    registry.method("count", [this](const std::string&) { return counted++; });
  }
};

TEST_F(RevokedWithinBatch, the_rest_is_refused_where_the_token_is_gone) {
  const std::string answer = answer_after({user("provider")});
  EXPECT_EQ(refused(answer), kElements - counted_before);
  EXPECT_EQ(counted, counted_before);
}

TEST_F(RevokedWithinBatch, the_rest_is_refused_where_the_principal_may_do_something_else_now) {
  Principal less = user("caller");
  less.call = {"other"};
  const std::string answer = answer_after({user("provider"), less});
  EXPECT_EQ(refused(answer), kElements - counted_before);
  EXPECT_EQ(counted, counted_before);
}

TEST_F(RevokedWithinBatch, the_rest_is_served_where_the_principal_is_what_it_was) {
  EXPECT_EQ(refused(answer_after({user("provider"), user("caller"), user("another")})), 0);
  EXPECT_EQ(counted, kElements);
}

TEST_F(Revoked, nobody_else_notices) {
  Line& caller = connect("token-caller");
  let_in({user("provider"), user("caller"), user("another")});
  caller.send(R"({"jsonrpc":"2.0","method":"slow","id":"a"})");
  turns();
  const std::string id = id_of(provider->hear());
  let_in({user("caller"), user("provider")});
  turns();
  EXPECT_EQ(caller.hear(), "");
  provider->send(R"({"jsonrpc":"2.0","result":1,"id":)" + id + "}");
  turns();
  EXPECT_EQ(caller.hear(), "{\"jsonrpc\":\"2.0\",\"result\":1,\"id\":\"a\"}\n");
}

}  // namespace
}  // namespace wirecall::net
