// UdpSocket: the DatagramSocket of udp://. It receives and sends many datagrams by one system call, and several of one
// source as one where the kernel does that (UDP_GRO, UDP_SEGMENT). Where it is bound to all addresses, a reply leaves
// from the one that its request has come to. How one is bound: listen_on_udp, which opens and may block.
// Belongs to its user; lives on its loop's thread.
#pragma once

#include <memory>
#include <vector>

#include "runtime/descriptor.hpp"
#include "transport/datagram_socket.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/stats.hpp"
#include "wirecall/watch.hpp"

namespace wirecall::transport {

/// The most bytes of one datagram, over IPv4.
inline constexpr std::size_t kUdpBytesMax = 65'507;

struct BoundUdpSocket {
  runtime::Descriptor descriptor;
  Endpoint endpoint;    ///< with the port that was bound
  bool passed = false;  ///< as of ListeningSocket
};

/// `count` sockets, at least one, on one udp endpoint: the system spreads the sources over them. Throws
/// std::runtime_error with the cause and the cure.
[[nodiscard]] std::vector<BoundUdpSocket> listen_on_udp(const Endpoint& endpoint, std::size_t count);

class UdpSocket final : public DatagramSocket {
 public:
  /// What it sends and what is lost is counted in `stats`, which outlives it.
  UdpSocket(Loop& loop, runtime::Descriptor bound, Stats& stats);
  ~UdpSocket() override;
  UdpSocket(UdpSocket&&) = delete;

  void start(DatagramUser& user) override;
  void stop() noexcept override { watch_ = Watch{}; }
  void send(std::string_view datagram, const DatagramAddress& to) noexcept override;
  [[nodiscard]] std::size_t bytes_max() const noexcept override { return kUdpBytesMax; }
  [[nodiscard]] std::string peer_source(const DatagramAddress& source) const override;

 private:
  class State;

  std::shared_ptr<State> state_;
  Watch watch_;
};

}  // namespace wirecall::transport
