// See events.hpp.
#include "http/events.hpp"

#include <charconv>

#include "http/browser_access.hpp"
#include "http/http_connection.hpp"
#include "http/query.hpp"
#include "rpc/internal_call.hpp"

namespace wirecall::net {

using framing::HttpField;

// A reader whose connection has ended waits as long before it comes back.
constexpr std::chrono::milliseconds kRetryPause{3000};
// What it costs to subscribe to one topic, and to end that where another one is refused.
constexpr std::size_t kStepsOfTopic = 2;

namespace {

// What an error says besides its code: why, or which of the params is wrong.
struct RefusalData {
  std::optional<std::string> reason;
  std::optional<std::vector<std::string>> loc;
  std::optional<std::string> expected;
  std::optional<std::string> got;
};
struct Refusal {
  int code = 0;
  std::string message;
  std::optional<RefusalData> data;

  [[nodiscard]] std::string text() const {
    if (!data) return message;
    if (data->reason) return *data->reason;
    std::string text = message;
    if (data->loc && !data->loc->empty()) text.append(": ").append(data->loc->back());
    if (data->expected) text.append(": expected ").append(*data->expected);
    if (data->got) text.append(", got ").append(*data->got);
    return text;
  }
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

// The error says what is wrong with `query`.
std::expected<TopicsAsked, std::string_view> read_events_query(std::string_view query) {
  TopicsAsked read;
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

std::uint64_t number_in(std::string_view id, const rpc::RetainedPosition& position) noexcept {
  const std::string_view epoch = position.epoch;
  if (!id.starts_with(epoch) || !id.substr(epoch.size()).starts_with('-')) return 0;
  const std::string_view digits = id.substr(epoch.size() + 1);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool given_out = number <= std::min(position.number + 1, position.last_number);
  return error == std::errc{} && end == digits.data() + digits.size() && given_out ? number : 0;
}

void TopicEvents::ask(std::string_view topic) {
  charge(kStepsOfTopic);
  std::string params = R"({"topic":)";
  try {
    params.append(to_json(topic)).append(asked_.last ? R"(,"last":true})" : "}");
  } catch (const Error&) {
    status_ = 400;
    cause_ = "a topic that is not UTF-8";
    return;
  }
  awaits_answer_ = true;
  rpc::invoke(dispatcher, {.method = "rpc.subscribe"}, params);
}

std::uint16_t TopicEvents::subscribe() {
  for (const std::string& topic : asked_.topics) {
    ask(topic);
    if (status_ != 200) break;
  }
  return status_;
}

void TopicEvents::begin() {
  keep_alive();
  std::string lines = "retry: " + std::to_string(kRetryPause.count()) + "\n";
  has_ids_ = !asked_.last;
  if (has_ids_) lines.append(id_line(broker_->retained_position().number));
  write_lines(lines.append("\n"));
  if (asked_.last) dispatcher.on_writable();  // by which a RetainedReader begins
}

// What is retained has been sent by topic, not by number: only now the reader has all up to the broker's position.
void TopicEvents::retained_sent() {
  if (lost_) return;
  has_ids_ = true;
  const std::uint64_t number = broker_->retained_position().number;
  if (number >= asked_.seen) write_lines(id_line(number) + "\n");
}

std::string TopicEvents::id_line(std::uint64_t number) {
  const std::string_view epoch = broker_->retained_position().epoch;
  return std::string{"id: "}.append(epoch).append("-").append(std::to_string(number)).append("\n");
}

// The first message behind a question is its answer; all others are events, but for what is asked of the peer, which
// cannot answer.
void TopicEvents::written(const Received& message) {
  if (std::exchange(awaits_answer_, false)) {
    if (!message.has(Member::error)) return;
    const auto refusal = from_json<Refusal>(message[Member::error]);
    status_ = status_of(refusal ? refusal->code : 0);
    cause_ = "this cannot be subscribed to";
    if (refusal) cause_ = refusal->text();
    return;
  }
  if (message.kind != MessageKind::notification) return;
  const std::string topic = from_json<std::string>(message[Member::method]).value();
  std::string fields;
  // No older one is still being told, over several turns.
  if (number_ != 0 && has_ids_ && number_ <= broker_->retained_position().number + 1) fields = id_line(number_);
  if (asked_.named) fields.append("event: ").append(topic).append("\n");
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
  rpc::Broker& broker = *context.services.broker;
  auto asked = read_events_query(request.query);
  if (!asked) return transaction.refuse(400, asked.error());
  if (request.head.has(HttpField::last_event_id)) {
    asked->last = true;
    asked->seen = number_in(request.head[HttpField::last_event_id], broker.retained_position());
  }
  auto stream = std::make_unique<TopicEvents>(connection, broker, *std::move(asked));
  if (context.services.authority != nullptr)
    stream->dispatcher.identify(connection.principal(), connection.credential_of(request.head));
  const std::uint16_t status = stream->subscribe();
  if (status != 200) return transaction.refuse(status, stream->refused_since());
  if (transaction.head_only()) return transaction.respond_endless_head(kEventType);
  stream->write_head(transaction.fields);
  TopicEvents& events = *stream;
  connection.begin_events(std::move(stream));
  events.begin();
}

}  // namespace wirecall::net
