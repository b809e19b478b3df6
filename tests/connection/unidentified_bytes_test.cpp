// What a connection holds whose peer has not said who it is: counted as the memory that it is, and given back at once
// by one that has to give way.
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "connection/message_connection.hpp"
#include "rpc/access.hpp"
#include "tests/server/accepting.hpp"

namespace wirecall::net {
namespace {

class UnidentifiedBytes : public testing::Test, public Accepting {
 protected:
  UnidentifiedBytes() : Accepting(5, Limits{.unidentified_bytes = 30'000}) {
    loop_context.services.authority = std::make_shared<const rpc::Authority>(std::vector{Principal{
        .name = "robot", .tokens = {"robot-token"}, .call = {">"}, .provide = {}, .publish = {}, .subscribe = {}}});
  }
  [[nodiscard]] const MessageConnection* session() const {
    return dynamic_cast<const MessageConnection*>(connection.get());
  }
  void send_unfinished(std::size_t bytes) {
    peer->send(R"({"jsonrpc":"2.0","method":"rpc.hello","params":{"name":")" + std::string(bytes, 'x'));
    turns();
  }
};

TEST_F(UnidentifiedBytes, are_those_of_the_buffer_not_only_of_what_is_in_it) {
  send_unfinished(20'000);
  ASSERT_NE(session(), nullptr);
  EXPECT_GE(session()->unfinished_bytes(), 20'000U);
  EXPECT_EQ(loop_context.budgets.unidentified.bytes(), session()->unfinished_bytes());
}

TEST_F(UnidentifiedBytes, of_a_message_that_is_refused_are_given_back_with_it) {
  send_unfinished(20'000);
  EXPECT_GE(loop_context.budgets.unidentified.bytes(), 20'000U);
  peer->send("\x01");
  turns();
  ASSERT_NE(session(), nullptr);
  EXPECT_EQ(session()->unfinished_bytes(), 0U);
  EXPECT_LT(loop_context.budgets.unidentified.bytes(), 200U) << "what it was answered with, at most";
}

TEST_F(UnidentifiedBytes, of_an_answer_that_nobody_waits_for_are_given_back_with_it) {
  peer->send(R"({"jsonrpc":"2.0","id":1,"result":")" + std::string(20'000, 'x'));
  turns();
  EXPECT_GE(loop_context.budgets.unidentified.bytes(), 20'000U);
  peer->send("\"}");
  turns();
  ASSERT_NE(session(), nullptr);
  EXPECT_LT(loop_context.budgets.unidentified.bytes(), 200U);
}

TEST_F(UnidentifiedBytes, of_a_connection_that_has_to_give_way_itself_are_given_back_before_its_end) {
  send_unfinished(40'000);
  ASSERT_NE(session(), nullptr) << "it waits for its peer to read the refusal";
  EXPECT_EQ(session()->unfinished_bytes(), 0U);
  EXPECT_EQ(loop_context.budgets.unidentified.bytes(), 0U);
}

}  // namespace
}  // namespace wirecall::net
