// MessageRouter: what comes in on a client's connections goes to the call, stream or declaration that it is for: see
// ResponseHandler, and HttpUser for the response to a POST. A POST's calls end with its response at the latest.
// The driver's, from within a turn of the loop; without the mutex but where a Lock is given.
#pragma once

#include "client/broker_session.hpp"
#include "client/outstanding_calls.hpp"

namespace wirecall::net {

class MessageRouter {
 public:
  MessageRouter(ClientShared& shared, Driver& driver, ConnectionPool& connections, OutstandingCalls& calls,
                BrokerSession& broker) noexcept
      : shared_(shared), driver_(driver), connections_(connections), calls_(calls), broker_(broker) {}

  [[nodiscard]] bool response(ClientConnection& connection, const Received& message);
  [[nodiscard]] bool takes_encoded(const ClientConnection& connection, const Received& message) const;
  [[nodiscard]] bool notified(ClientConnection& connection, const Received& message);
  [[nodiscard]] bool asked(ClientConnection& connection, const Received& message) {
    return broker_.asked(connection, message);
  }
  /// The connection may take more that nobody waits for.
  void drained(ClientConnection& connection);
  [[nodiscard]] bool waiting(const ClientConnection& connection) const;
  [[nodiscard]] std::optional<HttpProtocolError> answered(ClientConnection& connection, const HttpAnswer& answer);
  /// How many responses no call was waiting for. Any thread.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  [[nodiscard]] ClientCall* find_call(const ClientConnection& connection, const Received& message) const noexcept;
  [[nodiscard]] ClientCall* find_call(const ClientConnection& connection, std::optional<std::uint64_t> id,
                                      bool is_string) const noexcept;
  void answer(Lock& lock, ClientCall& call, const Received& message);
  bool told_undelivered(ClientConnection& connection, const Received& message);
  bool stray(ClientConnection& connection, const Received& message);
  bool credit(ClientConnection& connection, const Received& message);
  bool item(const ClientConnection& connection, const Received& message);
  void refuse_post(ClientConnection& connection, const Received& message);

  ClientShared& shared_;
  Driver& driver_;
  ConnectionPool& connections_;
  OutstandingCalls& calls_;
  BrokerSession& broker_;
  std::uint64_t dropped_ = 0;
};

}  // namespace wirecall::net
