// Where connections come from, by the kind of endpoint: sockets, this process itself, and standard input and output,
// which are tried in a process of their own.
#include "transport/acceptor.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

#include "runtime/backend.hpp"
#include "transport/setup.hpp"

namespace wirecall::transport {
namespace {

using std::chrono::milliseconds;

void unasked(int error) { ADD_FAILURE() << error; }

// A stream whose user answers each run of bytes with the same in capitals, and ends when the peer does.
class Shouter final : public StreamUser {
 public:
  Shouter(Loop& loop, PendingConnection connection) : stream_(connection.attach(loop)) { stream_->start(*this); }
  void received(std::span<char> bytes) override {
    for (const char c : bytes) waiting_ += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    answer();
  }
  void ended() override {
    input_ended_ = true;
    answer();
  }
  void sent(Buffer) override {
    sending_ = false;
    answer();
  }
  void failed(int) override { over = true; }

  bool over = false;

 private:
  void answer() {
    if (sending_) return;
    if (waiting_.empty()) {
      over = input_ended_;
      return;
    }
    sending_ = true;
    stream_->send(Buffer{std::exchange(waiting_, {})}, true);
  }

  std::unique_ptr<ByteStream> stream_;
  std::string waiting_;
  bool sending_ = false;
  bool input_ended_ = false;
};

// Serves one connection of `acceptor` to its end.
void serve_one(Loop& loop, std::unique_ptr<Shouter>& shouter) {
  while (shouter == nullptr || !shouter->over) loop.turn();
  shouter.reset();
  loop.turn(milliseconds{0});
}

std::string read_all(int fd) {
  std::string all;
  char block[65536];
  ssize_t got;
  while ((got = ::read(fd, block, sizeof block)) > 0) all.append(block, static_cast<std::size_t>(got));
  return all;
}

// What comes back for `text` from a connection to `endpoint`; its descriptor is made blocking.
std::string answer_to(const Endpoint& endpoint, std::string_view text) {
  const Descriptor socket{connect_to(endpoint, milliseconds{5000}).release_socket()};
  ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
  EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  ::shutdown(socket.get(), SHUT_WR);
  return read_all(socket.get());
}

class AcceptorTest : public testing::TestWithParam<std::string> {};

TEST_P(AcceptorTest, a_connection_carries_bytes_both_ways_between_threads) {
  char name[] = "/tmp/wirecall-test-XXXXXX";
  const std::string folder = ::mkdtemp(name);
  std::string uri = GetParam();
  if (uri == "unix") uri = "unix://" + folder + "/calls.sock";
  Loop loop;
  std::unique_ptr<Shouter> shouter;
  {
    const auto acceptor = open_acceptor(
        loop, Endpoint{uri},
        [&](PendingConnection connection) { shouter = std::make_unique<Shouter>(loop, std::move(connection)); },
        unasked);
    EXPECT_FALSE(acceptor->exhausted());
    for (int i = 0; i < 3; ++i) {
      std::string got;
      std::thread client{[&] { got = answer_to(acceptor->endpoint(), "hello " + std::to_string(i)); }};
      serve_one(loop, shouter);
      client.join();
      EXPECT_EQ(got, "HELLO " + std::to_string(i));
    }
  }
  loop.turn(milliseconds{0});
  std::filesystem::remove_all(folder);
}

TEST_P(AcceptorTest, an_endpoint_is_free_again_when_its_acceptor_is_gone_and_refused_before) {
  if (GetParam() == "unix") return;  // endpoint_socket_test.cpp has it
  Loop loop;
  Endpoint endpoint{GetParam()};
  for (int i = 0; i < 2; ++i) {
    auto acceptor = open_acceptor(loop, endpoint, [](PendingConnection) { FAIL(); }, unasked);
    endpoint = acceptor->endpoint();
    EXPECT_THROW((void)open_acceptor(loop, endpoint, [](PendingConnection) {}, unasked), std::runtime_error);
    loop.turn(milliseconds{0});
    acceptor.reset();
    loop.turn(milliseconds{0});
    EXPECT_THROW((void)connect_to(endpoint, milliseconds{1000}), std::runtime_error);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, AcceptorTest, testing::Values("tcp://127.0.0.1:0", "unix", "inproc://shouter"),
                         [](const auto& info) { return info.param.substr(0, info.param.find(':')); });

// Processes that accept on one socket: an acceptor stands in line anew after each connection.
class SharedAcceptor : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override try {
    if (GetParam() && !runtime::kRingsAreFollowed) GTEST_SKIP() << "ThreadSanitizer cannot follow io_uring";
    loop_ = std::make_unique<Loop>(GetParam() ? runtime::make_uring_backend() : runtime::make_epoll_backend());
    BoundSocket bound = listen_on(endpoint_);
    others_ = Descriptor{::dup(bound.descriptor)};
    bound.shared = true;
    acceptor_ = open_acceptor(
        *loop_, std::move(bound), [this](PendingConnection connection) { accept(std::move(connection)); }, unasked);
  } catch (const std::system_error& refusal) {
    GTEST_SKIP() << "the kernel refuses io_uring: " << refusal.what();
  }
  ~SharedAcceptor() override { std::filesystem::remove_all(folder_); }

  void dial() { clients_.emplace_back(connect_to(endpoint_, milliseconds{5000}).release_socket()); }
  void accept(PendingConnection connection) {
    const Descriptor socket{connection.release_socket()};
    EXPECT_EQ(::send(socket.get(), "x", 1, MSG_NOSIGNAL), 1);
    ++accepted_;
    if (to_dial_ > 0 && --to_dial_ >= 0) dial();
  }
  void accept_until(int count) {
    for (int turns = 0; accepted_ < count && turns < 10 * count; ++turns) loop_->turn(milliseconds{10});
    EXPECT_EQ(accepted_, count);
  }
  [[nodiscard]] static bool is_served(const Descriptor& client) {
    char byte = 0;
    return ::recv(client.get(), &byte, 1, MSG_DONTWAIT) == 1;
  }

  const std::string folder_ = [] {
    char name[] = "/tmp/wirecall-test-XXXXXX";
    return std::string{::mkdtemp(name)};
  }();
  const Endpoint endpoint_{"unix://" + folder_ + "/calls.sock"};
  std::unique_ptr<Loop> loop_;
  Descriptor others_;
  std::unique_ptr<Acceptor> acceptor_;
  std::vector<Descriptor> clients_;
  int accepted_ = 0;
  int to_dial_ = 0;
};

TEST_P(SharedAcceptor, connections_are_handed_on_one_after_the_other) {
  for (int i = 1; i <= 50; ++i) {
    dial();
    accept_until(i);
    EXPECT_TRUE(is_served(clients_.back()));
    clients_.clear();
    for (int turns = 0; turns < 5; ++turns) loop_->turn(milliseconds{0});
  }
}

TEST_P(SharedAcceptor, those_that_come_while_it_stands_in_line_anew_are_handed_on) {
  constexpr int kMore = 200;
  to_dial_ = kMore;
  dial();
  dial();
  accept_until(2 + kMore);
  for (const Descriptor& client : clients_) EXPECT_TRUE(is_served(client));
}

TEST_P(SharedAcceptor, one_that_has_stopped_has_handed_on_what_it_was_given) {
  dial();
  accept_until(1);
  dial();
  acceptor_->stop();
  for (int turns = 0; !acceptor_->stopped() && turns < 100; ++turns) loop_->turn(milliseconds{10});
  EXPECT_TRUE(acceptor_->stopped());
  acceptor_.reset();
  loop_->turn(milliseconds{0});
  // It was served, or waits for the others.
  const Descriptor left{::accept4(others_.get(), nullptr, nullptr, SOCK_NONBLOCK)};
  EXPECT_NE(left.get() >= 0, is_served(clients_.back()));
}

TEST_P(SharedAcceptor, one_whose_loop_never_turned_leaves_who_waits_to_the_others) {
  dial();
  acceptor_.reset();
  loop_.reset();
  const Descriptor left{::accept4(others_.get(), nullptr, nullptr, SOCK_NONBLOCK)};
  ASSERT_GE(left.get(), 0);
  EXPECT_EQ(::send(left.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_TRUE(is_served(clients_.back()));
}

INSTANTIATE_TEST_SUITE_P(Engines, SharedAcceptor, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "uring" : "epoll"; });

TEST(Inproc, a_connection_that_a_listener_never_took_is_closed) {
  Loop loop;
  const Endpoint endpoint{"inproc://passing"};
  auto acceptor = open_acceptor(loop, endpoint, [](PendingConnection) { FAIL(); }, unasked);
  const Descriptor client{connect_to(endpoint, milliseconds{1000}).release_socket()};
  acceptor.reset();
  loop.turn(milliseconds{0});
  char byte;
  EXPECT_EQ(::recv(client.get(), &byte, 1, 0), 0);
}

// ---- standard input and output ----

struct Streams {
  int input = -1;
  int output = -1;
  int error = -1;  // none: that of the test
};

// Serves `streams` in a child until its one connection has ended.
pid_t serve_stdio(Streams streams, const std::function<void()>& meanwhile = [] {}) {
  std::fflush(nullptr);  // or the child would say it again
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::dup2(streams.input, STDIN_FILENO);
  ::dup2(streams.output, STDOUT_FILENO);
  if (streams.error >= 0) ::dup2(streams.error, STDERR_FILENO);
  for (int fd = 3; fd < 64; ++fd) ::close(fd);
  {
    Loop loop;
    std::unique_ptr<Shouter> shouter;
    const auto acceptor = open_acceptor(
        loop, Endpoint{"stdio:"},
        [&](PendingConnection connection) { shouter = std::make_unique<Shouter>(loop, std::move(connection)); },
        [](int) {});
    meanwhile();
    serve_one(loop, shouter);
    if (!acceptor->exhausted()) ::_exit(2);
  }
  ::_exit(0);
}

int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

class Pipe {
 public:
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error{"no pipe"};
    from = Descriptor{ends[0]};
    to = Descriptor{ends[1]};
  }
  Descriptor from;
  Descriptor to;
};

TEST(Stdio, pipes_carry_bytes_both_ways_and_the_end_of_input_ends_the_connection) {
  Pipe in;
  Pipe out;
  const pid_t child = serve_stdio({.input = in.from.get(), .output = out.to.get()});
  out.to = Descriptor{};
  ASSERT_EQ(::write(in.to.get(), "hello", 5), 5);
  char five[5];
  ASSERT_EQ(::read(out.from.get(), five, 5), 5);
  EXPECT_EQ(std::string(five, 5), "HELLO");
  in.to = Descriptor{};
  EXPECT_EQ(read_all(out.from.get()), "");
  EXPECT_EQ(status_of(child), 0);
}

TEST(Stdio, more_than_any_pipe_holds_goes_through_whole) {
  Pipe in;
  Pipe out;
  const pid_t child = serve_stdio({.input = in.from.get(), .output = out.to.get()});
  out.to = Descriptor{};
  const std::string large(3'000'000, 'x');
  std::thread writer{[&] {
    std::string_view left = large;
    while (!left.empty()) {
      const ssize_t taken = ::write(in.to.get(), left.data(), left.size());
      ASSERT_GT(taken, 0);
      left.remove_prefix(static_cast<std::size_t>(taken));
    }
    in.to = Descriptor{};
  }};
  EXPECT_EQ(read_all(out.from.get()), std::string(large.size(), 'X'));
  writer.join();
  EXPECT_EQ(status_of(child), 0);
}

TEST(Stdio, files_are_as_good_as_pipes) {
  std::FILE* in = std::tmpfile();
  std::FILE* out = std::tmpfile();
  ASSERT_EQ(std::fputs("from a file", in), 1);
  std::fflush(in);
  ::lseek(::fileno(in), 0, SEEK_SET);
  EXPECT_EQ(status_of(serve_stdio({.input = ::fileno(in), .output = ::fileno(out)})), 0);
  ::lseek(::fileno(out), 0, SEEK_SET);
  EXPECT_EQ(read_all(::fileno(out)), "FROM A FILE");
  std::fclose(in);
  std::fclose(out);
}

TEST(Stdio, a_terminal_is_as_good_as_a_pipe) {
  const Descriptor master{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  ASSERT_EQ(::grantpt(master.get()), 0);
  ASSERT_EQ(::unlockpt(master.get()), 0);
  const Descriptor slave{::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC)};
  ASSERT_GE(slave.get(), 0);
  const pid_t child = serve_stdio({.input = slave.get(), .output = slave.get()});
  ASSERT_EQ(::write(master.get(), "typed\n\4", 7), 7);  // the line, and the end that control-D means
  std::string seen;
  char block[256];
  while (seen.find("TYPED") == std::string::npos) {
    const ssize_t got = ::read(master.get(), block, sizeof block);
    ASSERT_GT(got, 0);
    seen.append(block, static_cast<std::size_t>(got));
  }
  EXPECT_EQ(status_of(child), 0);
}

TEST(Stdio, a_print_in_the_program_does_not_get_into_the_stream) {
  Pipe in;
  Pipe out;
  Pipe error;
  const pid_t child = serve_stdio({.input = in.from.get(), .output = out.to.get(), .error = error.to.get()}, [] {
    [[maybe_unused]] const ssize_t printed = ::write(STDOUT_FILENO, "printed", 7);
  });
  out.to = Descriptor{};
  error.to = Descriptor{};
  ASSERT_EQ(::write(in.to.get(), "said", 4), 4);
  in.to = Descriptor{};
  EXPECT_EQ(read_all(out.from.get()), "SAID");
  EXPECT_EQ(read_all(error.from.get()), "printed");
  EXPECT_EQ(status_of(child), 0);
}

TEST(Stdio, a_reader_that_goes_away_ends_the_connection) {
  Pipe in;
  Pipe out;
  const pid_t child = serve_stdio({.input = in.from.get(), .output = out.to.get()});
  out.to = Descriptor{};
  out.from = Descriptor{};
  EXPECT_EQ(status_of(child), 0);
}

TEST(Stdio, closed_streams_and_streams_in_use_are_refused_with_the_cure) {
  std::fflush(nullptr);  // or the child would say it again
  const pid_t child = ::fork();
  if (child == 0) {
    Loop loop;
    const auto open = [&] { return open_acceptor(loop, Endpoint{"stdio:"}, [](PendingConnection) {}, [](int) {}); };
    const auto says = [&](std::string_view what) {
      try {
        static_cast<void>(open());
      } catch (const std::runtime_error& error) {
        return std::string_view{error.what()}.find(what) != std::string_view::npos;
      }
      return false;
    };
    const int kept = ::dup(STDIN_FILENO);
    ::close(STDIN_FILENO);
    const bool closed = says("start the program with both open");
    ::dup2(kept, STDIN_FILENO);
    bool twice = false;
    {
      const auto acceptor = open();
      twice = says("listen on it once");
    }
    ::_exit(closed && twice ? 0 : 1);
  }
  EXPECT_EQ(status_of(child), 0);
}

}  // namespace
}  // namespace wirecall::transport
