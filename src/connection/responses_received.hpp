// MessageConnection::Responses: what becomes of the responses that a connection is sent: each goes to the calls of its
// dispatcher, to the caller, or is dropped. Made where it is used; it refers to the connection. Private to the sources
// of MessageConnection.
#pragma once

#include "connection/message_connection.hpp"

namespace wirecall::net {

class MessageConnection::Responses {
 public:
  explicit Responses(MessageConnection& connection) noexcept : connection_(&connection) {}

  /// Somebody may wait for one.
  [[nodiscard]] bool are_awaited() const noexcept {
    return connection_->caller_ != nullptr || connection_->dispatcher_.awaits_responses();
  }
  /// May end the connection.
  void accept(const Received& response) const;
  /// Those of a client's batch, before anything else in it; and of one over the limit, of which nothing else is served.
  /// `encoded` is what it was in another encoding, of which they have their results still.
  void accept_all(const Received& batch, EncodedText encoded) const;
  /// As MessageSink::batched_response.
  void accept_batched(const Received& response, EncodedText batch, std::string_view element) const;

 private:
  void accept_element(Received& response, EncodedText batch, std::string_view element, Buffer& json) const;
  void unpack_result(Received& response, Buffer& json) const;

  MessageConnection* connection_;
};

}  // namespace wirecall::net
