// Dispatcher: serves one peer's messages from a Registry and sends what comes of them to an MessageSink. It owns the
// table of calls being worked on. It knows no socket: a session or Registry::handle stands behind MessageSink. One
// thread (the loop's). Implements docs/wire.md "Messages", "Batches" and "Deadlines and cancelling".
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rpc/accounts.hpp"
#include "rpc/memory_budget.hpp"
#include "rpc/refusals.hpp"
#include "rpc/stop_requests.hpp"
#include "wirecall/bytes.hpp"
#include "wirecall/context.hpp"
#include "wirecall/detail/blocking_pool.hpp"
#include "wirecall/detail/param_readers.hpp"
#include "wirecall/detail/watchdog_slot.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/log.hpp"
#include "wirecall/message.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/stats.hpp"
#include "wirecall/task.hpp"

namespace wirecall::message {
class MsgpackMembers;
class Transcoder;
struct Unrepresentable;
struct Unreadable;
}  // namespace wirecall::message

namespace wirecall::rpc {

class Authority;
class Broker;
class BrokerPeer;
struct BatchRun;
struct BatchScope;
class CallerLink;
class Dispatcher;
struct OpenBatch;
class OwnCounts;
struct OwnCountsRow;
class PeerCalls;
class Rendering;
class RunningBatch;
struct PeerIdentity;

/// Has the broker forget a peer whose connection has gone (BrokerPeer::leave).
struct LeavesBroker {
  void operator()(BrokerPeer* peer) const noexcept;
};
using JoinedPeer = std::unique_ptr<BrokerPeer, LeavesBroker>;

/// What is in progress for one connection, however many dispatchers serve it.
struct PeerLoad {
  CallCount calls;                       ///< whose handlers may still be at work; at most Limits::in_flight
  std::size_t held_bytes = 0;            ///< of items gathered, and calls kept; at most Limits::hard_output
  std::size_t batch_bytes = 0;           ///< of batches that have begun, and answers to them that are not sent
  std::chrono::nanoseconds rate_due{0};  ///< when the next message would be due at Limits::rate, were there no burst
  std::chrono::nanoseconds suggestion_due{0};  ///< likewise of searches for a name that was mistyped
  /// Requests answered with -32601 that no handler has seen, since rpc.undelivered was last asked; 255 for more.
  std::uint8_t undelivered = 0;

  void count_undelivered() noexcept {
    if (undelivered != std::numeric_limits<std::uint8_t>::max()) ++undelivered;
  }
};

/// What is counted of a connection for those who ask.
struct ConnectionCounts {
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::chrono::nanoseconds heard_at{0};  ///< when its last byte came, by Scheduler::now, to some milliseconds
  const char* end = nullptr;             ///< why it has ended, in a word; null as long as it has not
};

/// Elements of a batch over Limits::batch that are looked at, for whose ids a refusal names, or whom a response is for.
inline constexpr std::size_t kRefusedElementsMax = 65'536;

/// What a connection may still be served of its turn. A message, an element of a batch, and as much work as a small
/// call costs (half a microsecond, or 256 bytes read or written) each take one step.
struct Share {
  static constexpr std::size_t kBytesOfStep = 256;
  /// One message costs no more than that, whatever it is charged.
  static constexpr std::size_t kChargeMax = std::size_t{1} << 20;

  std::int32_t steps_left = 0;  ///< until MessageSink::next_share; negative when one message has cost more
};

/// Where finished messages go.
class MessageSink {
 public:
  /// The buffer to which the next message is appended. Between open_message and close_message (or discard_message) the
  /// sink is not asked for anything else.
  virtual Buffer& open_message() = 0;
  /// What was appended since open_message is one whole message, JSON text, which is sent in the peer's encoding.
  virtual void close_message() = 0;
  /// The same of that form. Only who has been brought MessagePack says anything but json.
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
  /// Whether this is a connection: the peer can be sent more than answers, and its later messages come here too.
  [[nodiscard]] virtual bool connected() const noexcept { return false; }
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
  /// Whether the peer has spoken MessagePack last, and so is sent that.
  [[nodiscard]] virtual bool speaks_msgpack() const noexcept { return false; }
  /// Where the peer comes from: an address, or a user of this machine. The same text is the same source.
  [[nodiscard]] virtual std::string peer_source() const { return {}; }
  /// A response among the elements of a batch, in its turn. `msgpack` is the batch in MessagePack, of which `element`
  /// is the response; both are empty for JSON.
  virtual void batched_response(const Received& response, std::string_view msgpack, std::string_view element) {
    static_cast<void>(response), static_cast<void>(msgpack), static_cast<void>(element);
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

/// What the dispatchers of one thread share: cursors with their scratch memory, running tasks, timers, the log.
/// Outlives the dispatchers that use it.
struct LoopContext {
  explicit LoopContext(const Codec& codec = json_codec(), Scheduler* timers = nullptr, const LogSink* log = nullptr);
  ~LoopContext();
  LoopContext(LoopContext&&) = delete;

  /// Of a batch that is being read; those beyond are read again when it is served.
  using Elements = std::array<Received, kBatchElementsKept>;

  /// What reads params and writes results in MessagePack.
  struct MsgpackCursors {
    detail::ParamReaders readers{.reader = msgpack_codec().reader(), .defaults = {}};
    std::unique_ptr<Writer> writer = msgpack_codec().writer();
  };

  /// What a handler that runs may still read from: it is given away, and replaced, when its thread loses the loop.
  struct Scratch {
    detail::ParamReaders readers;
    std::unique_ptr<Elements> elements;
    std::unique_ptr<MsgpackCursors> msgpack;
  };
  [[nodiscard]] Scratch make_scratch() const;
  /// Gives away what there is for `fresh`, which make_scratch has made.
  [[nodiscard]] Scratch give_up_scratch(Scratch fresh) noexcept;

  void write_log(LogLevel level, std::string_view line) const;
  /// For peers that speak MessagePack; both are made when the first does.
  [[nodiscard]] message::Transcoder& transcoder();
  [[nodiscard]] MsgpackCursors& msgpack();
  /// Of calls of that form.
  [[nodiscard]] detail::ParamReaders& readers_of(MessageForm form) {
    return form != MessageForm::msgpack ? readers : msgpack().readers;
  }
  [[nodiscard]] Writer& writer_of(MessageForm form) {
    return form != MessageForm::msgpack ? *writer : *msgpack().writer;
  }

  const Codec* codec;
  detail::ParamReaders readers;
  std::unique_ptr<Writer> writer;
  Buffer batch_text;
  std::vector<const Method*> own_by_name;  ///< see next_own
  const Method* own_last = nullptr;        ///< the last method of the registry when they were sorted
  /// What is left of batches that are interrupted. Few dispatchers have one at a time: so it stands in none of them.
  std::unordered_map<const Dispatcher*, std::shared_ptr<void>> open_batches;
  RunningBatch* running_batch = nullptr;  ///< the innermost; dispatchers'
  std::unique_ptr<Elements> elements = std::make_unique<Elements>();
  detail::WatchdogSlot* watchdog_slot = nullptr;  ///< null without a watchdog
  detail::BlockingPool* blocking_pool = nullptr;  ///< null where there are no threads for handlers that block
  std::shared_ptr<const Authority> authority;     ///< null where nobody has to say who he is
  Broker* broker = nullptr;                       ///< null where connections cannot provide methods for each other
  OwnCounts* own_counts = nullptr;                ///< null where nobody asks how often each method has been called
  bool told_of_callers = false;                   ///< the peers say by `from` who calls, and are to be believed
  bool has_turns = false;                         ///< a loop calls `after_turn`
  void (*after_turn)() noexcept = nullptr;        ///< to be called once when the turn has ended; null for nothing
  Scheduler* scheduler;
  const LogSink* log;                              ///< may be null; outlives the loop_context
  std::string_view title = "wirecall";             ///< of the server; outlives the loop_context
  const std::vector<std::string>* urls = nullptr;  ///< at which its methods are called by HTTP; null for none
  const LogSink* call_log = nullptr;               ///< of calls that reach no method; null where none are logged
  Refusals refusals;                               ///< who is told why
  mutable Stats stats;                             ///< of all that happens on this thread, whoever counts it
  std::unique_ptr<message::Transcoder> transcoder_made;
  std::unique_ptr<MsgpackCursors> msgpack_made;
  Accounts accounts;
  MemoryBudget unidentified;          ///< where peers have to say who they are
  std::size_t half_closed_calls = 0;  ///< that wait for peers that have ended their side
  StopRequests stop_requests{scheduler};
  TaskScope tasks;  ///< last: the tasks go before what they use
};

/// What a call ends with for which its principal, or source, has too many in flight.
[[nodiscard]] Error too_many_of_principal(std::string_view delivered);

/// What a call ends with whose `to` names no client that provides the method.
[[nodiscard]] Error no_such_client();

class Dispatcher {
 public:
  /// Everything referred to outlives the dispatcher; `registry` is not changed any more. `load` is the connection's, if
  /// another dispatcher has asked for it.
  Dispatcher(const Registry& registry, MessageSink& sink, const Limits& limits, LoopContext& loop_context,
             const PeerLoad* load = nullptr) noexcept;
  ~Dispatcher();
  Dispatcher(Dispatcher&&) = delete;

  /// Serves a message whose kind is not response. What it answers at once is at the sink when this returns; calls
  /// that wait are answered later, from the thread's turn.
  /// `elements` are those of a batch that read_message has kept.
  void handle(const Received& message, std::span<const Received> elements = {});
  /// The same for a message that was none of JSON before: requests whose params JSON cannot hold are `unrepresentable`,
  /// and answered -32602.
  void handle_transcoded(const Received& message, std::span<const Received> elements,
                         std::span<const message::Unrepresentable> unrepresentable);
  /// The same for one whose params are still in `msgpack`, the message of MessagePack (Transcoder::restore).
  void handle_msgpack(const Received& message, std::span<const Received> elements, std::string_view msgpack,
                      bool too_large = false);
  /// Whether a batch is interrupted (MessageSink::interrupt).
  [[nodiscard]] bool has_open_batch() const noexcept { return loop_context_->open_batches.contains(this); }
  /// Serves more of the open batch: the rest of it, or as much as the connection's share allows.
  void resume_batch();
  /// What is left of the open batch is answered -32009, and not run.
  void refuse_open_batch() noexcept;
  /// A handler that a batch has called has lost the loop: the rest of the batch becomes the open batch, and is left
  /// alone when that handler returns. False when no batch is being served. Throws std::bad_alloc.
  bool leave_batch();
  /// Whether a message of MessagePack may be handled as it is: a single one is no response. Then, its envelope having
  /// been read, `takes_msgpack` says whether it is; so it does of each response in a batch.
  /// `members` are what Transcoder::check has found in it.
  enum class Passthrough : std::uint8_t {
    no,  ///< it is handled as JSON
    yes,
    too_large  ///< it is handled as it is, being for a reserved method, and larger as JSON than a message may be
  };
  [[nodiscard]] Passthrough may_pass_through(std::string_view msgpack, const message::MsgpackMembers& members) noexcept;
  [[nodiscard]] bool takes_msgpack(const Received& message) const noexcept;
  /// In what form messages are answered from now on.
  void answer_as(MessageForm form) noexcept { form_ = form; }
  /// Where peers have to say who they are: the connection is closed unless this one has within
  /// Limits::registration_timeout_ms.
  void await_identity();
  /// Where peers have to say who they are: whether this one has not.
  [[nodiscard]] bool is_unidentified() const noexcept {
    return loop_context_->authority != nullptr && principal() == nullptr;
  }
  /// A peer that has not said who it is makes this connection hold so many bytes. It may be closed for that, and so may
  /// others that hold more.
  void hold_unidentified(std::size_t bytes);
  /// The account of the connection. Throws std::bad_alloc.
  [[nodiscard]] const std::shared_ptr<Account>& account();
  /// Bytes that are held for the connection's calls.
  [[nodiscard]] std::size_t held_bytes() const noexcept {
    return load_ != nullptr ? load_->held_bytes + load_->batch_bytes : 0;
  }
  /// Where peers have to say who they are: this one has, by other means than rpc.hello; null for one that has not.
  void identify(const Principal* principal, std::string_view token);
  /// Whether the peer still is who it was when LoopContext::authority has become another one, and may do the same.
  /// One that has not said yet who it is may still do so, unless it could do everything before: where it `was_open`.
  [[nodiscard]] bool is_still_known(bool was_open = true) const noexcept;
  /// Where the token of a peer is known no more, its calls end with -32004 at once: nothing that they still give is
  /// sent.
  void end_if_revoked() noexcept;
  /// Answers text that cannot be read: -32700, with `data.limit:"depth"` for ScanStatus::too_deep.
  void refuse_syntax(ScanStatus status, const message::Unreadable& where);
  /// Answers a message over max_message_size: -32006.
  void refuse_size();

  /// The sink is writable again: resumes the streams that wait for that.
  void on_writable();

  static constexpr std::uint32_t kNoTimeout = ~std::uint32_t{0};
  /// Calls from now on have so many milliseconds, or less, as if each had said so by `timeout_ms`; kNoTimeout ends
  /// that.
  void limit_timeout(std::uint32_t milliseconds) noexcept { timeout_max_ms_ = milliseconds; }
  /// New requests are answered -32009 from now on. A peer that has said hello is told, by rpc.draining.
  void drain() noexcept;
  /// Whether other connections rely on the peer, since it provides methods for them.
  [[nodiscard]] bool is_provider() const noexcept;
  /// Calls rpc.ping, whose answer is for nobody, at a peer that has said hello; false for one that has not.
  [[nodiscard]] bool send_keepalive();
  /// Whether the connection is needed though nothing happens on it: the peer provides methods, or waits for events.
  [[nodiscard]] bool idle_exempt() const noexcept;
  /// Whether the peer has been called, and is waited for.
  [[nodiscard]] bool awaits_responses() const noexcept;
  /// A response, perhaps to one of these calls; false when it is none.
  [[nodiscard]] bool response(const Received& message);
  /// The peer sends no more: it will answer none of these calls, and give no stream more credit.
  void peer_ended();

  /// Calls that have not been answered yet.
  [[nodiscard]] std::size_t in_flight() const noexcept {
    return pending_ == nullptr && broker_peer_ == nullptr ? 0 : waiting_calls();
  }
  /// Asks all calls in flight to stop; they are still answered.
  void ask_to_stop() noexcept;
  /// Answers all calls in flight with `error` and asks them to stop; what they still answer is dropped.
  void end_calls(const Error& error) noexcept;
  /// The same when their time to finish before the server ends is up: -32009.
  void stop_calls() noexcept;
  /// The peer has gone: asks all its calls to stop; nothing is sent to the sink any more.
  void abandon() noexcept;

 private:
  friend struct CallState;
  friend struct PendingCalls;
  friend class wirecall::Call;
  friend class wirecall::ReplySink;

  [[nodiscard]] std::size_t waiting_calls() const noexcept;
  void limit_half_closed();
  [[nodiscard]] bool is_full() const noexcept;
  PendingCalls& pending();
  [[nodiscard]] std::shared_ptr<CallerLink> caller_link();
  [[nodiscard]] BrokerPeer* broker_peer();
  void send_own(std::string_view text);
  [[nodiscard]] const Principal* principal() const noexcept;
  PeerIdentity& identity();
  [[nodiscard]] bool admit(const Received& message, std::string_view msgpack = {});
  struct RateWait {
    std::chrono::nanoseconds time{0};  // 0 for none
    std::string_view limit;
  };
  [[nodiscard]] RateWait wait_for_rate();
  [[gnu::noinline]] void refuse_rate(const Received& message, CallState& state, const RateWait& wait);
  [[nodiscard]] std::optional<Error> refuse_full();
  void use_account();
  bool take_call_options(const Received& message, CallState& state);
  [[nodiscard]] CallBounds bounds(CallState& state) const;
  [[nodiscard]] bool is_for_reserved(const Received& message) const noexcept;
  [[nodiscard]] Passthrough need_not_be_json(std::string_view msgpack, std::string_view name) noexcept;
  void refuse_too_large(const Received& message, CallState& state);
  void handle_unpacked(Received& message, CallState& state);
  [[nodiscard]] std::chrono::nanoseconds received_at() const;
  [[nodiscard]] static bool belongs_to_a_call(const Received& message) noexcept;

  inline void handle_single(const Received& message, CallState& state);
  void handle_transcoded(const Received& message, CallState& state, std::size_t offset,
                         std::span<const message::Unrepresentable> unrepresentable);
  void handle_msgpack(const Received& message, CallState& state, std::string_view msgpack, std::string_view text,
                      bool too_large = false);
  void serve_element(BatchRun& run, const Received& element, CallState& state);
  void handle_batch(BatchRun& run, std::size_t count, std::span<const Received> elements);
  void handle_as_json(const Received& element, CallState& state, std::string_view msgpack);
  void serve_element_as(BatchRun& run, const Received& element, CallState& state);
  [[nodiscard]] inline bool serve_next(BatchRun& run, BatchScope* scope, const Received& element, Share* share);
  void interrupt_batch(BatchRun& run);
  [[nodiscard]] bool admit_element(const Received& element, CallState& state);
  void open_batch(BatchRun& run);
  void open_single(const Received& message, std::string_view name, std::shared_ptr<Rendering> rendering);
  [[nodiscard]] BatchRun* running_batch() const noexcept;
  [[nodiscard]] bool is_continued() const noexcept;
  [[nodiscard]] std::shared_ptr<OpenBatch> take_open_batch() noexcept;
  void keep_open_batch(std::shared_ptr<OpenBatch> open);
  [[nodiscard]] bool may_suggest();
  void hold_batch(BatchRun& run);
  void close_batch(BatchRun& run);
  [[nodiscard]] bool refuse_values(const Received& message, CallState& state, std::size_t offset,
                                   std::span<const message::Unrepresentable> unrepresentable);
  void refuse(const Received& message, CallState& state);
  void refuse_batch(const Received& batch, const Error& error);
  void log_unauthenticated(const Received& message) noexcept;
  inline void run(Call& call, CallState& state);
  [[gnu::noinline]] void run_timed(Call& call, CallState& state, OwnCountsRow& row);
  [[gnu::noinline]] void refuse_addressed(const Received& message, std::string_view name, CallState& state);
  [[nodiscard]] bool is_late(const BatchRun& run) const;
  void unknown_method(const Received& message, std::string_view name, CallState& state);
  void log_unserved(std::string_view name, ErrorCode code) const noexcept;

  const Registry* registry_;
  const std::vector<Middleware>* middleware_;  // the registry's
  MessageSink* sink_;
  const Limits* limits_;
  LoopContext* loop_context_;
  const PeerLoad* load_;                   // the connection's; null as long as no call has waited
  std::shared_ptr<PendingCalls> pending_;  // made when the first call waits
  JoinedPeer broker_peer_;                 // made when a broker is first asked
  std::uint32_t timeout_max_ms_ = kNoTimeout;
  MessageForm form_ = MessageForm::json;  // of the answers to the message that is served
  bool greeted_ = false;                  // by rpc.hello
  bool draining_ = false;
};

}  // namespace wirecall::rpc
