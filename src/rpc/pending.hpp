// The state of calls behind Call and ReplySink: CallState for the one being dispatched, PendingCalls for those that
// wait. A sink names its call by slot and generation, so one that comes late, or after its peer has gone, hits nothing.
//
// A call that waits ends in one of these ways: its sink answers (finish); its time is up, it is cancelled, or the
// server ends (end); its peer goes (abandon). After `end` its handler has still to notice, and until it does the slot
// stays taken: so a peer that cancels what it calls has no more handlers at work than Limits::in_flight.
#pragma once

#include <map>
#include <new>
#include <stop_token>

#include "rpc/items.hpp"
#include "rpc/peer_calls.hpp"
#include "rpc/peer_identity.hpp"
#include "rpc/received_input.hpp"
#include "rpc/reply.hpp"
#include "rpc/served_peer.hpp"
#include "wirecall/call.hpp"
#include "wirecall/context.hpp"

namespace wirecall::rpc {

/// A batch being dispatched. It moves to the heap when the first of its calls waits.
struct BatchScope {
  BatchScope() noexcept {}  // NOLINT(modernize-use-equals-default): member by member, which no compiler makes a loop

  BatchReply local;
  std::shared_ptr<BatchReply> shared;

  [[nodiscard]] BatchReply& current() noexcept { return shared ? *shared : local; }
};

/// What few calls have: made when first asked for.
struct CallExtras {
  std::optional<std::uint32_t> timeout_ms;  ///< what the request asks for
  std::uint64_t credit = 0;                 ///< likewise; 0 for none
  bool has_input = false;                   ///< likewise
  CallBounds bounds;                        ///< the deadline is known once `bounded`
  bool bounded = false;
  std::stop_source stop{std::nostopstate};
  std::vector<ReplyHook> hooks;
  std::shared_ptr<SentItems> items;      ///< tells them, when it goes, that the call has ended
  std::shared_ptr<ReceivedInput> input;  ///< likewise
  std::optional<ReplySink> late_sink;    ///< of a call whose handler has lost the loop
  std::shared_ptr<CallerLink> link;      ///< where its handler may call its caller
};

/// Has the result of that method be written in the form that its type alone explains.
void use_own_form(Writer& writer, const Method& method) noexcept;

struct CallState {
  CallState(ServedPeer& of, BatchScope* scope) noexcept : peer(of), batch(scope), reply(make_reply()) {}

  [[nodiscard]] Reply make_reply() noexcept {
    const std::size_t bytes_max = peer.limits.max_message_size;
    if (batch == nullptr) return {&peer.sink, &peer.loop, peer.form, bytes_max};
    BatchReply& current = batch->current();
    return {current.text, current, &peer.loop, bytes_max};
  }
  [[nodiscard]] CallExtras& extras() {
    if (!rare) rare = std::make_unique<CallExtras>();
    return *rare;
  }

  ServedPeer& peer;
  BatchScope* batch;  ///< null for a single message
  Reply reply;
  bool answered = false;  ///< or detached: somebody else answers
  bool waits = false;     ///< it has been detached
  bool own_form = false;  ///< of its result: Call::use_own_form
  std::unique_ptr<CallExtras> rare;
};

class OwnSubscriptions;
struct PendingCalls;

struct PendingCall final : Timer {
  /// Calls of one id stand in the order in which they came, but streams first: credit is for them.
  struct Key {
    std::string_view id;
    bool stream;
  };
  struct Before {
    using is_transparent = void;
    bool operator()(const Key& a, const Key& b) const noexcept {
      const int order = a.id.compare(b.id);
      return order != 0 ? order < 0 : a.stream && !b.stream;
    }
    bool operator()(const Key& key, std::string_view id) const noexcept { return key.id < id; }
    bool operator()(std::string_view id, const Key& key) const noexcept { return id < key.id; }
  };
  using ById = std::multimap<Key, PendingCall*, Before>;

  PendingCall(PendingCalls& owner, std::uint32_t at) noexcept : calls(&owner), slot(at) {}
  PendingCall(PendingCall&&) = delete;

  void expired() override;
  /// When the call, or its next item, has to have come.
  [[nodiscard]] std::chrono::nanoseconds due(const Limits& limits) const noexcept;

  PendingCalls* calls;
  std::uint32_t slot;
  std::uint32_t generation = 0;
  bool active = false;   ///< not answered yet
  bool taken = false;    ///< somebody holds its sink, perhaps
  bool counted = false;  ///< in PeerLoad::calls
  bool notification = false;
  bool within_turn = false;  ///< it is answered before the turn ends: see Call::detach_within_turn
  bool named = false;        ///< in PendingCalls::by_id
  bool own_form = false;     ///< of its result: Call::use_own_form
  bool goes_on = false;      ///< its peer has gone, and its handler is not asked to stop at once
  MessageForm form;          ///< of the answer
  std::string id;            ///< JSON text as sent
  HeldBytes id_held;         ///< of an id of more than kBytesUncounted
  ParamsBytes params;        ///< until the sink goes, and with it whoever has them
  const Method* method = nullptr;
  CallExtras extras;
  std::shared_ptr<BatchReply> batch;  ///< null for a single call
  std::size_t gap = 0;
  std::optional<Reply> reply;
  ById::iterator entry;        ///< of one that is named
  ById::node_type spare_node;  ///< otherwise, for the next one here: a connection that is warm allocates none
};

struct PendingCalls {
  PendingCalls(ServedPeer& owner, std::shared_ptr<PeerLoad> load) : owner(&owner), load(std::move(load)) {}

  /// A new call. Its timer runs, unless it is answered within the turn.
  PendingCall& add(CallState& state, const Received& message, const Method& method, bool within_turn);
  /// It is not answered within its turn: it can be cancelled from now on, and its timer runs. `began` is when it came.
  /// Throws std::bad_alloc, and has no effect then.
  void outlive_turn(PendingCall& call, std::chrono::nanoseconds began);
  /// The call of that slot, or null when it has been answered or its peer has gone.
  [[nodiscard]] PendingCall* find(std::uint32_t slot, std::uint32_t generation) noexcept;
  /// The call's sink has answered: its batch, if any, may now be complete. Its hooks are called when it is no longer in
  /// the table, so that whatever they do to its sink, or to this peer, hits nothing.
  void finish(PendingCall& call, int code) noexcept;
  /// Answers the call with `error`, and then asks its handler to stop; what that still answers is dropped.
  void end(PendingCall& call, const Error& error) noexcept;
  /// Whoever holds the call's sink keeps so many bytes of params.
  void keep_params(PendingCall& call, std::size_t bytes) noexcept;
  /// The sink of that call has gone.
  void release(std::uint32_t slot, std::uint32_t generation) noexcept;
  /// Ends all requests whose id is `id`, byte for byte, -32800. Returns how many.
  std::size_t cancel(std::string_view id);
  /// Gives `more` credit to the stream whose id is `id`; of several of one id only the first in flight can be meant.
  /// Returns whether there was one.
  bool grant(std::string_view id, std::uint64_t more);
  /// The peer says nothing any more: no stream is given more credit.
  void peer_ended();
  /// An item of the stream towards the handler of the request with that id, found as by `grant`. What is wrong with it
  /// ends the call. Returns whether there is such a stream.
  bool add_input(std::string_view id, const InputItem& item);
  /// The same for one that is no item at all.
  bool break_input(std::string_view id, const Error& error);
  void end_all(const Error& error) noexcept;
  /// So many of the calls go on, until `until` at most; the others end with `error`.
  void limit(std::size_t kept, std::chrono::nanoseconds until, const Error& error);
  void stop_all(LoopContext& loop_context) noexcept;
  /// Has the next `abandon` leave the handlers of up to `count` notifications at work, until their deadlines and
  /// `until` at most.
  void let_notifications_go_on(LoopContext& loop_context, std::size_t count, std::chrono::nanoseconds until) noexcept;
  /// The peer has gone: no sink reaches a call any more; all that do not go on are asked to stop, and the hooks of all
  /// are called.
  void abandon(LoopContext& loop_context) noexcept;
  /// Where a call that has not been answered is answered.
  [[nodiscard]] Reply& reply_to(PendingCall& call) noexcept;

  ServedPeer* owner;  ///< null once the peer has gone
  std::vector<std::unique_ptr<PendingCall>> slots;
  std::vector<std::uint32_t> free;
  PendingCall::ById by_id;  ///< active requests, but those that are answered within the turn
  WritableQueue waiting_until_writable;
  std::shared_ptr<PeerCalls> peer_calls;            ///< made for the first handler that could make one
  std::shared_ptr<OwnSubscriptions> subscriptions;  ///< made for the first one
  std::size_t active = 0;                           ///< calls that have not been answered
  std::size_t half_closed = 0;                      ///< of LoopBudgets::half_closed_calls, those of this peer
  std::shared_ptr<PeerLoad> load;                   ///< of the connection
  std::unique_ptr<PeerIdentity> identity;  ///< null where nobody has to say who he is, or it has not been asked yet

 private:
  friend struct PendingCall;
  void watch(PendingCall& call);
  void enter_name(PendingCall& call, bool stream);
  void remove_name(PendingCall& call) noexcept;
  [[nodiscard]] PendingCall* find_stream(std::string_view id) noexcept;
  void expired(PendingCall& call);
  void close(PendingCall& call, int code) noexcept;
  void uncount(std::uint32_t slot, std::uint32_t generation) noexcept;
  void close_in_batch(BatchReply& batch) noexcept;
  void take_back(PendingCall& call, CallState& state) noexcept;
  [[nodiscard]] bool is_consistent() const noexcept;
};

inline const Principal* ServedPeer::principal() const noexcept {
  return calls != nullptr && calls->identity != nullptr ? calls->identity->shown.principal : nullptr;
}

/// Sends a batch whose calls are all answered; nothing for one of notifications only.
void send_batch(const ServedPeer& peer, BatchReply& batch);

/// Answers by `act`; where there is no memory for that, `sink` is told that the answer is lost.
template <class Act>
void answer_within_memory(MessageSink& sink, Reply& reply, const Act& act) noexcept {
  try {
    act();
  } catch (const std::bad_alloc&) {
    reply.discard();
    sink.lose_answer();
  }
}

/// A call of the method is answered with an error of that code.
void count_error(const LoopContext& loop_context, const Method& method, int code) noexcept;

/// What both ways of answering do with an error: data that is not JSON is left out, other data is made compact.
void send_error(Reply& reply, const LoopContext& loop_context, const Method& method, const Error& error,
                std::string_view id_json);
/// The data that is sent so.
[[nodiscard]] Buffer clean_data(const LoopContext& loop_context, const Method& method, const Error& error);

/// What both ways of answering do with the exception in flight; only in a catch block.
[[nodiscard]] Error error_of_exception(const LoopContext& loop_context, const Method& method) noexcept;

void call_hooks(const LoopContext& loop_context, std::vector<ReplyHook>& hooks, int code) noexcept;

/// The call has been answered, with an error of that code or, for 0, a result: what waited for that may follow. In a
/// batch, which is null for a single message, it waits for all of that.
void complete_link(std::shared_ptr<CallerLink> link, int code, BatchReply* batch) noexcept;

}  // namespace wirecall::rpc
