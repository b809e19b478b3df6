// See events.hpp.
#include "http/events.hpp"

#include "http/browser_access.hpp"
#include "http/http_connection.hpp"
#include "http/query.hpp"
#include "rpc/internal_call.hpp"

namespace wirecall::net {
namespace {

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
  bool named = true;
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

void TopicEvents::ask(std::string_view topic, bool last) {
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

std::uint16_t TopicEvents::subscribe(const std::vector<std::string>& topics) {
  for (const std::string& topic : topics) {
    ask(topic, false);
    if (status_ != 200) break;
  }
  return status_;
}

void TopicEvents::begin(const std::vector<std::string>& last) {
  for (const std::string& topic : last) ask(topic, true);
  keep_alive();
}

// The first message behind a question is its answer; all others are events, but for what is asked of the peer, which
// cannot answer.
void TopicEvents::written(const Received& message) {
  if (std::exchange(awaits_answer_, false)) {
    if (!message.has(Member::error)) return;
    const auto refusal = from_json<Refusal>(message[Member::error]);
    status_ = status_of(refusal ? refusal->code : 0);
    cause_ = "this cannot be subscribed to";
    if (refusal) cause_ = refusal->data ? refusal->data->reason.value_or(refusal->message) : refusal->message;
    return;
  }
  if (message.kind != MessageKind::notification) return;
  std::string fields = "id: " + std::to_string(++number_) + "\n";
  if (named_) fields.append("event: ").append(from_json<std::string>(message[Member::method]).value()).append("\n");
  write_event(fields, message.text);
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
  auto stream = std::make_unique<TopicEvents>(connection, asked->named);
  if (context.services.authority != nullptr)
    stream->dispatcher.identify(connection.principal(), connection.credential_of(request.head));
  const std::uint16_t status = stream->subscribe(asked->topics);
  if (status != 200) return transaction.refuse(status, stream->refused_since());
  if (transaction.head_only()) return transaction.respond(200, {}, kEventType);
  stream->write_head(transaction.fields);
  TopicEvents& events = *stream;
  connection.begin_events(std::move(stream));
  const bool last = asked->last || request.head.has(framing::HttpField::last_event_id);
  events.begin(last ? asked->topics : std::vector<std::string>{});
}

}  // namespace wirecall::net
