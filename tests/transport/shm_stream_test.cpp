// A stream through shared memory, with a peer that keeps to the rules, and with one that does not.
#include "transport/shm_stream.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <thread>

#include "tests/transport/leaving_user.hpp"
#include "tests/transport/shm_fixture.hpp"

namespace wirecall::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// The two ends on one loop, with users.
struct Ends {
  explicit Ends(nanoseconds spin = nanoseconds{0}) {
    loop.spin_for(spin);
    one = pair.server.attach(loop);
    other = pair.client.attach(loop);
    one->start(one_user);
    other->start(other_user);
  }
  template <class Done>
  void turn_until(const Done& done) {
    for (int turns = 0; !done(); ++turns) {
      ASSERT_LT(turns, 100'000);
      loop.turn(milliseconds{1000});
    }
  }

  Loop loop;
  ShmPair pair;
  HeardUser one_user;
  HeardUser other_user;
  std::unique_ptr<ByteStream> one;
  std::unique_ptr<ByteStream> other;
};

std::string numbered(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i != bytes; ++i) text[i] = static_cast<char>(i * 2'654'435'761U >> 24U);
  return text;
}

TEST(ShmStream, carries_bytes_both_ways) {
  for (const nanoseconds spin : {nanoseconds{0}, nanoseconds{milliseconds{1}}}) {
    Ends ends{spin};
    ends.one->send(Buffer{"question"}, true);
    ends.other->send(Buffer{"answer"}, false);
    ends.turn_until([&] { return ends.one_user.sends == 1 && ends.other_user.sends == 1; });
    ends.turn_until([&] { return ends.one_user.text == "answer" && ends.other_user.text == "question"; });
  }
}

TEST(ShmStream, carries_more_than_the_ring_has_room_for) {
  Ends ends;
  const std::string text = numbered(20 * kShmRingBytes + 17);
  ends.one->send(Buffer{text}, false);
  EXPECT_EQ(ends.one->unsent(), text.size() - kShmRingBytes);
  ends.turn_until([&] { return ends.one_user.sends == 1 && ends.other_user.text.size() == text.size(); });
  EXPECT_EQ(ends.other_user.text, text);
  EXPECT_EQ(ends.one->unsent(), 0U);
}

TEST(ShmStream, receives_nothing_while_it_is_paused) {
  Ends ends;
  ends.other->pause();
  const std::string text = numbered(2 * kShmRingBytes);
  ends.one->send(Buffer{text}, false);
  for (int i = 0; i != 10; ++i) ends.loop.turn(nanoseconds{0});
  EXPECT_EQ(ends.other_user.text, "");
  EXPECT_EQ(ends.other->readable(), kShmRingBytes);
  EXPECT_EQ(ends.one_user.sends, 0);
  ends.other->resume();
  ends.turn_until([&] { return ends.other_user.text == text && ends.one_user.sends == 1; });
}

TEST(ShmStream, ends_in_one_direction_and_goes_on_in_the_other) {
  Ends ends;
  ends.one->send(Buffer{"last"}, false);
  ends.one->shut_down();
  ends.turn_until([&] { return ends.other_user.over; });
  EXPECT_EQ(ends.other_user.text, "last");
  ends.other->send(Buffer{"answer"}, false);
  ends.turn_until([&] { return ends.one_user.text == "answer"; });
  EXPECT_FALSE(ends.one_user.over);
  EXPECT_EQ(ends.one_user.error, 0);
}

TEST(ShmStream, that_is_destroyed_ends_for_its_peer_behind_what_it_sent) {
  Ends ends;
  ends.one->send(Buffer{"last"}, false);
  ends.one.reset();
  ends.turn_until([&] { return ends.other_user.over; });
  EXPECT_EQ(ends.other_user.text, "last");
  EXPECT_EQ(ends.other_user.error, 0);
  ends.other->send(Buffer{"too late"}, false);
  ends.turn_until([&] { return ends.other_user.error != 0 || ends.other_user.sends != 0; });
  if (ends.other_user.error == 0) {
    // It was in the ring before the end of the socket was seen; the next is not.
    ends.other->send(Buffer{numbered(2 * kShmRingBytes)}, false);
    ends.turn_until([&] { return ends.other_user.error != 0; });
  }
  EXPECT_EQ(ends.other_user.error, EPIPE);
}

TEST(ShmStream, of_a_peer_that_goes_in_the_middle_of_something_is_lost) {
  Ends ends;
  ends.other->pause();
  ends.one->send(Buffer{numbered(3 * kShmRingBytes)}, false);
  ends.one.reset();
  ends.other->resume();
  ends.turn_until([&] { return ends.other_user.error != 0; });
  EXPECT_EQ(ends.other_user.text.size(), kShmRingBytes);
  EXPECT_EQ(ends.other_user.error, ECONNRESET);
  EXPECT_FALSE(ends.other_user.over);
}

TEST(ShmStream, fails_for_who_sends_to_a_peer_that_has_gone) {
  Ends ends;
  ends.one->pause();
  ends.one->send(Buffer{numbered(3 * kShmRingBytes)}, false);
  ends.other.reset();
  ends.turn_until([&] { return ends.one_user.error != 0; });
  EXPECT_EQ(ends.one_user.error, EPIPE) << "though it is paused";
}

TEST(ShmStream, is_no_turn_of_a_loop_that_has_nothing_to_do) {
  Ends ends;
  ends.one->send(Buffer{"x"}, false);
  ends.turn_until([&] { return ends.other_user.text == "x" && ends.one_user.sends == 1; });
  for (int i = 0; i != 4; ++i) ends.loop.turn(nanoseconds{0});
  const auto begin = std::chrono::steady_clock::now();
  ends.loop.turn(milliseconds{20});
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds{19});
}

TEST(ShmStream, wakes_a_peer_that_sleeps_on_another_thread) {
  ShmPair pair;
  std::atomic<bool> over{false};
  std::thread answering{[&] {
    Loop loop;
    HeardUser user;
    const auto stream = pair.client.attach(loop);
    stream->start(user);
    for (std::size_t answered = 0; !over.load();) {
      loop.turn(milliseconds{1000});
      if (user.text.size() == answered) continue;
      stream->send(Buffer{user.text.substr(answered)}, false);
      answered = user.text.size();
      for (const int sends = user.sends; user.sends == sends;) loop.turn(milliseconds{1000});
    }
  }};
  Loop loop;
  HeardUser user;
  const auto stream = pair.server.attach(loop);
  stream->start(user);
  std::string sent;
  for (int i = 0; i != 2000; ++i) {
    if (i == 1999) over.store(true);
    sent += static_cast<char>('a' + i % 26);
    const int sends = user.sends;
    stream->send(Buffer{sent.substr(sent.size() - 1)}, false);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    while ((user.text.size() != sent.size() && !over) || user.sends == sends) {
      loop.turn(milliseconds{1000});
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "a wake-up was lost";
    }
  }
  answering.join();
  EXPECT_TRUE(sent.starts_with(user.text));
}

TEST(ShmStream, may_be_destroyed_by_its_user_within_each_call) {
  for (const char within : std::string{"resf"}) {
    Loop loop;
    ShmPair pair;
    HeardUser nobody;
    std::unique_ptr<ByteStream> peer = pair.client.attach(loop);
    peer->start(nobody);
    LeavingUser user{within};
    user.stream = pair.server.attach(loop);
    user.stream->start(user);
    switch (within) {
      case 'r': peer->send(Buffer{"one"}, true); break;
      case 'e': peer->shut_down(); break;
      case 's': user.stream->send(Buffer{"answer"}, true); break;
      default: peer->send(Buffer{numbered(2 * kShmRingBytes)}, true); peer.reset();
    }
    for (int i = 0; i < 20 && !user.left; ++i) loop.turn(milliseconds{10});
    EXPECT_TRUE(user.left) << within;
  }
}

// ---- a peer that keeps to nothing ----

// The memory as a peer sees it, without any of our classes.
struct RawPeer {
  explicit RawPeer(int memory) {
    size = 4096 + 2 * kShmRingBytes;
    bytes = static_cast<char*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
    EXPECT_NE(bytes, MAP_FAILED);
  }
  RawPeer(RawPeer&&) = delete;
  ~RawPeer() { ::munmap(bytes, size); }
  // The counters of the client's ring and of the server's, and whether somebody waits, by their places in the page.
  [[nodiscard]] std::atomic<std::uint64_t>& number(std::size_t at) const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(bytes + at);
  }
  [[nodiscard]] std::atomic<std::uint32_t>& word(std::size_t at) const {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(bytes + at);
  }

  std::size_t size = 0;
  char* bytes = nullptr;
};

struct Attacked {
  Attacked() : Attacked(ShmSegment::make().value()) {}

  Loop loop;
  HeardUser user;
  RawPeer peer;
  runtime::Descriptor peer_socket;
  std::unique_ptr<ByteStream> stream;

 private:
  explicit Attacked(std::pair<ShmSegment, runtime::Descriptor> made) : peer(made.second.get()) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    peer_socket = runtime::Descriptor{ends[1]};
    ShmConnection server{
        ShmLink{.segment = std::move(made.first), .role = ShmRole::server, .socket = runtime::Descriptor{ends[0]}}};
    stream = server.attach(loop);
    stream->start(user);
  }
};

constexpr std::size_t kServerRing = 0;
constexpr std::size_t kClientRing = 512;
constexpr std::size_t kWritten = 0;
constexpr std::size_t kRead = 128;
constexpr std::size_t kReaderWaits = 256;

TEST(ShmStream, of_a_peer_that_says_to_have_written_what_it_cannot_have_fails) {
  for (const std::uint64_t written : {std::uint64_t{kShmRingBytes + 1}, ~std::uint64_t{0}, std::uint64_t{1} << 63U}) {
    Attacked attacked;
    attacked.peer.number(kClientRing + kWritten).store(written);
    for (int i = 0; i < 5 && attacked.user.error == 0; ++i) attacked.loop.turn(nanoseconds{0});
    EXPECT_EQ(attacked.user.error, EPROTO) << written;
    EXPECT_EQ(attacked.user.text, "");
  }
}

TEST(ShmStream, of_a_peer_that_says_to_have_read_what_was_not_written_fails) {
  Attacked attacked;
  attacked.peer.number(kServerRing + kRead).store(7);
  attacked.stream->send(Buffer{"answer"}, false);
  for (int i = 0; i < 5 && attacked.user.error == 0; ++i) attacked.loop.turn(nanoseconds{0});
  EXPECT_EQ(attacked.user.error, EPROTO);
}

// Sends until the socket is full.
void fill(int socket) {
  const std::string many(1000, 'x');
  while (::send(socket, many.data(), many.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
}

TEST(ShmStream, of_a_peer_that_sends_wake_ups_for_nothing_goes_on) {
  Attacked attacked;
  for (int i = 0; i < 5; ++i) {
    fill(attacked.peer_socket.get());
    attacked.loop.turn(nanoseconds{0});
  }
  EXPECT_EQ(attacked.user.error, 0);
  attacked.stream->send(Buffer{"answer"}, false);
  while (attacked.user.sends == 0) attacked.loop.turn(milliseconds{100});
  EXPECT_EQ((std::string_view{attacked.peer.bytes + 4096, 6}), "answer");
}

// The socket has room for some hundred wake-ups.
TEST(ShmStream, of_a_peer_that_reads_no_wake_up_goes_on) {
  Attacked attacked;
  for (int i = 0; i != 5000; ++i) {
    attacked.peer.word(kServerRing + kReaderWaits).store(1);
    attacked.stream->send(Buffer{"x"}, false);
    while (attacked.user.sends == i) attacked.loop.turn(milliseconds{100});
  }
  EXPECT_EQ(attacked.user.error, 0);
  EXPECT_EQ(attacked.peer.number(kServerRing + kWritten).load(), 5000U);
}

// Closing a unix socket with unread bytes resets it.
TEST(ShmStream, of_a_peer_that_goes_with_wake_ups_unread_delivers_what_it_sent) {
  Attacked attacked;
  attacked.peer.word(kServerRing + kReaderWaits).store(1);
  attacked.stream->send(Buffer{"x"}, false);
  while (attacked.user.sends == 0) attacked.loop.turn(milliseconds{100});
  std::memcpy(attacked.peer.bytes + 4096 + kShmRingBytes, "last", 4);
  attacked.peer_socket = runtime::Descriptor{};
  attacked.stream->pause();
  for (int i = 0; i != 3; ++i) attacked.loop.turn(nanoseconds{0});
  attacked.peer.number(kClientRing + kWritten).store(4);
  attacked.stream->resume();
  while (attacked.user.error == 0) attacked.loop.turn(milliseconds{100});
  EXPECT_EQ(attacked.user.text, "last");
  EXPECT_EQ(attacked.user.error, ECONNRESET);
}

// Our counters and our bytes are overwritten all the time: what is lost is that peer's own, and no memory is touched
// that is not the ring's.
TEST(ShmStream, outlives_a_peer_that_rewrites_everything_while_it_is_read) {
  for (unsigned seed = 1; seed != 9; ++seed) {
    Attacked attacked;
    std::atomic<bool> over{false};
    std::thread rewriting{[&] {
      std::minstd_rand random{seed};
      std::uint64_t written = 0;
      while (!over.load()) {
        const bool wild = seed % 2 == 0 && random() % 1000 == 0;
        written += random() % 200;
        attacked.peer.number(kClientRing + kWritten).store(wild ? random() : written);
        for (int i = 0; i != 50; ++i) attacked.peer.bytes[random() % attacked.peer.size & ~std::size_t{1}] = '{';
        if (random() % 50 == 0)
          static_cast<void>(::send(attacked.peer_socket.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL));
      }
    }};
    for (int i = 0; i != 300 && attacked.user.error == 0; ++i) {
      if (attacked.stream->unsent() == 0 && attacked.user.sends == i) attacked.stream->send(Buffer{"{}"}, false);
      attacked.loop.turn(milliseconds{1});
    }
    over.store(true);
    rewriting.join();
    EXPECT_TRUE(attacked.user.error == 0 || attacked.user.error == EPROTO) << attacked.user.error;
  }
}

}  // namespace
}  // namespace wirecall::transport
