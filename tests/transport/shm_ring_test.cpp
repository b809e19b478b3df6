#include "transport/shm_ring.hpp"

#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace wirecall::transport {
namespace {

struct Ring {
  explicit Ring(std::size_t capacity) : bytes(new char[capacity]), size(capacity) {}
  [[nodiscard]] ShmWriter writer() { return {header, bytes.get(), size}; }
  [[nodiscard]] ShmReader reader() { return {header, bytes.get(), size}; }

  ShmRingHeader header;
  std::unique_ptr<char[]> bytes;  // of exact size, so that ASan sees a step beyond it
  std::size_t size;
};

std::string taken(ShmReader& reader, std::size_t count) {
  std::string text(count, '\0');
  reader.read(text.data(), count);
  return text;
}

TEST(ShmRing, is_empty_at_first_and_takes_no_more_than_its_capacity) {
  Ring ring{16};
  ShmWriter writer = ring.writer();
  ShmReader reader = ring.reader();
  EXPECT_EQ(reader.available(), 0U);
  EXPECT_EQ(writer.room(), 16U);
  EXPECT_EQ(writer.write("0123456789abcdefgh"), 16U);
  EXPECT_EQ(writer.write("more"), 0U);
  EXPECT_EQ(reader.available(), 16U);
  EXPECT_EQ(taken(reader, 16), "0123456789abcdef");
  EXPECT_EQ(writer.room(), 16U);
}

TEST(ShmRing, has_what_was_written_in_order_wherever_it_is_cut) {
  for (unsigned seed = 1; seed != 50; ++seed) {
    std::minstd_rand random{seed};
    Ring ring{64};
    ShmWriter writer = ring.writer();
    ShmReader reader = ring.reader();
    std::string sent;
    std::string received;
    for (char next = 0; sent.size() < 5000;) {
      std::string part(random() % 80, '\0');
      for (char& byte : part) byte = next++;
      const std::size_t took = writer.write(part).value();
      next = static_cast<char>(next - static_cast<char>(part.size() - took));
      sent += part.substr(0, took);
      received += taken(reader, random() % (reader.available().value() + 1));
      ASSERT_EQ(writer.room().value() + reader.available().value(), 64U);
    }
    received += taken(reader, reader.available().value());
    ASSERT_EQ(received, sent) << seed;
  }
}

TEST(ShmRing, believes_no_counter_that_cannot_be) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  Ring ring{16};
  ShmWriter writer = ring.writer();
  ShmReader reader = ring.reader();
  ASSERT_EQ(writer.write("0123"), 4U);
  EXPECT_EQ(taken(reader, 2), "01");
  for (const std::uint64_t read : {std::uint64_t{5}, std::uint64_t{4 + (1ULL << 32)}, kMost - 12, kMost / 2}) {
    ring.header.read.store(read);
    EXPECT_EQ(writer.room(), std::nullopt) << read;
    EXPECT_EQ(writer.write("more than there was room for"), std::nullopt) << read;
  }
  for (const std::uint64_t read : {0U, 1U, 2U, 3U, 4U}) {
    ring.header.read.store(read);
    EXPECT_EQ(writer.room(), 16 - (4 - read)) << "it can be, whether it is so or not";
  }
  for (const std::uint64_t written :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{19}, std::uint64_t{1ULL << 32}, kMost}) {
    ring.header.written.store(written);
    EXPECT_EQ(reader.available(), std::nullopt) << written;
  }
}

TEST(ShmRing, says_once_that_the_other_end_is_to_be_woken) {
  Ring ring{16};
  ShmWriter writer = ring.writer();
  ShmReader reader = ring.reader();
  EXPECT_FALSE(writer.wakes_reader());
  reader.wait();
  EXPECT_TRUE(writer.wakes_reader());
  EXPECT_FALSE(writer.wakes_reader());
  reader.wait();
  reader.wait_no_more();
  EXPECT_FALSE(writer.wakes_reader());
  EXPECT_FALSE(reader.wakes_writer());
  writer.wait();
  EXPECT_TRUE(reader.wakes_writer());
  EXPECT_FALSE(reader.wakes_writer());
}

TEST(ShmRing, ends_behind_what_was_written) {
  Ring ring{16};
  ShmWriter writer = ring.writer();
  ShmReader reader = ring.reader();
  EXPECT_FALSE(reader.ended());
  ASSERT_EQ(writer.write("last"), 4U);
  writer.end();
  EXPECT_TRUE(reader.ended());
  EXPECT_EQ(reader.available(), 4U);
}

// ThreadSanitizer sees here whether each end may touch what the other one has left to it.
TEST(ShmRing, carries_bytes_between_two_threads) {
  constexpr std::uint32_t kNumbers = 200'000;
  Ring ring{256};
  std::thread writing{[&] {
    ShmWriter writer = ring.writer();
    for (std::uint32_t n = 0; n != kNumbers;) {
      std::array<char, sizeof n> bytes;
      std::memcpy(bytes.data(), &n, sizeof n);
      if (writer.room().value() < sizeof n) {
        std::this_thread::yield();
        continue;
      }
      static_cast<void>(writer.write({bytes.data(), bytes.size()}));
      ++n;
    }
    writer.end();
  }};
  ShmReader reader = ring.reader();
  std::uint32_t expected = 0;
  for (bool over = false; !over;) {
    const bool ended = reader.ended();
    const std::size_t count = reader.available().value();
    over = ended && count == 0;
    if (count == 0) std::this_thread::yield();
    for (std::size_t at = 0; at != count; at += sizeof expected) {
      std::uint32_t number = 0;
      reader.read(reinterpret_cast<char*>(&number), sizeof number);
      ASSERT_EQ(number, expected++);
    }
  }
  writing.join();
  EXPECT_EQ(expected, kNumbers);
}

}  // namespace
}  // namespace wirecall::transport
