// StreamedCall: one request that is posted with "Accept: text/event-stream": its items are events of the response as
// they come, and its answer is the last. There is no credit: the call waits while its caller reads too slowly.
// Owned by an HttpConnection; lives on its loop's thread.
#pragma once

#include "http/event_stream.hpp"
#include "http/routes.hpp"

namespace wirecall::net {

/// Reads the body of the request; what is not one request is answered as if no events had been asked for.
void begin_streamed_call(HttpConnection& connection, const RoutedRequest& request);

class StreamedCall final : public EventStream {
 public:
  explicit StreamedCall(HttpChannel& channel) : EventStream(channel) {}

  /// The response has begun. `json` is a request; a null byte is behind it.
  void call(Buffer json);

  [[nodiscard]] bool working() const noexcept override { return dispatcher.in_flight() != 0; }
  [[nodiscard]] rpc::PeerCapabilities capabilities() const noexcept override {
    return {.items = true, .direct_reply = true};
  }

 private:
  void written(const Received& message) override;

  Buffer request_;
};

}  // namespace wirecall::net
