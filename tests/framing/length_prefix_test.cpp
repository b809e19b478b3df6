// Messages behind their length in four bytes.
#include "framing/length_prefix.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/framing/read_frames.hpp"

namespace wirecall::framing {
namespace {

using namespace std::string_literals;

void expect_read(std::string_view input, const Log& expected, const Limits& limits = {}) {
  expect_frames<LengthPrefix>(input, expected, limits);
}

TEST(LengthPrefix, messages_follow_each_other) {
  expect_read("\0\0\0\3[1]\0\0\0\0\0\0\0\4oops"s, {"[1]", "", "oops"});
  expect_read("\0\0\1\1"s + std::string(257, 'x'), {std::string(257, 'x')});
}

TEST(LengthPrefix, a_message_over_the_limit_is_refused_by_its_length_alone) {
  Limits limits;
  limits.max_message_size = 3;
  expect_read("\0\0\0\3[1]\0\0\0\4"s, {"[1]", "too large"}, limits);
  expect_read("\x08\xFF\xFF\xFF"s, {"too large"});
  expect_read("\0\0\0\0\xFF\xFF\xFF\xFF"s, {"", "too large"});
}

TEST(LengthPrefix, what_is_unfinished_at_the_end_is_an_error) {
  expect_read("\0"s, {"!"});
  expect_read("\0\0\0\3"s, {"!"});
  expect_read("\0\0\0\3[1]\0\0\0\3[1"s, {"[1]", "!"});
}

TEST(LengthPrefix, what_is_sent_has_its_length_in_front) {
  const Limits limits;
  LengthPrefix framing{limits};
  Buffer out{"before"};
  static_cast<void>(out.reserve(framing.head_bytes()));
  out.grow(framing.head_bytes());
  out.append(std::string(0x1234, 'x'));
  framing.seal(out, 6, true);
  EXPECT_EQ(out.view(), "before\0\0\x12\x34"s + std::string(0x1234, 'x'));
}

}  // namespace
}  // namespace wirecall::framing
