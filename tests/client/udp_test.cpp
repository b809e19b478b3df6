// A client of udp://: over real sockets against a server of ours, and against scripted ones that lose and forge.
#include "transport/udp.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/connection/peer.hpp"
#include "wirecall/client.hpp"
#include "wirecall/server.hpp"

namespace wirecall::net {
namespace {

using std::chrono::milliseconds;

// A server that does with each datagram what the test says: the function returns the replies.
class ScriptedUdp {
 public:
  using Script = std::function<std::vector<std::string>(const std::string& datagram)>;
  explicit ScriptedUdp(Script script) : bound_(transport::listen_on_udp(Endpoint{"udp://127.0.0.1:0"}, 1)) {
    thread_ = std::jthread{[this, script = std::move(script)](const std::stop_token& stop) {
      std::string datagram(70'000, '\0');
      while (!stop.stop_requested()) {
        sockaddr_storage from{};
        socklen_t size = sizeof from;
        const ssize_t bytes =
            ::recvfrom(fd(), datagram.data(), datagram.size(), 0, reinterpret_cast<sockaddr*>(&from), &size);
        if (bytes < 0) {
          std::this_thread::yield();
          continue;
        }
        for (const std::string& reply : script(datagram.substr(0, static_cast<std::size_t>(bytes))))
          ::sendto(fd(), reply.data(), reply.size(), 0, reinterpret_cast<const sockaddr*>(&from), size);
      }
    }};
  }
  [[nodiscard]] std::string uri() const { return bound_.front().endpoint.uri(); }

 private:
  [[nodiscard]] int fd() const { return bound_.front().descriptor.get(); }

  std::vector<transport::BoundUdpSocket> bound_;
  std::jthread thread_;
};

std::string id_of(const std::string& request) {
  const std::size_t at = request.find(R"("id":)") + 5;
  return request.substr(at, request.find_first_of(",}", at) - at);
}
std::string result(std::string_view value, const std::string& request) {
  return R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":)" + id_of(request) + "}";
}

class UdpClient : public testing::Test {
 protected:
  UdpClient() {
    server_.method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"});
    server_.method("big", [](std::size_t bytes) { return std::string(bytes, 'x'); });
    server_.method("note", [this](const std::string& text) {
      notes_.push_back(text);
      return notes_.size();
    });
    server_.method("notes", [this] { return notes_.size(); });
    uri_ = server_.listen("udp://127.0.0.1:0").uri();
    running_.emplace(server_);
  }

  std::vector<std::string> notes_;
  Server server_;
  std::string uri_;
  std::optional<RunningServer> running_;
};

TEST_F(UdpClient, calls_in_all_ways) {
  Client client{uri_};
  EXPECT_NO_THROW(client.connect());
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
  EXPECT_EQ(client.call<int>("subtract", arg("subtrahend") = 23, arg("minuend") = 42), 19);
  EXPECT_EQ(client.try_call<int>("subtract", 42, "x").error().code(), -32602);
  std::vector<std::future<int>> answers;
  for (int i = 0; i < 200; ++i) answers.push_back(client.request<int>("subtract", i, 1).future());
  for (int i = 0; i < 200; ++i) EXPECT_EQ(answers[static_cast<std::size_t>(i)].get(), i - 1);
  const auto [one, two] = client.batch().call<int>("subtract", 2, 1).call<int>("subtract", 5, 1).send();
  EXPECT_EQ(one, 1);
  EXPECT_EQ(two, 4);
}

TEST_F(UdpClient, notifies) {
  Client client{uri_};
  client.notify("note", "a");
  client.notify("note", "b");
  EXPECT_EQ(client.call<std::size_t>("notes"), 2U);
  EXPECT_EQ(notes_, (std::vector<std::string>{"a", "b"}));
}

TEST_F(UdpClient, speaks_msgpack_too) {
  ClientOptions options;
  options.encoding = Encoding::msgpack;
  Client client{uri_, options};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
}

TEST_F(UdpClient, an_answer_that_is_too_large_is_an_error_and_so_is_a_call) {
  Client client{uri_};
  EXPECT_EQ(client.try_call<std::string>("big", 5000).error().code(), -32006);
  const auto refused = client.try_call<std::size_t>("note", std::string(transport::kUdpBytesMax, 'x'));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), -32006);
  EXPECT_NE(refused.error().data().find(R"("delivered":"no")"), std::string::npos);
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19) << "nothing else is lost";
}

TEST_F(UdpClient, what_needs_a_connection_is_refused) {
  Client client{uri_};
  EXPECT_THROW(client.provide("mine", [] { return 1; }), std::logic_error);
  EXPECT_THROW(static_cast<void>(client.subscribe("news", [](const Event&) {})), std::logic_error);
  ClientOptions options;
  options.token = "secret";
  options.connect_attempts = 1;
  Client with_token{uri_, options};
  try {
    with_token.connect();
    ADD_FAILURE() << "a token is sent";
  } catch (const ConnectionError& error) {
    EXPECT_EQ(std::string{error.what()},
              "cannot connect to " + uri_ +
                  ": a token is not sent by UDP; connect to tcp://, tls://, ws://, wss:// or unix://, or give none");
  }
}

TEST_F(UdpClient, a_name_is_not_told_but_no_harm) {
  ClientOptions options;
  options.client_id = "ada";
  Client client{uri_, options};
  EXPECT_EQ(client.call<int>("subtract", 42, 23), 19);
}

TEST(UdpClientAlone, learns_that_nobody_listens) {
  std::string uri;
  {
    const auto bound = transport::listen_on_udp(Endpoint{"udp://127.0.0.1:0"}, 1);
    uri = bound.front().endpoint.uri();
  }
  ClientOptions options;
  options.call_timeout_ms = 60'000;
  Client client{uri, options};
  try {
    client.call<int>("subtract", 42, 23);
    ADD_FAILURE() << "somebody answers";
  } catch (const ConnectionError& error) {
    EXPECT_NE(std::string{error.what()}.find("Connection refused"), std::string::npos) << error.what();
  }
}

TEST(UdpClientAlone, a_call_that_is_lost_ends_with_its_time_and_is_sent_once) {
  std::atomic<int> received = 0;
  const ScriptedUdp server{[&](const std::string& datagram) {
    ++received;
    return datagram.find("answer") != std::string::npos ? std::vector{result("1", datagram)}
                                                        : std::vector<std::string>{};
  }};
  Client client{server.uri()};
  const auto lost = client.request<int>("lose").timeout(milliseconds{1000}).try_call();
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error().code(), -32002);
  EXPECT_EQ(client.call<int>("answer"), 1);
  EXPECT_EQ(received, 2);
}

TEST(UdpClientAlone, an_idempotent_call_is_sent_again_until_it_is_answered) {
  std::mutex mutex;
  std::vector<std::string> all;
  const ScriptedUdp server{[&](const std::string& datagram) {
    const std::scoped_lock lock{mutex};
    all.push_back(datagram);
    return all.size() == 3 ? std::vector{result("7", all.front())} : std::vector<std::string>{};
  }};
  Client client{server.uri()};
  EXPECT_EQ(client.request<int>("read").idempotent().timeout(milliseconds{60'000}).call(), 7);
  // One more may be on its way when the answer comes.
  const std::vector<std::string> received = [&] {
    const std::scoped_lock lock{mutex};
    return all;
  }();
  ASSERT_GE(received.size(), 3U);
  EXPECT_EQ(id_of(received[1]), id_of(received[0])) << "an answer to any will do";
  EXPECT_EQ(id_of(received[2]), id_of(received[0]));
  EXPECT_EQ(client.request<int>("read").idempotent().timeout(milliseconds{100}).try_call().error().code(), -32002);
}

TEST(UdpClientAlone, an_answer_that_comes_twice_is_one) {
  const ScriptedUdp server{
      [](const std::string& datagram) { return std::vector{result("7", datagram), result("8", datagram)}; }};
  Client client{server.uri()};
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.call<int>("read"), 7);
}

TEST(UdpClientAlone, what_is_forged_is_no_harm) {
  const ScriptedUdp server{[](const std::string& datagram) {
    return std::vector<std::string>{"",
                                    "{",
                                    "\x93",
                                    std::string(1000, '['),
                                    R"({"jsonrpc":"2.0","method":"a","id":1})",
                                    R"({"jsonrpc":"2.0","result":1,"id":999999})",
                                    "not JSON",
                                    "[]",
                                    "[1]",
                                    result("7", datagram)};
  }};
  Client client{server.uri()};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.call<int>("read"), 7);
}

}  // namespace
}  // namespace wirecall::net
