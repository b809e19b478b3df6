// See channel.hpp. Two paths matter: `received`, which runs once for each run of bytes, and `turn_ended`, which runs
// once a turn. Everything else is for the rare and the hostile.
#include "connection/channel.hpp"

#include "connection/channel_rare.hpp"
#include "transport/tls_session.hpp"

namespace wirecall::net {

Channel::Channel(Host& host, std::unique_ptr<transport::ByteStream> stream) : ChannelInput(host, std::move(stream)) {
  stream_->start(*this);
}

Channel::~Channel() {
  if (has_long_message()) rare_->long_message->forget();
}

// ---- what the stream says ----

void Channel::received(std::span<char> bytes) {
  idle_.received(bytes.size());
  within_memory([&] { receive(bytes); });
  check();
}

void Channel::ended() {
  receive_end();
  check();
}

void Channel::take(std::span<char> first, bool all) {
  received(first);
  if (all && !over()) ended();
}

void Channel::sent(Buffer buffer) {
  if (over()) return;
  idle_.sent();
  output_sent(std::move(buffer));
  within_memory([&] {
    const bool low = continue_output();
    if (over()) return;
    if (gathered_bytes() != 0 || input_ended()) mark();
    if (is_paused() && (!input_ended() || is_held(Hold::interrupted)) && low) [[unlikely]]
      schedule_input();
  });
  check();
}

void Channel::client_authorities_changed(const transport::TlsServerContext& now) {
  const transport::TlsSession* const known = over() ? nullptr : tls();
  if (known != nullptr && !known->is_accepted_by(now)) end(CloseReason::refused);
}

void Channel::failed(int error) {
  // Where nothing is owed any more, a peer that closes its socket ahead of our end loses nothing.
  const bool answered = state() == State::ended && !has_output() && !working() && off_loop() == 0;
  if (state() == State::lingering || answered) {
    end(reason());
  } else {
    end(CloseReason::lost, error);
  }
  check();
}

// ---- what the loop says ----

void Channel::next_turn() {
  scheduled_ = false;
  if (!over()) within_memory([&] { process_backlog(); });
  check();
}

void Channel::turn_ended() {
  marked_ = watching_ = false;
  if (!over()) within_memory([&] { finish_turn(); });
  check();
}

void Channel::finish_turn() {
  if (turn_end_requested_) [[unlikely]] {
    turn_end_requested_ = false;
    on_turn_end();
    if (over()) return;
  }
  if (cut_reason() != Cut::none) [[unlikely]]
    return end_cut();
  flush();
  // What follows a refusal is not even thrown away before the peer has taken that.
  if ((backpressured() || (input_ended() && has_output())) && !is_paused()) [[unlikely]]
    pause_input();
  if (input_ended()) [[unlikely]]
    finish_if_done();
}

void Channel::flush() {
  if (is_sending() || gathered_bytes() == 0 || over()) return;
  // Whoever reads on hears of the send with the next input. The others have nothing else to wake them.
  send_output(is_paused() || input_ended() || backpressured() || awaits_writable());
}

bool Channel::part() noexcept {
  bool said = false;
  if (!input_ended()) within_memory([&] { said = send_farewell(CloseReason::finished); });
  return said;
}

bool Channel::end_encryption() noexcept { return !over() && stream_->says_farewell(); }

void Channel::finish_if_done() {
  if (has_output() || state() == State::lingering) return;
  if (working() || off_loop() != 0 || is_within_message()) return mark_next_turn();  // one that is done may say nothing
  if (send_farewell(reason())) [[unlikely]]
    return flush();
  if (state() != State::finishing) {
    if (stream_->says_farewell()) return mark_next_turn();
    return end(reason());
  }
  linger();
  if (is_paused()) stream_->resume();
}

void Channel::replace_by(const Successor& make) {
  WIRECALL_ASSERT(!over() && !is_consuming() && !has_output() && off_loop() == 0);
  const bool all = state() == State::ending;
  Buffer rest = take_backlog();
  std::unique_ptr<Channel> made = make(*host_, std::move(stream_));
  enter(State::over);
  abandon();
  forget_turns();
  host_->loop_context.stats.bytes_in -= rest.size();  // they are counted again
  Channel& successor = *made;
  host_->owner.connection_promoted(*this, std::move(made));
  static_cast<void>(rest.padded());
  successor.take({rest.data(), rest.size()}, all);
}

// ---- long messages ----

bool Channel::has_long_message() const noexcept { return rare_ && rare_->long_message; }

const std::shared_ptr<LongMessage>& Channel::begin_long(Buffer text, Encoding encoding) {
  std::shared_ptr<LongMessage>& begun = rare().long_message;
  WIRECALL_ASSERT(!begun);
  begun = std::make_shared<LongMessage>(
      std::move(text), encoding, host_->limits,
      LongMessage::Sender{
          .account = account(), .received_at = input_received_at(), .hold = hold_input(), .then = [this] {
            weigh();
            interrupt();
          }});
  return begun;
}

std::shared_ptr<LongMessage> Channel::take_long_message() {
  std::shared_ptr<LongMessage> read = std::exchange(rare_->long_message, nullptr);
  if (input_ended()) return nullptr;
  if (read->out_of_memory) throw std::bad_alloc{};
  host_->input_received_at = read->received_at;
  return read;
}

std::size_t Channel::backlog_bytes() const noexcept {
  return ChannelInput::backlog_bytes() + (has_long_message() ? rare_->long_message->bytes() : 0);
}

// ---- what the owner says ----

void Channel::finish() {
  if (input_ended()) return;
  enter(State::finishing);
  mark();
}

void Channel::leave_handler(std::vector<Buffer>& kept) {
  leave_input(kept);
  check();
}

void Channel::end_if_idle(std::uint8_t times) {
  if (over()) return;
  if (idle_.count_unread(stream_->unsent()) == times) return cut_with_turn(Cut::slow);
  if (input_ended()) return;
  if (idle_exempt()) return end_if_silent(times);
  if (idle_.count_idle(unfinished(), busy() || has_output(), times) < times) return;
  ++host_->loop_context.stats.connections_timed_out;
  stop_reading(CloseReason::silent);
  check();
}

void Channel::end_if_silent(std::uint8_t times) {
  idle_.forget_idle();
  if (!asks_in_vain(times)) return;
  ++host_->loop_context.stats.connections_timed_out;
  within_memory([&] { end(CloseReason::silent); });
}

// A peer that is kept though nothing happens is asked from half the time on whether it is still there. One that is not
// read, or takes nothing, cannot be heard.
bool Channel::asks_in_vain(std::uint8_t times) {
  const std::uint8_t silent = idle_.count_silent();
  if (silent < (times + 1) / 2 || backpressured() || has_output() || has_backlog()) return false;
  bool in_vain = false;
  within_memory([&] {
    if (send_keepalive()) {
      in_vain = silent >= times;
    } else if (idle_.begin_system_watch()) {
      stream_->watch_peer(std::chrono::milliseconds{host_->limits.keepalive_timeout_ms});
    }
  });
  return in_vain;
}

bool Channel::has_lost_peer(std::uint8_t times) {
  if (over() || input_ended()) return false;
  return idle_.count_unread(stream_->unsent()) == times || asks_in_vain(times);
}

}  // namespace wirecall::net
