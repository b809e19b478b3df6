// Opening what an endpoint names: a socket that listens, or a connection. Everything here happens when something is set
// up, and may block; nothing of it in a turn of a loop.
// Thread: any.
#pragma once

#include <sys/types.h>

#include "transport/pending_connection.hpp"
#include "wirecall/endpoint.hpp"

namespace wirecall::transport {

/// The file that a listening unix socket is known by. Goes with this object, unless another has taken its place.
class SocketFile {
 public:
  SocketFile() = default;
  /// The file is there already.
  explicit SocketFile(std::string path);
  SocketFile(SocketFile&& other) noexcept
      : path_(std::exchange(other.path_, {})), device_(other.device_), node_(other.node_) {}
  SocketFile& operator=(SocketFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(device_, other.device_);
    std::swap(node_, other.node_);
    return *this;
  }
  ~SocketFile();
  /// It stays when this object goes.
  void keep() noexcept { path_.clear(); }

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t node_ = 0;
};

struct BoundSocket {
  int descriptor;
  Endpoint endpoint;    ///< with the port that was bound
  SocketFile file;      ///< of a unix socket
  bool passed = false;  ///< as of ListeningSocket
  bool shared = false;  ///< other processes accept on it as well
  bool listens = true;  ///< else it is only bound so far: nobody can connect to it before begin_to_listen
};

/// Binds and listens on a tcp or unix endpoint. A socket file on which nobody listens any more is replaced. Throws
/// std::runtime_error with the cause and the cure.
[[nodiscard]] BoundSocket listen_on(const Endpoint& endpoint);

/// `count` sockets, at least one, that all listen on one tcp endpoint; the system spreads the connections over them.
/// The port is theirs alone: as refused to others, and by others, as one of listen_on. Throws as that does.
[[nodiscard]] std::vector<BoundSocket> listen_together(const Endpoint& endpoint, std::size_t count);
/// The same where `sockets`, at least one, listen there already: as many are added as are missing, and bound only.
[[nodiscard]] std::vector<BoundSocket> listen_together(std::vector<BoundSocket> sockets, std::size_t count);

/// Of a socket that is bound. False where the system refuses, with errno.
[[nodiscard]] bool begin_to_listen(int descriptor) noexcept;

/// A connection to what listens there; of a host's addresses each is tried until one answers, and has its share of the
/// time. Throws std::runtime_error with the cause and the cure.
[[nodiscard]] PendingConnection connect_to(const Endpoint& endpoint, std::chrono::milliseconds timeout);

/// The socket of that, of a kind of the network but udp: encrypted or not, what is spoken on it is the caller's.
[[nodiscard]] int connect_socket(const Endpoint& endpoint, std::chrono::milliseconds timeout);

/// Whether connecting there asks the system for a host's addresses, which takes as long as it takes.
[[nodiscard]] bool resolves_a_name(const Endpoint& endpoint) noexcept;

}  // namespace wirecall::transport
