// Sockets under the seams: SocketStream is a ByteStream over a loop's handle, and Listener accepts connections. How
// they are opened is endpoint_socket.hpp's, and which address family they are of makes no difference here. Streams and
// listeners belong to their users and live on their loop's thread.
#pragma once

#include <functional>
#include <sys/socket.h>

#include "runtime/turn.hpp"
#include "transport/byte_stream.hpp"
#include "transport/pending_connection.hpp"
#include "wirecall/context.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::transport {

/// What ByteStream::watch_peer and ByteStream::peer_credentials are for a socket. Any thread, while it is open.
void watch_peer(int descriptor, std::chrono::nanoseconds time) noexcept;
[[nodiscard]] std::optional<PeerCredentials> peer_credentials(int descriptor) noexcept;
[[nodiscard]] std::string peer_source(int descriptor);
/// Whether the peer is on this machine: by its address, or by what the socket is; -1 for what is no socket.
[[nodiscard]] bool is_local_peer(int descriptor) noexcept;
/// The same of an address; empty for one of another family than the internet's. Only as much of it is read as its
/// family has.
[[nodiscard]] std::string source_of(const sockaddr* address);

class SocketStream final : public ByteStream, private runtime::IoUser {
 public:
  /// `descriptor` is a connected, non-blocking socket, owned by the stream's loop from now on.
  SocketStream(Loop& loop, int descriptor);
  ~SocketStream() override;
  SocketStream(SocketStream&&) = delete;

  void start(StreamUser& user) override;
  void send(Buffer bytes, bool prompt) override;
  void pause() override;
  void resume() override;
  [[nodiscard]] std::size_t readable() const noexcept override { return loop_->readable(handle_); }
  [[nodiscard]] std::size_t unsent() const noexcept override { return loop_->unsent(handle_); }
  void shut_down() override;
  void watch_peer(std::chrono::nanoseconds time) noexcept override { transport::watch_peer(descriptor_, time); }
  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const override;
  [[nodiscard]] std::string peer_source() const override { return transport::peer_source(descriptor_); }

 private:
  void completed(runtime::Completion& completion) override;

  Loop* loop_;
  int descriptor_;  // the loop's, and open for as long as we are
  StreamUser* user_ = nullptr;
  runtime::Handle handle_;
  bool wanted_ = false;                  // input is wanted
  bool receiving_ = false;               // a multishot receive is armed
  mutable bool nobody_vouches_ = false;  // for the peer: the system has been asked
};

/// Accepts connections and hands each to its user. When the process has no descriptors left it waits a little, so that
/// neither the processor nor those who already are connected suffer.
class Listener final : private runtime::IoUser, private Timer {
 public:
  using Accepted = std::function<void(PendingConnection)>;
  /// Told an errno when accepting has to wait, and 0 when it has gone on for a while; each once, however many attempts
  /// fail in between.
  using Failed = std::function<void(int error)>;

  /// `descriptor` is listening; the listener owns it.
  Listener(Loop& loop, int descriptor, Accepted accepted, Failed failed);
  ~Listener();
  Listener(Listener&&) = delete;

  /// Asks the system for no further connection. Those that it has given by then are still handed on, in turns of the
  /// loop, until it has `stopped`: one that is destroyed before may lose them.
  void stop();
  [[nodiscard]] bool stopping() const noexcept { return stopping_; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

 private:
  void completed(runtime::Completion& completion) override;
  void expired() override;

  Loop* loop_;
  Accepted accepted_;
  Failed failed_;
  runtime::Handle handle_;
  bool failing_ = false;  // the user has been told an errno
  bool waiting_ = false;  // nothing is accepted until the timer expires
  bool stopping_ = false;
  bool stopped_ = false;
};

}  // namespace wirecall::transport
