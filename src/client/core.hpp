// ClientCore: what is behind a Client: its loop, its connections, its calls, and the rule by which one thread at a time
// drives the loop. One mutex guards everything that threads share; the one that drives has loop and sessions to itself,
// and gives the mutex up while it is in a turn.
//
// Who drives. A thread that blocks for an answer does it itself, for all others that block, and passes that on when it
// has its own. As soon as there is something asynchronous (a callback, a future, a coroutine, methods that the server
// may call), a background thread does, and those that block only wait. Client::run makes the caller's thread do what
// the background thread would. So callbacks are called on the background thread or inside run, and nowhere else.
//
// Thread: any, but for what is marked as the driver's.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "client/call.hpp"
#include "client/declarations.hpp"
#include "client/dialer.hpp"
#include "client/unattributed_errors.hpp"
#include "connection/counted_stream.hpp"
#include "connection/session.hpp"
#include "framing/json_text.hpp"
#include "http/client.hpp"
#include "runtime/backend.hpp"
#include "runtime/inbox.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/loop.hpp"
#include "wirecall/options.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/request.hpp"

namespace wirecall::session {

/// Of a run of small responses, so much is looked at at once: what their callers ask for next is on its way to the
/// server while the client looks at the rest, so both are busy at the same time.
inline constexpr std::size_t kClientReceiveBytes = 2048;

struct EnvelopeMembers;

/// What a client stands on; the default is the system.
struct ClientSeams {
  std::unique_ptr<runtime::Backend> backend = runtime::make_epoll_backend(kClientReceiveBytes);
  DialFunction dial;        ///< by default transport::connect_to
  unsigned seed = 0;        ///< of the jitter; 0 for a random one
  bool one_thread = false;  ///< `dial` returns at once and is called on the driver's thread
};

/// One of a client's connections, and what has been sent on it.
class ClientConnection final : public ResponseHandler, public HttpUser {
 public:
  ClientConnection(ClientCore& owner, const std::vector<Endpoint>& endpoints, const ClientOptions& options,
                   DialFunction dial, unsigned seed)
      : core(&owner), dialer(endpoints, options, std::move(dial), seed) {}

  [[nodiscard]] bool response(const Received& message) override;
  [[nodiscard]] bool takes_msgpack(const Received& message) override;
  [[nodiscard]] bool notified(const Received& message) override;
  [[nodiscard]] bool waiting() const override;
  [[nodiscard]] std::optional<HttpProtocolError> answered(const HttpAnswer& answer) override;

  [[nodiscard]] bool up() const noexcept { return session != nullptr && !over; }
  /// Something that was sent here has not ended.
  [[nodiscard]] bool awaits() const noexcept { return !calls.empty() || !notifications.empty(); }
  /// Bytes of output up to now, and those of them that the system has taken.
  [[nodiscard]] std::uint64_t written_bytes() const noexcept { return stream->bytes() + session->gathered_bytes(); }
  [[nodiscard]] std::uint64_t taken_bytes() const noexcept { return written_bytes() - session->output_bytes(); }

  ClientCore* core;
  std::unique_ptr<Channel> session;  ///< the driver's
  rpc::MessageSink* sink = nullptr;  ///< the session: where messages are written
  ClientHttp* http = nullptr;        ///< the session, where it speaks HTTP
  CountedStream* stream = nullptr;   ///< the session's
  Dialer dialer;
  bool over = false;                  ///< the session has ended, and goes after the turn
  bool draining = false;              ///< the server takes no more calls here
  bool useful = false;                ///< it has served a call
  std::chrono::nanoseconds since{0};  ///< when it was made
  bool awaiting_response = false;     ///< by HTTP: to the last request
  CallList calls;                     ///< those in the table that were sent here, in the order in which they were
  std::size_t in_flight = 0;          ///< how many these are
  UnattributedErrors unattributed;
  CallList notifications;  ///< not all taken by the system yet; by HTTP: not responded to
  bool notifications_fresh = false;
  std::vector<std::string> controls;        ///< whole messages of our own, to be sent before calls
  std::chrono::nanoseconds hello_until{0};  ///< until then rpc.hello may be answered; 0 where it is not any more
  std::string resume;                       ///< the secret by which its session goes on; empty for none
  std::string resume_endpoint;              ///< who has given it, and alone is told it
  bool resumes = false;                     ///< the last rpc.hello has said so
  bool announced = false;                   ///< as made, to who asks for news of connections
  std::uint8_t unknown_methods = 0;         ///< -32601 here since rpc.undelivered was last answered; 255 for more
  bool asks_undelivered = false;            ///< that has not been answered
  bool batched = false;               ///< a batch was sent here: its answers come in another order than they are made
  std::size_t message_bytes_max = 0;  ///< what the server takes: no more than we do
  std::size_t in_flight_max = 0;
  std::size_t batch_max = 0;
};

class ClientCore final : public std::enable_shared_from_this<ClientCore>, private ConnectionOwner {
 public:
  ClientCore(std::vector<Endpoint> endpoints, ClientOptions options, ClientSeams seams = {});
  ~ClientCore();
  ClientCore(ClientCore&&) = delete;

  [[nodiscard]] Registry& registry() noexcept { return registry_; }
  [[nodiscard]] Scheduler& scheduler() noexcept { return loop_; }
  /// The executor of the tasks that this client runs.
  [[nodiscard]] const std::shared_ptr<runtime::Inbox>& executor() const noexcept { return loop_.inbox(); }
  [[nodiscard]] const ClientOptions& options() const noexcept { return options_; }
  /// In which calls are written.
  [[nodiscard]] const Codec& codec() const noexcept { return uses_msgpack() ? msgpack_codec() : json_codec(); }
  [[nodiscard]] bool uses_msgpack() const noexcept { return options_.encoding == Encoding::msgpack; }
  void on_wait(std::function<bool()> interrupted) { interrupted_ = std::move(interrupted); }
  [[nodiscard]] std::uint64_t responses_dropped() const;

  /// A call to be filled, and to be given back once it has ended.
  [[nodiscard]] ClientCall& take();
  void give_back(ClientCall& call) noexcept;

  /// Sends the calls as one message, and blocks until all have ended.
  void call_and_wait(std::span<ClientCall* const> calls);
  /// Makes the calls, as one message; each one's `done` is called once, later. They are the core's from here on,
  /// unless it throws.
  void start(std::span<ClientCall* const> calls);
  bool cancel(ClientCall& call, std::uint64_t generation) noexcept;
  /// As cancel, but `done` is not called any more. The driver's.
  void forget(ClientCall& call, std::uint64_t generation) noexcept;

  // Streams: client_stream.cpp.
  void start_stream(ClientStream& stream, bool asynchronous);
  /// True when there are items; false at the end.
  [[nodiscard]] bool wait_for_items(ClientStream& stream);
  /// False when there are none yet, and `wake` is going to be called.
  [[nodiscard]] bool poll_items(ClientStream& stream, std::function<void()> wake);
  void forget_items(ClientStream& stream) noexcept;
  void grant(ClientStream& stream);
  void end_stream(ClientStream& stream) noexcept;

  /// Connects now, or throws ConnectionError; where something is declared, waits for the broker's answer, or throws it.
  void connect();

  // Methods and subscriptions at a broker, on the first connection: client_broker.cpp.
  void provide(std::string_view name, const ProvideOptions& options, const std::function<Method&(Registry&)>& add);
  bool unprovide(std::string_view name);
  [[nodiscard]] std::shared_ptr<ClientSubscription> subscribe(std::string_view pattern, SubscribeOptions options,
                                                              EventFunction function);
  [[nodiscard]] std::shared_ptr<ClientSubscription> tap(std::string_view pattern, EventFunction function);
  void unsubscribe(ClientSubscription& subscription) noexcept;
  /// Runs `change` while no thread drives, so that it may change what is the driver's. Throws std::logic_error while
  /// another thread is in `run`.
  void exclusively(const std::function<void()>& change);
  void on_refused(RefusedFunction function);
  void on_lagged(LaggedFunction function);
  void on_connection(ConnectionFunction function);

  /// Drives on this thread until `finished` after `begin`. Throws std::logic_error where that cannot be.
  void run(const std::function<void()>& begin, const bool& finished, const std::function<void()>& after_each_turn);
  /// Something `run` has to look at. Any thread.
  void wake() noexcept { loop_.wake(); }
  /// The client is no more: ends all that has not ended.
  void close() noexcept;
  /// Inside a callback, a handler or run.
  [[nodiscard]] bool on_driver() const noexcept;

 private:
  friend class ClientConnection;
  friend struct StopCall;
  using Lock = std::unique_lock<std::mutex>;
  struct Driving;
  // While it exists, `running_` holds. Destroyed with the mutex held.
  struct Leaving {
    explicit Leaving(ClientCore& owner) : core(owner) {}
    Leaving(Leaving&&) = delete;
    ~Leaving();
    ClientCore& core;
  };
  // While it exists, the mutex is free.
  struct Unlocked {
    explicit Unlocked(Lock& held) : lock(held) { lock.unlock(); }
    Unlocked(Unlocked&&) = delete;
    ~Unlocked() { lock.lock(); }
    Lock& lock;
  };

  // Threads: client_core.cpp.
  [[nodiscard]] bool wait(Lock& lock, Waiting& waiting, std::chrono::nanoseconds now,
                          std::chrono::nanoseconds deadline);
  [[nodiscard]] bool interrupted(Lock& lock);
  void drive(Lock& lock, const Waiting& waiting, std::chrono::nanoseconds now, std::chrono::nanoseconds deadline);
  bool look_first(Lock& lock);
  void step(Lock& lock, std::chrono::nanoseconds wait_max, bool may_block);
  void drive_once(Lock& lock, std::chrono::nanoseconds wait_max);
  void background();
  void start_background();
  [[nodiscard]] bool background_needed() const noexcept {
    return background_.joinable() && (asynchronous_ != 0 || provides() || declares());
  }
  [[nodiscard]] bool others_drive() const noexcept { return running_ || closing_ || background_needed(); }
  [[nodiscard]] bool provides() const noexcept { return !registry_.methods().empty(); }
  [[nodiscard]] bool declares() const noexcept { return !declarations_.empty(); }
  void wake_driver() noexcept;
  void pass_on() noexcept;
  void await_news(Lock& lock, std::chrono::nanoseconds time, const std::function<bool()>& enough);
  void want_driver();
  void asynchronous_begun(Lock& lock) noexcept;
  [[nodiscard]] bool controls_wait() const noexcept;
  void send_controls(Lock& lock) noexcept;
  void say(Lock& lock, ClientConnection& connection, std::string message);
  void deliver_ended(Lock& lock);
  void deliver(ClientCall& call, detail::Answer& answer) noexcept;

  // Calls: client_life.cpp.
  void submit(std::span<ClientCall* const> calls);
  void finish(ClientCall& call);
  void fail(ClientCall& call, Error error, detail::ErrorClass thrown = detail::ErrorClass::error) noexcept;
  void lose(ClientCall& call, std::string_view why, bool written) noexcept;
  void give_up(ClientCall& call) noexcept;
  void stop(ClientCall& call) noexcept;
  void withdraw(ClientCall& call) noexcept;
  void expire(std::chrono::nanoseconds now) noexcept;
  void end_all(Lock& lock) noexcept;
  void say_last(Lock& lock) noexcept;

  // Streams: client_stream.cpp.
  static bool hand_over(ClientStream& stream);
  std::chrono::nanoseconds await_items(ClientStream& stream, std::chrono::nanoseconds now) const;
  void finish_stream(ClientCall& call);
  static void deliver_stream(Lock& lock, const ClientCall& call);
  bool item(ClientConnection& connection, const Received& message);

  // Connections: client_connect.cpp.
  void maintain_connections(Lock& lock, std::chrono::nanoseconds& wait_max, bool may_block);
  void connected(ClientConnection& connection, int descriptor);
  void not_connected(ClientConnection& connection, std::string failure);
  void tell_connecting() noexcept;
  [[nodiscard]] bool wanted(const ClientConnection& connection) const noexcept;
  [[nodiscard]] bool any_up() const noexcept;
  [[nodiscard]] bool connected_as_wanted() const noexcept;
  [[nodiscard]] bool may_dial_here(const Endpoint& endpoint, std::chrono::nanoseconds wait_max) const noexcept;
  void leave(const ClientConnection& connection) noexcept;
  void end_connection(ClientConnection& connection, std::string_view cause) noexcept;
  void announce(ClientConnection& connection) noexcept;
  void note_connection(bool connected, const ClientConnection& connection, std::string_view cause) noexcept;
  void tell_news(Lock& lock) noexcept;
  [[nodiscard]] static bool done_with(const ClientConnection& connection) noexcept;
  void after_turn(Lock& lock);
  static void again_as_it_was(CallList& again, ClientCall& call) noexcept;
  void connection_ended(Connection& ended, CloseReason reason, int error) noexcept override;
  [[nodiscard]] std::string why_gone(const ClientConnection& connection, CloseReason reason, int error) const noexcept;

  // What goes over them: client_exchange.cpp.
  [[nodiscard]] ClientConnection* free_connection() const noexcept;
  void write_queued() noexcept;
  static void write_controls(ClientConnection& connection) noexcept;
  void write(ClientCall& call, ClientConnection& connection) noexcept;
  void not_written(ClientCall& first, std::string_view limit) noexcept;
  void append(Buffer& out, ClientCall& call, bool with_members);
  void append_msgpack(Buffer& out, const ClientCall& call, const EnvelopeMembers& members);
  [[nodiscard]] static bool says_timeout(const ClientCall& call) noexcept;
  bool response(ClientConnection& connection, const Received& message);
  [[nodiscard]] ClientCall* find_call(const ClientConnection& connection, const Received& message) noexcept;
  void answer(Lock& lock, ClientCall& call, const Received& message);
  bool stray(ClientConnection& connection, const Received& message);
  bool retry(ClientCall& call, const Error& error);
  void delay(ClientCall& call, std::chrono::nanoseconds until) noexcept;
  // A method that nobody provides yet: client_waiting.cpp.
  [[nodiscard]] static bool waits_until(const ClientCall& call, std::chrono::nanoseconds time) noexcept;
  static void count_unknown(ClientConnection& connection, const Error& error) noexcept;
  bool wait_for_provider(ClientCall& call, const Error& error);
  bool told_undelivered(ClientConnection& connection, const Received& message);
  void settle_missing(const ClientConnection& connection, bool undelivered) noexcept;
  void take_out(ClientCall& call) noexcept;
  ClientCall& take_first(ClientConnection& connection) noexcept;

  // The first message: client_hello.cpp.
  [[nodiscard]] static std::string hello_of(const ClientOptions& options, std::string_view resume = {});
  void fail_all(ClientConnection& connection, const Error& why) noexcept;
  void say_hello(ClientConnection& connection);
  [[nodiscard]] bool hello_due(const ClientConnection& connection) const noexcept;
  bool greeted(Lock& lock, ClientConnection& connection, const Received& message);

  // What is declared to a broker: client_broker.cpp.
  [[nodiscard]] ClientConnection& declaring() const noexcept { return *connections_.front(); }
  void require_callable(std::string_view what) const;
  void declare(ClientConnection& connection);
  void declare_now(Lock& lock);
  void add_subscription(const std::shared_ptr<ClientSubscription>& subscription);
  void await_declared(Lock& lock);
  void tell_refused(Lock& lock, const std::vector<std::string>& names, const Error& refusal);
  bool declared(Lock& lock, ClientConnection& connection, const Received& message);
  bool event(ClientConnection& connection, const Received& message);
  void deliver_event(ClientSubscription& subscription, const Event& event);
  void lagged(const Received& message);

  // Connections that speak HTTP: client_posts.cpp.
  std::optional<HttpProtocolError> answered(ClientConnection& connection, const HttpAnswer& answer);
  void refused(ClientConnection& connection, const Received& message);
  [[nodiscard]] static HttpProtocolError protocol_error_of(const HttpAnswer& answer, ScanStatus read);
  [[nodiscard]] std::chrono::milliseconds time_to_tell(const ClientCall& first) const;
  void withdraw_posted(ClientCall& call) noexcept;
  [[nodiscard]] std::string cannot_offer(const Endpoint& endpoint) const;
  [[nodiscard]] bool offers_in_vain() const noexcept;

  const ClientOptions options_;
  const std::vector<Endpoint> endpoints_;
  const bool one_thread_;
  const bool
      http_;  // there is an endpoint where HTTP is spoken: there servers close between calls as a matter of course

  // The driver's.
  Registry registry_;
  Loop loop_;
  rpc::LoopContext loop_context_;
  framing::JsonTextSettings text_;
  const std::string hello_;  // the message rpc.hello of a session that begins; empty for none
  Host host_;
  std::unique_ptr<Reader> reader_;
  std::vector<ClientCall*> own_idle_;  // given back by the driver
  std::size_t delivered_ = 0;          // not yet taken off asynchronous_

  std::function<bool()> interrupted_;  // does not change once calls are made; may be empty

  // Everybody's.
  mutable std::mutex mutex_;
  std::atomic<const void*> driver_{nullptr};  // names the thread that drives
  bool driven_ = false;                       // a thread drives
  bool running_ = false;                      // run drives, or waits to
  bool exclusive_ = false;                    // running_ is set by `exclusively`, not by `run`
  bool closing_ = false;
  bool wake_asked_ = false;
  bool told_ = false;      // somebody who blocks, in this step
  bool given_up_ = false;  // a connection is, and is to be closed
  std::condition_variable background_ready_;
  std::condition_variable run_ready_;
  std::condition_variable close_ready_;
  std::thread background_;
  std::deque<ClientCall> calls_;
  std::atomic<bool> many_{false};  // of them: large buffers are not kept
  std::atomic<int> large_{0};      // of them: how many have kept such, or wanted to
  std::vector<ClientCall*> idle_;
  std::vector<Waiting*> waiting_;     // in the order in which they came
  std::vector<Waiting*> connecting_;  // those of them that wait for a connection, or for the answers to `declare`
  CallList queue_;                    // of a batch the first
  CallList delayed_;
  CallList ended_;  // asynchronous ones, not from an answer
  CallTable table_;
  std::size_t asynchronous_ = 0;                                         // calls that have not been delivered
  std::chrono::nanoseconds earliest_ = std::chrono::nanoseconds::max();  // deadline of an asynchronous call
  std::chrono::nanoseconds last_used_{0};
  std::uint64_t dropped_ = 0;
  std::string last_failure_;      // to connect, or to stay so; empty once connected
  std::optional<Error> refusal_;  // by which the server ends the connection; of the last attempt
  std::vector<std::unique_ptr<ClientConnection>> connections_;
  Declarations declarations_;
  std::vector<std::string> withdrawn_;  // methods provided once, and still in the registry
  std::condition_variable event_over_;  // a subscription's function has returned
  std::shared_ptr<const RefusedFunction> on_refused_;
  std::shared_ptr<const LaggedFunction> on_lagged_;
  std::shared_ptr<const ConnectionFunction> on_connection_;
  std::vector<ConnectionNews> news_;  // that have not been told
};

}  // namespace wirecall::session
