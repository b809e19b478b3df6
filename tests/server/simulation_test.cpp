// A server of one loop and its callers on the simulated backend, over and over, each time with another seed: it decides
// what the callers say and in which protocol, how the bytes are cut in both directions, who is served when, who reads
// slowly, and, for every third seed, which connections break. Time is simulated as well, so hours of waiting take none.
// What must hold for each: a call is answered once, with what is due to it, and never answered otherwise; in HTTP, in
// order; items come in order, none twice and none without the credit for it, and before the end of their call; and when
// all have gone, nothing is left.
// WIRECALL_SEED=<n> runs one seed alone.
#include <cstdlib>
#include <deque>
#include <gtest/gtest.h>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "framing/json_text.hpp"
#include "http/browser_access.hpp"
#include "server/serving_loop.hpp"
#include "tests/framing/websocket_frames.hpp"
#include "tests/transport/simulated_client.hpp"
#include "wirecall/context.hpp"
#include "wirecall/stream.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {
namespace {

using runtime::SimulatedBackend;
using runtime::SimulatedPeer;
using std::chrono::milliseconds;

constexpr unsigned kSeeds = 1000;
constexpr int kTurnsMax = 200'000;

using Random = std::mt19937;

bool one_in(Random& random, unsigned chances) { return random() % chances == 0; }

enum class Protocol : std::uint8_t { json, content_length, websocket, http };

constexpr std::string_view kHandshake =
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

// A reply that begins and ends like this; exactly the beginning, when the end is empty.
struct Expected {
  std::string begin;
  std::string end;

  [[nodiscard]] bool fits(std::string_view text) const {
    return end.empty() ? text == begin : text.starts_with(begin) && text.ends_with(end);
  }
};

// Items that come one by one for as long as the caller gives credit, which it does little by little.
struct Streamed {
  unsigned items = 0;   // in all
  unsigned got = 0;     // as they are counted on: the number of the next
  unsigned credit = 0;  // that the server can know of
  unsigned said = 0;    // and what is on its way
  bool cancelled = false;
};

class Caller {
 public:
  // `tls` is null where nothing is encrypted.
  Caller(std::shared_ptr<SimulatedPeer> peer, Random& random, bool may_break,
         std::shared_ptr<const transport::TlsClientContext> tls)
      : random_(&random),
        protocol_(static_cast<Protocol>(random() % 4)),
        client_(std::move(peer), std::move(tls), Endpoint{speaks_http() ? "https://localhost" : "tls://localhost"}) {
    if (protocol_ == Protocol::websocket) unsent_ = kHandshake;
    for (unsigned messages = 1 + random() % 30; messages != 0; --messages) say_something();
    if (one_in(random, 4)) client_.peer().window = random() % 200;
    if (may_break && one_in(random, 4)) resets_after_ = random() % (unsent_.size() + 1);
  }

  // Sends a little of what is left to be said, and reads a little of what has come. Nobody is late with what he has
  // begun to say, since that would be held against him: time passes only where the server does not read. Nor does
  // anybody take nothing in many turns, each of which may last long.
  void act() {
    if (one_in(*random_, 3) || ++turns_closed_ == 3) {
      client_.peer().window += 1 + (*random_)() % 500;
      turns_closed_ = 0;
    }
    read();
    EXPECT_EQ(client_.failure(), "");
    if (gone() || !client_.open()) return;
    for (auto& [id, stream] : streams_) resume(id, stream);
    if (unsent_.empty()) return;
    if (!client_.peer().to_us.empty() && one_in(*random_, 2)) return;
    const std::size_t bytes = one_in(*random_, 2) ? unsent_.size() : 1 + (*random_)() % unsent_.size();
    client_.send(unsent_.substr(0, bytes));
    unsent_.erase(0, bytes);
    sent_ += bytes;
    for (; !on_their_way_.empty() && on_their_way_.front().end <= sent_; on_their_way_.pop_front()) {
      const auto stream = streams_.find(on_their_way_.front().id);
      if (stream != streams_.end()) stream->second.credit += on_their_way_.front().credit;
    }
    if (sent_ > resets_after_) client_.peer().reset();
  }
  void finish() { client_.finish(); }
  void open_window() { client_.peer().window = std::size_t{1} << 40; }

  [[nodiscard]] bool gone() const { return client_.gone(); }
  [[nodiscard]] bool closed() const { return client_.closed(); }
  // Everything has been said and answered.
  [[nodiscard]] bool satisfied() const {
    return unsent_.empty() && expected_.empty() && in_order_.empty() && received_.empty();
  }
  [[nodiscard]] std::string missing() const {
    std::string text = "unsent " + unsent_.substr(0, 200) + "; received " + received_.substr(0, 200) + "; expected";
    for (const auto& [id, reply] : expected_) text += " " + reply.begin;
    for (const auto& reply : in_order_) text += " " + reply.begin;
    return text;
  }

 private:
  [[nodiscard]] bool speaks_http() const { return protocol_ == Protocol::http || protocol_ == Protocol::websocket; }

  // ---- what it says ----

  std::string new_id() {
    const std::string number = std::to_string(++last_id_);
    return one_in(*random_, 3) ? "\"" + number + "\"" : number;
  }
  static std::string request(std::string_view method, std::string_view params, std::string_view rest) {
    return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} +
           std::string{rest} + "}";
  }
  static std::string with_id(std::string_view id) { return R"(,"id":)" + std::string{id}; }
  static Expected result(std::string_view value, std::string_view id) {
    return {R"({"jsonrpc":"2.0","result":)" + std::string{value} + R"(,"id":)" + std::string{id} + "}", {}};
  }
  static Expected error(int code, std::string_view id) {
    return {R"({"jsonrpc":"2.0","error":{"code":)" + std::to_string(code) + ",", R"(,"id":)" + std::string{id} + "}"};
  }

  // A call that a batch may contain as well, and what is due to it.
  std::pair<std::string, Expected> simple_call() {
    const std::string id = new_id();
    const int n = static_cast<int>((*random_)() % 1000);
    switch ((*random_)() % 6) {
      case 0:
        return {request("later", "[" + std::to_string(n) + "," + std::to_string(n) + "]", with_id(id)),
                result(std::to_string(n), id)};
      case 1: return {request("wrong", "[]", with_id(id)), error(7, id)};
      case 2: return {request("nowhere", "{}", with_id(id)), error(-32601, id)};
      case 3: return {request("add", R"([1,"x"])", with_id(id)), error(-32602, id)};
      case 4:
        return {request("later", "[1000,1]", R"(,"timeout_ms":)" + std::to_string(1 + n / 2) + with_id(id)),
                error(-32002, id)};
      default:
        return {request("add", R"({"b":)" + std::to_string(n) + R"(,"a":1})", with_id(id)),
                result(std::to_string(n + 1), id)};
    }
  }

  void say_something() {
    switch ((*random_)() % 8) {
      case 0: return say(request("add", "[1,2]", ""), {}, {});
      case 1: return say_batch();
      case 2: return say_large();
      case 3:
        if (protocol_ != Protocol::http) return say_cancelled();
        break;
      case 4: return say_stream();
      case 5:
        if (protocol_ != Protocol::http) {
          const std::string id = new_id();
          return say(R"({"jsonrpc":"2.0","method":5)" + with_id(id) + "}", id,
                     {R"({"jsonrpc":"2.0","error":{"code":-32600,)", R"(,"id":)" + id + "}"});
        }
        break;
      default: break;
    }
    const auto [text, reply] = simple_call();
    say(text, std::to_string(last_id_), reply);
  }

  void say_batch() {
    std::string text = "[";
    Expected reply{"[", {}};
    for (unsigned left = 1 + (*random_)() % 5; left != 0; --left) {
      auto [call, one] = simple_call();
      // Of errors only the beginning and the end are known, and a batch is compared whole.
      while (!one.end.empty()) std::tie(call, one) = simple_call();
      text += (text.size() > 1 ? "," : "") + call;
      reply.begin += (reply.begin.size() > 1 ? "," : "") + one.begin;
      if (one_in(*random_, 3)) text += "," + request("add", "[1,2]", "");
    }
    reply.begin += "]";
    say(text + "]", std::to_string(last_id_), reply);
  }

  void say_large() {
    const std::string id = new_id();
    const std::string value = "\"" + std::string((*random_)() % 30'000, 'x') + "\"";
    say(request("echo", "[" + value + "]", with_id(id)), id, result(value, id));
  }

  void say_cancelled() {
    const std::string id = new_id();
    say(request("later", "[3600000,1]", with_id(id)), id, error(-32800, id));
    say(request("$/cancelRequest", R"({"id":)" + id + "}", ""), {}, {});
  }

  // Gathered, or item by item.
  void say_stream() {
    const std::string id = new_id();
    const unsigned n = (*random_)() % 50;
    if (protocol_ != Protocol::http && one_in(*random_, 2)) return say_stream_with_credit(id, n);
    if (protocol_ == Protocol::http || one_in(*random_, 2)) {
      std::string items;
      for (unsigned i = 0; i < n; ++i) items += (i == 0 ? "" : ",") + std::to_string(i);
      return say(request("count", "[" + std::to_string(n) + "]", with_id(id)), id, result("[" + items + "]", id));
    }
    const std::string token = std::to_string(last_id_);
    items_[token] = {0, n};
    say(request("count", R"({"n":)" + std::to_string(n) + R"(,"partialResultToken":)" + token + "}", with_id(id)), id,
        {R"({"jsonrpc":"2.0","result":)", R"(,"id":)" + id + "}"});
  }

  void say_stream_with_credit(const std::string& id, unsigned items) {
    const unsigned credit = 1 + (*random_)() % 10;
    streams_[id] = {.items = items, .said = credit};
    say(request("count", "[" + std::to_string(items) + "]", R"(,"stream":)" + std::to_string(credit) + with_id(id)), id,
        result("null", id));
    on_their_way_.push_back({.end = sent_ + unsent_.size(), .id = id, .credit = credit});
  }

  // Whoever has had all that it gave credit for gives more, or has had enough. Some do so sooner.
  void resume(const std::string& id, Streamed& stream) {
    if (stream.cancelled || !one_in(*random_, stream.got == stream.said ? 2 : 50)) return;
    if (one_in(*random_, 10)) {
      stream.cancelled = true;
      return say(request("$/cancelRequest", R"({"id":)" + id + "}", ""), {}, {});
    }
    const unsigned credit = 1 + (*random_)() % 10;
    stream.said += credit;
    say(request("rpc.credit", R"({"id":)" + id + R"(,"n":)" + std::to_string(credit) + "}", ""), {}, {});
    on_their_way_.push_back({.end = sent_ + unsent_.size(), .id = id, .credit = credit});
  }

  // One message, and the reply if any is due.
  void say(const std::string& text, std::string_view id, const Expected& reply) {
    switch (protocol_) {
      case Protocol::json: unsent_ += text + (one_in(*random_, 2) ? "\n" : ""); break;
      case Protocol::content_length:
        unsent_ += "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
        break;
      case Protocol::websocket: unsent_ += frames_of(text); break;
      case Protocol::http:
        unsent_ += "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(text.size()) +
                   "\r\n\r\n" + text;
        in_order_.push_back(reply);  // also where it is empty
        return;
    }
    if (!id.empty()) expected_[bare(id)] = reply;
  }

  // Whole, or in two fragments with a ping between them.
  std::string frames_of(const std::string& text) {
    using framing::client_frame;
    if (one_in(*random_, 2)) return client_frame(framing::kTextFrame, text);
    const std::size_t cut = (*random_)() % text.size();
    return client_frame(0x01, text.substr(0, cut)) + client_frame(framing::kPingFrame, "p") +
           client_frame(0x80, text.substr(cut));
  }

  // ---- what it hears ----

  static std::string bare(std::string_view id) {
    std::string text{id};
    std::erase(text, '"');
    return text;
  }

  void read() {
    received_ += client_.take();
    std::string text;
    while (take(text)) heard(text);
  }
  bool take(std::string& text) {
    switch (protocol_) {
      case Protocol::json: return take_line(text);
      case Protocol::websocket: return (upgraded_ || take_answer()) && take_message(text);
      case Protocol::content_length:
      case Protocol::http: break;
    }
    return take_behind_header(text);
  }
  bool take_answer() {
    const std::size_t end = received_.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    EXPECT_TRUE(received_.starts_with("HTTP/1.1 101 ")) << received_;
    received_.erase(0, end + 4);
    return upgraded_ = true;
  }
  // Passes over pongs and the close, behind which nothing comes.
  bool take_message(std::string& text) {
    while (received_.size() >= 2) {
      const auto byte = [&](std::size_t at) {
        return static_cast<std::size_t>(static_cast<unsigned char>(received_[at]));
      };
      const std::size_t more = byte(1) < 126 ? 0 : byte(1) == 126 ? 2 : 8;
      if (received_.size() < 2 + more) return false;
      std::size_t bytes = more == 0 ? byte(1) : 0;
      for (std::size_t i = 0; i < more; ++i) bytes = bytes << 8 | byte(2 + i);
      if (received_.size() < 2 + more + bytes) return false;
      const std::size_t first = byte(0);
      EXPECT_FALSE(said_close_) << "a frame behind the close";
      said_close_ = first == framing::kCloseFrame;
      text = received_.substr(2 + more, bytes);
      received_.erase(0, 2 + more + bytes);
      if (first == framing::kTextFrame) return true;
      EXPECT_TRUE(said_close_ || (first == framing::kPongFrame && text == "p")) << first;
    }
    return false;
  }
  bool take_line(std::string& text) {
    const std::size_t end = received_.find('\n');
    if (end == std::string::npos) return false;
    text = received_.substr(0, end);
    received_.erase(0, end + 1);
    return true;
  }
  bool take_behind_header(std::string& text) {
    const std::size_t head = received_.find("\r\n\r\n");
    if (head == std::string::npos) return false;
    constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t length = received_.substr(0, head).find(kLength);
    const std::size_t bytes =
        length == std::string::npos ? 0 : std::stoul(received_.substr(length + kLength.size(), head - length));
    if (received_.size() < head + 4 + bytes) return false;
    text = received_.substr(head + 4, bytes);
    received_.erase(0, head + 4 + bytes);
    return true;
  }

  void heard(const std::string& text) {
    if (protocol_ == Protocol::http) {
      ASSERT_FALSE(in_order_.empty()) << text;
      EXPECT_TRUE(in_order_.front().fits(text)) << text << " instead of " << in_order_.front().begin;
      in_order_.pop_front();
      return;
    }
    if (text.find("$/progress") != std::string::npos) return heard_item(text);
    if (text.find("rpc.item") != std::string::npos) return heard_item_by_credit(text);
    const std::size_t at = text.rfind(R"("id":)");
    ASSERT_NE(at, std::string::npos) << text;
    const std::string whole_id = text.substr(at + 5, text.find('}', at) - at - 5);
    const std::string id = bare(whole_id);
    const auto reply = expected_.find(id);
    ASSERT_NE(reply, expected_.end()) << "nobody waits for " << text;
    if (const auto stream = streams_.find(whole_id); stream != streams_.end()) {
      if (stream->second.cancelled && text.find(R"("code":-32800,)") != std::string::npos) {
        reply->second = error(-32800, whole_id);
      } else {
        EXPECT_EQ(stream->second.got, stream->second.items) << "the end came before the last item of " << id;
      }
      streams_.erase(stream);
    }
    EXPECT_TRUE(reply->second.fits(text)) << text << " instead of " << reply->second.begin;
    if (const auto items = items_.find(id); items != items_.end()) {
      EXPECT_EQ(items->second.first, items->second.second) << "the end came before the last item of " << id;
    }
    expected_.erase(reply);
  }
  void heard_item(const std::string& text) {
    for (auto& [token, items] : items_) {
      if (text != R"({"jsonrpc":"2.0","method":"$/progress","params":{"token":)" + token + R"(,"value":)" +
                      std::to_string(items.first) + "}}")
        continue;
      ++items.first;
      return;
    }
    ADD_FAILURE() << "no such item is due: " << text;
  }

  void heard_item_by_credit(const std::string& text) {
    for (auto& [id, stream] : streams_) {
      const std::string number = std::to_string(stream.got);
      if (text != R"({"jsonrpc":"2.0","method":"rpc.item","params":{"id":)" + id + R"(,"seq":)" + number +
                      R"(,"value":)" + number + "}}")
        continue;
      ++stream.got;
      EXPECT_LE(stream.got, stream.items) << "there is one too many: " << text;
      EXPECT_LE(stream.got, stream.credit) << "there is no credit for " << text;
      return;
    }
    ADD_FAILURE() << "no such item is due: " << text;
  }

  struct OnItsWay {
    std::size_t end;  // of the message: when so many bytes have been sent, the server can know of it
    std::string id;
    unsigned credit;
  };

  Random* random_;
  Protocol protocol_;
  transport::SimulatedClient client_;
  bool upgraded_ = false;    // to a WebSocket
  bool said_close_ = false;  // the server, by its close frame
  std::string unsent_;
  std::size_t sent_ = 0;
  int turns_closed_ = 0;
  std::size_t resets_after_ = static_cast<std::size_t>(-1);
  std::string received_;
  int last_id_ = 0;
  std::map<std::string, Expected> expected_;  // by id, without quotes: no two are alike
  std::deque<Expected> in_order_;
  std::map<std::string, std::pair<unsigned, unsigned>> items_;  // by token: those that have come, and all
  std::map<std::string, Streamed> streams_;                     // by id, as it was sent
  std::deque<OnItsWay> on_their_way_;
};

void simulate(unsigned seed) {
  Random random{seed};
  Options options;
  options.takeover_ms = options.slow_handler_ms = 0;
  options.allow_plain = true;  // nobody knows where a simulated peer is
  options.limits.call_timeout_ms = 24 * 3600 * 1000;
  options.limits.header_timeout_ms = 24 * 3600 * 1000;  // a handshake takes as long as its client is slow to read
  // A stream that rests leaves its connection busy for as long as its caller likes.
  options.limits.soft_output = one_in(random, 4) ? 1000 : Limits{}.soft_output;
  Registry registry;
  registry.method("add", [](int a, int b) { return a + b; }, {"a", "b"});
  registry.method("echo", [](std::string value) { return value; });
  registry.method("wrong", []() -> int { throw Error{7, "as always"}; });
  registry.method("later", [](Context context, std::uint32_t ms, int value) -> Task<int> {
    co_await sleep_for(context, milliseconds{ms});
    co_return value;
  });
  registry.method("count",
                  [](int n) -> Stream<int> {
                    for (int i = 0; i < n; ++i) co_yield i;
                  },
                  {"n"});
  const HttpSettings http;
  static const auto certificate =
      std::make_shared<const transport::TlsServerContext>(transport::TlsServerSettings{.self_signed = true});
  static const auto trust = std::make_shared<const transport::TlsClientContext>(
      transport::TlsClientSettings{.pin = "sha256:" + certificate->fingerprint()});
  ServerShared shared{.options = options, .registry = registry, .http = http, .tls = certificate};
  auto* const backend = new SimulatedBackend{seed};
  ServingLoop serving{std::unique_ptr<runtime::Backend>{backend}, shared};

  const bool may_break = seed % 3 == 0;
  if (may_break) backend->break_one_in(200);
  std::vector<Caller> callers;
  for (unsigned left = 1 + random() % 4; left != 0; --left) {
    auto [descriptor, peer] = backend->pair();
    serving.open(transport::PendingConnection{descriptor});
    callers.emplace_back(std::move(peer), random, may_break, one_in(random, 3) ? trust : nullptr);
  }

  int turns = 0;
  const auto over = [&] {
    bool all_over = true;
    for (Caller& caller : callers) {
      caller.act();
      if (!caller.gone() && caller.satisfied()) caller.finish();
      if (turns > kTurnsMax / 2) caller.open_window();
      all_over = all_over && caller.closed();
    }
    return all_over || ++turns == kTurnsMax || testing::Test::HasFailure();
  };
  serving.run(over, [] { return true; });

  for (const Caller& caller : callers) {
    EXPECT_TRUE(caller.closed()) << caller.missing();
    if (!may_break) {
      EXPECT_TRUE(caller.satisfied()) << caller.missing();
    }
  }
  const Stats stats = serving.stats();
  EXPECT_EQ(stats.connections_open, 0U);
  EXPECT_EQ(stats.calls_in_flight, 0U);
}

TEST(Simulation, of_a_thousand_seeds) {
  const char* const only = std::getenv("WIRECALL_SEED");
  const unsigned first = only != nullptr ? static_cast<unsigned>(std::atoi(only)) : 1;
  const unsigned last = only != nullptr ? first : kSeeds;
  std::cout << "seeds " << first << " to " << last << "\n";
  for (unsigned seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    simulate(seed);
  }
}

}  // namespace
}  // namespace wirecall::net
