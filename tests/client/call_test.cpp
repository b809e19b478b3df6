// The list that calls are in, whose links are their own.
#include "client/call.hpp"

#include <array>
#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

namespace wirecall::net {
namespace {

struct Calls {
  Calls() {
    for (std::size_t i = 0; i < 3; ++i) list.push_back(calls[i]);
  }
  [[nodiscard]] std::vector<std::size_t> order() const {
    std::vector<std::size_t> at;
    for (const ClientCall* call : list) at.push_back(static_cast<std::size_t>(call - calls.data()));
    return at;
  }
  std::array<ClientCall, 5> calls;
  CallList list;
};
using Order = std::vector<std::size_t>;

TEST(CallList, gives_back_what_it_was_given_in_that_order) {
  Calls calls;
  EXPECT_EQ(calls.order(), (Order{0, 1, 2}));
  EXPECT_EQ(&calls.list.front(), &calls.calls[0]);
  EXPECT_EQ(&calls.list.back(), &calls.calls[2]);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(&calls.list.pop_front(), &calls.calls[i]);
  EXPECT_TRUE(calls.list.empty());
  calls.list.push_back(calls.calls[4]);
  calls.list.push_back(calls.calls[0]);
  EXPECT_EQ(calls.order(), (Order{4, 0}));
}

TEST(CallList, any_call_of_it_may_be_taken_out_or_another_put_in_its_place) {
  for (std::size_t i = 0; i < 3; ++i) {
    Calls without;
    without.list.remove(without.calls[i]);
    without.list.push_back(without.calls[4]);
    Order expected{0, 1, 2};
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(i));
    expected.push_back(4);
    EXPECT_EQ(without.order(), expected);

    Calls with;
    with.list.replace(with.calls[i], with.calls[3]);
    with.list.push_back(with.calls[4]);
    expected = {0, 1, 2, 4};
    expected[i] = 3;
    EXPECT_EQ(with.order(), expected);
    for (const std::size_t at : expected) EXPECT_EQ(&with.list.pop_front(), &with.calls[at]);
    EXPECT_TRUE(with.list.empty());
  }
}

TEST(CallList, the_call_at_hand_may_go_to_another_list) {
  for (std::size_t moved = 0; moved < 8; ++moved) {
    Calls calls;
    CallList other;
    Order seen;
    Order left;
    Order gone;
    for (ClientCall* call : calls.list) {
      const auto at = static_cast<std::size_t>(call - calls.calls.data());
      seen.push_back(at);
      const bool goes = (moved >> at & 1) != 0;
      (goes ? gone : left).push_back(at);
      if (!goes) continue;
      calls.list.remove(*call);
      other.push_back(*call);
    }
    EXPECT_EQ(seen, (Order{0, 1, 2}));
    EXPECT_EQ(calls.order(), left);
    for (const std::size_t at : gone) EXPECT_EQ(&other.pop_front(), &calls.calls[at]);
  }
}

}  // namespace
}  // namespace wirecall::net
