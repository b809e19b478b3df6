// TopicEvents: the events of some topics, as they come, in answer to GET /events. It subscribes as any connection does,
// and each notification that comes is an event of the stream. The ids of events tell a reader that comes back which of
// the retained ones it has: an id is written only where all retained events up to it have been sent. Owned by an
// HttpConnection; lives on its loop's thread.
#pragma once

#include "http/event_stream.hpp"
#include "http/routes.hpp"
#include "rpc/broker.hpp"

namespace wirecall::net {

/// Serves GET /events.
void begin_events(HttpConnection& connection, const RoutedRequest& request);

/// Where a reader of events is among those that a broker retains: an event's id is its epoch, "-" and its number.
/// Returns the number of an id that a broker at `position` may have given out; 0, before the first, for any other text.
[[nodiscard]] std::uint64_t number_in(std::string_view id, const rpc::RetainedPosition& position) noexcept;

/// What a request for events asks for.
struct TopicsAsked {
  std::vector<std::string> topics;
  bool last = false;       ///< what is retained as well
  bool named = true;       ///< each event has its topic's name; else none, and browsers give all to `onmessage`
  std::uint64_t seen = 0;  ///< of what is retained: the number that the reader has been sent last; 0 for none
};

class TopicEvents final : public EventStream, private rpc::RetainedReader {
 public:
  /// `broker` outlives it.
  TopicEvents(HttpChannel& channel, rpc::Broker& broker, TopicsAsked asked)
      : EventStream(channel), broker_(&broker), asked_(std::move(asked)) {}

  /// Subscribes to all topics; 200, or the status that refuses it, whose cause is `refused_since`.
  [[nodiscard]] std::uint16_t subscribe();
  [[nodiscard]] const std::string& refused_since() const noexcept { return cause_; }
  /// The response has begun. Sends what is retained, where that is asked for.
  void begin();

  [[nodiscard]] rpc::PeerCapabilities capabilities() const noexcept override { return {.registration = true}; }
  [[nodiscard]] rpc::RetainedReader* retained_reader() noexcept override { return this; }

 private:
  void written(const Received& message) override;
  void ask(std::string_view topic);
  [[nodiscard]] std::string id_line(std::uint64_t number);

  [[nodiscard]] std::uint64_t retained_seen() const noexcept override { return asked_.seen; }
  void set_retained_number(std::uint64_t number) noexcept override { number_ = number; }
  void retained_sent() override;
  void retained_lost() noexcept override { has_ids_ = false, lost_ = true; }

  rpc::Broker* broker_;
  const TopicsAsked asked_;
  std::string cause_;         // of a refusal
  std::uint64_t number_ = 0;  // of the event that is being written, which is retained; else 0
  std::uint16_t status_ = 200;
  bool awaits_answer_ = false;
  bool has_ids_ = false;  // what is retained has all been sent
  bool lost_ = false;     // some of it, for good: an id would say that the reader has it
};

}  // namespace wirecall::net
