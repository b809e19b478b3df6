// Harness: a MessageConnection for tests, over the simulated backend or over a stream in memory, with methods to call.
#pragma once

#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connection/message_connection.hpp"
#include "framing/json_text.hpp"
#include "tests/runtime/simulated_backend.hpp"
#include "transport/socket.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/task.hpp"

namespace wirecall::net {

inline constexpr std::string_view kParseError =
    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"Parse error\"},\"id\":null}\n";
inline constexpr std::string_view kTooDeep =
    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"Parse error\",\"data\":{\"limit\":\"depth\"}},"
    "\"id\":null}\n";
inline constexpr std::string_view kInvalidRequest =
    "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"Invalid Request\"},\"id\":null}\n";

inline std::string request(int id) {
  return R"({"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":)" + std::to_string(id) + "}";
}
inline std::string answer(int id) { return R"({"jsonrpc":"2.0","result":19,"id":)" + std::to_string(id) + "}\n"; }
inline std::string call(std::string_view method, int id, std::string_view params = "[]") {
  return R"({"jsonrpc":"2.0","method":")" + std::string{method} + R"(","params":)" + std::string{params} + R"(,"id":)" +
         std::to_string(id) + "}";
}
inline std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

// As LengthPrefix has it.
inline std::string framed(std::string_view message) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(message.size() >> shift);
  return text.append(message);
}

/// Calls of `wait` wait here until the test answers them.
struct Waiting {
  Task<std::string> wait() {
    Completion<std::string> answer;
    calls.push_back(answer);
    try {
      co_return co_await answer;
    } catch (const Cancelled&) {
      ++cancelled;
      throw;
    }
  }
  void answer_all(const std::string& text) {
    for (Completion<std::string>& call : std::exchange(calls, {})) call.set(text);
  }

  std::vector<Completion<std::string>> calls;
  int cancelled = 0;
};

/// A MessageConnection, and the loop and methods that it is served with.
class Harness : public ConnectionOwner {
 public:
  explicit Harness(unsigned seed, Limits given = {})
      : limits(given), backend(new runtime::SimulatedBackend{seed}), loop(std::unique_ptr<runtime::Backend>{backend}) {
    registry.method("subtract", [](int a, int b) { return a - b; }, {"minuend", "subtrahend"});
    registry.method("big", [](std::size_t bytes) { return std::string(bytes, 'x'); }, {"bytes"});
    registry.method("wait", &Waiting::wait, waiting);
  }
  ~Harness() {
    connection.reset();
    loop.turn(std::chrono::milliseconds{0});
  }

  // Over the socket stream and the simulated backend.
  std::shared_ptr<runtime::SimulatedPeer> open(std::unique_ptr<framing::Framing> framing = nullptr) {
    auto [descriptor, peer] = backend->pair();
    open(std::make_unique<transport::SocketStream>(loop, descriptor), std::move(framing));
    return peer;
  }
  void open(std::unique_ptr<transport::ByteStream> stream, std::unique_ptr<framing::Framing> framing = nullptr) {
    if (framing == nullptr) framing = std::make_unique<framing::JsonText>(text);
    connection = std::make_unique<MessageConnection>(host, std::move(stream), std::move(framing), caller);
  }
  void turns(int count = 40) {
    for (int i = 0; i < count; ++i) turn();
  }
  void turn() {
    loop.turn(std::chrono::milliseconds{1});
    if (end) connection.reset();
  }

  void connection_ended(Connection&, CloseReason why, int code) override {
    EXPECT_FALSE(end.has_value());
    end = why;
    error = code;
  }

  Limits limits;
  Registry registry;
  Waiting waiting;
  runtime::SimulatedBackend* backend;
  Loop loop;
  rpc::LoopContext loop_context{json_codec(), &loop, nullptr};
  framing::JsonTextSettings text{limits, "\n"};
  Host host{.loop = loop, .registry = registry, .limits = limits, .loop_context = loop_context, .owner = *this};
  ResponseHandler* caller = nullptr;
  std::unique_ptr<MessageConnection> connection;
  std::optional<CloseReason> end;
  int error = 0;
};

/// A stream without any loop under it: the second implementation of that seam. What is sent is there at once.
class MemoryStream final : public transport::ByteStream {
 public:
  explicit MemoryStream(std::string& out) : out_(&out) {}
  void start(transport::StreamUser& user) override { user_ = &user; }
  void send(Buffer bytes, bool) override {
    out_->append(bytes.view());
    taken_ = std::move(bytes);
    sending_ = true;
  }
  void pause() override { paused = true; }
  void resume() override { paused = false; }
  [[nodiscard]] std::size_t readable() const noexcept override { return 0; }
  [[nodiscard]] std::size_t unsent() const noexcept override { return 0; }
  void shut_down() override { out_->append("<end>"); }
  [[nodiscard]] bool says_farewell() noexcept override { return farewell; }

  // The bytes stand in a heap block of their exact size and padding.
  void receive(std::string_view bytes) {
    const auto block = std::make_unique<char[]>(bytes.size() + kPaddingBytes);
    bytes.copy(block.get(), bytes.size());
    user_->received({block.get(), bytes.size()});
  }
  void finish() { user_->ended(); }
  void fail(int error) { user_->failed(error); }
  [[nodiscard]] const transport::StreamUser& user() const { return *user_; }
  void complete_send() {
    if (std::exchange(sending_, false)) user_->sent(std::move(taken_));
  }
  bool paused = false;
  bool farewell = false;  // as TLS's close_notify, it has yet to be sent

 private:
  std::string* out_;
  transport::StreamUser* user_ = nullptr;
  Buffer taken_;
  bool sending_ = false;
};

/// A connection of `harness` over one, which the connection owns.
inline MemoryStream& open_in_memory(Harness& harness, std::string& out) {
  auto stream = std::make_unique<MemoryStream>(out);
  MemoryStream& opened = *stream;
  harness.open(std::move(stream));
  return opened;
}

}  // namespace wirecall::net
