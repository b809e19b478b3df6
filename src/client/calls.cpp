// The part of ClientCore (client_core.hpp) that has to do with what goes over connections: which call is written on
// which of them, and what an answer means. How they are made, and their end, is in client_connect.cpp. All of it is the
// driver's; the mutex is held but where it says.
#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/decimal.hpp"
#include "client/core.hpp"
#include "client/stream.hpp"
#include "message/msgpack_reply.hpp"
#include "message/own_error.hpp"
#include "message/read_error.hpp"
#include "wirecall/client.hpp"

namespace wirecall::session {

using detail::Answer;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// With more output than this waiting on a connection, calls wait in the queue instead: there they can still be given
// up, or go over another connection.
constexpr std::size_t kOutputBytesMax = 256 * 1024;
// Before a call that was refused for overload is made again, where the server names no time.
constexpr milliseconds kRetryPause{20};

// What the data of an error says about making the call again.
struct RetryAdvice {
  bool safe = false;
  std::optional<milliseconds> after;
};

// The codes of the errors that wirecall itself makes. -32000 is what a handler has raised.
bool is_own(int code) noexcept {
  return code == static_cast<int>(ErrorCode::cancelled) ||
         (code <= static_cast<int>(ErrorCode::provider_lost) && code >= static_cast<int>(ErrorCode::draining));
}

// Data means this only where wirecall itself has made the error, which its code says together with `origin`: handlers
// have run by the time that they raise errors, whatever they write into them.
RetryAdvice advice_of(const Error& error) {
  RetryAdvice advice;
  if (!is_own(error.code()) || error.data().find("delivered") == std::string::npos) return advice;
  const std::unique_ptr<Reader> reader = json_codec().reader();
  Buffer padded{error.data()};
  std::string_view name;
  std::string_view words;
  std::uint64_t number = 0;
  bool own = false;
  bool delivered = true;
  reader->reset(padded.padded());
  if (!reader->begin_object()) return advice;
  while (reader->next_member(name)) {
    if (name == "origin" && reader->kind() == ValueKind::string) {
      own = reader->read_string(words) && (words == "local" || words == "remote" || words == "bus");
    } else if (name == "delivered" && reader->kind() == ValueKind::string) {
      delivered = !reader->read_string(words) || words != "no";
    } else if (name == "retry_after_ms" && reader->kind() == ValueKind::number) {
      if (!reader->read_uint(std::numeric_limits<std::uint32_t>::max(), number)) return advice;
      advice.after = milliseconds{number};
    } else {
      reader->skip();
    }
  }
  advice.safe = own && !delivered;
  return advice;
}

// All of it, or nothing.
void send(rpc::MessageSink& sink, std::string_view message) {
  Buffer& out = sink.open_message();
  try {
    out.append(message);
  } catch (...) {
    sink.discard_message();
    throw;
  }
  sink.close_message();
}

void append_member(Buffer& out, std::string_view name, std::optional<std::uint64_t> number) {
  if (!number) return;
  out.append(name);
  append_number(out, *number);
}

}  // namespace

/// The optional members of a request's envelope; an empty one is not written.
struct EnvelopeMembers {
  std::optional<std::uint64_t> id;
  std::optional<std::uint64_t> timeout_ms;
  std::optional<std::uint64_t> stream;
  std::optional<std::uint64_t> hops;
};

bool ClientConnection::response(const Received& message) { return core->response(*this, message); }

bool ClientConnection::takes_msgpack(const Received& message) {
  if (message.kind == MessageKind::notification) return message.method() == "rpc.item";
  const std::scoped_lock lock{core->mutex_};
  const ClientCall* const call = core->find_call(*this, message);
  return call != nullptr && !call->wants_json;
}

bool ClientConnection::notified(const Received& message) {
  const bool draining = message.method() == "rpc.draining";
  if (draining) {
    const std::scoped_lock lock{core->mutex_};
    core->leave(*this);
  }
  return core->item(*this, message) || core->event(*this, message) || draining;
}

bool ClientConnection::waiting() const {
  const std::scoped_lock lock{core->mutex_};
  return in_flight != 0;
}

// ---- writing ----

// The connection that has least to do and takes more.
ClientConnection* ClientCore::free_connection() const noexcept {
  ClientConnection* best = nullptr;
  for (const auto& connection : connections_) {
    if (!connection->up() || connection->draining || connection->awaiting_response || !connection->controls.empty())
      continue;
    if (connection->in_flight >= connection->in_flight_max) continue;
    if (connection->session->output_bytes() > kOutputBytesMax) continue;
    if (best == nullptr || connection->in_flight < best->in_flight) best = connection.get();
  }
  return best;
}

void ClientCore::write_queued() noexcept {
  for (const auto& connection : connections_) {
    if (!connection->controls.empty() && connection->up()) write_controls(*connection);
  }
  while (!queue_.empty()) {
    ClientConnection* connection = free_connection();
    if (connection == nullptr) return;
    write(queue_.pop_front(), *connection);
  }
}

// What there is no memory for waits for the next time.
void ClientCore::write_controls(ClientConnection& connection) noexcept {
  auto next = connection.controls.begin();
  try {
    for (; next != connection.controls.end(); ++next) send(*connection.sink, *next);
  } catch (const std::bad_alloc&) {
  }
  connection.controls.erase(connection.controls.begin(), next);
  connection.unattributed.extend(connection.written_bytes());
}

// Writes the call and those that go with it as one message.
void ClientCore::write(ClientCall& first, ClientConnection& connection) noexcept {
  rpc::MessageSink& session = *connection.sink;
  const bool http = connection.http != nullptr;
  if (http) [[unlikely]]
    connection.http->set_timeout(time_to_tell(first));
  const bool batch = first.next_in_batch != nullptr;
  if (batch) connection.batched = true;
  Buffer* opened = nullptr;
  try {
    Buffer& out = session.open_message();
    opened = &out;
    const std::size_t begin = out.size();
    std::size_t count = 0;
    const bool text = !uses_msgpack();
    for (const ClientCall* call = &first; call != nullptr; call = call->next_in_batch) ++count;
    if (batch && text) out.push_back('[');
    if (batch && !text) message::append_array_head(out, count);
    for (ClientCall* call = &first; call != nullptr; call = call->next_in_batch) {
      if (call != &first && text) out.push_back(',');
      append(out, *call, !http);
    }
    if (batch && text) out.push_back(']');
    if (out.size() - begin > connection.message_bytes_max || count > connection.batch_max) [[unlikely]] {
      session.discard_message();
      return not_written(first, count > connection.batch_max ? "batch" : "max_message_size");
    }
    session.close_compact_as(text ? MessageForm::json : MessageForm::msgpack);
  } catch (const std::bad_alloc&) {
    if (opened != nullptr) session.discard_message();
    return not_written(first, {});
  }
  if (http) [[unlikely]] {
    connection.awaiting_response = true;
    connection.unattributed.clear();
  }
  const std::uint64_t position = connection.written_bytes();
  std::uint32_t index = 0;
  for (ClientCall* call = &first; call != nullptr;) {
    ClientCall* next = std::exchange(call->next_in_batch, nullptr);
    call->stage = ClientCall::Stage::written;
    call->connection = &connection;
    call->position = position;
    call->index = index++;
    call->in_batch = batch;
    if (call->notification) {
      connection.unattributed.add(1, batch ? UnattributedErrors::kInBatch : position);
      connection.notifications_fresh = true;
      connection.notifications.push_back(*call);
    } else {
      connection.calls.push_back(*call);
      ++connection.in_flight;
    }
    call = next;
  }
}

// For the limit that it is over, or for want of memory. Some of the calls may be in the table.
void ClientCore::not_written(ClientCall& first, std::string_view limit) noexcept {
  for (ClientCall* call = &first; call != nullptr;) {
    ClientCall* next = std::exchange(call->next_in_batch, nullptr);
    if (table_.find(call->id) == call) table_.erase(*call);
    fail(*call, limit.empty() ? Error{ErrorCode::internal_error}
                              : message::make({.code = ErrorCode::too_large,
                                               .reason = "the request is larger than allowed",
                                               .delivered = "no",
                                               .limit = limit}));
    call = next;
  }
}

// Not what a server gives anyway. Of a stream, the time to say is one that it has been given as a whole.
bool ClientCore::says_timeout(const ClientCall& call) noexcept {
  return call.credit != 0 ? call.own_timeout : call.timeout != milliseconds{kCallTimeoutMs};
}

// `with_members`: of ours; else the head of a POST says what there is to say, and a stream comes all at once.
void ClientCore::append(Buffer& out, ClientCall& call, bool with_members) {
  EnvelopeMembers members;
  if (!call.notification) {
    table_.insert(call);
    members.id = call.id;
    if (with_members && says_timeout(call)) {
      // To the next item of a stream there may be less.
      const nanoseconds deadline = call.stream != nullptr ? call.stream->whole_until_ : call.deadline;
      const auto left = std::chrono::ceil<milliseconds>(deadline - loop_.now());
      members.timeout_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(left.count(), 1));
    }
    if (with_members && call.credit != 0) members.stream = call.credit;
  }
  if (call.hops != 0) members.hops = call.hops;
  if (uses_msgpack()) [[unlikely]]
    return append_msgpack(out, call, members);
  out.append(call.request.view());
  append_member(out, R"(,"id":)", members.id);
  append_member(out, R"(,"timeout_ms":)", members.timeout_ms);
  append_member(out, R"(,"stream":)", members.stream);
  append_member(out, R"(,"hops":)", members.hops);
  if (!call.to.empty()) {
    out.append(R"(,"to":)");
    out.append(call.to);
  }
  out.push_back('}');
}

void ClientCore::append_msgpack(Buffer& out, const ClientCall& call, const EnvelopeMembers& members) {
  struct Named {
    std::string_view name;
    const std::optional<std::uint64_t>& number;
  };
  const Named named[] = {
      {"id", members.id}, {"timeout_ms", members.timeout_ms}, {"stream", members.stream}, {"hops", members.hops}};
  std::size_t count = call.has_params ? 3 : 2;
  for (const Named& one : named) count += one.number ? 1 : 0;
  message::append_map_head(out, count + (call.to.empty() ? 0 : 1));
  out.append(call.request.view());
  for (const Named& one : named) {
    if (one.number) message::append_msgpack_member(out, one.name, *one.number);
  }
  if (call.to.empty()) return;
  Buffer to{call.to};
  out.append("\xA2to");
  if (!loop_context_.codecs.transcoder().append_value(to.padded(), out)) out.push_back('\xC0');
}

// ---- what comes back ----

void ClientCore::take_out(ClientCall& call) noexcept {
  table_.erase(call);
  call.connection->calls.remove(call);
  --call.connection->in_flight;
}

// Of what was sent there and has not ended; of one message the notifications come first.
ClientCall& ClientCore::take_first(ClientConnection& connection) noexcept {
  CallList& calls = connection.calls;
  CallList& notifications = connection.notifications;
  if (calls.empty() || (!notifications.empty() && notifications.front().position <= calls.front().position)) {
    return notifications.pop_front();
  }
  ClientCall& call = calls.front();
  take_out(call);
  return call;
}

// The call that a response is to; null for none.
ClientCall* ClientCore::find_call(const ClientConnection& connection, const Received& message) noexcept {
  const std::string_view id = message.id();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  ClientCall* const call = error == std::errc{} && end == id.data() + id.size() ? table_.find(number) : nullptr;
  return call != nullptr && call->connection == &connection ? call : nullptr;
}

// Called without the mutex.
bool ClientCore::response(ClientConnection& connection, const Received& message) {
  Lock lock{mutex_};
  ClientCall* const call = find_call(connection, message);
  if (call == nullptr) [[unlikely]]
    return told_undelivered(connection, message) || greeted(lock, connection, message) ||
           declared(lock, connection, message) || stray(connection, message);
  connection.useful = true;
  take_out(*call);
  if (connection.controls.empty()) connection.unattributed.answered(call->position);
  try {
    answer(lock, *call, message);
  } catch (const std::bad_alloc&) {
    fail(*call, Error{ErrorCode::internal_error});
    throw;  // which ends the connection
  }
  return true;
}

void ClientCore::answer(Lock& lock, ClientCall& call, const Received& message) {
  const bool malformed = message.fault != Fault::none;
  const bool refused = !malformed && message.has(Member::error);
  if (malformed || refused) [[unlikely]] {
    Error why = malformed ? message::malformed_response() : message::read_error(*reader_, message[Member::error]);
    if (refused) count_unknown(*call.connection, why);
    if (refused && (wait_for_provider(call, why) || retry(call, why))) return;
    // Where the provider has gone that the call was refused for, that is what has happened.
    const bool gone = call.lost_provider && why.code() == static_cast<int>(ErrorCode::method_not_found);
    call.error = gone ? std::exchange(call.lost_provider, std::nullopt) : std::move(why);
  }
  const std::string_view result = call.error ? std::string_view{} : message[Member::result];
  if (!call.asynchronous || call.stream != nullptr) {
    call.response.clear();
    call.response_msgpack = message.msgpack;
    if (!malformed) call.response.append(call.keep_response ? message.text : result);
    call.result_size = result.size();
    call.result_at =
        call.keep_response && !call.error ? static_cast<std::size_t>(result.data() - message.text.data()) : 0;
    return finish(call);
  }
  call.stage = ClientCall::Stage::idle;
  lock.unlock();
  if (call.error) [[unlikely]] {
    Answer answer{std::move(*call.error)};
    deliver(call, answer);
  } else {
    Answer answer{message.msgpack ? *loop_context_.codecs.msgpack().readers.reader : *reader_, result};
    deliver(call, answer);
  }
}

// A response that no call waits for, or that does not say for which it is.
bool ClientCore::stray(ClientConnection& connection, const Received& message) {
  if (message.has(Member::error) && message.id() == "null" && message.fault == Fault::none) {
    // The server could not make out the id of what it refuses, but where there is only one message that it can be, it
    // is that. Where there may be others, nobody is blamed: whose call it was, has its answer or its timeout.
    const CallList& sent = connection.calls;
    if (connection.unattributed.refused()) {
      // One refusal less that may still come for nobody.
    } else if (hello_due(connection)) {
      connection.hello_until = nanoseconds{0};  // it may have been its answer, and there is only one
      announce(connection);
    } else if (!sent.empty() && sent.front().position == sent.back().position) {
      while (!sent.empty()) {
        Error refusal = message::read_error(*reader_, message[Member::error]);  // first, since it needs memory
        ClientCall& call = sent.front();
        take_out(call);
        fail(call, std::move(refusal));
      }
      return true;
    }
  }
  ++dropped_;
  // What has no id and no sense may have been meant for anybody.
  return message.fault == Fault::none || message.has(Member::id) || connection.in_flight == 0;
}

// Whether a refused call is made once more: it has not been begun, says the server, and there is time.
bool ClientCore::retry(ClientCall& call, const Error& error) {
  const RetryAdvice advice = advice_of(error);
  if (error.code() == static_cast<int>(ErrorCode::draining)) leave(*call.connection);
  // Who may not do it now may not do it a moment later.
  const bool for_good = error.code() == static_cast<int>(ErrorCode::unauthenticated) ||
                        error.code() == static_cast<int>(ErrorCode::forbidden);
  const nanoseconds now = loop_.now();
  nanoseconds after = advice.after.value_or(milliseconds{0});
  const bool lost = error.code() == static_cast<int>(ErrorCode::provider_lost);
  const bool waits = lost && waits_until(call, now + ClientCall::pause_of(call.attempts));
  const bool again = !call.retried || waits;
  if (!advice.safe || !again || for_good) return false;
  if ((lost || error.code() == static_cast<int>(ErrorCode::limit_exceeded)) && !advice.after)
    after = waits ? ClientCall::pause_of(call.attempts < 4 ? call.attempts++ : call.attempts) : kRetryPause;
  if (now + after >= call.deadline) return false;
  if (lost) call.lost_provider = error;
  call.retried = true;
  if (after == nanoseconds{0}) {
    call.behind_another = false;
    call.stage = ClientCall::Stage::queued;
    queue_.push_back(call);
  } else {
    delay(call, now + after);
  }
  return true;
}

// It is in no list.
void ClientCore::delay(ClientCall& call, nanoseconds until) noexcept {
  call.behind_another = false;
  call.not_before = until;
  call.stage = ClientCall::Stage::delayed;
  delayed_.push_back(call);
}

}  // namespace wirecall::session
