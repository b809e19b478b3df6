// MessageSink: where finished messages for one peer go, and what its connection tells of it. A dispatcher writes there
// and knows no socket: a connection, an HTTP transaction or Registry::handle stands behind it, and outlives the
// dispatcher. One thread (the loop's).
#pragma once

#include <algorithm>

#include "base/assert.hpp"
#include "rpc/peer_load.hpp"
#include "rpc/retained_reader.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/context.hpp"
#include "wirecall/message.hpp"

namespace wirecall::rpc {

/// What is counted of a connection for those who ask.
struct ConnectionCounts {
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::chrono::nanoseconds heard_at{0};  ///< when its last byte came, by Scheduler::now, to some milliseconds
  const char* end = nullptr;             ///< why it has ended, in a word; null as long as it has not
};

/// What a connection may still be served of its turn. A message, an element of a batch, and as much work as a small
/// call costs (half a microsecond, or 256 bytes read or written) each take one step.
struct Share {
  static constexpr std::size_t kBytesOfStep = 256;
  /// One message costs no more than that, whatever it is charged.
  static constexpr std::size_t kChargeMax = std::size_t{1} << 20;

  std::int32_t steps_left = 0;  ///< until MessageSink::next_share; negative when one message has cost more
};

/// What a peer can do beside being answered. How it reads what it is sent is no part of this: that changes from message
/// to message (MessageSink::encoding).
struct PeerCapabilities {
  bool items = false;         ///< it reads the results of a stream as they come, before the answer
  bool events = false;        ///< it reads notifications that follow an answer: subscriptions to methods
  bool registration = false;  ///< what it says holds until it goes: rpc.hello, rpc.register, rpc.subscribe
  bool calls_back = false;    ///< it answers requests
  bool direct_reply = false;  ///< the answer to one message may be appended by others than who serves it
  bool datagrams = false;     ///< anybody may have sent in its name: it is told little, and tells others nothing

  /// Of a connection that carries messages both ways.
  [[nodiscard]] static constexpr PeerCapabilities all() noexcept { return {true, true, true, true, true, false}; }
};

/// Where finished messages go.
class MessageSink {
 public:
  /// The buffer to which the next message is appended. Between open_message and close_message (or discard_message) the
  /// sink is not asked for anything else.
  virtual Buffer& open_message() = 0;
  /// What was appended since open_message is one whole message, JSON text, which is sent in the peer's encoding.
  virtual void close_message() = 0;
  /// The same of that form. Only who has been brought another encoding says anything but JSON.
  virtual void close_message_as(MessageForm form) {
    static_cast<void>(form);
    close_message();
  }
  /// The same of a message that holds no line break, since our own writers alone have written it, or it has been made
  /// one line: nobody looks for one again. JSON text of others' (a handler's, another peer's) is closed by
  /// close_message or close_message_as, where the sink makes it one line for a peer that may read lines.
  virtual void close_compact_as(MessageForm form) { close_message_as(form); }
  /// What was appended since open_message is to be forgotten: the sink truncates its buffer to where it was.
  virtual void discard_message() noexcept = 0;
  /// An answer that is due cannot be written, for want of memory. The peer must not wait for it: so the sink ends the
  /// connection, or tells its caller, once nobody is on the way through it any more.
  virtual void lose_answer() noexcept {}

  /// When the last byte of the current message was received, by Scheduler::now: sampled once per read, when it is first
  /// asked for, and never too early. nullopt for just now.
  [[nodiscard]] virtual std::optional<std::chrono::nanoseconds> received_at() noexcept { return std::nullopt; }
  /// Whether more may be sent that no request waits for. After false, Dispatcher::on_writable is called once it may.
  [[nodiscard]] virtual bool writable() noexcept { return true; }
  /// Above the soft limit: what nobody waits for is to be dropped. After true, Dispatcher::on_writable is called once
  /// it is below.
  [[nodiscard]] virtual bool is_overfull() noexcept { return false; }
  /// Whether a message of so many bytes that the peer has not asked for may wait for it: together with what else waits
  /// for its principal it is within half of Limits::principal_bytes. After false, Dispatcher::on_writable is called
  /// once what waits for it alone has been sent, if anything does.
  [[nodiscard]] virtual bool has_budget_for(std::size_t bytes) noexcept {
    static_cast<void>(bytes);
    return true;
  }
  /// None for a peer that is answered, and no more.
  [[nodiscard]] virtual PeerCapabilities capabilities() const noexcept { return {}; }
  /// Of a peer that reads the numbers of retained events; null for none. Asked when it subscribes. Outlives the
  /// broker's use of the sink.
  [[nodiscard]] virtual RetainedReader* retained_reader() noexcept { return nullptr; }
  /// Who the peer is, where the system can tell. Asked for each Context.
  [[nodiscard]] virtual std::optional<PeerCredentials> peer_credentials() const { return std::nullopt; }
  /// The connection counts there from now on, where it is one; null for nowhere.
  virtual void count_into(ConnectionCounts*) noexcept {}
  /// Of the connection; null where others wait for nothing. Lives as long as the sink.
  [[nodiscard]] virtual Share* share() noexcept { return nullptr; }
  /// Asked when no steps are left: false when it is others' turn.
  [[nodiscard]] virtual bool next_share() noexcept { return true; }
  /// Takes so many steps from the share for what has cost more than the message that brought it.
  void charge(std::size_t steps) noexcept {
    if (Share* const own = share()) own->steps_left -= static_cast<std::int32_t>(std::min(steps, Share::kChargeMax));
  }
  /// A batch has used up the share: Dispatcher::resume_batch is called in a later turn, and no other message is handled
  /// before the batch has been dispatched.
  virtual void interrupt() {}
  /// Nothing more that the peer has sent is looked at, but for the message at hand, as long as anybody keeps what this
  /// returns; null where it would be looked at all the same.
  [[nodiscard]] virtual std::shared_ptr<void> hold_input() { return nullptr; }
  /// Nothing more is taken from the peer: it is sent what it is owed, and then the connection is closed.
  virtual void close() {}
  /// Whether the peer may refuse requests with members that JSON-RPC does not name.
  [[nodiscard]] virtual bool strict_peer() const noexcept { return false; }
  /// Whether the peer may read a message as one line.
  [[nodiscard]] virtual bool takes_lines() const noexcept { return false; }
  /// What the peer has spoken last, and so is sent.
  [[nodiscard]] virtual Encoding encoding() const noexcept { return Encoding::json; }
  /// Where the peer comes from: an address, or a user of this machine. The same text is the same source.
  [[nodiscard]] virtual std::string peer_source() const { return {}; }
  /// What is spoken with the peer, in a word: json, content-length, length-prefix, http, websocket, udp; empty where
  /// there is no connection. A constant.
  [[nodiscard]] virtual std::string_view protocol() const noexcept { return {}; }
  /// By which version of TLS, as TLSv1.3; empty for none. A constant.
  [[nodiscard]] virtual std::string_view tls_version() const noexcept { return {}; }
  /// The alternative names of the certificate that the peer has shown, as "dns:desk.example"; nullopt where it has
  /// shown none. Throws std::bad_alloc.
  [[nodiscard]] virtual std::optional<std::vector<std::string>> certificate_names() const { return std::nullopt; }
  /// A response among the elements of a batch, in its turn. `batch` is that as it came, of which `element` is the
  /// response; both are empty for JSON.
  virtual void batched_response(const Received& response, EncodedText batch, std::string_view element) {
    static_cast<void>(response), static_cast<void>(batch), static_cast<void>(element);
  }
  /// The Host by which the present request has come by HTTP, where it is one of ours; else empty.
  [[nodiscard]] virtual std::string_view http_host() const noexcept { return {}; }
  /// Bytes that wait to be sent to the peer.
  [[nodiscard]] virtual std::size_t waiting_bytes() const noexcept { return 0; }
  /// What is held for the connection besides what it holds itself (PeerLoad) has changed: it may have to give way.
  virtual void held_changed() noexcept {}
  /// Asked by a dispatcher when its first call waits: the same for all dispatchers of one connection.
  [[nodiscard]] virtual std::shared_ptr<PeerLoad> load() { return std::make_shared<PeerLoad>(); }

 protected:
  ~MessageSink() = default;
};

/// One message on its way to a sink: it is closed whole, or forgotten when this ends.
class OutgoingMessage {
 public:
  explicit OutgoingMessage(MessageSink& sink) : sink_(&sink), text_(sink.open_message()) {}
  OutgoingMessage(OutgoingMessage&&) = delete;
  ~OutgoingMessage() {
    if (sink_ != nullptr) [[unlikely]]
      sink_->discard_message();
  }

  /// What is appended is the message.
  [[nodiscard]] Buffer& text() noexcept { return text_; }
  void close() { take()->close_message(); }
  void close_as(MessageForm form) { take()->close_message_as(form); }
  void close_compact_as(MessageForm form) { take()->close_compact_as(form); }

 private:
  [[nodiscard]] MessageSink* take() noexcept {
    WIRECALL_ASSERT(sink_ != nullptr);  // it is closed once
    return std::exchange(sink_, nullptr);
  }

  MessageSink* sink_;
  Buffer& text_;
};

/// Sends one message in JSON, whole or not at all.
inline void send_message(MessageSink& sink, std::string_view json) {
  OutgoingMessage message{sink};
  message.text().append(json);
  message.close();
}

}  // namespace wirecall::rpc
