// See message_router.hpp.
#include "client/message_router.hpp"

#include "base/printable.hpp"
#include "client/input.hpp"
#include "client/stream.hpp"
#include "message/own_error.hpp"
#include "message/read_error.hpp"
#include "wirecall/detail/unpack.hpp"

namespace wirecall::net {

using detail::Answer;
using detail::ErrorClass;

static ErrorCode code_of(std::uint16_t status) noexcept {
  switch (status) {
    case 401:
    case 407: return ErrorCode::unauthenticated;
    case 403: return ErrorCode::forbidden;
    case 408:
    case 504: return ErrorCode::timeout;
    case 413: return ErrorCode::too_large;
    case 429:
    case 503: return ErrorCode::limit_exceeded;
    default: return ErrorCode::provider_lost;
  }
}

// Whether the status says that the request was not carried out.
static bool refuses(std::uint16_t status) noexcept { return status < 500 || status == 501 || status == 505; }

// Whether it is an error as JSON-RPC has it. Others answer with errors of their own making, {"error":"no"} among them.
static bool is_error(const Received& message) noexcept {
  return message.kind == MessageKind::response && message.fault == Fault::none && message.has(Member::error) &&
         message[Member::error].starts_with('{');
}

// What stands for a response by which HTTP itself has answered: no JSON-RPC error came with it.
Error error_of(const HttpAnswer& answer) {
  const std::string status = "HTTP status " + std::to_string(answer.status);
  std::string text = "the server answered with " + status;
  if (answer.status < 400) {
    text = "the server redirects to ";
    text += answer.location.empty() ? "another endpoint" : printable(answer.location);
    text += " (" + status + "), where calls do not follow: name that endpoint if it is the right one";
  } else if (const std::string_view reason = reason_of(answer.status); reason != "Unknown") {
    text.append(" (").append(reason).append(")");
  }
  const Error own = message::make(
      {.code = code_of(answer.status), .reason = status, .delivered = refuses(answer.status) ? "no" : "maybe"});
  return {own.code(), std::move(text), own.data()};
}

// A response that should have answered calls, and has not. It ends the connection: the answer may have been another's.
HttpProtocolError protocol_error_of(const HttpAnswer& answer, ScanStatus read) {
  if (read == ScanStatus::too_deep) return {.end = CloseReason::too_deep, .cause = {}};
  std::string_view cause = "the server's response is no JSON-RPC; check the path";
  if (answer.encoded) {
    cause = "the server's response has a Content-Encoding that was not asked for";
  } else if (answer.body.empty()) {
    cause = "the server's response is empty, as for a notification";
  } else if (read == ScanStatus::complete) {
    cause = "the server's response does not answer what it was asked";
  }
  return {.end = CloseReason::unreadable, .cause = cause};
}

std::uint64_t MessageRouter::dropped() const {
  const Lock lock = driver_.lock();
  return dropped_;
}

bool MessageRouter::takes_encoded(const ClientConnection& connection, const Received& message) const {
  if (message.kind == MessageKind::notification) return message.method() == "rpc.item";
  const Lock lock = driver_.lock();
  const ClientCall* const call = find_call(connection, message);
  return call != nullptr && !call->wants_json;
}

bool MessageRouter::waiting(const ClientConnection& connection) const {
  const Lock lock = driver_.lock();
  return connection.in_flight != 0;
}

// ---- responses ----

// The call that a response is to; null for none.
ClientCall* MessageRouter::find_call(const ClientConnection& connection, const Received& message) const noexcept {
  return find_call(connection, ClientCall::read_id(message.id()), message.id().starts_with('"'));
}

ClientCall* MessageRouter::find_call(const ClientConnection& connection, std::optional<std::uint64_t> id,
                                     bool is_string) const noexcept {
  ClientCall* const call = id ? calls_.find(*id) : nullptr;
  const bool is_this = call != nullptr && call->connection == &connection && is_string == (call->input != nullptr);
  return is_this ? call : nullptr;
}

bool MessageRouter::response(ClientConnection& connection, const Received& message) {
  Lock lock = driver_.lock();
  ClientCall* const call = find_call(connection, message);
  if (call == nullptr) [[unlikely]]
    return told_undelivered(connection, message) || broker_.greeted(lock, connection, message) ||
           broker_.declared(lock, connection, message) || stray(connection, message);
  connection.useful = true;
  calls_.take_out(*call);
  if (connection.controls.empty()) connection.unattributed.answered(call->position);
  try {
    answer(lock, *call, message);
  } catch (const std::bad_alloc&) {
    calls_.fail(*call, Error{ErrorCode::internal_error});
    throw;  // which ends the connection
  }
  return true;
}

void MessageRouter::answer(Lock& lock, ClientCall& call, const Received& message) {
  const bool malformed = message.fault != Fault::none;
  const bool refused = !malformed && message.has(Member::error);
  if (malformed || refused) [[unlikely]] {
    Error why =
        malformed ? message::malformed_response() : message::read_error(*shared_.reader, message[Member::error]);
    if (!call.layout.empty()) {
      if (std::optional<Error> both = detail::with_own_layout(why, call.layout)) why = *std::move(both);
    }
    if (refused) call.connection->missing.count(why);
    if (refused && (calls_.wait_for_provider(call, why) || calls_.retry(call, why))) return;
    // Where the provider has gone that the call was refused for, that is what has happened.
    const bool gone = call.lost_provider && has_code(why, ErrorCode::method_not_found);
    call.error = gone ? std::exchange(call.lost_provider, std::nullopt) : std::move(why);
  }
  const std::string_view result = call.error ? std::string_view{} : message[Member::result];
  if (!call.asynchronous || call.stream != nullptr) {
    call.response.clear();
    call.response_encoding = message.encoding;
    if (!malformed) call.response.append(call.keep_response ? message.text : result);
    call.result_size = result.size();
    call.result_at =
        call.keep_response && !call.error ? static_cast<std::size_t>(result.data() - message.text.data()) : 0;
    return calls_.finish(call);
  }
  call.enter(CallState::idle);
  lock.unlock();
  if (call.error) [[unlikely]] {
    Answer answer{std::move(*call.error)};
    calls_.deliver(call, answer);
  } else {
    Answer answer{
        message.is_json() ? *shared_.reader : *shared_.loop_context.codecs.readers_of(message.encoding).reader, result};
    calls_.deliver(call, answer);
  }
}

// Whether it is the answer to rpc.undelivered. Other servers know no such method, and have said nothing.
bool MessageRouter::told_undelivered(ClientConnection& connection, const Received& message) {
  const bool is_answer = message.id() == MissingMethods::kId;
  if (!is_answer && message.has(Member::error) && message.fault == Fault::none)
    connection.missing.count(message::read_error(*shared_.reader, message[Member::error]));
  if (!is_answer || !connection.missing.asked()) return false;
  const std::string_view count = message.has(Member::result) ? message[Member::result] : std::string_view{};
  calls_.settle_missing(connection, connection.missing.answered(count));
  return true;
}

// A response that no call waits for, or that does not say for which it is.
bool MessageRouter::stray(ClientConnection& connection, const Received& message) {
  if (message.has(Member::error) && message.id() == "null" && message.fault == Fault::none) {
    // The server could not make out the id of what it refuses, but where there is only one message that it can be, it
    // is that. Where there may be others, nobody is blamed: whose call it was, has its answer or its timeout.
    const CallList& sent = connection.calls;
    if (connection.unattributed.refused()) {
      // One refusal less that may still come for nobody.
    } else if (connection.hello.due(shared_.loop.now())) {
      connection.hello.over();  // it may have been its answer, and there is only one
      connections_.announce(connection);
    } else if (!sent.empty() && sent.front().position == sent.back().position) {
      while (!sent.empty()) {
        Error refusal = message::read_error(*shared_.reader, message[Member::error]);  // first, since it needs memory
        ClientCall& call = sent.front();
        calls_.take_out(call);
        calls_.fail(call, std::move(refusal));
      }
      return true;
    }
  }
  ++dropped_;
  // What has no id and no sense may have been meant for anybody.
  return message.fault == Fault::none || message.has(Member::id) || connection.in_flight == 0;
}

// ---- notifications ----

// The next value, where it is an id that a call of ours may have.
static bool read_id(Reader& reader, std::optional<std::uint64_t>& id, bool& is_string) {
  is_string = reader.kind() == ValueKind::string;
  std::string_view text;
  if (is_string && !reader.read_string(text)) return false;
  if (is_string) {
    id = ClientCall::read_id(std::string{"\""}.append(text).append("\""));
    return true;
  }
  return reader.read_uint(~std::uint64_t{0}, id.emplace());
}

bool MessageRouter::notified(ClientConnection& connection, const Received& message) {
  const bool draining = message.method() == "rpc.draining";
  if (draining) {
    {
      const Lock lock = driver_.lock();
      connections_.leave(connection);
    }
    // The server waits for the calls that we have of it.
    shared_.registry.end_batch_waits();
  }
  return credit(connection, message) || item(connection, message) || broker_.event(connection, message) || draining;
}

// Whether it is credit for the input of a call of ours; else it may be for a stream that the server has asked for.
bool MessageRouter::credit(ClientConnection& connection, const Received& message) {
  if (message.method() != "rpc.credit" || !message.has(Member::params)) return false;
  std::optional<std::uint64_t> id;
  bool is_string = false;
  std::uint64_t more = 0;
  std::string_view name;
  Reader& reader =
      message.is_json() ? *shared_.reader : *shared_.loop_context.codecs.readers_of(message.encoding).reader;
  reader.reset(message[Member::params]);
  bool sound = reader.kind() == ValueKind::object && reader.begin_object();
  while (sound && reader.next_member(name)) {
    if (name == "id") {
      sound = read_id(reader, id, is_string);
    } else if (name == "n") {
      sound = reader.read_uint(~std::uint64_t{0}, more);
    } else {
      reader.skip();
    }
  }
  reader.clear_failure();
  if (!sound || more == 0) return false;
  Lock lock = driver_.lock();
  ClientCall* const call = find_call(connection, id, is_string);
  if (call == nullptr || !call->input) return false;
  connection.useful = true;
  const std::shared_ptr<ClientInput> input = call->input;
  lock.unlock();
  input->grant(connection, *call, more);
  return true;
}

void MessageRouter::drained(ClientConnection& connection) {
  // What goes on may end calls, so that each is looked for anew.
  std::vector<std::pair<std::shared_ptr<ClientInput>, ClientCall*>> waiting;
  {
    const Lock lock = driver_.lock();
    for (ClientCall* const call : connection.calls) {
      if (call->input) waiting.emplace_back(call->input, call);
    }
  }
  for (const auto& [input, call] : waiting) input->resume(connection, *call);
}

// Whether it is an item of a stream, or an answer to no call of ours.
bool MessageRouter::item(const ClientConnection& connection, const Received& message) {
  if (message.method() != "rpc.item") return false;
  if (!message.has(Member::params)) return true;
  std::optional<std::uint64_t> id;
  bool is_string = false;
  std::uint64_t seq = 0;
  std::string_view value;
  std::string_view name;
  Reader& reader =
      message.is_json() ? *shared_.reader : *shared_.loop_context.codecs.readers_of(message.encoding).reader;
  reader.reset(message[Member::params]);
  bool sound = reader.begin_object();
  while (sound && reader.next_member(name)) {
    if (name == "id") {
      sound = read_id(reader, id, is_string);
    } else if (name == "seq") {
      sound = reader.read_uint(~std::uint64_t{0}, seq);
    } else if (name == "value") {
      value = reader.skip();
    } else {
      reader.skip();
    }
  }
  reader.clear_failure();
  Lock lock = driver_.lock();
  ClientCall* const call = sound ? find_call(connection, id, is_string) : nullptr;
  if (call == nullptr || call->stream == nullptr || value.empty()) {
    if (connection.session->serves_calls()) return false;  // it may be of a call of the server's
    ++dropped_;
    return true;
  }
  call->connection->useful = true;
  ClientStream& stream = *call->stream;
  if (const std::string_view fault = stream.fault_of(seq); !fault.empty()) {
    // What would be made of the items is not what was sent.
    calls_.withdraw(*call);
    calls_.fail(*call, message::make(ErrorCode::invalid_request, fault, "maybe"));
    return true;
  }
  stream.add(value, message.encoding);
  if (!call->asynchronous) {
    driver_.tell(*call->waiting);
    return true;
  }
  call->deadline = stream.whole_until();
  const std::function<void()> wake = stream.take_wake();
  lock.unlock();
  if (wake) wake();
  return true;
}

// ---- HTTP ----

std::optional<HttpProtocolError> MessageRouter::answered(ClientConnection& connection, const HttpAnswer& answer) {
  const bool success = answer.status < 300;
  Received message;
  Scan scan{.status = ScanStatus::malformed, .offset = 0};
  if (!answer.body.empty() && !answer.encoded) scan = read_message(answer.body, shared_.options.limits, true, message);
  if (scan.status == ScanStatus::complete) {
    if (is_error(message) && message.id() == "null") {
      refuse_post(connection, message);
    } else if (is_error(message) || (message.kind == MessageKind::response && success)) {
      static_cast<void>(response(connection, message));
    } else if (message.kind == MessageKind::batch) {
      BatchElements elements{message.text};
      for (Received element; elements.next(element);) {
        if (element.kind == MessageKind::response) static_cast<void>(response(connection, element));
      }
    }
  }

  const Lock lock = driver_.lock();
  connection.awaiting_response = false;
  connection.useful = true;
  if (connection.in_flight != 0 && success) return protocol_error_of(answer, scan.status);
  while (connection.awaits()) {
    if (success) {
      calls_.finish(calls_.take_first(connection));
      continue;
    }
    Error error = error_of(answer);  // first, since it needs memory
    const bool lost = has_code(error, ErrorCode::provider_lost);
    calls_.fail(calls_.take_first(connection), std::move(error),
                lost ? ErrorClass::connection_error : ErrorClass::error);
  }
  return std::nullopt;
}

// An error that names no call: what it refuses is the POST, and so all of its calls.
void MessageRouter::refuse_post(ClientConnection& connection, const Received& message) {
  const Lock lock = driver_.lock();
  while (connection.awaits()) {
    Error refusal = message::read_error(*shared_.reader, message[Member::error]);  // first, since it needs memory
    calls_.fail(calls_.take_first(connection), std::move(refusal));
  }
}

}  // namespace wirecall::net
