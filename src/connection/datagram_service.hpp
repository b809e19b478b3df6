// DatagramService: serves what comes by a DatagramSocket, each datagram as one message or batch of a peer of its own,
// which is answered by one datagram and can do nothing else. At most once: what is lost stays lost. To its owner it is
// a connection that ends when it is told to. Owned by a server; lives on its loop's thread. The host outlives it.
//
// A source may be forged, so a reply is never larger than a multiple of what asked for it. A larger one becomes -32006
// without data for each id that it answers; where that is too large as well nothing is sent, which is counted.
#pragma once

#include "connection/connection.hpp"
#include "transport/datagram_socket.hpp"

namespace wirecall::net {

class DatagramService final : public Connection, private transport::DatagramUser {
 public:
  struct Settings {
    /// Bytes of a reply. 1,200 pass every network of IPv6 in one piece.
    std::size_t reply_bytes_max = 1'200;
    /// A reply has at most so many times the bytes of its request.
    std::size_t reply_factor_max = 3;
    /// Calls in progress of all datagrams together. More is -32005 with `data.limit:"in_flight"`.
    std::size_t calls_max = 4096;
  };
  struct Counts {
    std::uint64_t datagrams = 0;          ///< received
    std::uint64_t replies_too_large = 0;  ///< of which nothing was sent
    std::uint64_t lost = 0;               ///< datagrams or replies, for want of memory
  };

  DatagramService(Host& host, std::unique_ptr<transport::DatagramSocket> socket, Settings settings);
  ~DatagramService() override;

  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

  void drain() noexcept override;
  [[nodiscard]] bool busy() const noexcept override;
  void stop_calls() noexcept override;
  void finish() override { cut(); }
  void cut() override;
  void end_if_idle(std::uint8_t) override {}
  [[nodiscard]] bool handler_off_loop() const noexcept override;
  [[nodiscard]] std::size_t output_bytes() const noexcept override { return 0; }

 private:
  class Transaction;

  void received(std::string_view datagram, const transport::DatagramAddress& source) override;
  Transaction& begin_transaction();
  void sweep() noexcept;

  Host* host_;
  std::unique_ptr<transport::DatagramSocket> socket_;  // null once it is over
  Settings settings_;
  Limits limits_;  // the host's, for the datagram at hand
  Counts counts_;
  std::vector<std::unique_ptr<Transaction>> transactions_;  // that are being served, or wait for an answer
  std::unique_ptr<Transaction> spare_;                      // for the next datagram; null for none
  std::size_t calls_ = 0;       // in progress of `transactions_`, as of `swept_in_`, and newer ones
  std::uint32_t swept_in_ = 0;  // a round of the loop
  bool draining_ = false;
};

}  // namespace wirecall::net
