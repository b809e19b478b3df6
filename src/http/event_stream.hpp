// EventStream: the body of one HTTP response that is a stream of server-sent events (text/event-stream): each message
// that its dispatcher writes may become one. What the dispatcher is asked, and which messages are events, is for the
// classes derived from it: TopicEvents (GET /events) and StreamedCall (POST). Owned by an HttpConnection, which reads
// nothing more; lives on its loop's thread. Implements docs/wire.md "Events by HTTP".
#pragma once

#include "http/channel.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::net {

inline constexpr std::string_view kEventType = "text/event-stream";

class EventStream : public HttpSink, private Timer {
 public:
  virtual ~EventStream() { channel_->host().loop.stop(*this); }

  /// The response's head, which has no end; sent before anything else.
  void write_head(std::string_view fields);
  /// The response has begun: something is said at least every 15 s, so that nobody takes the connection for dead.
  void keep_alive();
  /// Whether a call is in progress that is still to be answered.
  [[nodiscard]] virtual bool working() const noexcept { return false; }
  /// The connection is over.
  void abandon() noexcept;

  Buffer& open_message() override;
  void close_message() final;
  void discard_message() noexcept override { text_.clear(); }
  [[nodiscard]] bool writable() noexcept override { return channel_->output_writable(); }
  [[nodiscard]] bool is_overfull() noexcept override { return channel_->output_is_overfull(); }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept override { return channel_->output_bytes(); }
  [[nodiscard]] bool has_budget_for(std::size_t bytes) noexcept override {
    return channel_->output_has_budget_for(bytes);
  }
  void count_into(rpc::ConnectionCounts* counts) noexcept override { channel_->count_into(counts); }
  void close() override { channel_->stop_reading(CloseReason::refused); }

  rpc::Dispatcher dispatcher;

 protected:
  explicit EventStream(HttpChannel& channel);

  /// Appends what is no event: comments and lines of the stream, and the empty line behind them.
  void write_lines(std::string_view lines);
  /// Appends an event that is that message, as one line. `fields` are lines of the event that stand before its data.
  void write_event(std::string_view fields, std::string_view message);

 private:
  /// A message that the dispatcher has written. May throw std::bad_alloc.
  virtual void written(const Received& message) = 0;
  void expired() override;

  Buffer text_;  // the message that is being written
};

}  // namespace wirecall::net
