// Channel: the bytes of one connection, both ways, whatever is spoken on it: input that has to wait, output that is
// gathered and sent once a turn, the marks at which a slow peer is no longer read and at last cut, half-close and the
// end. What the bytes mean is for the class derived from it, Session or HttpSession: it is given input by `read` and
// appends to `out_`. A channel does not open, accept or reconnect, and does not destroy itself: its owner is told when
// it has ended. Owned by a server or client; lives on its loop's thread. The host and all it refers to outlive it.
//
// While there is a backlog (bytes not yet read) or too much output, nothing is received.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "connection/connection.hpp"
#include "rpc/memory_budget.hpp"
#include "runtime/turn.hpp"
#include "transport/byte_stream.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/context.hpp"

namespace wirecall::session {

class Channel : public Connection, private transport::StreamUser, private runtime::TurnUser {
 public:
  ~Channel() override;

  void drain() noexcept override { drain_bytes_left_ = stream_->readable(); }
  [[nodiscard]] bool busy() const noexcept final {
    return working() || off_loop_ != 0 || interrupted_ || held_ || !backlog_.empty() ||
           (drain_bytes_left_ != 0 && !input_ended_);
  }
  [[nodiscard]] bool handler_off_loop() const noexcept final { return off_loop_ != 0; }
  void finish() final;
  void cut() final { end(CloseReason::finished); }
  void end_if_idle(std::uint8_t times) final;
  /// How many steps of its share the connection has used since its loop's round began.
  [[nodiscard]] std::int64_t steps_used() const noexcept;
  [[nodiscard]] std::size_t output_bytes() const noexcept final { return sending_bytes_ + out_.size(); }
  /// Those of them that have not been handed to the stream.
  [[nodiscard]] std::size_t gathered_bytes() const noexcept { return out_.size(); }
  /// Hands what waits to the stream; happens by itself at the end of a turn.
  void flush();
  /// Input that came before it was known what is spoken here: as StreamUser::received, and ended when that was `all`.
  void take(std::span<char> first, bool all);
  /// Defers the unread input to later turns, since the handler that is running loses the loop. `kept` takes the buffers
  /// that the handler may still read from. No effect without a running handler. Throws std::bad_alloc, and has no
  /// effect then.
  void leave_handler(std::vector<Buffer>& kept);
  /// Ends the connection with this turn, without further output: there is no memory for an answer that is due.
  void fail_out_of_memory() noexcept;

 protected:
  Channel(Host& host, std::unique_ptr<transport::ByteStream> stream);

  // What the derived class does.

  /// Reads `input`, which kPaddingBytes follow, beginning with a zero byte, and returns the number of bytes consumed:
  /// not all when it is another connection's turn, the channel is backpressured, or input has ended. Calls
  /// `mark_consumed` before each handler, with the end of the handler's message. When `lost_loop` is true after that,
  /// another thread reads the rest, and nothing of it may be touched.
  virtual std::size_t read(std::span<char> input) = 0;
  /// Reads more of the message that has been interrupted.
  virtual void resume_message() {}
  /// A handler of the message has lost the loop: what is left of the message becomes one that has been interrupted.
  /// False when nothing is left, or the handler's own thread goes on with it. When it throws, nothing has changed.
  virtual bool leave_rest() { return false; }
  /// No bytes follow those that `read` has been given.
  virtual void input_complete() = 0;
  /// As of leave_handler: what of the input the derived class keeps. It may `block` what follows until
  /// `handler_rejoined`.
  virtual void leave_message(std::vector<Buffer>& kept) = 0;
  virtual void handler_rejoined() {}
  /// A message has begun and not ended, and nobody else watches that it comes.
  [[nodiscard]] virtual bool unfinished() const noexcept { return false; }
  /// One that had been `unfinished` has ended.
  void message_completed() noexcept;
  /// The peer provides methods for other connections: it is read however much output waits for it.
  [[nodiscard]] virtual bool is_provider() const noexcept { return false; }
  /// The connection is not idle though nothing happens on it.
  [[nodiscard]] virtual bool idle_exempt() const noexcept { return false; }
  /// Has the peer say something, if it is still there. False: it cannot be asked.
  [[nodiscard]] virtual bool send_keepalive() { return false; }
  /// Calls are being worked on.
  [[nodiscard]] virtual bool working() const noexcept = 0;
  /// The connection is over: nobody hears of its calls any more.
  virtual void abandon() noexcept = 0;
  /// The end of a turn in which `request_turn_end` was called, before output is sent.
  virtual void on_turn_end() {}

  /// Bytes of what it keeps besides the channel's own input and output.
  [[nodiscard]] virtual std::size_t kept_bytes() const noexcept { return 0; }
  /// What a buffer counts for: all that it has, which may be twice what is in it. One that is larger has been so when
  /// it was another connection's.
  [[nodiscard]] static std::size_t held_by(const Buffer& buffer) noexcept {
    return std::min(buffer.capacity(), 2 * buffer.size());
  }
  /// On which the connection's bytes are; null for none. Throws std::bad_alloc.
  [[nodiscard]] virtual std::shared_ptr<rpc::Account> account() { return nullptr; }

  /// The output is writable again.
  virtual void output_drained() {}

  // What it has for that.

  /// Where output is appended.
  Buffer& output() {
    if (out_.capacity() == 0) [[unlikely]]
      take_output();
    return out_;
  }
  /// Output has been appended behind `waiting` bytes of it.
  void output_grew(std::size_t waiting) {
    if ((sending_bytes_ + out_.size()) / kWeighedBytes >= weighed_from_) [[unlikely]]
      output_is_large(waiting);
    if (!marked_) mark();
  }
  /// The same of output that waits elsewhere.
  void output_grew_elsewhere(std::size_t waiting) {
    if ((sending_bytes_ + waiting) / kWeighedBytes >= weighed_from_) output_is_large(waiting);
    if (!marked_) mark();
  }
  /// What it holds has changed, and is not little: it is on the account (rpc::Account::buffers), for which this or
  /// another connection may have to give way.
  void weigh() noexcept;
  /// The connection has had to give way.
  [[nodiscard]] bool is_evicted() const noexcept { return evicted_; }
  static constexpr std::size_t kWeighedBytes = rpc::kBytesUnweighed;
  /// With so much output, a message that is sent without asking for budget stays below kWeighedBytes.
  static constexpr std::size_t kLittleOutput = kWeighedBytes - 2 * rpc::kBytesUnasked;
  /// Whether output that no request waits for may be appended; after false, `output_drained` is called once it may.
  [[nodiscard]] bool output_writable() noexcept;
  /// Whether more than soft_output waits, or too much for its principal's budget (`output_has_budget_for`); after true,
  /// `output_drained` is called once the output is writable.
  [[nodiscard]] bool output_is_overfull() noexcept {
    return output_bytes() / 1024 >= little_output_ && is_overfull_beyond_little();
  }
  /// As MessageSink::has_budget_for.
  [[nodiscard]] bool output_has_budget_for(std::size_t bytes) noexcept {
    return output_bytes() + bytes <= kWeighedBytes || is_within_budget(bytes);
  }
  /// When the input that is being read was received.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> input_received_at() noexcept {
    if (!consuming_) return std::nullopt;
    if (!host_->input_received_at)
      host_->input_received_at = backlog_.empty() ? host_->loop.now() : backlog_received_at_;
    return host_->input_received_at;
  }
  /// The input that is being read, of a deferred message, was received then.
  void set_input_received_at(std::optional<std::chrono::nanoseconds> time) noexcept { host_->input_received_at = time; }
  [[nodiscard]] std::optional<PeerCredentials> peer_credentials() const { return stream_->peer_credentials(); }
  [[nodiscard]] std::string peer_source() const { return stream_->peer_source(); }
  void count_into(rpc::ConnectionCounts* counts) noexcept;
  void request_turn_end() {
    turn_end_requested_ = true;
    mark();
  }
  /// Has turn_ended called: something has been done that may be the last.
  void mark();
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
  /// Nothing more is read for now.
  [[nodiscard]] bool backpressured() const noexcept { return blocked_ || held_ || interrupted_ || output_waits(); }
  /// Defers the rest of the current message to `resume_message` in a later turn, and what follows it to after that: the
  /// message has used up the connection's share.
  void interrupt();
  /// As MessageSink::hold_input.
  [[nodiscard]] std::shared_ptr<void> hold_input();
  /// Reads nothing more until `unblock`.
  void block() noexcept { blocked_ = true; }
  void unblock();
  /// The peer has sent what nothing can follow: what it is owed is sent, and then the connection is closed.
  void stop_reading(CloseReason why);
  /// At once.
  void end(CloseReason reason, int error = 0);
  [[gnu::noinline]] void take_output() noexcept;
  void give_back(Buffer& buffer) noexcept;
  void mark_consumed(std::size_t bytes) noexcept { consumed_ = bytes; }
  /// Asked before the message that begins at `at` of the input: false when it is others' turn first.
  [[nodiscard]] bool may_dispatch(std::size_t at) {
    if ((share_.steps_left <= 0 || at >= slice_ends_) && !next_slice(at)) [[unlikely]]
      return false;
    --share_.steps_left;
    return true;
  }
  [[nodiscard]] rpc::Share& own_share() noexcept { return share_; }
  /// As MessageSink::next_share.
  [[nodiscard]] bool next_slice() noexcept;
  /// Handlers that have lost the loop and not rejoined it.
  [[nodiscard]] std::uint16_t off_loop() const noexcept { return off_loop_; }
  [[nodiscard]] bool lost_loop() const noexcept { return !consuming_; }
  [[nodiscard]] bool input_ended() const noexcept { return input_ended_; }
  [[nodiscard]] bool over() const noexcept { return over_; }

  Host* host_;
  Buffer out_;

 private:
  class InputHold;
  class Linger;
  class Weight;
  struct Rare;

  void received(std::span<char> bytes) final;
  void ended() final;
  void sent(Buffer buffer) final;
  void failed(int error) final;
  void turn_ended() final;
  void next_turn() final;

  template <class Consume>
  bool consume(std::span<char> input, const Consume& act);
  void receive(std::span<char> bytes);
  bool consume_input(std::span<char> input, std::size_t& consumed);
  void begin_share() noexcept;
  bool next_slice(std::size_t at) noexcept;
  [[nodiscard]] bool output_waits() const noexcept {
    return output_bytes() > host_->limits.soft_output && !is_provider();
  }
  bool consume_interrupted();
  void pause() noexcept;
  void release_input() noexcept;
  void process_backlog();
  void finish_turn();
  [[gnu::noinline]] void output_is_large(std::size_t waiting) noexcept;
  [[gnu::noinline, nodiscard]] bool is_overfull_beyond_little() noexcept;
  [[gnu::noinline, nodiscard]] bool is_within_budget(std::size_t more) noexcept;
  void end_cut();
  [[nodiscard]] Rare& rare();
  [[nodiscard]] bool lingering() const noexcept;
  [[nodiscard]] bool holds_much() const noexcept;
  [[nodiscard]] bool is_weighed() const noexcept { return rare_ && holds_much(); }
  void continue_output();
  void end_of_stream();
  [[nodiscard]] Buffer buffer_for(std::size_t bytes);
  void defer_input(Buffer rest) noexcept;
  void schedule_input();
  void finish_if_done();
  [[nodiscard]] bool stalled() noexcept;
  void end_if_silent();

  std::unique_ptr<transport::ByteStream> stream_;
  std::size_t sending_bytes_ = 0;  // of the send in flight
  Buffer backlog_;
  std::size_t backlog_at_ = 0;                       // the bytes before it have been read
  std::chrono::nanoseconds backlog_received_at_{0};  // its last byte
  std::span<char> input_;                            // of `read`
  std::size_t consumed_ = 0;                         // of input_, the handler's message included
  rpc::ConnectionCounts* counts_ = nullptr;
  std::uint32_t moved_ = 0;   // bytes received, and more, since the last `end_if_idle`
  std::uint32_t unsent_ = 0;  // bytes that waited then, modulo 2^32
  std::unique_ptr<Rare> rare_;
  std::size_t drain_bytes_left_ = 0;  // have arrived while draining, and are still to be received

  // Its share of the loop's round, in slices.
  std::chrono::nanoseconds share_ends_{0};  // 0 before the first slice is over
  std::uint32_t round_ = 0;                 // the one it is of, modulo 2^32
  rpc::Share share_;                        // of the slice
  std::uint32_t slice_ends_ = 0;            // at this byte of the input; after `read`, of its rest
  std::uint16_t slices_left_ = 0;           // after it

  std::uint16_t off_loop_ = 0;  // handlers that have lost the loop and not rejoined it
  std::uint16_t weighed_from_;  // so many times kWeighedBytes of output
  std::uint8_t little_output_;  // less than so many KiB is never too much
  CloseReason why_stopped_ = CloseReason::finished;
  std::uint8_t idle_times_ : 4 = 0;    // that `end_if_idle` has found too little to have happened
  std::uint8_t unread_times_ : 4 = 0;  // and output of which nothing had been taken
  bool consuming_ : 1 = false;         // in `read` or `input_complete`
  bool was_unfinished_ : 1 = false;    // a message had begun then and not ended
  bool sending_ : 1 = false;
  bool sent_ : 1 = false;                // a send has ended since the last `end_if_idle`
  bool marked_ : 1 = false;              // turn_ended is going to be called
  bool scheduled_ : 1 = false;           // next_turn is going to be called
  bool watching_ : 1 = false;            // turn_ended is going to be called in the next turn
  bool paused_ : 1 = false;              // nothing is received
  bool turn_end_requested_ : 1 = false;  // the derived class has something left to do at the end of the turn
  bool awaits_writable_ : 1 = false;     // output_drained is going to be called
  bool blocked_ : 1 = false;             // the derived class takes nothing in
  bool held_ : 1 = false;                // the same, as long as there is an InputHold
  bool interrupted_ : 1 = false;         // a message has been read in part
  bool end_is_near_ : 1 = false;         // the peer's end has come, behind the backlog
  bool input_ended_ : 1 = false;         // no more input is read
  bool lingers_ : 1 = false;             // the peer may be sending still when all is said
  bool cut_ : 1 = false;                 // too much output waits, or for too long
  bool evicted_ : 1 = false;             // the connections of its principal hold too much
  bool out_of_memory_ : 1 = false;       // there was no memory
  bool watched_ : 1 = false;             // the system finds out whether the peer is still there
  bool large_output_ : 1 = false;        // what was sent last was
  bool over_ : 1 = false;                // the owner has been told
};

}  // namespace wirecall::session
