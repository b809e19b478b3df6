// Servers and clients by a Transport of the test's own: a pair of pipes, and one that brings its bytes in pieces.
#include <cerrno>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <memory>
#include <poll.h>
#include <signal.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

#include "runtime/descriptor.hpp"
#include "tests/connection/peer.hpp"
#include "tests/server/engines.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

using runtime::Descriptor;

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    in = Descriptor{ends[0]};
    out = Descriptor{ends[1]};
  }
  Descriptor in;
  Descriptor out;
};

class Pipes final : public Transport {
 public:
  // Reads and writes at most so many bytes at a time.
  Pipes(Descriptor in, Descriptor out, std::size_t most) : in_(std::move(in)), out_(std::move(out)), most_(most) {}
  [[nodiscard]] int read_descriptor() const noexcept override { return in_.get(); }
  [[nodiscard]] int write_descriptor() const noexcept override { return out_.get(); }
  [[nodiscard]] std::expected<std::size_t, int> read(std::span<char> to) override {
    return counted(::read(in_.get(), to.data(), std::min(to.size(), most_)));
  }
  [[nodiscard]] std::expected<std::size_t, int> write(std::string_view bytes) override {
    return counted(::write(out_.get(), bytes.data(), std::min(bytes.size(), most_)));
  }

 private:
  static std::expected<std::size_t, int> counted(ssize_t count) {
    if (count < 0) return std::unexpected{errno};
    return static_cast<std::size_t>(count);
  }
  Descriptor in_;
  Descriptor out_;
  std::size_t most_;
};

class OwnTransport : public EngineTest {
 protected:
  void SetUp() override {
    EngineTest::SetUp();
    ::signal(SIGPIPE, SIG_IGN);  // what is written to a pipe that nobody reads is an error here
  }
  // A client whose connections the server is given.
  static ClientOptions reaching(Server& server, std::size_t most) {
    ClientOptions options;
    options.connect_attempts = 1;
    options.connect = [&server, most](const Endpoint&, std::chrono::milliseconds) {
      Pipe there;
      Pipe back;
      server.serve(std::make_unique<Pipes>(std::move(there.in), std::move(back.out), most));
      return std::make_unique<Pipes>(std::move(back.in), std::move(there.out), most);
    };
    return options;
  }
};

TEST_P(OwnTransport, carries_calls_of_any_size_in_pieces_of_any_size) {
  for (const std::uint32_t count : {1U, 3U}) {
    Server server{options(count)};
    server.method("echo", [](std::string text) { return text; });
    const RunningServer running{server};
    for (const std::size_t most : {std::size_t{1}, std::size_t{100'000}}) {
      Client client{"inproc://pipes", reaching(server, most)};
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{3000}, most * 10}) {
        const std::string text(bytes, 'x');
        EXPECT_EQ(client.call<std::string>("echo", text), text);
      }
    }
  }
}

TEST_P(OwnTransport, that_a_client_closes_is_missed_by_the_server) {
  Server server{options(1)};
  server.method("echo", [](std::string text) { return text; });
  const RunningServer running{server};
  Client client{"inproc://pipes", reaching(server, 100)};
  EXPECT_EQ(client.call<std::string>("echo", "one"), "one");
  EXPECT_EQ(server.stats().connections_open, 1U);
  {
    Client other{"inproc://pipes", reaching(server, 100)};
    EXPECT_EQ(other.call<std::string>("echo", "two"), "two");
    EXPECT_EQ(server.stats().connections_open, 2U);
  }
  // The server sees that the other one has gone.
  for (int i = 0; i != 1000 && server.stats().connections_open != 1; ++i) {
    EXPECT_EQ(client.call<std::string>("echo", "three"), "three");
  }
  EXPECT_EQ(server.stats().connections_open, 1U);
}

TEST_P(OwnTransport, of_a_peer_that_goes_without_an_answer_fails_the_call) {
  Pipe there;
  Pipe back;
  bool connected = false;
  ClientOptions options;
  options.connect_attempts = 1;
  options.connect = [&](const Endpoint&, std::chrono::milliseconds) {
    if (std::exchange(connected, true)) throw std::runtime_error{"there is one connection"};
    return std::make_unique<Pipes>(std::move(back.in), std::move(there.out), 100);
  };
  std::thread peer{[&] {
    pollfd asked{.fd = there.in.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&asked, 1, 10'000), 1);
    there.in = Descriptor{};
    back.out = Descriptor{};
  }};
  Client client{"inproc://pipes", options};
  EXPECT_THROW(static_cast<void>(client.call<int>("anything")), ConnectionError);
  peer.join();
}

TEST(OwnTransportRefused, what_makes_no_connection_is_told_with_its_reason) {
  ClientOptions options;
  options.connect_attempts = 1;
  options.connect = [](const Endpoint&, std::chrono::milliseconds) -> std::unique_ptr<Transport> {
    throw std::runtime_error{"the line is busy"};
  };
  Client busy{"inproc://pipes", options};
  try {
    static_cast<void>(busy.call<int>("anything"));
    FAIL();
  } catch (const ConnectionError& error) {
    EXPECT_NE(std::string{error.what()}.find("the line is busy"), std::string::npos) << error.what();
  }
  options.connect = [](const Endpoint&, std::chrono::milliseconds) { return std::unique_ptr<Transport>{}; };
  Client none{"inproc://pipes", options};
  EXPECT_THROW(static_cast<void>(none.call<int>("anything")), ConnectionError);
  EXPECT_THROW((Client{"tls://127.0.0.1:1", options}), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Each, OwnTransport, kEachEngine, engine_name);

}  // namespace
}  // namespace wirecall::net
