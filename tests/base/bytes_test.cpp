// Buffer: what is appended stays, room is there before it counts, and the padding behind the content is readable.
#include "wirecall/bytes.hpp"

#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <utility>

namespace wirecall {
namespace {

TEST(Buffer, NewOneIsEmptyAndOwnsNothing) {
  const Buffer buffer;
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.size(), 0U);
  EXPECT_EQ(buffer.capacity(), 0U);
  EXPECT_EQ(buffer.view(), "");
}

TEST(Buffer, KeepsWhatIsAppendedHoweverItGrows) {
  Buffer buffer;
  std::string expected;
  for (std::size_t i = 0; i < 3000; ++i) {
    const std::string part(i % 97, static_cast<char>('a' + i % 26));
    buffer.append(part);
    buffer.push_back('|');
    expected += part + '|';
  }
  EXPECT_TRUE(buffer.view() == expected);
  EXPECT_LE(buffer.size(), buffer.capacity());
}

TEST(Buffer, EmptyAppendChangesNothing) {
  Buffer buffer;
  buffer.append({});
  EXPECT_EQ(buffer.view(), "");
  buffer.append("x");
  buffer.append({});
  EXPECT_EQ(buffer.view(), "x");
}

TEST(Buffer, ReservedBytesCountOnceTheyAreSaidTo) {
  Buffer buffer{"ab"};
  char* to = buffer.reserve(1000);
  EXPECT_EQ(to, buffer.data() + 2);
  EXPECT_GE(buffer.capacity(), 1002U);
  std::memset(to, 'x', 1000 + kPaddingBytes);  // the padding may be written too
  EXPECT_EQ(buffer.size(), 2U);
  buffer.set_end(to + 3);
  EXPECT_EQ(buffer.view(), "abxxx");
  buffer.grow(2);
  EXPECT_EQ(buffer.view(), "abxxxxx");
}

TEST(Buffer, ReservingWhatIsThereMovesNothing) {
  Buffer buffer;
  const char* const first = buffer.reserve(100);
  EXPECT_EQ(buffer.reserve(buffer.capacity()), first);
}

TEST(Buffer, PaddedWritesZerosBehindTheContent) {
  for (const std::size_t size : {0U, 1U, 447U, 448U, 449U, 5000U}) {
    Buffer buffer{std::string(size, 'x')};
    buffer.append("tail");
    buffer.truncate(size);
    const std::string_view text = buffer.padded();
    EXPECT_EQ(text.size(), size);
    for (std::size_t i = 0; i < kPaddingBytes; ++i) ASSERT_EQ(text.data()[size + i], '\0');
  }
  Buffer untouched;
  EXPECT_EQ(untouched.padded().size(), 0U);
  EXPECT_EQ(*untouched.data(), '\0');
}

TEST(Buffer, TruncateClearAndDropFrontKeepTheRest) {
  Buffer buffer{"0123456789"};
  buffer.truncate(8);
  EXPECT_EQ(buffer.view(), "01234567");
  buffer.drop_front(3);
  EXPECT_EQ(buffer.view(), "34567");
  buffer.drop_front(0);
  EXPECT_EQ(buffer.view(), "34567");
  buffer.drop_front(5);
  EXPECT_TRUE(buffer.empty());
  buffer.append("again");
  const std::size_t capacity = buffer.capacity();
  buffer.clear();
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.capacity(), capacity);
}

TEST(Buffer, ReleaseGivesTheMemoryBack) {
  Buffer buffer{"x"};
  buffer.release();
  EXPECT_EQ(buffer.capacity(), 0U);
  buffer.append("y");
  EXPECT_EQ(buffer.view(), "y");
}

TEST(Buffer, MovesItsMemory) {
  Buffer first{"first"};
  const char* const data = first.data();
  Buffer second{std::move(first)};
  EXPECT_EQ(second.view(), "first");
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.size(), 0U);  // NOLINT(bugprone-use-after-move): it is empty, and says so
  first.append("used again");
  second = std::move(first);
  EXPECT_EQ(second.view(), "used again");
  Buffer& same = second;
  second = std::move(same);
  EXPECT_EQ(second.view(), "used again");
}

}  // namespace
}  // namespace wirecall
