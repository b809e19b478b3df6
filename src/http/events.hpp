// TopicEvents: the events of some topics, as they come, in answer to GET /events. It subscribes as any connection does,
// and each notification that comes is an event of the stream.
// Owned by an HttpConnection; lives on its loop's thread.
#pragma once

#include "http/event_stream.hpp"
#include "http/routes.hpp"

namespace wirecall::net {

/// Serves GET /events.
void begin_events(HttpConnection& connection, const RoutedRequest& request);

class TopicEvents final : public EventStream {
 public:
  /// `named`: each event has its topic's name; else none, and browsers give all of them to `onmessage`.
  TopicEvents(HttpChannel& channel, bool named) : EventStream(channel), named_(named) {}

  /// Subscribes to them all; 200, or the status that refuses it, whose cause is `refused_since`.
  [[nodiscard]] std::uint16_t subscribe(const std::vector<std::string>& topics);
  [[nodiscard]] const std::string& refused_since() const noexcept { return cause_; }
  /// The response has begun. Sends what is retained of `last`.
  void begin(const std::vector<std::string>& last);

  [[nodiscard]] rpc::PeerCapabilities capabilities() const noexcept override { return {.registration = true}; }

 private:
  void written(const Received& message) override;
  void ask(std::string_view topic, bool last);

  std::string cause_;  // of a refusal
  std::uint64_t number_ = 0;
  std::uint16_t status_ = 200;
  const bool named_;
  bool awaits_answer_ = false;
};

}  // namespace wirecall::net
