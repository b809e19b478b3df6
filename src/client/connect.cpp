// The part of ClientCore (client_core.hpp) that makes connections and sees them end: which are wanted, when the next
// attempt is due, which are left, and what becomes of calls when one ends. What goes over them is in
// client_exchange.cpp. All of it is the driver's; the mutex is held but where it says.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "client/core.hpp"
#include "framing/length_prefix.hpp"
#include "transport/endpoint_socket.hpp"
#include "transport/setup.hpp"
#include "transport/socket.hpp"
#include "wirecall/client.hpp"

namespace wirecall::session {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// ---- connecting ----

bool ClientCore::any_up() const noexcept {
  return std::ranges::any_of(connections_, [](const auto& connection) { return connection->up(); });
}

// What is declared is so on the first connection.
bool ClientCore::connected_as_wanted() const noexcept {
  return declares() ? declaring().up() && declaring().http == nullptr : any_up();
}

// One is wanted where there is none, and a further one where those there are have something to do.
bool ClientCore::wanted(const ClientConnection& connection) const noexcept {
  if (declares()) {
    if (&connection == &declaring()) return true;
    if (queue_.empty()) return false;
  }
  if (queue_.empty() && connecting_.empty() && !provides()) return false;
  for (const auto& other : connections_) {
    if (other.get() == &connection) continue;
    if (other->dialer.dialing()) return false;
    if (other->up() && !other->draining && !other->awaiting_response && (other->in_flight == 0 || queue_.empty()))
      return false;
  }
  return true;
}

// Whether a thread that blocks for at most `wait_max` makes the connection itself. An attempt has its own time, and so
// does not end with the time of a call that happens to be the one which drives.
bool ClientCore::may_dial_here(const Endpoint& endpoint, nanoseconds wait_max) const noexcept {
  return !background_needed() && !any_up() && !transport::resolves_a_name(endpoint) &&
         (wait_max < nanoseconds{0} || wait_max >= milliseconds{options_.connect_timeout_ms});
}

void ClientCore::maintain_connections(Lock& lock, nanoseconds& wait_max, bool may_block) {
  const auto look_after = [&wait_max](nanoseconds time) {
    wait_max = wait_max < nanoseconds{0} ? time : std::min(wait_max, time);
  };
  if (!delayed_.empty()) [[unlikely]] {
    const nanoseconds now = loop_.now();
    for (CallList delayed = std::exchange(delayed_, {}); !delayed.empty();) {
      ClientCall& call = delayed.pop_front();
      if (call.not_before > now) {
        look_after(call.not_before - now);
        delayed_.push_back(call);
        continue;
      }
      if (call.missing) {
        call.stage = ClientCall::Stage::idle;
        fail(call, *std::exchange(call.missing, std::nullopt));
        continue;
      }
      call.stage = ClientCall::Stage::queued;
      queue_.push_back(call);
    }
  }
  for (const auto& connection : connections_) {
    if (connection->session != nullptr) continue;
    Dialer& dialer = connection->dialer;
    std::optional<Dialer::Result> result;
    if (dialer.dialing()) {
      const nanoseconds now = loop_.now();
      result = dialer.poll(now);
      if (!result) look_after(dialer.given_up_at() - now);
    } else if (wanted(*connection)) {
      const nanoseconds now = loop_.now();
      if (now < dialer.due()) {
        look_after(dialer.due() - now);
      } else if (std::string vain = cannot_offer(dialer.endpoint()); !vain.empty()) {
        result = Dialer::Result{.failure = std::move(vain)};
      } else if (one_thread_ || (may_block && may_dial_here(dialer.endpoint(), wait_max))) {
        if (wait_max == nanoseconds{0}) continue;
        milliseconds timeout{options_.connect_timeout_ms};
        if (wait_max >= nanoseconds{0}) timeout = std::min(timeout, std::chrono::ceil<milliseconds>(wait_max));
        const Endpoint endpoint = dialer.endpoint();
        {
          const Unlocked unlocked{lock};
          result = Dialer::attempt(dialer.function(), endpoint, timeout);
        }
        wait_max = nanoseconds{0};  // time has passed, and what is to be done next is seen in the next step
      } else {
        dialer.start([this] { loop_.wake(); }, now);
        look_after(dialer.given_up_at() - now);
      }
    }
    if (!result) continue;
    if (result->descriptor >= 0) {
      connected(*connection, result->descriptor);
    } else {
      not_connected(*connection, std::move(result->failure));
    }
    wait_max = nanoseconds{0};  // whoever drives may have waited for just that
  }
}

void ClientCore::connected(ClientConnection& connection, int descriptor) {
  transport::Socket socket{descriptor};
  connection.over = connection.draining = connection.useful = connection.awaiting_response = false;
  connection.unattributed.clear();
  settle_missing(connection, false);
  connection.unknown_methods = 0;
  connection.asks_undelivered = connection.batched = false;
  connection.hello_until = nanoseconds{0};
  connection.since = loop_.now();
  connection.controls.clear();
  connection.message_bytes_max = options_.limits.max_message_size;
  connection.in_flight_max = options_.limits.in_flight;
  connection.batch_max = options_.limits.batch;
  auto socket_stream = std::make_unique<transport::SocketStream>(loop_, socket.get());
  static_cast<void>(socket.release());
  auto stream = std::make_unique<CountedStream>(std::move(socket_stream));
  connection.stream = stream.get();
  if (const Endpoint& endpoint = connection.dialer.endpoint(); endpoint.kind() == EndpointKind::http) {
    auto http = std::make_unique<ClientHttp>(host_, std::move(stream), endpoint, options_, connection);
    connection.sink = connection.http = http.get();
    connection.session = std::move(http);
  } else {
    const bool msgpack = options_.encoding == Encoding::msgpack;
    std::unique_ptr<framing::Framing> framing;
    if (msgpack) {
      framing = std::make_unique<framing::LengthPrefix>(options_.limits);
    } else {
      framing = std::make_unique<framing::JsonText>(text_);
    }
    auto session = std::make_unique<Session>(host_, std::move(stream), std::move(framing), &connection);
    if (msgpack) session->speak_msgpack();
    connection.sink = session.get();
    connection.http = nullptr;
    say_hello(connection);
    declare(connection);
    connection.session = std::move(session);
  }
  last_failure_.clear();
  connection.announced = false;
  if (connection.hello_until == nanoseconds{0}) announce(connection);
  tell_connecting();
}

// Whoever waits for any connection: there is one, or there is none.
void ClientCore::tell_connecting() noexcept {
  for (Waiting* waiting : std::exchange(connecting_, {})) {
    waiting->unfinished = 0;
    waiting->ready.notify_one();
  }
}

void ClientCore::not_connected(ClientConnection& connection, std::string failure) {
  last_failure_ = std::move(failure);
  connection.dialer.failed(loop_.now());
  if (connection.dialer.rounds() == 0) return;
  tell_connecting();
  const std::size_t attempts = offers_in_vain() ? 1 : options_.connect_attempts;
  if (attempts == 0 || connection.dialer.rounds() < attempts || any_up()) return;
  while (!queue_.empty()) {
    ClientCall& call = queue_.front();
    withdraw(call);
    lose(call, last_failure_, false);
  }
}

// ---- leaving, and the end ----

// Its server takes no more calls, on none of the connections to it.
void ClientCore::leave(const ClientConnection& connection) noexcept {
  if (connection.draining) return;
  const Endpoint& endpoint = connection.dialer.endpoint();
  for (const auto& other : connections_) {
    if (other->up() && other->dialer.endpoint() == endpoint) other->draining = true;
  }
}

// One that has served nothing, and not for long, is no better than none: the next attempt waits as after a failure.
void ClientCore::end_connection(ClientConnection& connection, std::string_view cause) noexcept {
  const bool useful = connection.useful || loop_.now() - connection.since >= milliseconds{options_.reconnect_max_ms};
  connection.over = true;
  if (std::exchange(connection.announced, false)) note_connection(false, connection, cause);
  if (&connection == &declaring() && declares()) {
    declarations_.forget_messages();
    tell_connecting();
  }
  if (connection.draining) {
    connection.dialer.left(loop_.now(), useful);
  } else {
    connection.dialer.ended(loop_.now(), useful);
  }
}

// It takes no more calls, since its server is leaving, and owes us nothing: the next one is made instead, elsewhere if
// there is another endpoint.
bool ClientCore::done_with(const ClientConnection& connection) noexcept {
  return connection.draining && !connection.over && !connection.awaits() && connection.controls.empty() &&
         !connection.session->busy() && !connection.session->has_output();
}

void ClientCore::after_turn(Lock& lock) {
  bool closed = false;
  for (const auto& connection : connections_) {
    if (connection->session == nullptr) continue;
    const std::uint64_t taken = connection->taken_bytes();
    while (connection->http == nullptr && !connection->notifications.empty() &&
           connection->notifications.front().position <= taken) {
      finish(connection->notifications.pop_front());
    }
    if (done_with(*connection)) end_connection(*connection, "its server takes no more calls");
    if (!connection->over) continue;
    connection->session.reset();
    closed = true;
  }
  if (!closed) return;
  {
    const Unlocked unlocked{lock};
    loop_.turn(nanoseconds{0});  // which closes the descriptor
  }
  tell_news(lock);
}

// Puts a call that is to be sent again at the end of the list; what was one message is one again, in its order.
void ClientCore::again_as_it_was(CallList& again, ClientCall& call) noexcept {
  call.behind_another = false;
  if (again.empty() || again.back().position != call.position) return again.push_back(call);
  ClientCall& first = again.back();
  if (call.index < first.index) {
    again.replace(first, call);
    call.next_in_batch = &first;
    first.behind_another = true;
    return;
  }
  call.behind_another = true;
  ClientCall* before = &first;
  while (before->next_in_batch != nullptr && before->next_in_batch->index < call.index) before = before->next_in_batch;
  call.next_in_batch = std::exchange(before->next_in_batch, &call);
}

// Called without the mutex, from within the turn. Nothing here may fail: each call has to end, or to be made again.
void ClientCore::connection_ended(Connection& ended, CloseReason reason, int error) noexcept {
  const Lock lock{mutex_};
  const auto found = std::ranges::find_if(connections_, [&ended](const auto& c) { return c->session.get() == &ended; });
  ClientConnection& connection = **found;
  if (connection.over) return;  // given up meanwhile
  const std::uint64_t handed = connection.stream->bytes();
  const std::uint64_t taken = connection.taken_bytes();
  std::string gone = why_gone(connection, reason, error);
  end_connection(connection, gone);
  connection.controls.clear();
  // What the system has seen any byte of may have been delivered, and is never sent again. The rest goes back to where
  // it came from, in its order.
  CallList again;
  while (connection.awaits()) {
    ClientCall& call = take_first(connection);
    if (call.position > handed) {
      call.stage = ClientCall::Stage::queued;
      again_as_it_was(again, call);
    } else if (call.notification && connection.http == nullptr && call.position <= taken) {
      finish(call);
    } else {
      lose(call, gone, true);
    }
  }
  while (!queue_.empty()) again.push_back(queue_.pop_front());
  queue_ = again;
  if (!connection.useful) last_failure_ = std::move(gone);
}

std::string ClientCore::why_gone(const ClientConnection& connection, CloseReason reason, int error) const noexcept try {
  std::string why = "the connection to " + connection.dialer.endpoint().uri() + " is gone: ";
  if (connection.http != nullptr && !connection.http->failure().empty()) return why + connection.http->failure();
  switch (reason) {
    case CloseReason::finished:
      return why + "the server closed it";
    case CloseReason::lost:
      return why + std::strerror(error);
    case CloseReason::slow:
      return why + "the server does not read what it is sent";
    case CloseReason::unreadable:
      return why + "the server sent what is no JSON-RPC; check that one listens there";
    case CloseReason::too_large:
      return why + "the server sent a message of more than " + std::to_string(options_.limits.max_message_size) +
             " bytes; raise ClientOptions.limits.max_message_size";
    case CloseReason::too_deep:
      return why + "the server sent a message that nests deeper than " + std::to_string(options_.limits.depth) +
             " levels; raise ClientOptions.limits.depth";
    case CloseReason::silent:
      return why + "the server did not answer in time";
    case CloseReason::heaviest:
    case CloseReason::refused:
      return why + "it was refused";
  }
  return why;
} catch (const std::bad_alloc&) {
  return "no memory";  // short, so that it needs none
}

}  // namespace wirecall::session
