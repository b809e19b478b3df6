// PendingConnection: a connection that has no loop yet. Acceptors and dialers hand it out, threads hand it on, and the
// loop that is going to serve it attaches it, once: from then on it is a ByteStream there. One that is dropped is
// closed. A socket needs no memory here; a connection of any other kind is an UnattachedStream.
// A value with one owner. Thread: any, one at a time, but for `attach`, which is for the loop's.
#pragma once

#include "runtime/descriptor.hpp"
#include "transport/byte_stream.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::transport {

/// A connection of a kind of its own, as long as it has no loop: TLS over a socket, shared memory, a user's transport.
class UnattachedStream {
 public:
  /// Closes the connection, unless it has been attached.
  virtual ~UnattachedStream() = default;
  /// Makes it a stream on `loop`; once, on the loop's thread. A stream that has no handle of the loop reserves memory
  /// for its user (Loop::admit). Throws std::bad_alloc, and can be asked again then.
  [[nodiscard]] virtual std::unique_ptr<ByteStream> attach(Loop& loop) = 0;
  /// The socket below it, which stays open for as long as the stream: a thread that does not have the stream asks the
  /// system about its peer by this. -1 for none: then the system knows nothing of the peer.
  [[nodiscard]] virtual int descriptor() const noexcept { return -1; }
};

class PendingConnection {
 public:
  /// None.
  PendingConnection() = default;
  /// A connected, non-blocking stream socket.
  explicit PendingConnection(int socket) noexcept : socket_(socket) {}
  explicit PendingConnection(std::unique_ptr<UnattachedStream> stream) noexcept : stream_(std::move(stream)) {}

  /// Whether there is one.
  [[nodiscard]] explicit operator bool() const noexcept { return socket_.get() >= 0 || stream_ != nullptr; }
  /// The stream on `loop`; this is none from then on. Throws std::bad_alloc, and has changed nothing then.
  [[nodiscard]] std::unique_ptr<ByteStream> attach(Loop& loop);
  /// The socket, or that below it; -1 for none.
  [[nodiscard]] int descriptor() const noexcept { return stream_ != nullptr ? stream_->descriptor() : socket_.get(); }
  /// The socket, for a caller that does without a loop, who owns it from now on; -1 for a connection of another kind.
  [[nodiscard]] int release_socket() noexcept { return socket_.release(); }

 private:
  runtime::Descriptor socket_;
  std::unique_ptr<UnattachedStream> stream_;
};

}  // namespace wirecall::transport
