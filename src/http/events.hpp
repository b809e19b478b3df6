// EventStream: the events of some topics as the body of one HTTP response that goes on for as long as the connection
// does (text/event-stream, docs/wire.md "Events by HTTP"). It subscribes as any connection does, by a dispatcher of its
// own, and writes each notification that comes as an event of the stream. Owned by an HttpConnection; lives on its
// loop's thread.
#pragma once

#include "http/channel.hpp"
#include "http/routes.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/context.hpp"

namespace wirecall::net {

/// Serves GET /events.
void begin_events(HttpConnection& connection, const RoutedRequest& request);

class EventStream final : public HttpSink, private Timer {
 public:
  EventStream(HttpChannel& channel, bool named);
  ~EventStream() { channel_->host().loop.stop(*this); }

  /// Subscribes to them all; 200, or the status that refuses it, whose cause is `refused_since`.
  [[nodiscard]] std::uint16_t subscribe(const std::vector<std::string>& topics);
  [[nodiscard]] const std::string& refused_since() const noexcept { return cause_; }
  /// The response has begun. Sends what is retained of `last`.
  void begin(const std::vector<std::string>& last);
  /// The connection is over.
  void abandon() noexcept;

  Buffer& open_message() override;
  void close_message() override;
  void discard_message() noexcept override { text_.clear(); }
  [[nodiscard]] bool writable() noexcept override { return channel_->output_writable(); }
  [[nodiscard]] bool is_overfull() noexcept override { return channel_->output_is_overfull(); }
  [[nodiscard]] std::size_t waiting_bytes() const noexcept override { return channel_->output_bytes(); }
  [[nodiscard]] bool has_budget_for(std::size_t bytes) noexcept override {
    return channel_->output_has_budget_for(bytes);
  }
  [[nodiscard]] rpc::PeerCapabilities capabilities() const noexcept override { return {.registration = true}; }
  void count_into(rpc::ConnectionCounts* counts) noexcept override { channel_->count_into(counts); }
  void close() override { channel_->stop_reading(CloseReason::refused); }

 private:
  void expired() override;
  void ask(std::string_view topic, bool last);
  void write_event(std::string_view topic, std::string_view message);

  Buffer text_;        // the message that is being written
  std::string cause_;  // of a refusal
  std::uint64_t number_ = 0;
  std::uint16_t status_ = 200;
  const bool named_;
  bool awaits_answer_ = false;

 public:
  rpc::Dispatcher dispatcher;
};

}  // namespace wirecall::net
