// A TLS stream over one that the test holds, which decides when what is sent has gone.
#include "transport/tls_stream.hpp"

#include <cerrno>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/runtime/simulated_backend.hpp"
#include "tests/transport/tls_pair.hpp"

namespace wirecall::transport {
namespace {

using namespace std::string_literals;
using State = TlsSession::State;

// What has been asked of the stream below.
struct Below {
  std::string sent;  // in the order of the sends
  Buffer sending;    // not yet on its way
  bool is_sending = false;
  bool prompt = false;
  bool shut_down = false;
  bool paused = false;
  bool destroyed = false;
  int sends = 0;
  StreamUser* user = nullptr;

  // What is being sent is on its way now.
  void pass() {
    ASSERT_TRUE(std::exchange(is_sending, false));
    user->sent(std::move(sending));
  }
  void pass_all() {
    while (is_sending) pass();
  }
  // Bytes come, from a block of their exact size and its padding.
  void bring(std::string_view bytes) {
    Buffer block{bytes};
    static_cast<void>(block.padded());
    user->received({block.data(), block.size()});
  }
};

class FakeStream final : public ByteStream {
 public:
  explicit FakeStream(std::shared_ptr<Below> below) : below_(std::move(below)) {}
  FakeStream(FakeStream&&) = delete;
  ~FakeStream() override { below_->destroyed = true; }
  void start(StreamUser& user) override { below_->user = &user; }
  void send(Buffer bytes, bool prompt) override {
    ASSERT_FALSE(std::exchange(below_->is_sending, true));
    ASSERT_FALSE(below_->shut_down);
    below_->sent += bytes.view();
    below_->sending = std::move(bytes);
    below_->prompt = prompt;
    ++below_->sends;
  }
  void pause() override { below_->paused = true; }
  void resume() override { below_->paused = false; }
  [[nodiscard]] std::size_t readable() const noexcept override { return 7; }
  [[nodiscard]] std::size_t unsent() const noexcept override { return below_->is_sending ? below_->sending.size() : 0; }
  void shut_down() override {
    ASSERT_FALSE(below_->is_sending);
    ASSERT_FALSE(std::exchange(below_->shut_down, true));
  }
  [[nodiscard]] std::string peer_source() const override { return "192.0.2.7"; }

 private:
  std::shared_ptr<Below> below_;
};

struct User final : StreamUser {
  void received(std::span<char> bytes) override {
    EXPECT_EQ(*(bytes.data() + bytes.size()), '\0') << "padding";
    heard.append(bytes.data(), bytes.size());
    if (on_received) on_received();
  }
  void ended() override {
    EXPECT_FALSE(over());
    has_ended = true;
  }
  void sent(Buffer buffer) override {
    EXPECT_EQ(error, 0);
    sent_bytes.push_back(buffer.size());
  }
  void failed(int why) override {
    EXPECT_EQ(error, 0) << "nothing comes after a failure";
    error = why;
  }
  [[nodiscard]] bool sends_in_turn() const noexcept override { return answers; }
  [[nodiscard]] bool over() const { return has_ended || error != 0; }

  std::string heard;
  std::function<void()> on_received;
  std::vector<std::size_t> sent_bytes;
  bool answers = false;
  bool has_ended = false;
  int error = 0;
};

struct Seen {
  bool admits = true;
  std::string events;
};

class Observer final : public TlsObserver {
 public:
  explicit Observer(Seen& seen) : seen_(&seen) {}
  ~Observer() override {
    if (!told_) seen_->events += "gone ";
  }
  bool agreed(const TlsSession&) override {
    told_ = true;
    seen_->events += "agreed ";
    return seen_->admits;
  }
  void refused(const TlsSession& session, const std::string& source) override {
    told_ = true;
    seen_->events += "refused(" + session.failure() + ", " + source + ") ";
  }

 private:
  Seen* seen_;
  bool told_ = false;
};

class TlsStreamTest : public testing::Test {
 protected:
  TlsStreamTest() {
    stream =
        std::make_unique<TlsStream>(loop, std::make_unique<FakeStream>(below),
                                    std::make_unique<TlsSession>(server_context()), std::make_unique<Observer>(seen));
    stream->start(user);
  }
  // Everything that either has to say goes to the other.
  void exchange() {
    for (;;) {
      if (peer.shake_hands()) {
        peer_heard += peer.read();
      }
      const std::string to_us = peer.take();
      below->pass_all();
      const std::string to_peer = std::exchange(below->sent, {});
      if (to_us.empty() && to_peer.empty()) return;
      if (!to_us.empty()) below->bring(to_us);
      peer.feed(to_peer);
    }
  }
  void agree() {
    exchange();
    ASSERT_EQ(seen.events, "agreed ");
    below->sends = 0;
  }
  void send(const std::string& text, bool prompt = false) { stream->send(Buffer{text}, prompt); }

  Loop loop{std::make_unique<runtime::SimulatedBackend>(1)};
  std::shared_ptr<Below> below = std::make_shared<Below>();
  Seen seen;
  User user;
  TlsPeer peer;
  std::string peer_heard;
  std::unique_ptr<TlsStream> stream;
};

TEST_F(TlsStreamTest, carries_bytes_both_ways) {
  agree();
  peer.write("question");
  exchange();
  EXPECT_EQ(user.heard, "question");
  send("answer");
  EXPECT_TRUE(user.sent_bytes.empty()) << "not before it is on its way";
  exchange();
  EXPECT_EQ(peer_heard, "answer");
  EXPECT_EQ(user.sent_bytes, std::vector{std::size_t{6}});
  EXPECT_EQ(stream->peer_source(), "192.0.2.7");
  EXPECT_EQ(stream->readable(), 7U);
  EXPECT_EQ(stream->tls()->version(), "TLSv1.3");
}

TEST_F(TlsStreamTest, sends_what_is_sent_before_the_handshake_has_ended_behind_it) {
  send("early");
  EXPECT_FALSE(below->is_sending);
  EXPECT_EQ(stream->unsent(), 5U);
  exchange();
  EXPECT_EQ(peer_heard, "early");
  EXPECT_EQ(user.sent_bytes.size(), 1U);
  EXPECT_EQ(stream->unsent(), 0U);
}

// A client's last part of the handshake, and its first request with it.
TEST_F(TlsStreamTest, sends_tickets_with_an_answer_that_is_made_in_the_same_turn_and_else_at_once) {
  for (const bool answers : {true, false}) {
    const auto made = std::make_shared<Below>();
    User one;
    TlsPeer other;
    TlsStream answering{loop, std::make_unique<FakeStream>(made), std::make_unique<TlsSession>(server_context())};
    answering.start(one);
    one.answers = answers;
    other.shake_hands();
    made->bring(other.take());
    EXPECT_EQ(made->sends, 1) << "although the user would send: not before there is something to read";
    made->pass_all();
    other.feed(std::exchange(made->sent, {}));
    ASSERT_TRUE(other.shake_hands());
    other.write("question");
    made->bring(other.take());
    EXPECT_EQ(one.heard, "question");
    EXPECT_EQ(made->sends, answers ? 1 : 2);
    made->pass_all();
    answering.send(Buffer{"answer"}, false);
    EXPECT_EQ(made->sends, answers ? 2 : 3);
    other.feed(made->sent);
    EXPECT_EQ(other.read(), "answer");
    EXPECT_NE(other.session(), nullptr);
    made->pass_all();
    EXPECT_EQ(one.sent_bytes, std::vector{std::size_t{6}});
  }
}

TEST_F(TlsStreamTest, sends_what_is_large_in_parts_each_when_the_one_before_has_gone) {
  agree();
  std::string large(1'000'000, '\0');
  for (std::size_t i = 0; i != large.size(); ++i) large[i] = static_cast<char>('a' + i % 26);
  send(large);
  std::size_t last = stream->unsent();
  int parts = 0;
  while (below->is_sending) {
    ++parts;
    EXPECT_LE(below->sending.size(), 300U * 1024);
    EXPECT_TRUE(below->prompt || !user.sent_bytes.empty() || below->sending.size() < 256U * 1024);
    EXPECT_LE(stream->unsent(), last);
    last = stream->unsent();
    EXPECT_TRUE(user.sent_bytes.empty());
    peer.feed(std::exchange(below->sent, {}));
    peer_heard += peer.read();
    below->pass();
  }
  EXPECT_EQ(parts, 4);
  EXPECT_EQ(peer_heard, large);
  EXPECT_EQ(user.sent_bytes, std::vector{large.size()});
  EXPECT_EQ(stream->unsent(), 0U);
}

TEST_F(TlsStreamTest, asks_to_be_told_promptly_where_its_user_does) {
  agree();
  send("a", true);
  EXPECT_TRUE(below->prompt);
  below->pass();
  send("a", false);
  EXPECT_FALSE(below->prompt);
}

TEST_F(TlsStreamTest, answers_of_the_session_itself_wait_for_what_is_being_sent) {
  agree();
  send("first");
  ASSERT_TRUE(below->is_sending);
  // OpenSSL answers the first of two new keys before it reads the second.
  for (int i = 0; i < 2; ++i) {
    SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_REQUESTED);
    SSL_do_handshake(peer.ssl());
  }
  peer.write("go on");
  below->bring(peer.take());
  EXPECT_EQ(user.heard, "go on");
  EXPECT_EQ(below->sends, 1);
  below->pass();
  EXPECT_EQ(below->sends, 2) << "the answer to the new key";
  EXPECT_EQ(user.sent_bytes.size(), 0U) << "which goes with it";
  below->pass();
  EXPECT_EQ(user.sent_bytes.size(), 1U);
  send("second");
  exchange();
  EXPECT_EQ(peer_heard, "firstsecond");
}

TEST_F(TlsStreamTest, a_send_from_within_a_receive_is_one_send) {
  agree();
  user.on_received = [&] { send("answer"); };
  peer.write("question");
  below->bring(peer.take());
  EXPECT_EQ(below->sends, 1);
  exchange();
  EXPECT_EQ(peer_heard, "answer");
}

TEST_F(TlsStreamTest, tells_that_the_peer_sends_no_more_once) {
  agree();
  peer.write("last");
  peer.shut_down();
  below->bring(peer.take());
  EXPECT_EQ(user.heard, "last");
  EXPECT_TRUE(user.has_ended);
  below->user->ended();
  EXPECT_EQ(user.error, 0);
  send("answer");
  stream->shut_down();
  exchange();
  EXPECT_EQ(peer_heard, "answer");
  EXPECT_TRUE(peer.ended());
  EXPECT_TRUE(below->shut_down);
}

TEST_F(TlsStreamTest, an_end_that_the_peer_has_not_said_is_a_failure) {
  agree();
  below->user->ended();
  EXPECT_FALSE(user.has_ended);
  EXPECT_EQ(user.error, ECONNRESET);
}

TEST_F(TlsStreamTest, an_end_within_a_record_is_a_failure_and_nothing_of_it_is_told) {
  agree();
  peer.write("cut short");
  const std::string record = peer.take();
  below->bring(record.substr(0, record.size() - 1));
  below->user->ended();
  EXPECT_EQ(user.heard, "");
  EXPECT_EQ(user.error, ECONNRESET);
}

TEST_F(TlsStreamTest, ends_what_it_sends_behind_all_that_it_sends) {
  agree();
  send(std::string(600'000, 'x'));
  stream->shut_down();
  EXPECT_FALSE(below->shut_down);
  exchange();
  EXPECT_EQ(peer_heard.size(), 600'000U);
  EXPECT_TRUE(peer.ended());
  EXPECT_TRUE(below->shut_down);
  EXPECT_EQ(user.sent_bytes.size(), 1U);
}

TEST_F(TlsStreamTest, that_has_ended_what_it_sends_still_receives) {
  agree();
  stream->shut_down();
  exchange();
  EXPECT_TRUE(below->shut_down);
  peer.write("more");
  below->bring(peer.take());
  EXPECT_EQ(user.heard, "more");
  // An alert has nowhere to go.
  below->bring("nonsense that is no record");
  EXPECT_FALSE(below->is_sending);
  EXPECT_EQ(user.error, EPROTO);
}

TEST_F(TlsStreamTest, whose_user_sends_more_when_told_that_it_may_sends_it) {
  agree();
  send("first");
  below->pass();
  send(std::string(300'000, 'x'));
  EXPECT_GT(stream->unsent(), 300'000U - 256U * 1024);
  below->pass();
  below->pass();
  EXPECT_EQ(user.sent_bytes, (std::vector<std::size_t>{5, 300'000}));
}

TEST_F(TlsStreamTest, says_farewell_until_that_is_on_its_way) {
  agree();
  EXPECT_TRUE(stream->says_farewell());
  EXPECT_TRUE(stream->says_farewell());
  EXPECT_EQ(below->sends, 1);
  exchange();
  EXPECT_TRUE(peer.ended());
  EXPECT_FALSE(stream->says_farewell());
  EXPECT_EQ(user.error, 0);
}

TEST_F(TlsStreamTest, that_has_failed_says_no_farewell) {
  agree();
  below->user->failed(ECONNRESET);
  EXPECT_FALSE(stream->says_farewell());
  EXPECT_FALSE(below->is_sending);
}

TEST_F(TlsStreamTest, may_be_shut_down_before_the_handshake_has_ended) {
  stream->shut_down();
  EXPECT_TRUE(below->shut_down);
}

TEST_F(TlsStreamTest, tells_of_a_failure_once_its_alert_has_been_sent) {
  agree();
  below->bring("nonsense that is no record");
  EXPECT_EQ(user.error, 0);
  ASSERT_TRUE(below->is_sending);
  peer.feed(std::exchange(below->sent, {}));
  peer.read();
  EXPECT_TRUE(peer.failure.contains("alert")) << peer.failure;
  below->bring("more of it");
  below->pass();
  EXPECT_EQ(user.error, EPROTO);
  EXPECT_EQ(user.heard, "");
}

TEST_F(TlsStreamTest, sends_the_alert_of_a_failure_behind_what_is_being_sent) {
  agree();
  send("first");
  below->bring("nonsense that is no record");
  EXPECT_EQ(below->sends, 1);
  below->pass();
  EXPECT_EQ(user.error, 0);
  ASSERT_TRUE(below->is_sending);
  below->pass();
  EXPECT_EQ(user.error, EPROTO);
  peer.feed(std::exchange(below->sent, {}));
  EXPECT_EQ(peer.read(), "first");
  EXPECT_TRUE(peer.failure.contains("alert")) << peer.failure;
}

TEST_F(TlsStreamTest, tells_what_came_before_a_failure) {
  agree();
  peer.write("before");
  below->bring(peer.take() + "nonsense that is no record");
  EXPECT_EQ(user.heard, "before");
  below->pass_all();
  EXPECT_EQ(user.error, EPROTO);
}

TEST_F(TlsStreamTest, passes_a_failure_of_the_stream_below_on_once) {
  agree();
  send("x");
  below->user->failed(ECONNABORTED);
  EXPECT_EQ(user.error, ECONNABORTED);
  below->user->failed(ECONNRESET);
  below->user->ended();
  peer.write("late");
  below->bring(peer.take());
  EXPECT_EQ(user.heard, "");
}

TEST_F(TlsStreamTest, that_fails_while_its_alert_is_sent_tells_of_the_first_failure) {
  agree();
  below->bring("nonsense that is no record");
  below->user->failed(ECONNRESET);
  EXPECT_EQ(user.error, EPROTO);
}

TEST_F(TlsStreamTest, tells_its_observer_of_a_handshake_that_is_refused) {
  below->bring("GET / HTTP/1.1\r\n");
  EXPECT_EQ(seen.events, "refused(http request, 192.0.2.7) ");
  below->pass_all();
  EXPECT_EQ(user.error, EPROTO);
  stream.reset();
  EXPECT_EQ(seen.events, "refused(http request, 192.0.2.7) ");
}

TEST_F(TlsStreamTest, tells_its_observer_of_one_that_goes_within_its_handshake) {
  peer.shake_hands();
  below->bring(peer.take().substr(0, 50));
  below->user->ended();
  EXPECT_EQ(user.error, ECONNRESET);
  EXPECT_EQ(seen.events, "");
  stream.reset();
  EXPECT_EQ(seen.events, "gone ");
}

TEST_F(TlsStreamTest, does_not_wait_for_a_peer_that_has_it_answer_and_reads_nothing) {
  TlsPeer old{{.version_max = TLS1_2_VERSION}};
  const auto made = std::make_shared<Below>();
  User one;
  TlsStream other{loop, std::make_unique<FakeStream>(made), std::make_unique<TlsSession>(server_context())};
  other.start(one);
  for (int i = 0; i < 4; ++i) {
    old.shake_hands();
    made->bring(old.take());
    made->pass_all();
    old.feed(std::exchange(made->sent, {}));
  }
  ASSERT_EQ(other.tls()->state(), State::open);
  other.send(Buffer{"never read"}, false);
  // Asks for what is refused each time, by an alert.
  for (int i = 0; i < 10'000 && one.error == 0; ++i) {
    SSL_renegotiate(old.ssl());
    SSL_do_handshake(old.ssl());
    const std::string bytes = old.take();
    if (bytes.empty()) break;
    made->bring(bytes);
    EXPECT_LT(other.unsent(), 100'000U);
  }
  made->pass_all();
  SUCCEED();
}

TEST_F(TlsStreamTest, may_go_at_any_moment) {
  // Each moment of a conversation, one stream each.
  for (int moment = 0; moment < 12; ++moment) {
    const auto made = std::make_shared<Below>();
    Seen seen;
    User one;
    TlsPeer other;
    int now = 0;
    auto going =
        std::make_unique<TlsStream>(loop, std::make_unique<FakeStream>(made),
                                    std::make_unique<TlsSession>(server_context()), std::make_unique<Observer>(seen));
    const auto step = [&](const std::function<void()>& act) {
      if (going == nullptr) return;
      if (now++ == moment) {
        going.reset();
        return;
      }
      act();
    };
    step([&] { going->start(one); });
    step([&] { other.shake_hands(), made->bring(other.take()); });
    step([&] { made->pass_all(); });
    step([&] { other.feed(made->sent), other.shake_hands(), made->bring(other.take()); });
    step([&] { made->pass_all(); });
    step([&] { going->send(Buffer{std::string(600'000, 'x')}, false); });
    step([&] { made->pass(); });
    step([&] { other.write("y"), made->bring(other.take()); });
    step([&] { going->shut_down(); });
    step([&] { made->pass(); });
    step([&] { made->bring("nonsense that is no record"); });
    step([&] { made->pass_all(); });
    EXPECT_EQ(going, nullptr) << moment;
    EXPECT_TRUE(made->destroyed);
    EXPECT_TRUE(seen.events == "gone " || seen.events == "agreed ") << moment << seen.events;
  }
}

}  // namespace
}  // namespace wirecall::transport
