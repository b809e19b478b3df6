// A peer without a socket: sends texts to a Dispatcher and keeps the output, on a clock that a test moves.
#pragma once

#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/one_line.hpp"
#include "message/explain.hpp"
#include "rpc/dispatcher.hpp"
#include "tests/base/virtual_scheduler.hpp"
#include "tests/message/read.hpp"

namespace wirecall::test {

/// Keeps whole messages, and checks that the dispatcher opens, closes and discards them in turn.
class RecordingSink final : public rpc::MessageSink {
 public:
  Buffer& open_message() override {
    EXPECT_FALSE(open_) << "a message was opened while another one was open";
    open_ = true;
    start_ = out_.size();
    return out_;
  }
  void close_message() override {
    if (lines) make_one_line(out_.data() + start_, out_.data() + out_.size());
    keep();
  }
  void close_compact_as(MessageForm) override {
    EXPECT_FALSE(lines && has_line_break(out_.view().substr(start_)))
        << "said to be one line: " << out_.view().substr(start_);
    keep();
  }
  void discard_message() noexcept override {
    EXPECT_TRUE(std::exchange(open_, false));
    out_.truncate(start_);
  }
  [[nodiscard]] std::optional<std::chrono::nanoseconds> received_at() noexcept override { return received_time; }
  [[nodiscard]] bool writable() noexcept override { return messages.size() < messages_max; }
  [[nodiscard]] bool is_overfull() noexcept override { return overfull || messages.size() >= overfull_from; }
  [[nodiscard]] rpc::PeerCapabilities capabilities() const noexcept override { return can; }
  [[nodiscard]] bool takes_lines() const noexcept override { return lines; }
  [[nodiscard]] std::string peer_source() const override { return source; }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept override { return waiting; }
  [[nodiscard]] rpc::RetainedReader* retained_reader() noexcept override { return reader; }
  void close() override { ++closes; }
  [[nodiscard]] std::shared_ptr<void> hold_input() override {
    if (!holds_input) return nullptr;
    std::shared_ptr<void> hold = input_hold.lock();
    if (hold == nullptr) input_hold = hold = std::make_shared<int>();
    return hold;
  }
  [[nodiscard]] bool open() const noexcept { return open_; }
  /// The output since the last call, one message a line.
  [[nodiscard]] std::string take() {
    std::string lines;
    for (const std::string& message : std::exchange(messages, {})) {
      if (!lines.empty()) lines += '\n';
      lines += message;
    }
    return lines;
  }

  std::vector<std::string> messages;
  std::size_t messages_max = std::numeric_limits<std::size_t>::max();
  std::optional<std::chrono::nanoseconds> received_time;
  rpc::PeerCapabilities can = rpc::PeerCapabilities::all();
  bool overfull = false;
  std::size_t overfull_from = std::numeric_limits<std::size_t>::max();
  bool lines = false;        ///< the peer may read a message as one line, and so receives none of several
  bool holds_input = false;  ///< if requested; the sender has to respect it
  std::weak_ptr<void> input_hold;
  int closes = 0;
  std::string source;
  std::size_t waiting = 0;
  rpc::RetainedReader* reader = nullptr;

 private:
  void keep() {
    EXPECT_TRUE(std::exchange(open_, false));
    messages.emplace_back(out_.view().substr(start_));
  }

  Buffer out_;
  std::size_t start_ = 0;
  bool open_ = false;
};

class Peer {
 public:
  explicit Peer(const Registry& registry, const Limits& limits = {})
      : limits_(limits),
        log_([this](const LogRecord& record) { log.emplace_back(record.message); }),
        loop_context_(json_codec(), &scheduler, &log_),
        dispatcher(registry, sink, limits_, loop_context_) {}
  Peer(Peer&&) = delete;

  /// Gives the dispatcher one text, and frees it on return: nothing may refer to it any more.
  void send(std::string_view text) {
    const PaddedText frame{text};
    Received message;
    if (text.size() > limits_.max_message_size) return dispatcher.refuse_size();
    const Scan scan = read_message(frame.view(), limits_, true, message);
    if (scan.status != ScanStatus::complete)
      return dispatcher.refuse_syntax(scan.status, message::unreadable_at(text, scan.offset));
    if (message.kind != MessageKind::response) dispatcher.handle(message);
    EXPECT_FALSE(sink.open());
  }
  /// The output since the last call, one message a line.
  [[nodiscard]] std::string received() { return sink.take(); }
  [[nodiscard]] std::string ask(std::string_view text) {
    send(text);
    return received();
  }
  void advance(std::chrono::nanoseconds by) { scheduler.advance(by); }
  [[nodiscard]] const Stats& stats() const noexcept { return loop_context_.stats; }

  VirtualScheduler scheduler;
  std::vector<std::string> log;
  RecordingSink sink;

 private:
  Limits limits_;
  LogSink log_;
  rpc::LoopContext loop_context_;

 public:
  rpc::Dispatcher dispatcher;
};

// The replies that tests expect, written by hand.

inline std::string result_reply(std::string_view result, std::string_view id = "1") {
  return R"({"jsonrpc":"2.0","result":)" + std::string{result} + R"(,"id":)" + std::string{id} + "}";
}
inline std::string error_reply(int code, std::string_view message, std::string_view data = {},
                               std::string_view id = "1") {
  std::string reply = R"({"jsonrpc":"2.0","error":{"code":)" + std::to_string(code) + R"(,"message":")";
  reply += message;
  reply += '"';
  if (!data.empty()) reply.append(R"(,"data":)").append(data);
  return reply + R"(},"id":)" + std::string{id} + "}";
}
inline std::string parse_error() { return error_reply(-32700, "Parse error", {}, "null"); }
inline std::string invalid_request(std::string_view id = "null") {
  return error_reply(-32600, "Invalid Request", {}, id);
}
inline std::string invalid_params(std::string_view data, std::string_view id = "1") {
  return error_reply(-32602, "Invalid params", data, id);
}
inline std::string cancelled(std::string_view id = "1") {
  return error_reply(-32800, "Cancelled", R"({"reason":"the call was stopped","origin":"local","delivered":"maybe"})",
                     id);
}
inline std::string timed_out(std::string_view id = "1") {
  return error_reply(-32002, "Timeout",
                     R"({"reason":"the call was not answered in time","origin":"local","delivered":"maybe"})", id);
}
inline std::string internal_error(std::string_view id = "1") { return error_reply(-32603, "Internal error", {}, id); }
/// `what` names the subject: "the reply is".
inline std::string too_large(std::string_view what, std::string_view id = "1") {
  return error_reply(-32006, "Too large",
                     R"({"reason":")" + std::string{what} +
                         R"( larger than a message may be","origin":"local","delivered":"maybe",)"
                         R"("limit":"max_message_size"})",
                     id);
}

// Messages that tests send; empty params, and an empty id, are left out.

inline std::string request(std::string_view method, std::string_view params = {}, std::string_view id = "1") {
  std::string text = R"({"jsonrpc":"2.0","method":")" + std::string{method} + '"';
  if (!params.empty()) text.append(R"(,"params":)").append(params);
  if (!id.empty()) text.append(R"(,"id":)").append(id);
  return text + '}';
}
inline std::string notification(std::string_view method, std::string_view params = {}) {
  return request(method, params, {});
}

}  // namespace wirecall::test
