// See http_events.hpp.
#include "http/events.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <utility>

#include "base/decimal.hpp"
#include "base/one_line.hpp"
#include "http/query.hpp"
#include "http/transaction.hpp"
#include "wirecall/error.hpp"
#include "wirecall/message.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::session {
namespace {

constexpr std::string_view kEventType = "text/event-stream";
// Nothing is said for no longer than this: what lies between often closes what has been silent for a minute.
constexpr std::chrono::seconds kEventsComment{15};

struct Reason {
  std::optional<std::string> reason;
};
struct Refusal {
  int code = 0;
  std::string message;
  std::optional<Reason> data;
};

std::uint16_t status_of(int code) noexcept {
  switch (static_cast<ErrorCode>(code)) {
    case ErrorCode::forbidden:
      return 403;
    case ErrorCode::unauthenticated:
      return 401;
    case ErrorCode::limit_exceeded:
      return 429;
    case ErrorCode::method_not_found:
      return 404;
    case ErrorCode::draining:
      return 503;
    default:
      return 400;
  }
}

}  // namespace

std::expected<EventQuery, std::string_view> read_event_query(std::string_view query) {
  EventQuery read;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = pair.substr(0, equals);
    auto value = decode_percent(pair.substr(std::min(equals + 1, pair.size())));
    if (!value) return std::unexpected{value.error()};
    if (name == "topic") {
      read.topics.push_back(*std::move(value));
    } else if (name == "last" || name == "names") {
      if (*value != "true" && *value != "false") return std::unexpected{"last and names are true or false"};
      (name == "last" ? read.last : read.named) = *value == "true";
    }
  }
  if (read.topics.empty()) return std::unexpected{"no topic: /events?topic=PATTERN"};
  return read;
}

HttpSession::EventStream::EventStream(HttpSession& session, bool named)
    : session_(&session),
      named_(named),
      dispatcher(session.host_->registry, *this, session.host_->limits, session.host_->loop_context,
                 session.load_.get()) {}

std::shared_ptr<rpc::PeerLoad> HttpSession::EventStream::load() {
  if (!session_->load_) session_->load_ = std::make_shared<rpc::PeerLoad>();
  return session_->load_;
}

void HttpSession::EventStream::ask(std::string_view topic, bool last) {
  std::string name;
  try {
    name = to_json(topic);
  } catch (const Error&) {
    status_ = 400;
    cause_ = "a topic that is not UTF-8";
    return;
  }
  Buffer request{R"({"jsonrpc":"2.0","method":"rpc.subscribe","params":{"topic":)" + name +
                 (last ? R"(,"last":true)" : "") + R"(},"id":1})"};
  Received message;
  static_cast<void>(read_message(request.padded(), session_->host_->limits, true, message));
  awaits_answer_ = true;
  dispatcher.handle(message);
}

std::uint16_t HttpSession::EventStream::subscribe(const std::vector<std::string>& topics) {
  for (const std::string& topic : topics) {
    ask(topic, false);
    if (status_ != 200) break;
  }
  return status_;
}

void HttpSession::EventStream::send_last(const std::vector<std::string>& topics) {
  for (const std::string& topic : topics) ask(topic, true);
}

Buffer& HttpSession::EventStream::open_message() {
  text_.clear();
  return text_;
}

// The first message behind a question is its answer; all others are events, but for what is asked of the peer, which
// cannot answer.
void HttpSession::EventStream::close_message() {
  try {
    Received message;
    static_cast<void>(read_message(text_.padded(), session_->host_->limits, true, message));
    if (std::exchange(awaits_answer_, false)) {
      if (!message.has(Member::error)) return;
      const auto refusal = from_json<Refusal>(message[Member::error]);
      status_ = status_of(refusal ? refusal->code : 0);
      cause_ = "this cannot be subscribed to";
      if (refusal) cause_ = refusal->data ? refusal->data->reason.value_or(refusal->message) : refusal->message;
      return;
    }
    if (message.kind != MessageKind::notification) return;
    const std::string topic = from_json<std::string>(message[Member::method]).value();
    write_event(topic, message.text);
  } catch (const std::bad_alloc&) {
    session_->fail_out_of_memory();
  }
}

void HttpSession::EventStream::write_event(std::string_view topic, std::string_view message) {
  Buffer& out = session_->output();
  const std::size_t waiting = out.size();
  try {
    out.append("id: ");
    append_number(out, ++number_);
    if (named_) {
      out.append("\nevent: ");
      out.append(topic);
    }
    out.append("\ndata: ");
    const std::size_t begin = out.size();
    out.append(message);
    make_one_line(out.data() + begin, out.data() + out.size());  // a line break would end the event's data
    out.append("\n\n");
  } catch (...) {
    out.truncate(waiting);
    throw;
  }
  ++session_->host_->loop_context.stats.messages_out;
  session_->output_grew(waiting);
}

// ---- of the session ----

void HttpSession::begin_events(const framing::HttpHead& head, std::string_view query) {
  if (host_->loop_context.services.broker == nullptr) return refuse(404, "there are no events here");
  HttpTransaction& transaction = current();
  if (draining_) {
    transaction.fields += "Retry-After: 1\r\n";
    return refuse(503, "the server is shutting down");
  }
  if (!waiting_.empty()) return refuse_and_close(400, "earlier requests of this connection are still to be answered");
  const auto asked = read_event_query(query);
  if (!asked) return refuse(400, asked.error());
  auto stream = std::make_unique<EventStream>(*this, asked->named);
  if (host_->loop_context.services.authority != nullptr) stream->dispatcher.identify(principal_, bearer_token(head));
  const std::uint16_t status = stream->subscribe(asked->topics);
  if (status != 200) return refuse(status, stream->refused_since());
  if (transaction.head_only) return respond(200, {}, kEventType);
  const std::size_t waiting = output().size();
  write_endless_response(out_, {.content_type = kEventType, .fields = transaction.fields});
  output_grew(waiting);
  current_.reset();
  reading_ = Body::none;
  events_ = std::move(stream);
  if (asked->last || head.has(framing::HttpField::last_event_id)) events_->send_last(asked->topics);
  host_->loop.start(*this, kEventsComment);
}

// Says something, so that neither the peer nor what lies between takes the connection for a dead one.
void HttpSession::comment_events() {
  host_->loop.start(*this, kEventsComment);
  if (has_output()) return;
  const std::size_t waiting = output().size();
  out_.append(":\n\n");
  output_grew(waiting);
}

void HttpSession::authority_changed(bool was_open) {
  if (events_ && !events_->dispatcher.is_still_known(was_open)) stop_reading(CloseReason::refused);
  if (current_ != nullptr)
    current_->dispatcher.end_if_revoked();  // its handler is off the loop, or its batch interrupted
  for (const auto* transactions : {&waiting_, &silent_}) {
    for (const auto& transaction : *transactions) {
      if (transaction != nullptr) transaction->dispatcher.end_if_revoked();
    }
  }
}

void HttpSession::output_drained() {
  if (events_) events_->dispatcher.on_writable();
}

}  // namespace wirecall::session
