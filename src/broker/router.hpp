// Router: the broker of one loop. It knows the peers of the loop's connections, what they provide and the calls on
// their way, and carries a request from its caller to a provider and the response back: the same bytes under another
// id. Nothing is asked of it but by a dispatcher (rpc/broker.hpp), and it sends by the peers' sinks.
//
// A relayed call ends in one of these ways: its provider answers; its time is up, it is cancelled, or its caller goes,
// and then the provider is told; its provider goes. Where a provider takes only so many calls at once, one that was
// given up counts until the provider has answered it, since it may still be at work.
// One thread (the loop's). Implements docs/broker.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/seeded_hash.hpp"
#include "broker/announcements.hpp"
#include "broker/deadlines.hpp"
#include "broker/fan_outs.hpp"
#include "broker/kicked_clients.hpp"
#include "broker/method_subscriptions.hpp"
#include "broker/method_table.hpp"
#include "broker/null_sink.hpp"
#include "broker/operations_log.hpp"
#include "broker/peer.hpp"
#include "broker/relayed_calls.hpp"
#include "broker/report.hpp"
#include "broker/retained.hpp"
#include "broker/session_keys.hpp"
#include "broker/subscriptions.hpp"
#include "broker/taps.hpp"
#include "rpc/broker.hpp"
#include "rpc/dispatcher.hpp"
#include "rpc/method_counts.hpp"
#include "rpc/openrpc.hpp"
#include "rpc/reserved_params.hpp"
#include "wirecall/limits.hpp"
#include "wirecall/message.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/task.hpp"

namespace wirecall::broker {

/// One method as rpc.register names it.
struct Registration {
  std::string name;
  Policy policy = Policy::least_inflight;
  bool policy_given = false;
  std::string hash_param;
  ProviderOptions options;
  Description description;
};

/// What a broker is told by its options.
struct Settings {
  bool disclose_callers = false;
  std::uint32_t log_calls_every = 0;
  std::chrono::nanoseconds kick_time{0};  ///< for which who was kicked is not let in again
};

/// What a provider is asked for.
struct TappedRequest {
  const Peer& caller;
  std::string_view method;
  EncodedValue params;
};

/// What calls end with that no provider has answered; made beforehand, since there may be no memory then.
struct RelayErrors {
  Error not_delivered;     ///< the provider has gone, or there is none
  Error not_there;         ///< the provider that the caller has named is none
  Error maybe_delivered;   ///< the provider has gone, and had been asked
  Error timed_out_before;  ///< the time was up before the provider was asked
  Error timed_out;
  Error malformed;          ///< what the provider has answered
  Error same_subscription;  ///< a provider has given a subscription the id of another of its own
  Error overrun;            ///< a provider has sent more items than it had credit for
  Error no_memory;
  Error cancelled_before;  ///< the provider had not been asked
  Cancelled cancelled;

  RelayErrors();
};

class RequestToAll;
class Splice;
/// What the request of a stream has in place of what its caller wrote.
struct StreamEdits;

class Router final : public rpc::Broker, private Timer {
 public:
  /// All referred to outlive it. `own` are the methods of the process itself, whose names nobody else may have.
  Router(const Registry& own, const Limits& limits, rpc::LoopContext& loop_context, const Settings& settings = {});
  ~Router();
  Router(Router&&) = delete;

  [[nodiscard]] rpc::JoinedPeer attach_peer(rpc::MessageSink& sink, std::shared_ptr<rpc::PeerLoad> load) override;

  // Calls: router.cpp.

  /// The way of every relayed call: sends it to a provider of `route`, or keeps it until there is one that is free.
  void relay(Route& route, Call& call);
  /// Whether the result of a response in MessagePack is for a caller who speaks that.
  [[nodiscard]] bool takes_msgpack(const Peer& peer, const Received& message) noexcept;
  /// rpc.call_all: call_all.cpp.
  void call_all(Call& call);
  [[nodiscard]] const Method& call_all_method() const noexcept { return call_all_; }
  /// False when the response answers nothing that `peer` was asked.
  [[nodiscard]] bool response(Peer& peer, const Received& message);
  std::size_t cancel(Peer& caller, std::string_view id_json);
  /// Answers all calls of `caller` with `error`, or, where that is null, nobody; their providers are told.
  void end_calls(Peer& caller, const Error* error) noexcept;
  /// Of the connections of the caller's account the one with the most relayed calls loses its last, unless it is this
  /// one or has hardly more. Returns whether it has.
  bool shed_call(const Peer& caller) noexcept;
  /// Of the calls of `caller` the first `kept` go on, until `until` at most; the others are answered with `error`.
  void limit_calls(Peer& caller, std::size_t kept, std::chrono::nanoseconds until, const Error& error) noexcept;

  // Streams: streams.cpp.

  /// rpc.item or $/progress, for a stream that `peer` was asked for; one that nobody waits for is dropped.
  void item(const Peer& peer, const Received& message);
  void progress(const Peer& peer, const Received& message);
  bool grant(Peer& caller, std::string_view id_json, std::uint64_t more);

  // Who provides what: registering.cpp.

  /// All of them or none. Throws Error -32007 and -32602.
  void register_methods(Peer& peer, std::vector<Registration> registrations);
  /// Returns whether the peer had registered it. No call comes to the peer by that name any more; those that it has
  /// are still its own to answer.
  bool unregister(Peer& peer, std::string_view name);
  /// The peer says nothing any more: it subscribes to nothing and provides nothing, and what it was asked ends, or is
  /// asked elsewhere, in this turn and, where that is much, in later ones.
  void end_peer(Peer& peer) noexcept;

  // Subscriptions to methods: subscribing.cpp.

  /// The way of a call that subscribes.
  void relay_subscribing(Route& route, Call& call);
  /// The broker's own answer to a call that unsubscribes.
  void unsubscribe_method(Route& route, Call& call);
  /// A notification of a peer that has declared such methods. False where it is none of their events, of whichever
  /// subscription.
  [[nodiscard]] bool method_event(Peer& provider, std::string_view name, const Received& message);

  // Events: events.cpp.

  /// `pattern` is valid. Throws Error -32005.
  void subscribe(Peer& peer, std::string_view pattern, const SubscriptionOptions& options);
  bool unsubscribe(Peer& peer, std::string_view pattern) noexcept;
  /// What is retained of topics that `pattern` matches is sent when the subscription has been answered.
  static void request_retained(Peer& peer, std::string pattern);
  void send_retained(Peer& peer);
  /// Steps that have been spent on retained events, and on matching events with patterns, since the beginning.
  [[nodiscard]] std::uint64_t event_steps() const noexcept { return event_steps_; }
  /// An event with these params, none when empty, to all who subscribe to `topic`, a valid name. Returns how many
  /// connections it was queued to. Throws Error -32005, -32006.
  std::size_t publish(Peer& publisher, std::string_view topic, const EncodedValue& given, bool retain);
  /// What it is answered with in place of what `publish` has just returned, after later turns; null for that.
  [[nodiscard]] std::shared_ptr<rpc::Rendering> take_answer() noexcept { return std::move(published_); }
  /// The same for a notification, as it came.
  void notified(Peer& publisher, std::string_view name, const Received& message);
  /// The peer has taken most of what waited for it: its streams go on, and it is told of the events it has lost.
  void on_writable(Peer& peer);

  // Who looks on: tapping.cpp.

  /// Shows the peer what passes under names that the pattern, a valid one, stands for. Again, it replaces the pattern.
  /// Throws Error -32003, -32007.
  void tap(Peer& peer, std::string_view pattern);
  /// Whether the peer looked on.
  bool untap(Peer& peer) noexcept;
  /// A call to a method of the process's own is shown, with its outcome; others are passed over.
  void tap_own(Call& call, std::string_view name) noexcept;

  // What there is: inspection.cpp.

  /// All numbers but those of methods.
  [[nodiscard]] Report report() const;
  /// Fills in the first method by name that is behind `after`, of the process's own or provided by a connection; false
  /// for none.
  [[nodiscard]] bool next_report(std::string_view after, const Principal* asker, MethodReport& method) const;
  [[nodiscard]] bool next_method(std::string_view after, const Principal* asker,
                                 rpc::DescribedMethod& method) const override;
  [[nodiscard]] rpc::LoopContext& loop_context() const noexcept { return *loop_context_; }
  /// Where the numbers of the whole process come from; without it, they are this loop's.
  void count_by(std::function<Stats()> counters) { counters_ = std::move(counters); }
  /// Closes the connection of the client with that name; false when there is none.
  bool kick(const Peer& by, std::string_view name);
  [[nodiscard]] OperationsLog& log() noexcept { return log_; }
  /// What a principal is answered that may not do what it wants to.
  [[nodiscard]] static Error forbidden();
  [[nodiscard]] static Error too_many_methods();
  /// By Scheduler::now; 0 where there is none.
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept;
  [[nodiscard]] std::chrono::nanoseconds uptime() const noexcept { return now() - began_; }
  void drain() noexcept { draining_ = true; }
  [[nodiscard]] bool is_draining() const noexcept { return draining_; }

  /// Gives the peer that name, or one like it when another has it. With the secret of a session, each empty for none,
  /// the connection that has that session is closed, and its name is the peer's. Throws Error -32004, -32007, -32602.
  rpc::HelloResult hello(Peer& peer, std::string_view name, std::string_view resume);
  /// The peer's connection has gone; so it goes, in this turn or a later one.
  void forget(Peer& peer) noexcept;
  /// Where what is for a peer goes that has left.
  [[nodiscard]] rpc::MessageSink& null_sink() noexcept { return null_sink_; }

  [[nodiscard]] const Registry& own() const noexcept { return *own_; }
  [[nodiscard]] const MethodTable& methods() const noexcept { return methods_; }
  /// The first peer in the order of their connections whose number is larger; null for none.
  [[nodiscard]] const Peer* next_peer(std::uint64_t after) const noexcept;
  [[nodiscard]] const RelayedCalls& relayed_calls() const noexcept { return calls_; }

 private:
  static constexpr std::size_t kLagTopics = 64;
  // Steps (Retained::walk) that one turn spends on what is retained, for all peers together, and for one at a time.
  static constexpr std::size_t kWalkSteps = 1024;
  static constexpr std::size_t kWalkStepsAtOnce = 128;
  static constexpr std::size_t kPatternsLookedAt = 16;

  // Steps of a share (rpc::Share) that one turn spends on telling of the broker itself; one event may take more.
  static constexpr std::size_t kAnnouncingSteps = 2048;
  static constexpr std::size_t kSubscriptionsEndedATurn = 128;
  static constexpr std::size_t kCallsEndedATurn = 256;  // short ones, for which few providers are looked at
  // Steps of a share that one turn spends on the scatter phase of rpc.call_all, for all such calls together, and for
  // one at a time where there are several; the last provider that is asked may take more.
  static constexpr std::size_t kScatterSteps = 512;
  static constexpr std::size_t kScatterStepsAtOnce = 128;
  static constexpr std::uint64_t kNoEvent = ~std::uint64_t{0};

  // Calls that are to be ended: all that a peer leaves undone, or those that wait for a provider which has
  // unregistered.
  struct EndedCalls {
    Peer* peer;                           // null for a provider's
    std::shared_ptr<Provider*> provider;  // null for a peer's; where it points to null, the provider has gone
  };

  // The scatter phase of an rpc.call_all: not all of its providers have been asked yet. Those and the caller are known
  // by Peer::number, since they may go meanwhile.
  struct Scatter {
    std::shared_ptr<CallAllResults> results;
    std::shared_ptr<const RequestToAll> request;  // null where it is not kept for those that are left
    std::uint64_t caller;
    std::string route;  // its name
    std::string method;
    CallBounds bounds;
    bool kept;                                  // whether the request is kept for providers that are not free
    std::vector<std::uint64_t> providers = {};  // in the order of their indices
    std::uint32_t asked = 0;                    // so many of them

    [[nodiscard]] bool is_done() const noexcept;
  };

  // Goes on with something in the next turn.
  class Continuation final : public Timer {
   public:
    Continuation(Router& router, void (Router::*resume)() noexcept) noexcept : router_(&router), resume_(resume) {}
    void expired() override { (router_->*resume_)(); }

   private:
    Router* router_;
    void (Router::*resume_)() noexcept;
  };
  // So long after it began a session can be resumed whose connection has gone.
  static constexpr std::chrono::hours kSessionLifetime{24};

  void expired() override;
  void watch(SlotNumber slot);
  void end_by(SlotNumber slot, std::chrono::nanoseconds until) noexcept;
  [[nodiscard]] Provider* provider_for(Route& route, const Received& message, Reader& reader);
  [[nodiscard]] SlotNumber find(Peer& caller, std::string_view id_json);
  [[nodiscard]] std::string from_of(const Peer& peer) const;
  void notify(const Provider& provider, const Received& message, std::string_view from);
  [[nodiscard]] static Error queue_is_full();
  [[nodiscard]] static Error too_many_calls();
  void begin_scatter(std::list<Scatter> scatter) noexcept;
  void scatter_share(Scatter& scatter, std::size_t steps) noexcept;
  std::size_t scatter_some(Scatter& scatter, std::size_t steps) noexcept;
  void scatter_more() noexcept;
  void scatter_later() noexcept;
  [[nodiscard]] Provider* provider_at(const Scatter& scatter, std::uint32_t index) const noexcept;
  void scatter_to(const Scatter& scatter, std::uint32_t index, const Peer& caller);
  void send_to_all(SlotNumber slot);
  void hand_to(Provider& provider, SlotNumber slot) noexcept;
  bool keep_for(Provider& provider, SlotNumber slot) noexcept;
  [[nodiscard]] bool may_keep(const Peer& caller, std::string_view text) const noexcept;
  [[nodiscard]] static bool has_budget(const Provider& provider, std::size_t bytes);
  [[nodiscard]] static Error provider_holds_too_much();
  [[nodiscard]] bool moves_within_budget(SlotNumber slot, std::string_view text) noexcept;
  [[nodiscard]] static Error too_many_bytes();
  [[nodiscard]] bool shed_waiting_call(Provider& provider, const Peer& caller) noexcept;
  [[nodiscard]] SlotNumber next_for(Provider& provider) noexcept;
  void relay_to(Provider& provider, Route& route, Call& call, const Received& message);
  void send(SlotNumber slot, const Received& message, std::string_view from);
  [[nodiscard]] static bool asks_for_progress(Call& call);
  void send_msgpack(SlotNumber slot, const Received& message, std::string_view from);
  void sent(SlotNumber slot);
  [[nodiscard]] std::uint64_t milliseconds_left(const RelayedCall& call) const;
  [[nodiscard]] std::optional<Error> read_as_json(std::string_view msgpack, Buffer& json, Received& message);
  [[nodiscard]] std::optional<Error> read_kept(std::string_view text, bool as_msgpack, Buffer& read, Received& message);
  void send_kept(SlotNumber slot) noexcept;
  [[nodiscard]] bool is_too_large(const RelayedCall& call, const Received& message) const noexcept;
  void deliver(SlotNumber slot, const Received& message, Provider& provider);
  [[nodiscard]] static bool is_unsubscribed(const Received& message) noexcept;
  void begin_subscription(SlotNumber slot, const Received& message, Provider& provider);
  void end_unwanted(const Provider& provider, const Received& message) noexcept;
  [[nodiscard]] std::optional<rpc::RawValue> subscription_in(std::string_view params, bool msgpack);
  bool send_subscription_event(const MethodSubscription& subscription, std::string_view params, std::string_view id);
  void keep_early_event(Peer& provider, EarlyEvent event);
  void send_early_events(SubscriptionSource& source, const MethodSubscription& subscription);
  void drop_early_events(Peer& provider) noexcept;
  void send_unsubscribe(const Peer& provider, std::string_view method, std::string_view provider_id);
  MethodSubscription take_out(MethodSubscription& subscription) noexcept;
  void lose_subscription(MethodSubscription& subscription) noexcept;
  void tell_of_lost_subscription(const MethodSubscription& lost) noexcept;
  void end_method(Provider& provider) noexcept;
  void end_subscriptions_of(Peer& peer) noexcept;
  void end_subscriptions(EndedSubscriptions ended) noexcept;
  [[nodiscard]] bool end_some(const EndedSubscriptions& ended, std::size_t& steps) noexcept;
  void end_left(Peer& peer) noexcept;
  void end_waiting(Provider& provider) noexcept;
  [[nodiscard]] bool end_some(Peer& peer, std::size_t& steps) noexcept;
  [[nodiscard]] bool lose_some(Provider& provider, bool sent_too, std::size_t& steps) noexcept;
  [[nodiscard]] std::size_t steps_to_lose(SlotNumber slot) noexcept;
  void end_more_calls() noexcept;
  void end_all_left() noexcept;
  void end_more() noexcept;
  void end_later();
  void answer(SlotNumber slot, const Error& error) noexcept;
  void fail(SlotNumber slot, const Error& error) noexcept;
  void caller_ended(std::uint64_t number, const Outcome& outcome) noexcept;
  void give_up(SlotNumber slot) noexcept;
  void give_up(SlotNumber slot, const Error& error) noexcept;
  void leave_caller(SlotNumber slot) noexcept;
  void leave_provider(SlotNumber slot) noexcept;
  void forget_call(SlotNumber slot) noexcept;
  void free_again(Provider& provider) noexcept;
  void remove_provider(Provider& provider) noexcept;
  void lose(SlotNumber slot) noexcept;
  [[nodiscard]] bool ask_another(SlotNumber slot) noexcept;
  [[nodiscard]] std::unique_ptr<RelayedStream> stream_of(const Received& message) const;
  [[nodiscard]] std::string_view progress_token(std::string_view params) const;
  [[nodiscard]] static std::uint64_t first_credit(const RelayedCall& call) noexcept;
  void edit_stream(const RelayedCall& call, const Received& message, StreamEdits& edits, Splice& splice) const;
  [[nodiscard]] bool is_streaming(const Peer& provider, SlotNumber slot) noexcept;
  [[nodiscard]] bool admit_item(SlotNumber slot, std::size_t bytes, bool with_credit);
  /// What an item says: of which call it is, by its `id` or `token`, and its value; as they came, empty for none.
  struct ItemParts {
    std::string_view name;
    std::string_view value;
    bool by_token = false;  ///< it came as $/progress
  };
  [[nodiscard]] ItemParts parts_of(const Received& message, bool by_token) const;
  [[nodiscard]] SlotNumber find_asked(const Received& message, const ItemParts& parts) noexcept;
  [[nodiscard]] std::optional<Error> item_as_json(const Received& message, Buffer& json, Received& plain);
  void pass_item(SlotNumber slot, const Received& message, const ItemParts& parts);
  void append_item(Buffer& out, const RelayedCall& call, const Received& message, const ItemParts& parts);
  void pass_credit(SlotNumber slot) noexcept;
  void resume_streams(Peer& caller) noexcept;
  void renew_deadline(SlotNumber slot) noexcept;
  struct Delivered {
    std::size_t count = 0;          ///< of connections that it was queued to
    std::size_t cost = 0;           ///< in steps of a connection's share (rpc::Share)
    const FanOut* later = nullptr;  ///< in which others are still to be told; null for none
  };
  struct NewEvent {
    std::string_view topic;
    std::string_view text;         ///< the notification
    std::string_view params;       ///< its params, as they were published; empty for none
    std::string_view method = {};  ///< it is for those who may call that; empty for all
    Buffer* owned = nullptr;       ///< has the text, and may lose it
  };
  Delivered deliver_event(Peer* publisher, const NewEvent& event);
  [[nodiscard]] std::size_t tell_at_once(const NewEvent& event, std::span<Subscriber* const> chosen);
  [[nodiscard]] bool is_being_told(std::string_view topic) const noexcept;
  void follow_same_topic(FanOut& begun);
  void end_fan_out(const FanOut& done) noexcept;
  void fan_out_share() noexcept;
  [[nodiscard]] FanOut* begin_fan_out(Peer* publisher, const NewEvent& event,
                                      std::span<Subscriber* const> chosen) noexcept;
  void tell_rest(FanOut& fan_out);
  [[nodiscard]] Peer* find_recipient(const FanOut& fan_out, const FanOut::Recipient& recipient) noexcept;
  void spend(std::size_t bytes) noexcept;
  void fan_out_more() noexcept;
  void fan_out_later();
  bool send_event(Peer& peer, std::string_view topic, rpc::EventText& event);
  void send_kept_event(Peer& peer, std::string_view topic, std::string_view kept);
  void require_subscribable(const Peer& peer, std::string_view pattern, const SubscriptionOptions& options) const;
  void tell_lag(Peer& peer);
  void send_more_retained(Peer& peer);
  bool walk_retained(Peer& peer, std::size_t& steps);
  void walk_on() noexcept;
  void refill_later();
  void forget_retained(Peer& peer) noexcept;
  [[nodiscard]] static bool is_to_be_walked(const Peer& peer, std::string_view topic) noexcept;
  [[nodiscard]] static bool hold_event(Peer& peer, std::string_view text);
  void drop_event(Peer& peer, std::string_view topic);
  void drop_for_budget(Peer& peer, std::string_view topic);
  static void count_lag(Peer& peer, std::string_view topic, std::uint64_t count);
  [[nodiscard]] static Buffer lagged(std::string_view topic, std::uint64_t count);
  std::size_t show(const TapRecord& record);
  void tap_call(SlotNumber slot, const Provider& provider, const TappedRequest& request) noexcept;
  void tap_call(SlotNumber slot, const Peer& caller, const Received& message) noexcept;
  void tap_notification(const Provider& provider, const Peer& caller, const Received& message) noexcept;
  void tap_event(const Peer* publisher, std::string_view topic, const EncodedValue& params,
                 std::size_t delivered) noexcept;
  void tap_end(SlotNumber slot, std::string_view member, const EncodedValue& value) noexcept;
  void tap_end(SlotNumber slot, const Error& error) noexcept;
  void tap_response(SlotNumber slot, const Received& message) noexcept;
  void refuse_kicked(Peer& peer, std::string_view name, std::string_view resume);
  void take_over(Peer& peer, std::string_view name, std::string_view resume);
  void give_name(Peer& peer, std::string_view name);
  [[nodiscard]] std::string free_name(const Peer& peer, std::string_view name) const;
  void announce(Peer& peer, std::string_view topic, std::string_view method = {}) noexcept;
  void tell(Peer* peer, std::string_view topic, std::string_view client, std::string_view method);
  void tell_of_lost_announcements();
  void announce_more() noexcept;
  void announce_later();
  void answered(const Provider& provider, const RelayedCall& call, bool failed) noexcept;
  void log_failure(SlotNumber slot, const Error& error) noexcept;
  void refuse(Call& call, const Route& route, const Error& error);

  const Registry* own_;
  const Limits* limits_;
  rpc::LoopContext* loop_context_;
  const Settings settings_;
  const RelayErrors errors_;
  NullSink null_sink_;
  const Method call_all_;
  RelayedCalls calls_;
  Deadlines deadlines_{calls_};
  std::chrono::nanoseconds wakes_at_ = kNoDeadline;
  MethodTable methods_;
  Subscriptions subscriptions_;
  MethodSubscriptions subscriptions_to_methods_;
  std::deque<EndedSubscriptions> ended_subscriptions_;  // that are ended in later turns
  std::size_t subscriptions_to_end_ = kSubscriptionsEndedATurn;
  std::deque<EndedCalls> ended_calls_;  // that are ended in later turns; it owns the peers among them that have left
  std::size_t calls_to_end_ = kCallsEndedATurn;
  Continuation ending_{*this, &Router::end_more};
  bool ends_ = false;  // ending_ runs
  std::list<Scatter> scatters_;
  std::size_t scatter_steps_left_ = kScatterSteps;
  Continuation scatter_timer_{*this, &Router::scatter_more};
  bool scatter_pending_ = false;  // scatter_timer_ runs
  Retained retained_;
  std::deque<Peer*> retained_queue_;  // who are sent what is retained, and wait for their turn
  std::size_t walk_steps_left_ = kWalkSteps;
  Continuation walking_{*this, &Router::walk_on};
  bool walks_ = false;          // walking_ runs
  std::string_view retaining_;  // the topic of the event at hand, where it is retained
  std::uint64_t event_steps_ = 0;
  std::list<FanOut> fan_outs_;  // events whose recipients are told over several turns, which they take in turns
  std::unordered_map<std::string_view, FanOut*> last_fan_outs_;  // of each topic, the one that was published last
  Continuation fanning_out_{*this, &Router::fan_out_more};
  bool fans_out_ = false;  // fanning_out_ runs
  std::int64_t fan_out_bytes_left_ = FanOut::kBytesInTurn;
  std::shared_ptr<DeliveredCount> published_;  // of what has just been published, in place of an answer
  Announcements announcements_;
  const FanOut* announced_ = nullptr;  // of one of them, which the others must not overtake
  std::size_t announcing_steps_left_ = kAnnouncingSteps;
  std::size_t announcing_cost_ = 0;  // of the last one, in such steps
  Continuation announcing_{*this, &Router::announce_more};
  bool announces_ = false;  // announcing_ runs
  Taps taps_;
  OperationsLog log_;
  std::uint64_t event_ = 0;                  // counts notifications
  std::uint64_t withheld_event_ = kNoEvent;  // the last one that goes to nobody but a subscription's caller
  const std::chrono::nanoseconds began_;
  rpc::OwnCounts own_counts_;
  std::function<Stats()> counters_;
  bool draining_ = false;
  SessionKeys session_keys_;
  KickedClients kicked_;
  std::map<std::uint64_t, Peer*> peers_;                           // by Peer::number
  std::unordered_map<std::string_view, Peer*, SeededHash> names_;  // by Peer::name
};

}  // namespace wirecall::broker
