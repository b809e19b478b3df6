// RequestWriter: writes queued calls, each with those that go into the same message, on the connections that take them.
// The driver's, with the mutex held.
#pragma once

#include "client/outstanding_calls.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::net {

class RequestWriter {
 public:
  RequestWriter(ClientShared& shared, ConnectionPool& connections, OutstandingCalls& calls) noexcept
      : shared_(shared), connections_(connections), calls_(calls) {}

  /// Writes controls and then calls, as many as connections take.
  void write() noexcept;
  /// Writes once more what may be, where datagrams carry it and none has answered it for a while; `wait_max` becomes
  /// how long nothing will be due.
  void resend(std::chrono::nanoseconds& wait_max) noexcept;
  /// Writes controls only. What there is no memory for waits for the next time.
  void write_controls() noexcept;

 private:
  struct EnvelopeMembers;

  void write(ClientCall& first, ClientConnection& connection) noexcept;
  void append(Buffer& out, ClientCall& call, bool with_members, bool in_batch);
  void resend(ClientCall& call, ClientConnection& connection) noexcept;
  void append_natively(Buffer& out, const ClientCall& call, const EnvelopeMembers& members, bool in_batch);
  [[nodiscard]] message::NativeTranscoder& native() {
    return shared_.loop_context.codecs.native(shared_.options.encoding);
  }
  [[nodiscard]] std::chrono::milliseconds time_to_tell(const ClientCall& first) const;

  ClientShared& shared_;
  ConnectionPool& connections_;
  OutstandingCalls& calls_;
};

}  // namespace wirecall::net
