// ChannelLife: the state of one connection, from its first byte to the moment its owner is told of the end. The lowest
// layer of a Channel: it has the stream and the place in the loop's turns, and knows neither input nor output. Lives on
// its loop's thread.
//
//   open        input is read                                           -> ending, ended, finishing, over
//   ending      the peer has ended, behind input that waits             -> ended, finishing, over
//   ended       all of it has been read; the channel ends when it owes
//               nothing more                                            -> over
//   finishing   we read no more; the stream is shut down when the
//               channel owes nothing more                               -> ended, lingering, over
//   lingering   what comes is thrown away, for 1 s or until the peer
//               ends                                                    -> over
//   over        the owner has been told
//
// Whatever its state, a channel that is to be cut ends with the turn, without further output.
#pragma once

#include <cerrno>
#include <new>

#include "connection/channel_protocol.hpp"
#include "runtime/turn.hpp"
#include "transport/byte_stream.hpp"
#include "wirecall/context.hpp"

namespace wirecall::net {

class ChannelLife : public ChannelProtocol, protected transport::StreamUser, protected runtime::TurnUser {
 public:
  ~ChannelLife() override;
  /// Ends the connection with this turn, without further output: there is no memory for an answer that is due.
  void fail_out_of_memory() noexcept { cut_with_turn(Cut::out_of_memory); }

 protected:
  enum class State : std::uint8_t { open, ending, ended, finishing, lingering, over };
  /// Why it ends with the turn; of several reasons the last counts.
  enum class Cut : std::uint8_t { none, slow, evicted, out_of_memory };

  ChannelLife(Host& host, std::unique_ptr<transport::ByteStream> stream);

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool input_ended() const noexcept { return state_ >= State::ended; }
  [[nodiscard]] bool over() const noexcept { return state_ == State::over; }
  /// Why it has been read no more, where that was our decision.
  [[nodiscard]] CloseReason reason() const noexcept { return reason_; }
  [[nodiscard]] Cut cut_reason() const noexcept { return cut_; }
  /// Handlers that have lost the loop and not rejoined it.
  [[nodiscard]] std::uint16_t off_loop() const noexcept { return off_loop_; }

  void enter(State next) noexcept;
  void cut_with_turn(Cut why) noexcept {
    if (why > cut_) cut_ = why;
    mark();
  }
  void end_cut();
  /// The peer has sent what nothing can follow: what it is owed is sent, and then the connection is closed.
  void stop_reading(CloseReason why);
  /// Nothing is read any more, as if the peer's stream had ended: the connection ends for that reason when it owes
  /// nothing more.
  void end_input(CloseReason why) {
    if (input_ended()) return;
    reason_ = why;
    enter(State::ended);
    mark();
  }
  void linger();
  /// The peer has ended: it need not be waited for.
  void end_linger() { end(reason_); }
  /// At once.
  void end(CloseReason reason, int error = 0);
  /// Where the loop comes in: nothing that fails for want of memory goes further. It ends this connection, which needs
  /// none, and no other.
  template <class Act>
  void within_memory(const Act& act) {
    try {
      act();
    } catch (const std::bad_alloc&) {
      end(CloseReason::lost, ENOMEM);
    }
  }

  /// Has turn_ended called: something has been done that may be the last.
  void mark() {
    if (!marked_) mark_first();
  }
  /// The same in the next turn.
  void mark_next_turn();
  /// Has next_turn called.
  void schedule();
  /// None of these.
  void forget_turns() noexcept;
  void request_turn_end() {
    turn_end_requested_ = true;
    mark();
  }

  void give_back(Buffer& buffer) noexcept;
  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const { return stream_->peer_credentials(); }
  [[nodiscard]] std::string peer_source() const { return stream_->peer_source(); }
  [[nodiscard]] const transport::TlsSession* tls() const noexcept {
    return stream_ != nullptr ? stream_->tls() : nullptr;
  }
  [[nodiscard]] std::string_view tls_version() const noexcept;
  [[nodiscard]] std::optional<std::vector<std::string>> certificate_names() const;

  struct Rare;
  [[nodiscard]] Rare& rare();
  void assert_life() const noexcept;

  Host* host_;
  std::unique_ptr<transport::ByteStream> stream_;  // null once another channel has it
  std::unique_ptr<Rare> rare_;
  rpc::ConnectionCounts* counts_ = nullptr;
  std::uint16_t off_loop_ = 0;

 private:
  class Linger;

  void mark_first();

  State state_ : 3 = State::open;
  Cut cut_ : 2 = Cut::none;

 protected:
  bool marked_ : 1 = false;              // turn_ended is going to be called
  bool scheduled_ : 1 = false;           // next_turn is going to be called
  bool watching_ : 1 = false;            // turn_ended is going to be called in the next turn
  bool turn_end_requested_ : 1 = false;  // the protocol has something left to do at the end of the turn

 private:
  CloseReason reason_ : 4 = CloseReason::finished;  // of `stop_reading`
};

}  // namespace wirecall::net
