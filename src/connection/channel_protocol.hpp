// ChannelProtocol: what a protocol does with the bytes of its channel: the seam between Channel and MessageConnection,
// HttpConnection or ClientHttp, which derive from Channel. All of it is called on the loop's thread.
#pragma once

#include "connection/connection.hpp"
#include "rpc/accounts.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::net {

class ChannelProtocol : public Connection {
 public:
  /// In a sentence, why the connection has ended, where the protocol knows more of it than the CloseReason; else empty.
  /// Throws std::bad_alloc.
  [[nodiscard]] virtual std::string failure() const { return {}; }

 protected:
  // Input.

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
  /// As of leave_handler: what of the input the protocol keeps. It may `block` what follows until `handler_rejoined`.
  virtual void leave_message(std::vector<Buffer>& kept) = 0;
  virtual void handler_rejoined() {}

  // Output.

  /// The end of a turn in which `request_turn_end` was called, before output is sent.
  virtual void on_turn_end() {}
  /// The output is writable again.
  virtual void output_drained() {}
  /// The peer provides methods for other connections: it is read however much output waits for it.
  [[nodiscard]] virtual bool is_provider() const noexcept { return false; }
  /// Bytes of what it keeps besides the channel's own input and output.
  [[nodiscard]] virtual std::size_t kept_bytes() const noexcept { return 0; }
  /// On which the connection's bytes are; null for none. Throws std::bad_alloc.
  [[nodiscard]] virtual std::shared_ptr<rpc::Account> account() { return nullptr; }

  // Life.

  /// Calls are being worked on.
  [[nodiscard]] virtual bool working() const noexcept = 0;
  /// A message has begun and not ended, and nobody else watches that it comes.
  [[nodiscard]] virtual bool unfinished() const noexcept { return false; }
  /// The connection is not idle though nothing happens on it.
  [[nodiscard]] virtual bool idle_exempt() const noexcept { return false; }
  /// Has the peer say something, if it is still there. False: it cannot be asked.
  [[nodiscard]] virtual bool send_keepalive() { return false; }
  /// The connection is about to end, and owes nothing more: appends to the output what tells the peer so. False when
  /// that is nothing, or has been done.
  virtual bool send_farewell(CloseReason why) {
    static_cast<void>(why);
    return false;
  }
  /// The connection is over: nobody hears of its calls any more.
  virtual void abandon() noexcept = 0;
};

}  // namespace wirecall::net
