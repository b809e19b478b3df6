// Channel: the bytes of one connection, both ways, whatever is spoken on it. What they mean is for the class derived
// from it, MessageConnection, HttpConnection or ClientHttp (channel_protocol.hpp). A channel does not open, accept or
// reconnect, and does not destroy itself: its owner is told when it has ended. Owned by a server or client; lives on
// its loop's thread. The host and all it refers to outlive it.
//
// It has three layers, each a base of the next: ChannelLife (state, and the place in the loop's turns), ChannelOutput
// (gathered and sent once a turn), ChannelInput (read within a share of the turn, else deferred). Here is what stream,
// loop and owner tell it, and what each of that means for the layers.
#pragma once

#include <functional>

#include "base/assert.hpp"
#include "connection/channel_input.hpp"
#include "connection/idle_watch.hpp"
#include "connection/long_message.hpp"

namespace wirecall::net {

class Channel : public ChannelInput {
 public:
  ~Channel() override;

  void drain() noexcept override { drain_input(); }
  [[nodiscard]] bool busy() const noexcept final { return working() || off_loop() != 0 || input_waits(); }
  /// Whether calls of the peer are in progress.
  [[nodiscard]] bool serves_calls() const noexcept { return working(); }
  [[nodiscard]] bool handler_off_loop() const noexcept final { return off_loop() != 0; }
  void finish() final;
  void cut() final { end(CloseReason::finished); }
  void end_if_idle(std::uint8_t times) final;
  /// For a client, of its server, at the end of each interval: whether for so many intervals in a row nothing has come,
  /// though it was asked to say something, or none of the output has been taken. It is asked from half of them on, or
  /// the system watches it where it cannot be asked.
  [[nodiscard]] bool has_lost_peer(std::uint8_t times);
  void client_authorities_changed(const transport::TlsServerContext& now) final;
  /// Tells the peer that this is the end, where the protocol has a word for that and has not said it: whether output
  /// waits for that. Its owner closes it when that has gone.
  bool part() noexcept;
  /// The same by the word of the encryption, behind all output that has been handed to the stream: whether it waits to
  /// be sent.
  bool end_encryption() noexcept;
  /// Hands what waits to the stream; happens by itself at the end of a turn.
  void flush();
  /// Input that came before it was known what is spoken here: as StreamUser::received, and ended when that was `all`.
  void take(std::span<char> first, bool all);
  /// Defers the unread input to later turns, since the handler that is running loses the loop. `kept` takes the buffers
  /// that the handler may still read from. No effect without a running handler. Throws std::bad_alloc, and has no
  /// effect then.
  void leave_handler(std::vector<Buffer>& kept);

 protected:
  Channel(Host& host, std::unique_ptr<transport::ByteStream> stream);

  /// Makes the channel that takes the place of this one. Throws std::bad_alloc.
  using Successor = std::function<std::unique_ptr<Channel>(Host&, std::unique_ptr<transport::ByteStream>)>;
  /// Another channel goes on with the stream and with the input that has not been read: this one is over. Not from
  /// `read`; no output waits, no handler is off the loop.
  void replace_by(const Successor& make);

  /// `text`, a whole message, is read off the loop, and nothing that follows it before that is done. Then
  /// `resume_message` is called, which takes it.
  void read_off_loop(Buffer text, Encoding encoding) {
    host_->long_reader->read(begin_long(std::move(text), encoding));
  }
  /// The same of another encoding than JSON that has been checked: it becomes JSON.
  void transcode_off_loop(Buffer text, Encoding encoding) {
    host_->long_reader->transcode(begin_long(std::move(text), encoding));
  }
  /// The same of a message that is compressed.
  void unpack_off_loop(Buffer packed) {
    std::unique_ptr<framing::MessageDeflate> deflate = host_->deflate->make_another();
    const std::shared_ptr<LongMessage>& begun = begin_long(std::move(packed), Encoding::json);
    begun->unpack_by(std::move(deflate));
    host_->long_reader->unpack(begun);
  }
  [[nodiscard]] bool has_long_message() const noexcept;
  /// Null when no more input is read. Throws std::bad_alloc where there was no memory to read it.
  [[nodiscard]] std::shared_ptr<LongMessage> take_long_message();

  /// One that had been `unfinished` has ended.
  void message_completed() noexcept { idle_.message_completed(); }

 private:
  void received(std::span<char> bytes) final;
  void ended() final;
  void sent(Buffer buffer) final;
  void failed(int error) final;
  [[nodiscard]] bool sends_in_turn() const noexcept final { return gathered_bytes() != 0 && !is_sending() && !over(); }
  void turn_ended() final;
  void next_turn() final;

  [[nodiscard]] const std::shared_ptr<LongMessage>& begin_long(Buffer text, Encoding encoding);
  [[nodiscard]] std::size_t backlog_bytes() const noexcept final;
  void finish_turn();
  void finish_if_done();
  void end_if_silent(std::uint8_t times);
  bool asks_in_vain(std::uint8_t times);

  /// What is true of it whenever it has returned to the loop.
  void check() const noexcept {
    WIRECALL_DEBUG_ASSERT((assert_life(), assert_output(), assert_input(), true));
    WIRECALL_DEBUG_ASSERT(over() || is_consuming() || gathered_bytes() == 0 || marked_ || is_sending());
  }

  IdleWatch idle_;
};

}  // namespace wirecall::net
