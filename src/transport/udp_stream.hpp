// UdpStream: a client's end of udp://, as the connections above know one: a ByteStream of messages behind lengths of
// four bytes, each of which travels as one datagram, without its length. Nothing tells whether they arrive: what is
// lost is not sent again, and whoever waits has a deadline. Its socket is connected, so that only datagrams of the
// server are received, and fails where the server's host says that nobody listens.
// Belongs to its user; lives on its loop's thread.
#pragma once

#include "runtime/descriptor.hpp"
#include "runtime/turn.hpp"
#include "transport/byte_stream.hpp"
#include "transport/udp_batch.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/watch.hpp"

namespace wirecall::transport {

class UdpStream final : public ByteStream, private runtime::TurnUser {
 public:
  /// `socket` is connected.
  UdpStream(Loop& loop, runtime::Descriptor socket);
  ~UdpStream() override;
  UdpStream(UdpStream&&) = delete;

  void start(StreamUser& user) override;
  void send(Buffer bytes, bool prompt) override;
  void pause() override { watch_.want(Readiness::none); }
  void resume() override { watch_.want(Readiness::readable); }
  [[nodiscard]] std::size_t readable() const noexcept override;
  [[nodiscard]] std::size_t unsent() const noexcept override { return 0; }
  /// There is nobody to be told.
  void shut_down() override {}
  [[nodiscard]] std::string peer_source() const override;

 private:
  void turn_ended() override { tell_sent(); }
  void next_turn() override { tell_sent(); }
  void tell_sent();
  void receive();

  Loop* loop_;
  runtime::Descriptor socket_;
  StreamUser* user_ = nullptr;
  Stats stats_;
  UdpInput in_;
  UdpOutput out_;
  Buffer run_;   // what has been received, with lengths
  Buffer sent_;  // to be given back
  bool sending_ = false;
  int error_ = 0;  // with which the system has refused some of it
  Watch watch_;
};

}  // namespace wirecall::transport
