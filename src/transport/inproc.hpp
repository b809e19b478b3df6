// inproc://name: connections within one process, from whichever thread and loop to whichever other. A connection is a
// pair of sockets, so it has all that others have: bytes in order, back-pressure, half-close; what is particular is how
// it comes about, namely as a job in the inbox of the listener's loop.
// The names are the one thing here that all of a process shares, as its ports are what all of a machine shares.
// Thread: any for connecting, the loop's for the rest.
#pragma once

#include <functional>
#include <memory>

#include "transport/pending_connection.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::transport {

class InprocListener {
 public:
  using Accepted = std::function<void(PendingConnection)>;

  /// Throws std::runtime_error when the name is taken.
  InprocListener(Loop& loop, const Endpoint& endpoint, Accepted accepted);
  ~InprocListener();
  InprocListener(InprocListener&&) = delete;

 private:
  std::string name_;
  std::shared_ptr<Accepted> accepted_;
};

/// The other end of a connection that the listener of that name is about to accept. Throws std::runtime_error.
[[nodiscard]] PendingConnection connect_to_inproc(const Endpoint& endpoint);

}  // namespace wirecall::transport
