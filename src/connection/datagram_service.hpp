// DatagramService: serves what comes by a DatagramSocket, each datagram as one message or batch of a peer of its own,
// which is answered by one datagram and can do nothing else. At most once: what is lost stays lost. To its owner it is
// a connection that ends when it is told to. Owned by a server; lives on its loop's thread. The host outlives it.
//
// A source may be forged, so a reply is never larger than a multiple of what asked for it. A larger one becomes -32006
// without data for each id that it answers; where that is too large as well nothing is sent, which is counted. Nor can
// a source show a token: where others have to, it may call what is declared safe, and nothing else. Of the calls in
// progress a source has at most half of what the others leave, and errors that answer no request are few.
#pragma once

#include "connection/connection.hpp"
#include "transport/datagram_socket.hpp"

namespace wirecall::net {

class DatagramService final : public Connection, private transport::DatagramUser {
 public:
  struct Settings {
    /// A reply has at most so many times the bytes of its request; and Limits::datagram_reply_bytes.
    std::size_t reply_factor_max = 3;
  };

  DatagramService(Host& host, std::unique_ptr<transport::DatagramSocket> socket, Settings settings);
  DatagramService(Host& host, std::unique_ptr<transport::DatagramSocket> socket)
      : DatagramService(host, std::move(socket), Settings{}) {}
  ~DatagramService() override;

  void drain() noexcept override;
  void ask_to_leave() noexcept override { socket_->stop(); }
  [[nodiscard]] bool busy() const noexcept override;
  void stop_calls() noexcept override;
  void finish() override { cut(); }
  void cut() override;
  void end_if_idle(std::uint8_t) override {}
  void authority_changed(bool was_open) override;
  [[nodiscard]] bool handler_off_loop() const noexcept override;
  [[nodiscard]] std::size_t output_bytes() const noexcept override { return 0; }

 private:
  class Transaction;

  // Errors that answer no request: on each socket.
  static constexpr int kRefusalsInSecond = 16;
  // No request has fewer bytes, in JSON or MessagePack.
  static constexpr std::size_t kRequestBytesMin = 10;
  // Rounds of the loop after which what has ended is given back, if it has not been before.
  static constexpr std::uint32_t kRoundsUnswept = 64;

  void received(std::string_view datagram, const transport::DatagramAddress& source) override;
  Transaction& begin_transaction(std::string_view datagram, const transport::DatagramAddress& source);
  void retire_current() noexcept;
  [[nodiscard]] std::unique_ptr<Transaction> make_transaction(const transport::DatagramAddress& source);
  void look_for_room() noexcept;
  void limit_calls(std::string_view datagram, const transport::DatagramAddress& source);
  [[nodiscard]] std::size_t calls_left(std::size_t wanted, const transport::DatagramAddress& source);
  [[nodiscard]] std::size_t share_left(const transport::DatagramAddress& source);
  [[nodiscard]] bool is_account_full(const transport::DatagramAddress& source);
  [[nodiscard]] bool may_refuse() noexcept;
  [[nodiscard]] const Principal& anybody();
  [[nodiscard]] Stats& stats() const noexcept { return host_->loop_context.stats; }
  void take_limits() noexcept;
  void sweep() noexcept;

  Host* host_;
  std::unique_ptr<transport::DatagramSocket> socket_;  // null once it is over
  Settings settings_;
  Limits limits_;                                      // the host's, for the datagram at hand
  std::size_t reply_bytes_max_ = 0;                    // of any reply
  Principal anybody_;                                  // who may call what is declared safe
  std::unique_ptr<Transaction> current_;               // of the datagram that is being served, or the next; or null
  std::vector<std::unique_ptr<Transaction>> waiting_;  // others: for an answer, or for a handler that has lost the loop
  std::size_t calls_ = 0;                              // in progress of `waiting_`, as of `swept_in_`, and newer ones
  bool has_room_ = false;                              // for as many as a datagram can ask for
  rpc::Accounts sources_;                              // of which they are
  std::chrono::nanoseconds refusal_due_{0};            // when the next would be due, were there no burst
  std::optional<std::uint32_t> round_;                 // of the loop, in which the last datagram has come
  std::uint32_t swept_in_ = 0;                         // likewise
  bool draining_ = false;
};

}  // namespace wirecall::net
