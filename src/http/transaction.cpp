// See transaction.hpp.
#include "http/transaction.hpp"

#include <charconv>
#include <system_error>

#include "framing/token.hpp"
#include "http/event_stream.hpp"

namespace wirecall::net {

using framing::HttpField;
using framing::HttpHead;

HttpTransaction::HttpTransaction(HttpChannel& channel, HttpTransactions& order)
    : HttpSink(channel),
      dispatcher(channel.host().registry, *this, channel.host().limits, channel.host().loop_context,
                 channel.load().get()),
      order_(&order) {}

// ---- the request ----

void HttpTransaction::begin(const HttpHead& head, bool draining) noexcept {
  WIRECALL_ASSERT(state_ == State::open);
  closes = head.closes || draining;
  keeps_alive_ = head.keeps_alive;
  head_only_ = head.method == framing::HttpMethod::head;
}

// Whether an element of Accept says that its type is not acceptable: by a weight of zero (RFC 9110, 12.4.2).
static bool is_excluded(std::string_view element) noexcept {
  for (std::size_t at = element.find(';'); at != element.npos; at = element.find(';')) {
    element.remove_prefix(at + 1);
    element.remove_prefix(std::min(element.find_first_not_of(" \t"), element.size()));
    if (!framing::same_word(element.substr(0, 2), "q=")) continue;
    const std::string_view weight = element.substr(2, element.find(';') - 2);
    return weight.find_first_not_of("0. \t") == weight.npos;
  }
  return false;
}

void HttpTransaction::choose_encoding(const HttpHead& head) noexcept {
  content_encoding_ = message::encoding_of_type(head[HttpField::content_type]).value_or(Encoding::json);
  std::string_view accepted = head[HttpField::accept];
  // What browsers and curl say of themselves names neither.
  while (!accepted.empty()) {
    const std::string_view type = framing::take_element(accepted);
    if (is_excluded(type)) continue;
    const std::optional<Encoding> encoding = message::encoding_of_type(type);
    if (!encoding && framing::same_word(type.substr(0, type.find(';')), kEventType)) wants_events_ = true;
    if (!encoding && !wants_events_) continue;
    if (wants_events_) break;
    answer_encoding_ = *encoding;
    as_asked_ = true;
    return;
  }
  answer_encoding_ = content_encoding_;
}

std::expected<std::uint32_t, std::string_view> timeout_of(const HttpHead& head) noexcept {
  const std::string_view text = head[HttpField::wirecall_timeout_ms];
  std::uint32_t milliseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    return std::unexpected{"a Wirecall-Timeout-Ms that is no whole number"};
  // More than can be counted is no limit.
  return error == std::errc{} ? milliseconds : rpc::Dispatcher::kNoTimeout;
}

bool HttpTransaction::take_timeout(const HttpHead& head) {
  if (!head.has(HttpField::wirecall_timeout_ms)) [[likely]]
    return true;
  const std::expected<std::uint32_t, std::string_view> timeout = timeout_of(head);
  if (timeout) {
    dispatcher.limit_timeout(*timeout);
  } else {
    refuse(400, timeout.error());
  }
  return timeout.has_value();
}

void HttpTransaction::reset() noexcept {
  state_ = State::open;
  closes = keeps_alive_ = head_only_ = as_asked_ = wants_events_ = false;
  answer_encoding_ = content_encoding_ = Encoding::json;
  status_ = 200;
  fields.clear();
  dispatcher.limit_timeout(rpc::Dispatcher::kNoTimeout);
  dispatcher.answer_as({});
}

// ---- the response ----

// Where the response is written: into the output, if none is due before it.
inline Buffer& HttpTransaction::begin_output() {
  WIRECALL_ASSERT(state_ != State::answered);
  out_ = order_->is_next(*this) ? &channel_->output() : &held_;
  return *out_;
}

// A response that is made at once, by `write` into the buffer it is given.
template <class Write>
void HttpTransaction::answer(const Write& write) {
  Buffer& out = begin_output();
  const std::size_t begin = out.size();
  write(out);
  written(begin);
}

void HttpTransaction::respond(std::uint16_t status, std::string_view body, std::string_view content_type) {
  answer([&](Buffer& out) { write_response(out, head(status, content_type), body, head_only_); });
}

void HttpTransaction::respond_empty(std::uint16_t status) {
  answer([&](Buffer& out) { write_empty_response(out, head(status, {})); });
}

void HttpTransaction::respond_endless_head(std::string_view content_type) {
  WIRECALL_ASSERT(head_only_);
  closes = true;
  answer([&](Buffer& out) { write_endless_response(out, head(200, content_type)); });
}

void HttpTransaction::refuse(std::uint16_t status, std::string_view cause) {
  rpc::Refusals& refusals = channel_->host().loop_context.refusals;
  if (status == 400 && refusals.wants_reason()) refusals.log_http(cause);
  std::string text{reason_of(status)};
  text.append(": ").append(cause).append("\n");
  respond(status, text);
}

void HttpTransaction::refuse_and_close(std::uint16_t status, std::string_view cause) {
  closes = true;
  refuse(status, cause);
}

void HttpTransaction::written(std::size_t begin) {
  if (out_ != &held_) {
    channel_->output_grew(begin);
  } else {
    order_->hold(held_.size());
    channel_->output_grew_elsewhere(channel_->gathered_bytes() + order_->held_bytes());
  }
  state_ = State::answered;
}

Buffer& HttpTransaction::open_message() {
  Buffer& out = begin_output();
  if (held_.empty() && &out == &held_) held_ = channel_->host().loop.take_buffer();
  const std::size_t begin = out.size();
  try {
    response_ = begin_response(out, head(status_, media_type_of(answer_encoding_)), channel_->response_digits);
  } catch (...) {
    out.truncate(begin);
    throw;
  }
  return out;
}

// Which encoding the answer has, Accept may say.
void HttpTransaction::close_message_as(MessageForm form) {
  ++channel_->host().loop_context.stats.messages_out;
  try {
    // Answers can always be said: as an error, if need be.
    if (answer_encoding_ != Encoding::json && !form.natively) [[unlikely]] {
      Host& host = channel_->host();
      message::Transcoder& transcoder = host.loop_context.codecs.transcoder(answer_encoding_);
      static_cast<void>(transcoder.from_json_behind(response_.body_at, host.limits, *out_));
    }
    channel_->response_digits = static_cast<std::uint8_t>(end_response(*out_, response_, head_only_));
  } catch (const std::bad_alloc&) {
    return lose_answer();
  }
  if (state_ == State::open) channel_->request_turn_end();
  written(response_.begin);
}

}  // namespace wirecall::net
