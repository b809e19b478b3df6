// A server whose memory fails at the N-th request, for every N until none is made any more: once, or until its caller
// has gone. Whoever is served then is answered, or told -32603, or loses the connection; never is anybody answered
// otherwise, twice or with half a message that looks whole, nor left to wait. Who comes next is served as ever. That
// nothing leaks and nothing is used that has gone, AddressSanitizer sees.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/sanitizers.hpp"
#include "framing/json_text.hpp"
#include "http/browser_access.hpp"
#include "server/serving_loop.hpp"
#include "tests/framing/websocket_frames.hpp"
#include "tests/memory/failing_memory.hpp"
#include "tests/memory/spared_backend.hpp"
#include "tests/transport/simulated_client.hpp"
#include "transport/io_thread.hpp"
#include "transport/setup.hpp"
#include "wirecall/caller.hpp"
#include "wirecall/context.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"
#include "wirecall/value.hpp"

namespace wirecall::net {
namespace {

using memory::Failing;
using memory::FailingMemory;
using memory::Spared;
using memory::SparedBackend;
using nlohmann::json;
using runtime::SimulatedPeer;
using std::chrono::milliseconds;

// A connection to a loop, which the caller has the other end of: simulated, or a pair of sockets at the system, whose
// bytes are carried over before each turn.
class Line {
 public:
  explicit Line(SparedBackend* simulated) {  // null for one at the system
    if (simulated != nullptr) {
      auto [descriptor, peer] = simulated->simulated.pair();
      descriptor_ = descriptor;
      peer_ = std::move(peer);
      return;
    }
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
    descriptor_ = ends[0];
    far_ = runtime::Descriptor{ends[1]};
    peer_ = std::make_shared<SimulatedPeer>();
  }
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] const std::shared_ptr<SimulatedPeer>& peer() const { return peer_; }
  void carry() {
    if (far_.get() < 0) return;
    const ssize_t sent = ::send(far_.get(), peer_->to_us.data(), peer_->to_us.size(), MSG_NOSIGNAL);
    if (sent > 0) peer_->to_us.erase(0, static_cast<std::size_t>(sent));
    if (peer_->finished && peer_->to_us.empty()) ::shutdown(far_.get(), SHUT_WR);
    char bytes[4096];
    ssize_t got;
    while ((got = ::recv(far_.get(), bytes, sizeof bytes, 0)) > 0)
      peer_->from_us.append(bytes, static_cast<std::size_t>(got));
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) peer_->closed = true;
  }

 private:
  int descriptor_ = -1;
  runtime::Descriptor far_;
  std::shared_ptr<SimulatedPeer> peer_;
};

std::string call(std::string_view method, std::string_view params, int id, std::string_view rest = {}) {
  std::string text = R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params};
  text += rest;
  if (id != 0) text += R"(,"id":)" + std::to_string(id);
  return text + "}";
}

// A message, what may be said to it by id, and its number of responses in HTTP.
using Due = std::map<int, std::string>;
struct Said {
  std::string text;
  Due due;
};

const std::string kLong(5000, 'y');

std::vector<Said> conversation() {
  const auto quoted = [](const std::string& text) { return '"' + text + '"'; };
  return {
      {call("subtract", "[42,23]", 40), {{40, "19"}}},
      {call("echo", '[' + quoted(kLong) + ']', 2), {{2, quoted(kLong)}}},
      {call("later", "[4,5]", 3), {{3, "5"}}},
      {call("later", "[3,6]", 0), {}},
      {'[' + call("subtract", "[3,1]", 4) + ',' + call("later", "[2,8]", 5) + ',' + call("subtract", "[9,1]", 0) + ',' +
           call("count", "[3]", 6) + ']',
       {{4, "2"}, {5, "8"}, {6, "[0,1,2]"}}},
      {call("raises", "[]", 7), {{7, {}}}},
      {call("later", "[86400000,1]", 8, R"(,"timeout_ms":5)"), {{8, {}}}},
      {call("count", "[50]", 9),
       {{9,
         "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,"
         "30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49]"}}},
      {call("subtrac", "[1,2]", 10), {{10, {}}}},
      {call("both", "[1,2]", 11), {{11, "3"}}},
      {call("subtract", "[7,7]", 12), {{12, "0"}}},
  };
}

enum class Protocol : std::uint8_t { json_text, content_length, http, websocket };

constexpr std::string_view kUpgrade =
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

std::string framed(Protocol protocol, const std::string& text) {
  if (protocol == Protocol::websocket) return framing::client_frame(framing::kTextFrame, text);
  const std::string length = "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n";
  if (protocol == Protocol::json_text) return text + "\n";
  if (protocol == Protocol::content_length) return length + text;
  return "POST /rpc HTTP/1.1\r\nHost: localhost\r\n" + length + text;
}

// What is said behind it, in each protocol's own way.
std::string more_of(Protocol protocol) {
  if (protocol == Protocol::json_text) {
    // Items of which the id is the largest part, until their buffer has grown.
    const std::string many =
        R"({"jsonrpc":"2.0","method":"count","params":[300],"stream":1000,"id":23.)" + std::string(200, '0') + "}";
    return call("count", "[4]", 20, R"(,"stream":2)") + "\n" + call("rpc.credit", R"({"id":20,"n":9})", 0) + "\n" +
           many + "\n" + call("later", "[86400000,1]", 21) + "\n" + call("rpc.cancel", R"({"id":21})", 0) + "\n";
  }
  if (protocol == Protocol::content_length) {
    return framed(protocol, call("ask", "[]", 22)) + framed(protocol, R"({"jsonrpc":"2.0","result":4,"id":"h1"})");
  }
  if (protocol == Protocol::websocket) {
    // A message in two fragments, with a ping between them, and a stream.
    constexpr int kText = 1;
    constexpr int kLast = 0x80;
    const std::string text = call("echo", R"(["parts"])", 24);
    return framing::client_frame(kText, text.substr(0, 9)) + framing::client_frame(framing::kPingFrame, "p") +
           framing::client_frame(kLast, text.substr(9)) + framed(protocol, call("count", "[4]", 20, R"(,"stream":9)"));
  }
  const std::string chunked = call("echo", R"(["chunks"])", 30);
  return "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
         "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
         "GET /rpc/add?a=1&b=2 HTTP/1.1\r\nHost: localhost\r\n\r\n"
         "OPTIONS /rpc HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\r\n"
         "POST /rpc HTTP/1.1\r\nHost: localhost\r\nWirecall-Timeout-Ms: 900\r\nTransfer-Encoding: chunked\r\n\r\n"
         "5\r\n" +
         chunked.substr(0, 5) + "\r\n" + "20\r\n" + chunked.substr(5, 32) + "\r\n18\r\n" + chunked.substr(37) +
         "\r\n0\r\n\r\n";
}

// What the caller has been told, whole messages only.
class Told {
 public:
  explicit Told(Protocol protocol) : protocol_(protocol) {}

  void take(std::string_view bytes) {
    received_ += bytes;
    while (take_one()) {
    }
  }
  [[nodiscard]] const std::map<int, json>& replies() const { return replies_; }
  [[nodiscard]] int responses() const { return responses_; }  // of HTTP
  [[nodiscard]] const std::string& rest() const { return received_; }

 private:
  bool take_one() {
    if (protocol_ == Protocol::json_text) {
      const std::size_t end = received_.find('\n');
      if (end == std::string::npos) return false;
      message(received_.substr(0, end));
      received_.erase(0, end + 1);
      return true;
    }
    if (upgraded_) return take_frame();
    const std::size_t end = received_.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    if (protocol_ == Protocol::websocket && received_.starts_with("HTTP/1.1 101 ")) {
      received_.erase(0, end + 4);
      return upgraded_ = true;
    }
    const std::string head = received_.substr(0, end + 2);
    if (protocol_ == Protocol::http) {
      EXPECT_TRUE(head.starts_with("HTTP/1.1 ")) << head;
    }
    std::size_t bytes = 0;
    if (const std::size_t at = head.find("Content-Length: "); at != std::string::npos) {
      bytes = std::stoul(head.substr(at + 16));
    } else {
      EXPECT_TRUE(head.starts_with("HTTP/1.1 204 ")) << head;
    }
    if (received_.size() < end + 4 + bytes) return false;
    const std::string body = received_.substr(end + 4, bytes);
    received_.erase(0, end + 4 + bytes);
    ++responses_;
    if (protocol_ == Protocol::content_length || head.find("application/json") != std::string::npos) message(body);
    return true;
  }
  // Of a server: not masked.
  bool take_frame() {
    if (received_.size() < 2) return false;
    const auto byte = [this](std::size_t at) { return std::size_t{static_cast<unsigned char>(received_[at])}; };
    const std::size_t head = byte(1) == 126 ? 4 : 2;
    if (received_.size() < head) return false;
    const std::size_t bytes = head == 4 ? byte(2) << 8 | byte(3) : byte(1);
    EXPECT_LE(byte(1), 126U) << "longer than anything that is said here";
    if (received_.size() < head + bytes) return false;
    const bool is_text = byte(0) == framing::kTextFrame;
    const std::string text = received_.substr(head, bytes);
    received_.erase(0, head + bytes);
    if (is_text) message(text);
    return true;
  }
  void message(const std::string& text) {
    const json said = json::parse(text, nullptr, false);
    ASSERT_FALSE(said.is_discarded()) << text;
    if (!said.is_array()) return one(said);
    for (const json& element : said) one(element);
  }
  void one(const json& message) {
    if (message.contains("method")) return;  // an item, or a call to us
    ASSERT_TRUE(message["id"].is_number()) << message;
    EXPECT_TRUE(replies_.emplace(message["id"].get<int>(), message).second) << "twice: " << message;
  }

  Protocol protocol_;
  bool upgraded_ = false;  // to WebSocket
  std::string received_;
  std::map<int, json> replies_;
  int responses_ = 0;
};

class ConversationClient {
 public:
  // `tls` is null where nothing is encrypted.
  ConversationClient(Protocol protocol, std::shared_ptr<SimulatedPeer> peer,
                     std::shared_ptr<const transport::TlsClientContext> tls)
      : protocol_(protocol), client_(std::move(peer), std::move(tls), Endpoint{"tls://localhost"}), told_(protocol) {
    if (protocol == Protocol::websocket) unsent_.emplace_back(kUpgrade);
    for (const Said& said : conversation()) {
      std::string text = framed(protocol, said.text);
      // Some come in two parts.
      if (said.text.size() % 2 == 0) {
        unsent_.push_back(text.substr(0, text.size() / 2));
        text.erase(0, text.size() / 2);
      }
      unsent_.push_back(std::move(text));
      due_.insert(said.due.begin(), said.due.end());
      ++responses_due_;
    }
    unsent_.push_back(more_of(protocol));
    if (protocol == Protocol::json_text) due_.insert({{20, "null"}, {21, {}}, {23, "null"}});
    if (protocol == Protocol::content_length) due_.insert({{22, "4"}});
    if (protocol == Protocol::websocket) due_.insert({{20, "null"}, {24, R"("parts")"}});
    if (protocol == Protocol::http) {
      due_.insert({{1, "3"}, {30, R"("chunks")"}});
      responses_due_ += 5;
    }
    std::ranges::reverse(unsent_);
  }

  void act() {
    told_.take(client_.take());  // by TLS it may be an alert, where the server has no memory
    if (unsent_.empty() || closed() || !client_.open()) return;
    client_.send(unsent_.back());
    unsent_.pop_back();
  }
  void finish() { client_.finish(); }
  [[nodiscard]] bool closed() const { return client_.closed(); }
  [[nodiscard]] bool satisfied() const {
    return unsent_.empty() &&
           std::ranges::all_of(due_, [&](const auto& one) { return told_.replies().contains(one.first); }) &&
           (protocol_ != Protocol::http || told_.responses() == responses_due_);
  }
  // What has been told fits, as far as it goes. Only where memory has failed may an error take the place of a result.
  void expect_true(bool may_fail) const {
    for (const auto& [id, reply] : told_.replies()) {
      const auto due = due_.find(id);
      if (due == due_.end()) {
        ADD_FAILURE() << "nobody has asked: " << reply;
      } else if (reply.contains("error")) {
        EXPECT_TRUE(due->second.empty() || (may_fail && reply["error"]["code"] == -32603)) << reply;
      } else {
        EXPECT_EQ(reply["result"], json::parse(due->second));
      }
    }
    EXPECT_LE(told_.responses(), protocol_ == Protocol::http ? responses_due_ : 1000);
  }
  [[nodiscard]] std::string missing() const {
    std::string text =
        std::to_string(unsent_.size()) + " unsent, " + std::to_string(told_.responses()) + " responses, no reply to";
    for (const auto& [id, due] : due_) {
      if (!told_.replies().contains(id)) text += ' ' + std::to_string(id);
    }
    return text + ", rest " + told_.rest().substr(0, 200);
  }

 private:
  Protocol protocol_;
  transport::SimulatedClient client_;
  std::vector<std::string> unsent_;  // the last goes first
  Told told_;
  Due due_;  // empty for an error
  int responses_due_ = 0;
};

void add_methods(Registry& registry) {
  registry.method("subtract", [](int a, int b) { return a - b; }, {"a", "b"});
  registry.method("add", [](int a, int b) { return a + b; }, {"a", "b"}).safe();
  registry.method("echo", [](std::string text) { return text; });
  registry.method("raises", []() -> int { throw std::runtime_error("as always, with a text that needs memory"); });
  registry.method("later", [](Context context, std::uint32_t ms, int value) -> Task<int> {
    co_await sleep_for(context, milliseconds{ms});
    co_return value;
  });
  registry.method("count", [](int n) -> Stream<int> {
    for (int i = 0; i < n; ++i) co_yield i;
  });
  registry.method("both", [](Context context, int a, int b) -> Task<int> {
    const auto one = [&](int value) -> Task<int> {
      co_await sleep_for(context, milliseconds{2});
      co_return value;
    };
    const auto [x, y] = co_await when_all(one(a), one(b));
    co_return x + y;
  });
  registry.method("ask", [](Context context) -> Task<int> { co_return co_await Caller{context}.call<int>("number"); });
}

enum class World : std::uint8_t {
  simulated,
  encrypted,  ///< the same by TLS
  epoll,
  io_uring,
  home,      ///< with threads that receive and send: the memory of the thread that serves fails
  io_thread  ///< likewise, but that of the other one
};

bool has_io_threads(World world) { return world == World::home || world == World::io_thread; }

// A thread that receives and sends for a loop, and whose memory fails when it is told to.
class SideThread {
 public:
  explicit SideThread(ServingLoop& serving)
      : io_(&serving.add_io_thread(runtime::make_epoll_backend())), thread_([this] { run(); }) {}
  SideThread(SideThread&&) = delete;
  ~SideThread() {
    over_ = true;
    io_->loop().wake();
  }
  void fail(std::size_t number, Failing failing) {
    failing_ = failing;
    number_ = number;
    io_->loop().wake();
    while (!fails_) std::this_thread::yield();
  }
  void end() {
    recovered_ = true;
    io_->loop().wake();
    while (fails_) std::this_thread::yield();
  }
  [[nodiscard]] bool has_failed() const { return failed_; }

 private:
  void run() {
    std::optional<FailingMemory> memory;
    io_->run([&] {
      const Spared spared;
      if (number_ != 0 && !memory && !recovered_) memory.emplace(number_, failing_);
      if (memory) failed_ = FailingMemory::has_failed();
      if (recovered_) memory.reset();
      fails_ = memory.has_value();
      return over_.load();
    });
  }

  transport::IoThread* io_;
  std::atomic<std::size_t> number_ = 0;  // 0 until it is to fail
  std::atomic<Failing> failing_{};
  std::atomic<bool> fails_ = false;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> recovered_ = false;
  std::atomic<bool> over_ = false;
  std::jthread thread_;  // last: it uses the rest
};

// Whether the memory still failed.
bool serve(World world, Protocol protocol, std::size_t number, Failing failing) {
  // At the system, time passes by itself and turns are many.
  const bool simulates = world == World::simulated || world == World::encrypted;
  // Turns that wait for another thread are the most: some seconds of them, as that thread may not get a processor.
  const int turns_max = simulates ? 3000 : has_io_threads(world) ? 5'000'000 : 20'000;
  // Between threads not even the end of a connection is told without memory: it waits until there is some again.
  const int turns_without = has_io_threads(world) ? 1000 : turns_max;
  Options options;
  options.takeover_ms = options.slow_handler_ms = 0;
  options.limits.in_flight = 100;
  // Some of what is sent together waits for its turn.
  options.limits.soft_output = number % 2 == 0 ? 6000 : Limits{}.soft_output;
  Registry registry;
  add_methods(registry);
  const HttpSettings http;
  static const auto certificate =
      std::make_shared<const transport::TlsServerContext>(transport::TlsServerSettings{.self_signed = true});
  static const auto trust = std::make_shared<const transport::TlsClientContext>(
      transport::TlsClientSettings{.pin = "sha256:" + certificate->fingerprint()});
  const bool encrypted = world == World::encrypted;
  ServerShared shared{.options = options, .registry = registry, .http = http, .tls = encrypted ? certificate : nullptr};
  SparedBackend* simulated = nullptr;
  std::unique_ptr<runtime::Backend> backend;
  if (simulates) {
    backend.reset(simulated = new SparedBackend{7});
  } else {
    backend = world == World::io_uring ? runtime::make_uring_backend() : runtime::make_epoll_backend();
  }
  ServingLoop serving{std::move(backend), shared};
  // The first caller is given to the first of them, the second to the second.
  std::optional<SideThread> side;
  std::optional<SideThread> other_side;
  if (has_io_threads(world)) {
    side.emplace(serving);
    other_side.emplace(serving);
  }
  const auto recover = [&, memory_of_side = world == World::io_thread](std::optional<FailingMemory>& memory) {
    memory->end();
    if (memory_of_side) side->end();
  };

  Line first_line{simulated};
  Line second_line{simulated};
  ConversationClient first{protocol, first_line.peer(), encrypted ? trust : nullptr};
  ConversationClient second{protocol, second_line.peer(), encrypted ? trust : nullptr};
  first.act();
  std::optional<FailingMemory> memory;
  bool refused = false;
  bool is_second = false;
  int turns = 0;
  bool failed = false;
  // Simulated time passes where nothing wakes the loop; at the system, only we know that bytes are to be carried.
  const auto run_turns = [&] {
    if (has_io_threads(world)) std::this_thread::yield();
    if (simulated == nullptr) serving.loop().wake();
  };
  const std::function<bool()> over = [&] {
    if (!memory) {
      constexpr std::size_t kNever = ~std::size_t{0};
      if (world == World::io_thread) side->fail(number, failing);
      memory.emplace(world == World::io_thread ? kNever : number, failing);
      serving.open(transport::PendingConnection{first_line.descriptor()});
      const Spared spared;
      refused = serving.stats().connections_refused != 0;
      run_turns();
      return false;
    }
    const Spared spared;
    ++turns;
    run_turns();
    ConversationClient& caller = is_second ? second : first;
    Line& line = is_second ? second_line : first_line;
    line.carry();
    caller.act();
    if (caller.satisfied() && !caller.closed()) caller.finish();
    line.carry();
    if (is_second) return second.closed() || turns == turns_max;
    // Who is neither answered nor cut while there is no memory has to be when there is some again.
    if (turns == turns_without) recover(memory);
    if (!refused && !first.closed() && turns != 2 * turns_max) return false;
    recover(memory);
    failed = world == World::io_thread ? side->has_failed() : FailingMemory::has_failed();
    EXPECT_LT(turns, turns_max) << "the caller waits: " << first.missing();
    first.expect_true(failed);
    EXPECT_TRUE(failed || first.satisfied()) << first.missing();
    is_second = true;
    turns = 0;
    serving.open(transport::PendingConnection{second_line.descriptor()});
    second.act();
    second_line.carry();
    return false;
  };
  serving.run(over, [] { return true; });
  EXPECT_TRUE(second.satisfied()) << "the next caller: " << second.missing();
  second.expect_true(false);
  EXPECT_TRUE(second.closed());
  const Stats stats = serving.stats();
  EXPECT_EQ(stats.connections_open, 0U);
  EXPECT_EQ(stats.calls_in_flight, 0U);
  return failed;
}

class SessionMemory : public testing::TestWithParam<std::tuple<Protocol, Failing>> {};

TEST_P(SessionMemory, failing_anywhere_is_felt_by_one_connection_alone) {
  const auto [protocol, failing] = GetParam();
  constexpr std::size_t kStep = kAddressSanitizer ? 5 : 1;
  std::size_t number = 1;
  while (serve(World::simulated, protocol, number, failing) && !HasFailure()) number += kStep;
  ASSERT_FALSE(HasFailure()) << "the request for memory that failed was number " << number;
  EXPECT_GT(number, 100U) << "the memory that is asked for has to pass through the test";
}

class EncryptedMemory : public testing::TestWithParam<Failing> {};

// Of what follows the handshake some will do: SessionMemory has all of it.
TEST_P(EncryptedMemory, failing_is_felt_by_one_connection_alone) {
  constexpr std::size_t kAllBefore = kAddressSanitizer ? 20 : 80;
  constexpr std::size_t kStep = kAddressSanitizer ? 23 : 11;
  std::size_t number = 1;
  while (serve(World::encrypted, Protocol::json_text, number, GetParam()) && !HasFailure())
    number += number < kAllBefore ? 1 : kStep;
  ASSERT_FALSE(HasFailure()) << "the request for memory that failed was number " << number;
}

INSTANTIATE_TEST_SUITE_P(Ways, EncryptedMemory, testing::Values(Failing::once, Failing::since));

class SystemMemory : public testing::TestWithParam<std::tuple<World, Failing>> {};

// What the loop itself needs memory for is found among the first; of the rest, some will do.
TEST_P(SystemMemory, failing_is_felt_by_one_connection_alone) {
  const auto [world, failing] = GetParam();
  try {
    if (world == World::io_uring) static_cast<void>(runtime::make_uring_backend());
  } catch (const std::system_error& error) {
    GTEST_SKIP() << error.what();
  }
  constexpr std::size_t kAllBefore = kAddressSanitizer ? 20 : 40;
  constexpr std::size_t kStep = kAddressSanitizer ? 17 : 9;
  std::size_t number = 1;
  while (serve(world, Protocol::json_text, number, failing) && !HasFailure()) number += number < kAllBefore ? 1 : kStep;
  ASSERT_FALSE(HasFailure()) << "the request for memory that failed was number " << number;
}

INSTANTIATE_TEST_SUITE_P(Ways, SessionMemory,
                         testing::Combine(testing::Values(Protocol::json_text, Protocol::content_length, Protocol::http,
                                                          Protocol::websocket),
                                          testing::Values(Failing::once, Failing::since)));

INSTANTIATE_TEST_SUITE_P(Ways, SystemMemory,
                         testing::Combine(testing::Values(World::epoll, World::io_uring, World::home, World::io_thread),
                                          testing::Values(Failing::once, Failing::since)));

}  // namespace
}  // namespace wirecall::net
