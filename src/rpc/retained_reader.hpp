// RetainedReader: a peer that comes back for the retained events that it has missed, as a reader of server-sent events
// does by Last-Event-ID. A broker numbers what it retains, 1, 2, …, over all topics; a larger number is newer. A
// MessageSink tells a broker of its reader (MessageSink::retained_reader), and outlives it. One thread (the loop's).
#pragma once

#include <cstdint>
#include <string_view>

namespace wirecall::rpc {

/// Where a broker is in its numbers.
struct RetainedPosition {
  std::string_view epoch;    ///< random text of this broker, letters and digits; valid as long as the broker
  std::uint64_t number = 0;  ///< all up to this have been sent to those who subscribed, or counted as lost; 0 for none
  std::uint64_t last_number = 0;  ///< of the event that was retained last, which may still be on its way; 0 for none
};

/// It keeps its subscriptions. What it asks for by `last` in rpc.subscribe is sent from the next
/// Dispatcher::on_writable on, so that of several topics each retained event is sent once.
class RetainedReader {
 public:
  /// The peer has what is retained up to that number: it is sent what is newer.
  [[nodiscard]] virtual std::uint64_t retained_seen() const noexcept = 0;
  /// Messages from now on are the event that was retained under that number, as it is published; 0 for all others.
  virtual void set_retained_number(std::uint64_t number) noexcept = 0;
  /// All that the peer has asked for by `last` has been sent, but for what it has lost. May throw std::bad_alloc.
  virtual void retained_sent() = 0;
  /// The peer loses an event that is retained (rpc.lagged).
  virtual void retained_lost() noexcept = 0;

 protected:
  ~RetainedReader() = default;
};

}  // namespace wirecall::rpc
