// See events.hpp.
#include "http/events.hpp"

#include "base/decimal.hpp"
#include "base/one_line.hpp"
#include "http/browser_access.hpp"
#include "http/http_connection.hpp"
#include "http/query.hpp"
#include "rpc/internal_call.hpp"

namespace wirecall::net {
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
  static constexpr std::pair<ErrorCode, std::uint16_t> kStatuses[]{{ErrorCode::forbidden, 403},
                                                                   {ErrorCode::unauthenticated, 401},
                                                                   {ErrorCode::limit_exceeded, 429},
                                                                   {ErrorCode::method_not_found, 404},
                                                                   {ErrorCode::draining, 503}};
  for (const auto& [refusal, status] : kStatuses) {
    if (code == static_cast<int>(refusal)) return status;
  }
  return 400;
}

// What a query asks for.
struct EventQuery {
  std::vector<std::string> topics;
  bool last = false;  // what is retained as well
  bool named = true;  // each event has its topic's name; else none, and browsers give all of them to `onmessage`
};

// The error says what is wrong with `query`.
std::expected<EventQuery, std::string_view> read_event_query(std::string_view query) {
  EventQuery read;
  for (QueryPair pair; pair.take(query);) {
    auto value = decode_percent(pair.value);
    if (!value) return std::unexpected{value.error()};
    if (pair.name == "topic") {
      read.topics.push_back(*std::move(value));
    } else if (pair.name == "last" || pair.name == "names") {
      if (*value != "true" && *value != "false") return std::unexpected{"last and names are true or false"};
      (pair.name == "last" ? read.last : read.named) = *value == "true";
    }
  }
  if (read.topics.empty()) return std::unexpected{"no topic: /events?topic=PATTERN"};
  return read;
}

}  // namespace

EventStream::EventStream(HttpChannel& channel, bool named)
    : HttpSink(channel),
      named_(named),
      dispatcher(channel.host().registry, *this, channel.host().limits, channel.host().loop_context,
                 channel.load().get()) {}

void EventStream::ask(std::string_view topic, bool last) {
  std::string params = R"({"topic":)";
  try {
    params.append(to_json(topic)).append(last ? R"(,"last":true})" : "}");
  } catch (const Error&) {
    status_ = 400;
    cause_ = "a topic that is not UTF-8";
    return;
  }
  awaits_answer_ = true;
  rpc::invoke(dispatcher, {.method = "rpc.subscribe"}, params);
}

std::uint16_t EventStream::subscribe(const std::vector<std::string>& topics) {
  for (const std::string& topic : topics) {
    ask(topic, false);
    if (status_ != 200) break;
  }
  return status_;
}

void EventStream::begin(const std::vector<std::string>& last) {
  for (const std::string& topic : last) ask(topic, true);
  channel_->host().loop.start(*this, kEventsComment);
}

void EventStream::abandon() noexcept {
  channel_->host().loop.stop(*this);
  dispatcher.abandon();
}

// Says something, so that neither the peer nor what lies between takes the connection for a dead one.
void EventStream::expired() {
  channel_->within_memory([this] {
    channel_->host().loop.start(*this, kEventsComment);
    if (channel_->has_output()) return;
    Buffer& out = channel_->output();
    const std::size_t waiting = out.size();
    out.append(":\n\n");
    channel_->output_grew(waiting);
  });
}

Buffer& EventStream::open_message() {
  text_.clear();
  return text_;
}

// The first message behind a question is its answer; all others are events, but for what is asked of the peer, which
// cannot answer.
void EventStream::close_message() {
  try {
    Received message;
    static_cast<void>(read_message(text_.padded(), channel_->host().limits, true, message));
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
    channel_->fail_out_of_memory();
  }
}

void EventStream::write_event(std::string_view topic, std::string_view message) {
  Buffer& out = channel_->output();
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
  ++channel_->host().loop_context.stats.messages_out;
  channel_->output_grew(waiting);
}

// ---- the request ----

void begin_events(HttpConnection& connection, const RoutedRequest& request) {
  HttpTransaction& transaction = connection.current();
  const rpc::LoopContext& context = connection.host().loop_context;
  if (context.services.broker == nullptr) return transaction.refuse(404, "there are no events here");
  if (connection.is_draining()) {
    transaction.fields += "Retry-After: 1\r\n";
    return transaction.refuse(503, "the server is shutting down");
  }
  if (connection.others_wait())
    return transaction.refuse_and_close(400, "earlier requests of this connection are still to be answered");
  const auto asked = read_event_query(request.query);
  if (!asked) return transaction.refuse(400, asked.error());
  auto stream = std::make_unique<EventStream>(connection, asked->named);
  if (context.services.authority != nullptr)
    stream->dispatcher.identify(connection.principal(), bearer_token(request.head));
  const std::uint16_t status = stream->subscribe(asked->topics);
  if (status != 200) return transaction.refuse(status, stream->refused_since());
  if (transaction.head_only()) return transaction.respond(200, {}, kEventType);
  Buffer& out = connection.output();
  const std::size_t waiting = out.size();
  write_endless_response(out, {.content_type = kEventType, .fields = transaction.fields});
  connection.output_grew(waiting);
  EventStream& events = *stream;
  connection.begin_events(std::move(stream));
  const bool last = asked->last || request.head.has(framing::HttpField::last_event_id);
  events.begin(last ? asked->topics : std::vector<std::string>{});
}

}  // namespace wirecall::net
