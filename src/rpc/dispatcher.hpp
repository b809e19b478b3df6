// Dispatcher: serves one peer's messages from a Registry and sends what comes of them to a MessageSink: a connection's
// door to the parts that do so (rpc/invocation.hpp, rpc/batch_run.hpp, rpc/encoded_messages.hpp). It knows no socket: a
// connection or Registry::handle stands behind MessageSink, and owns it. One thread (the loop's). Implements
// docs/wire.md "Messages", "Batches" and "Deadlines and cancelling".
#pragma once

#include "rpc/authentication.hpp"
#include "rpc/batch_run.hpp"
#include "rpc/encoded_messages.hpp"
#include "rpc/loop_context.hpp"
#include "rpc/message_sink.hpp"
#include "rpc/pending.hpp"
#include "rpc/refused_messages.hpp"
#include "rpc/served_peer.hpp"
#include "wirecall/error.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/message.hpp"
#include "wirecall/principal.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::rpc {

class Dispatcher {
 public:
  /// Everything referred to outlives the dispatcher; `registry` is not changed any more. `load` is the connection's, if
  /// another dispatcher has asked for it.
  Dispatcher(const Registry& registry, MessageSink& sink, const Limits& limits, LoopContext& loop_context,
             PeerLoad* load = nullptr) noexcept
      : peer_(registry, sink, limits, loop_context, load) {}
  ~Dispatcher() { abandon(); }
  Dispatcher(Dispatcher&&) = delete;

  // ---- messages ----

  /// Serves a message whose kind is not response. What it answers at once is at the sink when this returns; calls
  /// that wait are answered later, from the thread's turn.
  /// `elements` are those of a batch that read_message has kept.
  void handle(const Received& message, std::span<const Received> elements = {});
  /// The same for a message that was none of JSON before: requests whose params JSON cannot hold are `unrepresentable`,
  /// and answered -32602.
  void handle_transcoded(const Received& message, std::span<const Received> elements,
                         std::span<const message::Unrepresentable> unrepresentable);
  /// The same for one whose params are still in `encoded`, the message as it came (NativeTranscoder::restore).
  void handle_encoded(const Received& message, std::span<const Received> elements, EncodedText encoded,
                      bool too_large = false);
  [[nodiscard]] Passthrough may_pass_through(EncodedText encoded, const message::EnvelopeMembers& members) const {
    return rpc::may_pass_through(peer_, encoded, members);
  }
  [[nodiscard]] bool takes_encoded(const Received& message) const noexcept {
    return rpc::takes_encoded(peer_, message);
  }
  /// In what form messages are answered from now on.
  void answer_as(MessageForm form) noexcept { peer_.form = form; }
  void refuse_syntax(ScanStatus status, const message::Unreadable& where) { rpc::refuse_syntax(peer_, status, where); }
  void refuse_size() { rpc::refuse_size(peer_); }
  /// A response, perhaps to one of our calls of the peer; false when it is none.
  [[nodiscard]] bool response(const Received& message);

  static constexpr std::uint32_t kNoTimeout = ServedPeer::kNoTimeout;
  /// Calls from now on have so many milliseconds, or less, as if each had said so by `timeout_ms`; kNoTimeout ends
  /// that.
  void limit_timeout(std::uint32_t milliseconds) noexcept { peer_.timeout_max_ms = milliseconds; }

  [[nodiscard]] const Limits& limits() const noexcept { return peer_.limits; }

  // ---- a batch that has been interrupted (MessageSink::interrupt) ----

  [[nodiscard]] bool has_open_batch() const noexcept { return peer_.loop.batches.open.contains(&peer_); }
  void resume_batch() { rpc::resume_batch(peer_); }
  void refuse_open_batch() noexcept { rpc::refuse_open_batch(peer_); }
  bool leave_batch() { return rpc::leave_batch(peer_); }

  // ---- who the peer is ----

  /// Where peers have to say who they are: the connection is closed unless this one has within
  /// Limits::registration_timeout_ms.
  void await_identity();
  /// Where peers have to say who they are: whether this one has not.
  [[nodiscard]] bool is_unidentified() const noexcept {
    return peer_.loop.services.authority != nullptr && peer_.principal() == nullptr;
  }
  void hold_unidentified(std::size_t bytes) { rpc::hold_unidentified(peer_, bytes); }
  /// Where peers have to say who they are: this one has, by other means than rpc.hello; null for one that has not.
  void identify(const Principal* principal, Credential credential) {
    rpc::identify(peer_, principal, std::move(credential));
  }
  /// The peer is a broker that stands for others: it may do everything. Returns it as the loop's broker knows it, which
  /// there is. Throws std::bad_alloc.
  [[nodiscard]] BrokerPeer& trust();
  /// It has been.
  [[nodiscard]] bool is_trusted() const noexcept { return peer_.trusted; }
  [[nodiscard]] bool is_still_known(bool was_open = true) const noexcept {
    return rpc::is_still_known(peer_, was_open);
  }
  /// Where the token of a peer is known no more, its calls end with -32004 at once: nothing that they still give is
  /// sent.
  void end_if_revoked() noexcept;

  /// The peer as the broker knows it; null without a broker.
  [[nodiscard]] BrokerPeer* join_broker() { return peer_.join_broker(); }

  // ---- what it holds, and what it is needed for ----

  /// The account of the connection. Throws std::bad_alloc.
  [[nodiscard]] const std::shared_ptr<Account>& account() { return peer_.shared_load()->calls.account(); }
  /// Bytes that are held for the connection's calls.
  [[nodiscard]] std::size_t held_bytes() const noexcept { return peer_.load != nullptr ? peer_.load->bytes() : 0; }
  /// Calls that have not been answered yet.
  [[nodiscard]] std::size_t in_flight() const noexcept { return peer_.in_flight(); }
  /// Whether the peer has been called, and is waited for.
  [[nodiscard]] bool awaits_responses() const noexcept;
  /// Whether other connections rely on the peer, since it provides methods for them.
  [[nodiscard]] bool is_provider() const noexcept;
  /// Whether the connection is needed though nothing happens on it: the peer provides methods, or waits for events.
  [[nodiscard]] bool idle_exempt() const noexcept;

  // ---- what becomes of the connection ----

  /// The sink is writable again: resumes the streams that wait for that.
  void on_writable();
  /// Calls rpc.ping, whose answer is for nobody, at a peer that has said hello; false for one that has not.
  [[nodiscard]] bool send_keepalive();
  /// A peer that has said hello is told to connect anew, by rpc.draining, and is served until it goes.
  void ask_to_leave() noexcept;
  /// New requests are answered -32009 from now on. A peer that has said hello is told as well.
  void drain() noexcept;
  /// The peer sends no more: it will answer none of our calls, and give no stream more credit.
  void peer_ended();
  /// Asks all calls in flight to stop; they are still answered.
  void ask_to_stop() noexcept;
  /// Answers all calls in flight with `error` and asks them to stop; what they still answer is dropped.
  void end_calls(const Error& error) noexcept;
  /// The same when their time to finish before the server ends is up: -32009.
  void stop_calls() noexcept;
  /// The peer has gone: asks all its calls to stop; nothing is sent to the sink any more. Notifications go on, as calls
  /// of a peer that has ended its side do: Limits::half_closed_ms at most, and Limits::half_closed_calls with those.
  void abandon() noexcept;

 private:
  void limit_half_closed();
  [[nodiscard]] std::size_t half_closed_left() const noexcept;
  [[nodiscard]] std::chrono::nanoseconds half_closed_until() const noexcept;

  ServedPeer peer_;
};

}  // namespace wirecall::rpc
