// ClientConnection: one of a client's connections: which state it is in, what was sent on it and has not ended, and
// what is to be sent on it before calls. Owned by the ConnectionPool; what comes in on it goes to the MessageRouter.
// Guarded by the client's mutex, but for the session, which is the thread's that drives.
#pragma once

#include "base/assert.hpp"
#include "client/call.hpp"
#include "client/dialer.hpp"
#include "client/missing_methods.hpp"
#include "client/unattributed_errors.hpp"
#include "connection/channel.hpp"
#include "connection/counted_stream.hpp"
#include "connection/message_connection.hpp"
#include "http/client.hpp"
#include "http/websocket_client.hpp"

namespace wirecall::net {

class MessageRouter;

/// Whether a server there calls its client as well; else it answers, and no more.
[[nodiscard]] inline bool calls_back(const Endpoint& endpoint) noexcept {
  return !endpoint.by_http() && endpoint.kind() != EndpointKind::udp;
}

enum class ConnectionState : std::uint8_t {
  down,      ///< there is none, but perhaps an attempt that blocks its thread
  dialing,   ///< an attempt is under way on a thread of its own
  agreeing,  ///< there is one, and its server has yet to say that it speaks what is to be spoken
  up,        ///< it takes calls
  draining,  ///< it takes no more calls; what was sent may still be answered
  over,      ///< it has ended, and is destroyed after the turn
};

/// rpc.hello on one connection, and the session of the server's that goes on with the next one.
struct Hello {
  std::chrono::nanoseconds answered_until{0};  ///< 0: nothing to be answered
  std::string resume;                          ///< the session's secret; empty for none
  std::string resume_endpoint;                 ///< who has given it, and alone is told it
  bool resumes = false;                        ///< the last rpc.hello has named it

  /// A server that has not answered in time knows no rpc.hello.
  [[nodiscard]] bool due(std::chrono::nanoseconds now) const noexcept {
    return answered_until != std::chrono::nanoseconds{0} && now < answered_until;
  }
  void over() noexcept { answered_until = std::chrono::nanoseconds{0}; }
};

/// What the server takes; never more than we do.
struct ConnectionLimits {
  std::size_t message_bytes_max = 0;
  std::size_t in_flight_max = 0;
  std::size_t batch_max = 0;
};

class ClientConnection final : public ResponseHandler, public HttpUser {
 public:
  ClientConnection(MessageRouter& router, const std::vector<Endpoint>& endpoints, const ClientOptions& options,
                   DialFunction dial, unsigned seed)
      : dialer(endpoints, options, std::move(dial), seed), router_(router) {}

  // What comes in: message_router.cpp.
  [[nodiscard]] bool response(const Received& message) override;
  [[nodiscard]] bool takes_encoded(const Received& message) override;
  [[nodiscard]] bool notified(const Received& message) override;
  [[nodiscard]] bool asked(const Received& message) override;
  void drained() override;
  [[nodiscard]] bool waiting() const override;
  [[nodiscard]] std::optional<HttpProtocolError> answered(const HttpAnswer& answer) override;

  [[nodiscard]] ConnectionState state() const noexcept { return state_; }
  void enter(ConnectionState next) noexcept;
  /// It is there, and has not ended.
  [[nodiscard]] bool is_open() const noexcept {
    return state_ == ConnectionState::up || state_ == ConnectionState::draining;
  }
  [[nodiscard]] bool is_up() const noexcept { return state_ == ConnectionState::up; }
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return dialer.endpoint(); }
  /// What is sent may be lost.
  [[nodiscard]] bool by_datagrams() const noexcept { return endpoint().kind() == EndpointKind::udp; }
  /// It may be written to: a call goes on it now.
  [[nodiscard]] bool takes_calls() const noexcept;
  /// Nothing of the former connection is left.
  void begin(std::chrono::nanoseconds now, const Limits& own) noexcept;

  /// As its server says, but no shorter than 1 s, since each quarter of it costs a look; 0 for never.
  void keep_alive_for(std::chrono::milliseconds time) noexcept {
    keepalive = time.count() == 0 ? time : std::max(time, std::chrono::milliseconds{1000});
    next_look = std::chrono::nanoseconds{0};
  }
  /// Whether its server has been silent for too long, which is looked at now and again while `expected` says that the
  /// connection is to stay. `wait_max` becomes no more than the time until the next look.
  [[nodiscard]] bool has_lost_server(bool expected, std::chrono::nanoseconds now, std::chrono::nanoseconds& wait_max);

  /// Something that was sent here has not ended.
  [[nodiscard]] bool awaits() const noexcept { return !calls.empty() || !notifications.empty(); }
  /// It owes us nothing, and we it.
  [[nodiscard]] bool is_idle() const noexcept {
    return !awaits() && controls.empty() && !session->busy() && !session->has_output();
  }
  /// The call, whose message ends at `position`, has been sent here.
  void add(ClientCall& call, std::uint64_t position) noexcept;
  /// The call, which was sent here, has ended or goes elsewhere.
  void remove(const ClientCall& call) noexcept;
  /// The first of what awaits(); of one message the notifications come first.
  [[nodiscard]] ClientCall& first() const noexcept;
  /// A whole message that nobody waits for the answer to, to be sent before calls. Throws std::bad_alloc.
  void say(std::string message) {
    controls.push_back(std::move(message));
    unattributed.add(1, 0);
  }

  /// Bytes of output up to now, and those of them that the system has taken.
  [[nodiscard]] std::uint64_t written_bytes() const noexcept { return stream->bytes() + session->gathered_bytes(); }
  [[nodiscard]] std::uint64_t taken_bytes() const noexcept { return written_bytes() - session->output_bytes(); }

  std::unique_ptr<Channel> session;         ///< the driver's
  std::unique_ptr<Channel> former;          ///< which that has taken the place of, until after the turn
  rpc::MessageSink* sink = nullptr;         ///< the session: where messages are written
  ClientHttp* http = nullptr;               ///< the session, where it speaks HTTP
  CountedStream* stream = nullptr;          ///< the session's
  WebSocketHandshake* handshake = nullptr;  ///< the session, while agreeing
  Dialer dialer;
  ConnectionLimits limits;
  std::chrono::nanoseconds since{0};      ///< when it was made
  std::chrono::nanoseconds keepalive{0};  ///< of a server that says nothing for so long it is lost; 0 for never
  std::chrono::nanoseconds next_look{0};  ///< at whether it does; 0 while nothing is expected of it
  bool useful = false;                    ///< it has served a call
  bool announced = false;                 ///< as made, to who asks for news of connections
  bool awaiting_response = false;         ///< by HTTP: to the last request
  bool notifications_fresh = false;       ///< one was sent since the last turn
  bool ends_with_notification = false;    ///< what was sent last is not answered
  CallList calls;                         ///< those in the table that were sent here, in the order in which they were
  std::size_t in_flight = 0;              ///< how many these are
  bool resends = false;                   ///< some of these are sent again where nothing answers them
  CallList notifications;                 ///< not all taken by the system yet; by HTTP: not responded to
  std::vector<std::string> controls;      ///< whole messages of our own, to be sent before calls
  UnattributedErrors unattributed;
  MissingMethods missing;
  Hello hello;

 private:
  MessageRouter& router_;
  ConnectionState state_ = ConnectionState::down;
};

}  // namespace wirecall::net
