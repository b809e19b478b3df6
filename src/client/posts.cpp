// The part of ClientCore (client_core.hpp) that is about connections on which HTTP is spoken: what the response to a
// POST means for the calls in it, and what becomes of those that are given up. A POST's calls end with its response, at
// the latest: what that does not answer, is not answered at all.
#include <algorithm>
#include <string>
#include <utility>

#include "base/printable.hpp"
#include "client/core.hpp"
#include "message/own_error.hpp"
#include "message/read_error.hpp"
#include "wirecall/client.hpp"

namespace wirecall::session {

using detail::ErrorClass;
using std::chrono::milliseconds;

namespace {

ErrorCode code_of(std::uint16_t status) noexcept {
  switch (status) {
    case 401:
    case 407:
      return ErrorCode::unauthenticated;
    case 403:
      return ErrorCode::forbidden;
    case 408:
    case 504:
      return ErrorCode::timeout;
    case 413:
      return ErrorCode::too_large;
    case 429:
    case 503:
      return ErrorCode::limit_exceeded;
    default:
      return ErrorCode::provider_lost;
  }
}

// Whether the status says that the request was not carried out.
bool refuses(std::uint16_t status) noexcept { return status < 500 || status == 501 || status == 505; }

// Whether it is an error as JSON-RPC has it. Others answer with errors of their own making, {"error":"no"} among them.
bool is_error(const Received& message) noexcept {
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

}  // namespace

std::optional<HttpProtocolError> ClientConnection::answered(const HttpAnswer& answer) {
  return core->answered(*this, answer);
}

// ---- what a response means ----

// Called without the mutex.
std::optional<HttpProtocolError> ClientCore::answered(ClientConnection& connection, const HttpAnswer& answer) {
  const bool success = answer.status < 300;
  Received message;
  Scan scan{.status = ScanStatus::malformed, .offset = 0};
  if (!answer.body.empty() && !answer.encoded) scan = read_message(answer.body, options_.limits, true, message);
  if (scan.status == ScanStatus::complete) {
    if (is_error(message) && message.id() == "null") {
      refused(connection, message);
    } else if (is_error(message) || (message.kind == MessageKind::response && success)) {
      this->response(connection, message);
    } else if (message.kind == MessageKind::batch) {
      BatchElements elements{message.text};
      for (Received element; elements.next(element);) {
        if (element.kind == MessageKind::response) this->response(connection, element);
      }
    }
  }

  const Lock lock{mutex_};
  connection.awaiting_response = false;
  connection.useful = true;
  if (connection.in_flight != 0 && success) return protocol_error_of(answer, scan.status);
  while (connection.awaits()) {
    if (success) {
      finish(take_first(connection));
      continue;
    }
    Error error = error_of(answer);  // first, since it needs memory
    const bool lost = error.code() == static_cast<int>(ErrorCode::provider_lost);
    fail(take_first(connection), std::move(error), lost ? ErrorClass::connection_error : ErrorClass::error);
  }
  return std::nullopt;
}

// An error that names no call: what it refuses is the POST, and so all of its calls.
void ClientCore::refused(ClientConnection& connection, const Received& message) {
  const Lock lock{mutex_};
  while (connection.awaits()) {
    Error refusal = message::read_error(*reader_, message[Member::error]);  // first, since it needs memory
    fail(take_first(connection), std::move(refusal));
  }
}

// A response that should have answered calls, and has not. It ends the connection: the answer may have been another's.
HttpProtocolError ClientCore::protocol_error_of(const HttpAnswer& answer, ScanStatus read) {
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

// ---- what a POST says, and giving it up ----

// The time that the server is to be told: that of the call that has most, unless one has what servers give anyway.
milliseconds ClientCore::time_to_tell(const ClientCall& first) const {
  milliseconds most{0};
  for (const ClientCall* call = &first; call != nullptr; call = call->next_in_batch) {
    if (call->notification) continue;
    if (!says_timeout(*call)) return milliseconds{0};
    most = std::max({most, std::chrono::ceil<milliseconds>(call->deadline - loop_.now()), milliseconds{1}});
  }
  return most;
}

// HTTP has one way to say that a response is not wanted any more, which is to close the connection. As long as another
// call of the same POST waits, it has to stay.
void ClientCore::withdraw_posted(ClientCall& call) noexcept {
  ClientConnection& connection = *call.connection;
  if (call.notification) {
    connection.notifications.remove(call);
  } else {
    take_out(call);
  }
  if (connection.over || connection.awaits()) return;
  given_up_ = true;
  connection.useful = true;
  end_connection(connection, "the client does not wait for its response any more");
}

// A server cannot call its client by HTTP: whoever offers it methods would wait for ever.
std::string ClientCore::cannot_offer(const Endpoint& endpoint) const {
  if (endpoint.kind() != EndpointKind::http || (!provides() && !declares())) return {};
  return (provides() ? "methods cannot be offered at " : "events cannot be had at ") + endpoint.uri() +
         ": a server does not call its client by HTTP; connect to tcp:// or unix://" +
         (provides() ? ", or add no methods" : "");
}

bool ClientCore::offers_in_vain() const noexcept {
  return (provides() || declares()) && std::ranges::all_of(endpoints_, [](const Endpoint& endpoint) {
           return endpoint.kind() == EndpointKind::http;
         });
}

}  // namespace wirecall::session
