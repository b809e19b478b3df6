// Acceptor: accepts a server's connections, whatever the kind of its endpoint: open_acceptor makes the right one. It
// hands out each as a PendingConnection, for any loop to attach.
// Belongs to its user; lives on its loop's thread. Nothing of the user is called but in a turn of the loop.
#pragma once

#include "transport/endpoint_socket.hpp"
#include "transport/socket.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::transport {

class Acceptor {
 public:
  /// No connection comes any more; those that came are not touched, but those of stdio, which end a little later.
  virtual ~Acceptor() = default;
  Acceptor(Acceptor&&) = delete;
  /// With the port that was bound.
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }
  /// Its socket is a service manager's, and so is the file by which clients find it.
  [[nodiscard]] bool passed() const noexcept { return passed_; }
  /// No connection can come any more: there is one standard input.
  [[nodiscard]] virtual bool exhausted() const noexcept { return false; }
  /// The socket that it accepts on, which stays its own; -1 for none.
  [[nodiscard]] virtual int descriptor() const noexcept { return -1; }
  /// Asks the system for no further connection. Those that it has given by then are still handed on, in turns of the
  /// loop, until it has `stopped`.
  virtual void stop() {}
  [[nodiscard]] virtual bool stopped() const noexcept { return true; }
  /// Where its socket is only bound so far, it listens from now on.
  virtual void begin_to_listen() noexcept {}
  /// The file by which clients find the socket goes with this object, as it does at first where it has made it; or
  /// stays, for another process that listens on the socket.
  virtual void own_file() {}
  virtual void keep_file() noexcept {}
  /// Before it goes. Returns 0, or the errno with which standard output has refused what was sent there.
  virtual int end() noexcept { return 0; }

 protected:
  explicit Acceptor(Endpoint endpoint, bool passed = false) : endpoint_(std::move(endpoint)), passed_(passed) {}

 private:
  Endpoint endpoint_;
  bool passed_;
};

/// Peers may connect from now on. Throws std::runtime_error with the cause and the cure.
[[nodiscard]] std::unique_ptr<Acceptor> open_acceptor(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted,
                                                      Listener::Failed failed);
/// The same of a socket that listens already, or is to `begin_to_listen` before the loop turns; of a kind that has one.
[[nodiscard]] std::unique_ptr<Acceptor> open_acceptor(Loop& loop, BoundSocket bound, Listener::Accepted accepted,
                                                      Listener::Failed failed);

}  // namespace wirecall::transport
