// A server by datagrams whose memory fails at the N-th request, for every N until none is made any more: once, or until
// all has been said. Each caller is answered once, and rightly or with -32603, or not at all; nothing stays in
// progress, and who comes next is served as ever.
#include <algorithm>
#include <cstddef>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connection/datagram_service.hpp"
#include "tests/memory/failing_memory.hpp"
#include "tests/memory/spared_backend.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "tests/transport/memory_datagrams.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using memory::Failing;
using memory::FailingMemory;
using memory::Spared;
using memory::SparedBackend;
using nlohmann::json;
using transport::DatagramAddress;
using transport::DatagramSocket;
using transport::DatagramUser;
using transport::MemoryDatagrams;
using transport::MemoryDatagramSocket;

// The kernel's part, and so not of the memory that fails.
class SystemSocket final : public DatagramSocket {
 public:
  explicit SystemSocket(std::shared_ptr<MemoryDatagrams> net) : socket_(std::move(net), 65'507) {}
  void start(DatagramUser& user) override { socket_.start(user); }
  void send(std::string_view datagram, const DatagramAddress& to) noexcept override {
    const Spared spared;
    socket_.send(datagram, to);
  }
  [[nodiscard]] std::size_t bytes_max() const noexcept override { return socket_.bytes_max(); }
  // Long enough that it needs memory.
  [[nodiscard]] std::string peer_source(const DatagramAddress& source) const override {
    return "a source with a long name, " + socket_.peer_source(source);
  }

 private:
  MemoryDatagramSocket socket_;
};

std::string call_of(std::string_view method, int id) {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":[42,23],"id":)" + std::to_string(id) +
         "}";
}

class DatagramServer : ConnectionOwner {
 public:
  DatagramServer() {
    registry_.method("subtract", [](int a, int b) { return a - b; });
    registry_.method("wait", [this](int a, int b) -> Task<int> {
      Completion<int> answer;
      waiting_.push_back(answer);
      co_return a - b + co_await answer;
    });
    limits_.datagram_calls = 8;  // so that it is asked whose they are
    service_ = std::make_unique<DatagramService>(host_, std::make_unique<SystemSocket>(net_),
                                                 DatagramService::Settings{.reply_factor_max = 10});
  }
  DatagramServer(DatagramServer&&) = delete;
  ~DatagramServer() {
    service_.reset();
    loop_.turn(std::chrono::milliseconds{0});
  }

  void send(const char* from, std::string_view text) {
    if (net_->user != nullptr) net_->user->received(text, MemoryDatagramSocket::address_of(from));
  }
  void turn() {
    for (int i = 0; i < 6; ++i) {
      try {
        loop_.turn(std::chrono::milliseconds{0});
      } catch (const std::bad_alloc&) {
        continue;  // as ServingLoop has it: the next one goes on with it
      }
    }
  }
  void answer_all() {
    const Spared spared;
    for (Completion<int>& one : std::exchange(waiting_, {})) one.set(0);
  }
  [[nodiscard]] std::vector<std::string> take(const char* name) { return std::exchange(net_->sent[name], {}); }
  [[nodiscard]] bool busy() const { return service_->busy(); }
  [[nodiscard]] std::size_t calls_in_flight() const { return loop_context_.stats.calls_in_flight; }

 private:
  void connection_ended(Connection&, CloseReason, int) override {}

  Limits limits_;
  Registry registry_;
  std::vector<Completion<int>> waiting_;
  std::shared_ptr<MemoryDatagrams> net_ = std::make_shared<MemoryDatagrams>();
  Loop loop_{std::make_unique<SparedBackend>(7)};
  rpc::LoopContext loop_context_{json_codec(), &loop_, nullptr};
  Host host_{.loop = loop_, .registry = registry_, .limits = limits_, .loop_context = loop_context_, .owner = *this};
  std::unique_ptr<DatagramService> service_;
};

// Each id at most once, and 19 or -32603.
void expect_right_replies(const std::vector<std::string>& replies, std::vector<int> due) {
  for (const std::string& reply : replies) {
    ASSERT_TRUE(json::accept(reply)) << reply;
    const json read = json::parse(reply);
    for (const json& one : read.is_array() ? read : json::array({read})) {
      if (one["id"].is_null()) {
        EXPECT_EQ(one["error"]["code"], -32700) << reply;
        continue;
      }
      const auto found = std::ranges::find(due, one["id"].get<int>());
      ASSERT_NE(found, due.end()) << reply;
      due.erase(found);
      EXPECT_TRUE(one.contains("result") ? one["result"] == 19 : one["error"]["code"] == -32603) << reply;
    }
  }
}

class DatagramsWithoutMemory : public testing::TestWithParam<Failing> {};

TEST_P(DatagramsWithoutMemory, each_is_answered_rightly_or_lost) {
  // Padded as what a socket lends is.
  const std::vector<std::pair<const char*, Buffer>> said = [] {
    std::vector<std::pair<const char*, Buffer>> all;
    const auto add = [&](const char* from, const std::string& text) {
      static_cast<void>(all.emplace_back(from, Buffer{text}).second.padded());
    };
    add("a", call_of("wait", 1));
    add("b", "[" + call_of("wait", 2) + "," + call_of("subtract", 3) + "," + call_of("wait", 4) + "]");
    add("a", call_of("subtract", 5));
    add("a", call_of("wait", 6));
    add("c", "{\"nonsense that is as long as");
    add("c", call_of("wait", 7));
    return all;
  }();
  std::size_t number = 0;
  for (bool failed = true; failed; ++number) {
    SCOPED_TRACE(number);
    DatagramServer world;
    {
      const FailingMemory failing{number + 1, GetParam()};
      for (const auto& [from, text] : said) world.send(from, text.view());
      world.turn();
      world.answer_all();
      world.turn();
      failed = FailingMemory::has_failed();
    }
    world.turn();
    world.answer_all();
    world.turn();
    expect_right_replies(world.take("a"), {1, 5, 6});
    expect_right_replies(world.take("b"), {2, 3, 4});
    expect_right_replies(world.take("c"), {7});
    EXPECT_FALSE(world.busy());
    EXPECT_EQ(world.calls_in_flight(), 0U);
    for (const int id : {11, 12, 13, 14}) {
      Buffer text{call_of("wait", id)};
      world.send("a", text.padded());
    }
    world.turn();
    world.answer_all();
    world.turn();
    EXPECT_EQ(world.take("a").size(), 4U) << "all have their place again";
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(number, 20U);
}

INSTANTIATE_TEST_SUITE_P(Ways, DatagramsWithoutMemory, testing::Values(Failing::once, Failing::since),
                         [](const auto& tested) { return tested.param == Failing::once ? "once" : "since"; });

}  // namespace
}  // namespace wirecall::net
