// ChannelInput: the input of one connection that has been received and not consumed. A layer of Channel: it reads by
// the protocol's `read`, as far as the connection's share of a turn goes, and defers the rest to later turns. While
// there is a backlog, a hold, or too much output, nothing is received. Lives on its loop's thread.
//
//   backlog_at_ <= backlog_.size(); what waits is paused, until it has been consumed
#pragma once

#include "connection/channel_output.hpp"
#include "connection/turn_share.hpp"

namespace wirecall::net {

class ChannelInput : public ChannelOutput {
 public:
  class InputHold;

  ~ChannelInput() override;

  /// How many steps of its share the connection has used since its loop's round began.
  [[nodiscard]] std::int64_t steps_used() const noexcept { return share_.steps_used(host_->loop); }

 protected:
  /// Why no more input is read for now.
  enum class Hold : std::uint8_t {
    interrupted = 1,  ///< the rest of a message waits for a later turn, and what follows for that
    message = 2,      ///< a message is read elsewhere: as long as there is an InputHold
    protocol = 4,     ///< the protocol takes no more in
  };

  using ChannelOutput::ChannelOutput;

  // For the protocol.

  void mark_consumed(std::size_t bytes) noexcept { consumed_ = bytes; }
  /// Asked before the message that begins at `at` of the input: false when it is others' turn first.
  [[nodiscard]] bool may_dispatch(std::size_t at) {
    if (!share_.covers(at) && !next_slice(at)) [[unlikely]]
      return false;
    share_.take_step();
    return true;
  }
  [[nodiscard]] rpc::Share& own_share() noexcept { return share_.steps(); }
  /// As MessageSink::next_share.
  [[nodiscard]] bool next_slice() noexcept { return !is_held(Hold::message) && share_.next_slice(host_->loop); }
  /// Nothing more is read for now.
  [[nodiscard]] bool backpressured() const noexcept { return holds_ != 0 || output_waits(); }
  /// Defers the rest of the current message to `resume_message` in a later turn, and what follows it to after that: the
  /// message has used up the connection's share.
  void interrupt();
  /// As MessageSink::hold_input.
  [[nodiscard]] std::shared_ptr<void> hold_input();
  /// Reads nothing more until `unblock`.
  void block() noexcept { hold(Hold::protocol); }
  void unblock() noexcept { release(Hold::protocol); }
  [[nodiscard]] bool lost_loop() const noexcept { return !consuming_; }
  /// When the input that is being read was received.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> input_received_at() noexcept {
    if (!consuming_) return std::nullopt;
    if (!host_->input_received_at)
      host_->input_received_at = backlog_.empty() ? host_->loop.now() : backlog_received_at_;
    return host_->input_received_at;
  }
  void count_into(rpc::ConnectionCounts* counts) noexcept;

  // For Channel.

  void receive(std::span<char> bytes);
  void receive_end();
  void process_backlog();
  void drain_input() noexcept { drain_bytes_left_ = stream_->readable(); }
  void leave_input(std::vector<Buffer>& kept);
  void pause_input() noexcept;
  /// What of the input has not been read; another reads it.
  [[nodiscard]] Buffer take_backlog();
  /// In the next turn, unless a hold is to end or the output to drain first.
  void schedule_input() noexcept;
  [[nodiscard]] bool is_paused() const noexcept { return paused_; }
  [[nodiscard]] bool is_consuming() const noexcept { return consuming_; }
  [[nodiscard]] bool is_held(Hold why) const noexcept { return (holds_ & static_cast<std::uint8_t>(why)) != 0; }
  /// A message has been read in part: the end of the input waits for it.
  [[nodiscard]] bool is_within_message() const noexcept { return is_held(Hold::interrupted) || is_held(Hold::message); }
  [[nodiscard]] bool has_backlog() const noexcept { return !backlog_.empty(); }
  /// Input waits to be read, or to be received while the connection is drained.
  [[nodiscard]] bool input_waits() const noexcept {
    return is_within_message() || has_backlog() || (drain_bytes_left_ != 0 && !input_ended());
  }
  [[nodiscard]] std::size_t backlog_bytes() const noexcept override { return held_by(backlog_); }

  void assert_input() const noexcept;

 private:
  template <class Consume>
  bool consume(std::span<char> input, const Consume& act);
  bool consume_input(std::span<char> input, std::size_t& consumed);
  bool consume_interrupted();
  void end_of_stream();
  [[nodiscard]] bool next_slice(std::size_t at) noexcept;
  void defer_input(Buffer rest) noexcept;
  void hold(Hold why) noexcept { holds_ = static_cast<std::uint8_t>(holds_ | static_cast<std::uint8_t>(why)); }
  void release(Hold why) noexcept;

  Buffer backlog_;
  std::size_t backlog_at_ = 0;                       // the bytes before it have been read
  std::chrono::nanoseconds backlog_received_at_{0};  // its last byte
  std::span<char> input_;                            // of `read`
  std::size_t consumed_ = 0;                         // of input_, the handler's message included
  std::size_t drain_bytes_left_ = 0;                 // have arrived while draining, and are still to be received
  [[no_unique_address]] TurnShare share_;
  bool consuming_ : 1 = false;  // in `read`, `resume_message` or `input_complete`
  bool paused_ : 1 = false;     // nothing is received
  std::uint8_t holds_ : 3 = 0;  // of Hold
};

}  // namespace wirecall::net
