// See streamed_call.hpp.
#include "http/streamed_call.hpp"

#include "framing/byte_order_mark.hpp"
#include "http/browser_access.hpp"
#include "http/http_connection.hpp"
#include "rpc/call_options.hpp"

namespace wirecall::net {

// More credit than a stream can use: it waits for its reader, not for credit.
constexpr std::string_view kEndlessCredit = "9007199254740991";

// The request, with credit that does not end in place of what it gives.
static Buffer with_endless_credit(const Received& request) {
  Buffer text;
  const std::string_view whole = request.text;
  if (request.has(Member::stream)) {
    const std::string_view credit = request[Member::stream];
    text.append(whole.substr(0, static_cast<std::size_t>(credit.data() - whole.data())));
    text.append(kEndlessCredit);
    text.append({credit.data() + credit.size(), whole.data() + whole.size()});
  } else {
    text.append(R"({"stream":)");
    text.append(kEndlessCredit);
    text.push_back(',');
    text.append(whole.substr(1));
  }
  return text;
}

// The text of a body that is one well-formed request in JSON; else nothing.
static std::optional<Buffer> read_request(const HttpConnection& connection, std::string_view body) {
  Buffer text;
  text.append(body.substr(framing::byte_order_mark_bytes(body)));
  Received request;
  const Scan scan = read_message(text.padded(), connection.host().limits, true, request);
  if (scan.status != ScanStatus::complete || request.kind != MessageKind::request) return std::nullopt;
  // What gives a wrong credit is refused by who reads it.
  const bool is_wrong = request.has(Member::stream) &&
                        rpc::read_count(connection.host().loop_context, request[Member::stream]).value_or(0) == 0;
  return is_wrong ? std::move(text) : with_endless_credit(request);
}

void StreamedCall::call(Buffer json) {
  keep_alive();
  request_ = std::move(json);
  Received request;
  static_cast<void>(read_message(request_.padded(), channel_->host().limits, true, request));
  ++channel_->host().loop_context.stats.messages_in;
  dispatcher.handle(request);
}

void StreamedCall::written(const Received& message) {
  write_event({}, message.text);
  if (message.kind == MessageKind::response) channel_->stop_reading(CloseReason::finished);
}

void begin_streamed_call(HttpConnection& connection, const RoutedRequest& request) {
  const std::expected<std::uint32_t, std::string_view> timeout = timeout_of(request.head);
  connection.begin_body(
      request, [timeout = timeout.value_or(rpc::Dispatcher::kNoTimeout),
                shown = connection.credential_of(request.head)](HttpConnection& posted, std::string_view body) {
        std::optional<Buffer> call = posted.is_draining() ? std::nullopt : read_request(posted, body);
        if (!call) return posted.serve_message(std::string{body});
        if (posted.others_wait())
          return posted.current().refuse_and_close(400, "earlier requests of this connection are still to be answered");
        auto stream = std::make_unique<StreamedCall>(posted);
        stream->dispatcher.limit_timeout(timeout);
        if (posted.host().loop_context.services.authority != nullptr)
          stream->dispatcher.identify(posted.principal(), shown);
        stream->write_head(posted.current().fields);
        StreamedCall& streamed = *stream;
        posted.begin_events(std::move(stream));
        streamed.call(*std::move(call));
      });
}

}  // namespace wirecall::net
