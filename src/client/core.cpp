// See core.hpp.
#include "client/core.hpp"

#include "wirecall/client.hpp"

namespace wirecall::net {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// A connection that was not looked at for so long may be gone without our having noticed.
constexpr milliseconds kStale{100};
// How often a notification that the system does not take at once looks whether it has been taken.
constexpr milliseconds kSendLook{1};

// With a log that takes no more than it is to be told.
static ClientOptions checked(ClientOptions options) {
  require_valid(options);
  options.log = options.log.at_least(options.log_level);
  return options;
}

ClientShared::ClientShared(std::vector<Endpoint> at, ClientOptions with, std::unique_ptr<runtime::Backend> backend,
                           ConnectionOwner& owner)
    : options(checked(std::move(with))),
      form(encoding().is_native ? MessageForm::native(options.encoding) : MessageForm::text(options.encoding)),
      endpoints(std::move(at)),
      loop(std::move(backend)),
      loop_context(json_codec(), &loop, &options.log),
      text(options.limits, options.delimiter),
      host{.loop = loop, .registry = registry, .limits = options.limits, .loop_context = loop_context, .owner = owner} {
  loop.spin_for(std::chrono::microseconds{options.spin_us});
  loop_context.tasks.set_executor(loop.inbox());
  loop_context.services.told_of_callers = true;
  if (options.websocket_deflate) host.deflate = &deflate;
  if (endpoints.empty()) throw std::invalid_argument("a client needs at least one URI to connect to");
}

ClientCore::ClientCore(std::vector<Endpoint> endpoints, ClientOptions options, ClientSeams seams)
    : shared_(std::move(endpoints), std::move(options), std::move(seams.backend), *this),
      http_(std::ranges::any_of(shared_.endpoints, &Endpoint::by_http)),
      driver_(*this, shared_.loop, seams.one_thread),
      pool_(driver_, shared_.codec()),
      connections_(shared_, driver_, *this, router_, seams.dial, seams.one_thread, seams.seed),
      calls_(shared_, driver_, pool_, connections_),
      broker_(shared_, driver_, connections_, calls_),
      writer_(shared_, connections_, calls_),
      router_(shared_, driver_, connections_, calls_, broker_) {
  if (shared_.options.blocking_threads != 0 && !seams.one_thread)
    shared_.loop_context.services.blocking_pool = &blocking_handlers_;
}

ClientCore::~ClientCore() {
  shared_.loop_context.stop_requests.finish();
  for (const auto& connection : connections_) connection->session.reset();
  blocking_handlers_.stop();  // of a client that was closed within a callback
}

// Handlers that block may call this client until they end.
void ClientCore::close() noexcept {
  driver_.close();
  if (!blocking_handlers_.have_run() || driver_.on_driver()) return;
  for (const auto& connection : connections_) {
    if (connection->session != nullptr) connection->session->stop_calls();
  }
  shared_.loop_context.stop_requests.finish();
  blocking_handlers_.stop();
}

void ClientCore::BlockingHandlers::run(Work work) {
  const std::shared_ptr<ClientCore> core = core_.weak_from_this().lock();
  if (core == nullptr) return;  // the client ends
  if (threads_ == nullptr) threads_ = std::make_unique<runtime::ThreadPool>(core_.shared_.options.blocking_threads);
  threads_->run([core, work = std::move(work)]() mutable {
    core->executor()->post_owed(work());
    core->driver_.run_posted();
  });
}

// ---- the ways to call ----

void ClientCore::call_and_wait(std::span<ClientCall* const> calls) {
  if (calls.empty()) return;
  if (driver_.on_driver()) {
    for (ClientCall* call : calls) {
      if (call->error) continue;
      call->error.emplace(ErrorCode::internal_error,
                          "a blocking call inside a callback, handler or coroutine of the same client would wait for "
                          "itself: co_await it, or give it a callback");
      call->error_class = detail::ErrorClass::local_error;
    }
    return;
  }
  Waiting& waiting = calls[0]->own_waiting;
  Lock lock = driver_.lock();
  waiting.unfinished = calls.size();
  for (ClientCall* call : calls) {
    call->asynchronous = false;
    call->waiting = &waiting;
  }
  calls_.submit(calls);
  try {
    for (nanoseconds now = calls[0]->begun; waiting.unfinished != 0;) {
      // Each has its own time. When it is over for one, the others are still waited for.
      nanoseconds due = nanoseconds::max();
      for (const ClientCall* call : calls) {
        if (call->state != CallState::ended) due = std::min(due, call->deadline);
      }
      const bool goes_on = driver_.wait(lock, waiting, now, due);
      if (waiting.unfinished == 0) break;
      if (!goes_on) {
        for (ClientCall* call : calls) {
          if (call->state != CallState::ended) calls_.stop(*call);
        }
        break;
      }
      now = std::max(shared_.loop.now(), due);
      for (ClientCall* call : calls) {
        if (call->state != CallState::ended && call->deadline <= now) calls_.time_out(*call);
      }
    }
  } catch (...) {
    // What has failed need not have ended them, but they are their maker's from here on.
    for (ClientCall* call : calls) {
      calls_.withdraw(*call);
      call->enter(CallState::idle);
    }
    throw;
  }
  for (ClientCall* call : calls) call->enter(CallState::idle);
  driver_.send_controls(lock);
}

void ClientCore::start(std::span<ClientCall* const> calls) {
  Lock lock = driver_.lock();
  driver_.want_background();
  for (ClientCall* call : calls) call->asynchronous = true;
  calls_.submit(calls);
  driver_.asynchronous_begun(lock);
}

void ClientCore::connect() {
  if (driver_.on_driver()) throw std::logic_error("Client::connect inside a callback would wait for itself");
  Lock lock = driver_.lock();
  driver_.await_change(lock);
  if (background_need() != BackgroundNeed::none) driver_.start_background();
  connections_.connect(lock);
  if (declares()) broker_.await_declared(lock);
}

// ---- what is driven ----

BackgroundNeed ClientCore::background_need() const noexcept {
  if (broker_.declares()) return BackgroundNeed::always;
  return shared_.provides() ? BackgroundNeed::once_started : BackgroundNeed::none;
}

// Should the server have closed a connection while nobody drove, calls had better wait for the next one. Then whatever
// was known before may have changed.
bool ClientCore::catch_up(Lock& lock) {
  const nanoseconds now = shared_.loop.recently();
  const bool stale = now - std::exchange(last_used_, now) > kStale || http_;
  if (!stale || connections_.free_connection() == nullptr) [[likely]]
    return false;  // none would be written to
  {
    const Unlocked unlocked{lock};
    shared_.loop.turn(nanoseconds{0});
  }
  driver_.settle();
  after_turn(lock);
  return true;
}

void ClientCore::step(Lock& lock, nanoseconds wait_max, bool may_block) {
  bool turned = calls_.queued() && !(may_block && driver_.others_drive()) && catch_up(lock);
  driver_.begin_step();  // a turn may have taken note of a wake: what that was for is looked at below
  pool_.share();
  calls_.expire(wait_max);
  if (calls_.any_ended() && !(may_block && driver_.background_needed())) {
    calls_.deliver_ended(lock);
    wait_max = nanoseconds{0};  // whoever drives may have waited for just that
  }
  if (connections_.take_given_up()) {
    after_turn(lock);
    driver_.wakes_seen();
    turned = true;
  }
  calls_.release_delayed(wait_max);
  connections_.maintain(lock, wait_max, may_block);
  if (connections_.has_news()) connections_.tell_news(lock);
  if (may_block && driver_.others_drive()) return;  // they have come meanwhile, and call back on their own threads
  for (const auto& connection : connections_) {
    const bool expected = connection->awaits() || (declares() && connection.get() == &connections_.first());
    if (!connection->has_lost_server(expected, shared_.loop.now(), wait_max)) continue;
    lose(*connection, "the connection to " + connection->endpoint().uri() +
                          " is gone: the server has said nothing for " +
                          std::to_string(connection->keepalive / std::chrono::milliseconds{1}) + " ms");
    wait_max = nanoseconds{0};
  }
  writer_.write();
  writer_.resend(wait_max);
  for (const auto& connection : connections_) {
    // Nor does anything when one that is being left has sent its last answer, with which it goes.
    if (connection->state() == ConnectionState::draining && !connection->awaits()) shorten(wait_max, kSendLook);
    if (connection->notifications.empty() || connection->http != nullptr) continue;
    // Nothing wakes us when the system has taken them: so that is looked for, at once and then now and again.
    shorten(wait_max, std::exchange(connection->notifications_fresh, false) ? nanoseconds{0} : kSendLook);
  }
  // Whoever drives may have waited for just what has ended meanwhile.
  if (turned || driver_.told() || calls_.any_ended()) wait_max = nanoseconds{0};
  if (controls_wait()) shorten(wait_max, kMemoryPause);
  turn(lock, wait_max);
  driver_.settle();
  after_turn(lock);
}

void ClientCore::turn(Lock& lock, nanoseconds wait_max) {
  const Unlocked unlocked{lock};
  for (const auto& connection : connections_) {
    if (connection->session != nullptr) connection->session->flush();
  }
  shared_.loop.turn(wait_max);
}

void ClientCore::after_turn(Lock& lock) {
  for (const auto& connection : connections_) {
    if (!connection->notifications.empty() && connection->http == nullptr && connection->session != nullptr)
      calls_.finish_taken(*connection);
  }
  connections_.reap(lock);
}

void ClientCore::end_all(Lock& lock) noexcept {
  calls_.lose_all();
  // The servers are told what nobody waits for any more, as far as the system takes it at once: to them the end of the
  // connection alone does not say so.
  bool told = controls_wait();
  if (told) writer_.write_controls();
  for (const auto& connection : connections_) {
    if (connection->is_open() && connection->session->part()) told = true;
  }
  try {
    if (told) turn(lock, nanoseconds{0});
    say_ends(lock);
  } catch (const std::bad_alloc&) {
    // Then they make answers that are not read.
  }
  calls_.deliver_ended(lock);  // last, since others may begin calls as long as the mutex is let go now and then
}

// Where a connection is closed with input that has not been read, the system resets it, and what it has not sent by
// then is lost. A server that has been sent notifications alone may have TLS's tickets on the way, or WebSocket's word
// for the end: so its end is waited for, but not long. It comes at once where no handler of theirs still runs.
void ClientCore::say_ends(Lock& lock) {
  constexpr nanoseconds kPatience = std::chrono::milliseconds{200};
  const auto awaited = [](const auto& connection) {
    const Endpoint& endpoint = connection->endpoint();
    return connection->is_open() && connection->ends_with_notification &&
           (endpoint.encrypted() || endpoint.by_websocket());
  };
  bool told = false;
  for (const auto& connection : connections_) {
    if (connection->is_open() && connection->session->end_encryption()) told = true;
  }
  if (told) turn(lock, nanoseconds{0});
  const nanoseconds until = shared_.loop.now() + kPatience;
  for (nanoseconds now = shared_.loop.now(); now < until && std::ranges::any_of(connections_, awaited);
       now = shared_.loop.now())
    turn(lock, until - now);
}

// ---- connections ----

void ClientCore::greet(ClientConnection& connection) {
  calls_.settle_missing(connection, false);
  broker_.greet(connection);
}

// Nothing here may fail: each call has to end, or to be made again.
void ClientCore::connection_ended(Connection& ended, CloseReason reason, int error) noexcept {
  const Lock lock = driver_.lock();
  ClientConnection& connection = connections_.of(ended);
  if (connection.state() == ConnectionState::agreeing) return connections_.not_agreed(connection, reason, error);
  if (!connection.is_open()) return;  // given up meanwhile
  lose(connection, connections_.why_gone(connection, reason, error));
}

void ClientCore::lose(ClientConnection& connection, std::string gone) noexcept {
  const std::uint64_t taken = connection.taken_bytes();
  connections_.end(connection, gone);
  connection.controls.clear();
  calls_.connection_ended(connection, taken, gone);
  if (!connection.useful) connections_.set_last_failure(std::move(gone));
}

void ClientCore::connection_promoted(Connection& connection, std::unique_ptr<Connection> promoted) {
  const Lock lock = driver_.lock();
  connections_.agreed(connections_.of(connection), std::move(promoted));
}

}  // namespace wirecall::net
