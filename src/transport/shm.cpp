// shm://name: connections between two processes of one user by shared memory. They connect by a unix socket, whose file
// has the name and stands in a folder that is this user's alone; each checks the other's user besides. Over it the
// server hands the client the memory (shm_hello.hpp), and both keep it for as long as the connection lasts: by it they
// wake each other, and its end is how one of them learns that the other is gone. Thread: any for connecting, the
// loop's for the rest.
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/time.h>

#include "transport/setup.hpp"
#include "transport/shm_hello.hpp"
#include "transport/shm_stream.hpp"
#include "transport/socket.hpp"
#include "transport/user_folder.hpp"

namespace wirecall::transport {
namespace {

constexpr std::string_view kSuffix = ".sock";

// `what` is being done, for the error.
void check_folder(const std::string& folder, const Endpoint& endpoint, std::string_view what) {
  if (const auto fault = user_folder_fault(folder)) throw failure(what, endpoint, fault->cause, fault->cure);
}

std::string socket_path(const Endpoint& endpoint, std::string_view what) {
  std::string path = user_folder() + '/' + endpoint.path() + std::string{kSuffix};
  if (path.size() > kSocketPathBytesMax)
    throw failure(what, endpoint, "the path of its socket, " + path + ", has more than 107 bytes",
                  "choose a shorter name");
  return path;
}

bool is_own_user(int socket) noexcept {
  const std::optional<PeerCredentials> peer = peer_credentials(socket);
  return peer && peer->uid == ::geteuid();
}

// The server's end of a connection that has been accepted, once the client's is on its way; else an errno.
std::expected<std::unique_ptr<ShmConnection>, int> offer(runtime::Descriptor socket) {
  auto made = ShmSegment::make();
  if (!made) return std::unexpected{made.error()};
  if (const int error = send_shm_hello(socket.get(), {.ring_bytes = kShmRingBytes}, made->second.get()); error != 0)
    return std::unexpected{error};
  return std::make_unique<ShmConnection>(
      ShmLink{.segment = std::move(made->first), .role = ShmRole::server, .socket = std::move(socket)});
}

// Accepts as any listener on a unix socket does. Where there is no memory or no descriptor for one more connection,
// that one is closed.
class ShmAcceptor final : public Acceptor {
 public:
  ShmAcceptor(Loop& loop, BoundSocket bound, Listener::Accepted accepted, Listener::Failed failed)
      : Acceptor(std::move(bound.endpoint), bound.passed),
        accepted_(std::move(accepted)),
        failed_(failed),
        descriptor_(bound.descriptor),
        listener_(
            loop, bound.descriptor, [this](PendingConnection connected) { accept(std::move(connected)); },
            std::move(failed)),
        file_(std::move(bound.file)) {}

  [[nodiscard]] int descriptor() const noexcept override { return descriptor_; }
  void stop() override { listener_.stop(); }
  [[nodiscard]] bool stopped() const noexcept override { return listener_.stopped(); }
  void own_file() override { file_ = SocketFile{shm_socket_path(endpoint())}; }
  void keep_file() noexcept override { file_.keep(); }

 private:
  void accept(PendingConnection connected) {
    runtime::Descriptor socket{connected.release_socket()};
    if (!is_own_user(socket.get())) return;
    auto connection = offer(std::move(socket));
    if (connection) {
      if (std::exchange(failing_, false)) failed_(0);
      return accepted_(PendingConnection{std::move(*connection)});
    }
    // A client that has left again is no failure of ours.
    if (connection.error() != EPIPE && connection.error() != ECONNRESET && !std::exchange(failing_, true))
      failed_(connection.error());
  }

  Listener::Accepted accepted_;
  Listener::Failed failed_;
  bool failing_ = false;  // the user has been told an errno
  int descriptor_;
  Listener listener_;
  SocketFile file_;  // goes first, so that nobody connects to a socket that is not served
};

}  // namespace

std::string shm_socket_path(const Endpoint& endpoint) { return socket_path(endpoint, "cannot find"); }

std::unique_ptr<Acceptor> listen_on_shm(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted,
                                        Listener::Failed failed) {
  constexpr std::string_view kWhat = "cannot listen on";
  const std::string path = socket_path(endpoint, kWhat);
  if (const auto fault = make_user_folder()) throw failure(kWhat, endpoint, fault->cause, fault->cure);
  return listen_on_shm(loop, listen_on_path(endpoint, path), std::move(accepted), std::move(failed));
}

std::unique_ptr<Acceptor> listen_on_shm(Loop& loop, BoundSocket bound, Listener::Accepted accepted,
                                        Listener::Failed failed) {
  return std::make_unique<ShmAcceptor>(loop, std::move(bound), std::move(accepted), std::move(failed));
}

PendingConnection connect_to_shm(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  constexpr std::string_view kWhat = "cannot connect to";
  const std::string path = socket_path(endpoint, kWhat);
  check_folder(path.substr(0, path.rfind('/')), endpoint, kWhat);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  runtime::Descriptor socket{connect_to_path(endpoint, path, timeout)};
  if (!is_own_user(socket.get()))
    throw failure(kWhat, endpoint, "it is served by another user", "stop that server, and start one of this user");
  set_receive_timeout(socket.get(), deadline - std::chrono::steady_clock::now());
  auto hello = receive_shm_hello(socket.get());
  constexpr std::string_view kCure = "check that what listens there is a server of this version";
  if (!hello) throw failure(kWhat, endpoint, hello.error(), kCure);
  auto& [said, memory] = *hello;
  auto segment = ShmSegment::map(memory.get(), said.ring_bytes);
  if (!segment) throw failure(kWhat, endpoint, segment.error(), kCure);
  set_non_blocking(socket.get());
  return PendingConnection{std::make_unique<ShmConnection>(
      ShmLink{.segment = std::move(*segment), .role = ShmRole::client, .socket = std::move(socket)})};
}

}  // namespace wirecall::transport
