// See client.hpp. A body that has come with its head is handed on where it lies; only parts are copied.
#include "http/client.hpp"

#include "base/decimal.hpp"
#include "framing/byte_order_mark.hpp"
#include "framing/token.hpp"

namespace wirecall::net {

using framing::HttpField;
using framing::HttpResponseHead;

// Of a Location, for a message to people.
constexpr std::size_t kLocationBytesMax = 512;
// Between a length and the body: the end of its line, and the empty one.
constexpr std::size_t kHeadEndBytes = 4;
constexpr std::string_view kTimeout = "Wirecall-Timeout-Ms: ";
constexpr std::string_view kLength = "Content-Length: ";

std::string request_head_of(const Endpoint& endpoint, std::string_view token, Encoding encoding) {
  std::string head = "POST ";
  head.append(endpoint.path()).append(" HTTP/1.1\r\nHost: ").append(endpoint.authority());
  if (!token.empty()) head.append("\r\nAuthorization: Bearer ").append(token);
  const std::string_view type = media_type_of(encoding);
  return head.append("\r\nContent-Type: ").append(type).append("\r\nAccept: ").append(type).append("\r\n");
}

ClientHttp::ClientHttp(Host& host, std::unique_ptr<transport::ByteStream> stream, const Endpoint& endpoint,
                       const ClientOptions& options, HttpUser& user)
    : Channel(host, std::move(stream)),
      user_(&user),
      request_head_(request_head_of(endpoint, options.token, options.encoding)),
      encoding_(options.encoding) {}

ClientHttp::~ClientHttp() {
  give_back(head_);
  give_back(body_.kept());
}

// ---- writing ----

Buffer& ClientHttp::open_message() {
  Buffer& out = output();
  // All at once: half a head must not stay when there is no memory for the rest.
  static_cast<void>(out.reserve(request_head_.size() + kTimeout.size() + kDecimalDigitsMax + 2 + kLength.size() +
                                digits_ + kHeadEndBytes));
  request_.begin = out.size();
  out.append(request_head_);
  if (timeout_.count() != 0) {
    out.append(kTimeout);
    append_number(out, static_cast<std::uint64_t>(timeout_.count()));
    out.append("\r\n");
  }
  out.append(kLength);
  request_.length_at = out.size();
  request_.body_at = request_.length_at + digits_ + kHeadEndBytes;
  out.grow(digits_ + kHeadEndBytes);
  return out;
}

void ClientHttp::close_message_as(MessageForm form) {
  if (encoding_ != Encoding::json && !form.natively && !transcode_request()) {
    discard_message();
    unsent_ = true;
    return request_turn_end();
  }
  digits_ = end_response(out_, request_, false);  // first, since it may need memory
  ++host_->loop_context.stats.messages_out;
  waiting_ = true;
  output_grew(request_.begin);
}

// False when nothing is left of the message.
bool ClientHttp::transcode_request() {
  message::Transcoder& transcoder = host_->loop_context.codecs.transcoder(encoding_);
  const bool any = transcoder.from_json_behind(request_.body_at, host_->limits, out_);
  refusals_ = transcoder.take_refusals();
  return any;
}

// Not where the message was written: whoever does that does not expect an answer before it is done.
void ClientHttp::on_turn_end() {
  if (!std::exchange(unsent_, false)) return;
  Buffer all;
  const std::string_view body = with_refusals({}, all);
  const std::uint16_t status = body.empty() ? 204 : 200;
  static_cast<void>(user_->answered({.status = status, .encoded = false, .location = {}, .body = body}));
}

// ---- reading ----

std::size_t ClientHttp::read(std::span<char> input) {
  std::size_t at = 0;
  while (at < input.size() && !over()) {
    const std::span<char> rest = input.subspan(at);
    if (!waiting_) {
      fail(CloseReason::unreadable, "the server sent what nobody had asked for");
      break;
    }
    at += body_.reading() ? read_body(rest) : read_head(rest);
  }
  return input.size();
}

std::size_t ClientHttp::read_head(std::span<char> input) {
  HttpResponseHead head;
  std::string_view text{input.data(), input.size()};
  const std::size_t bytes_max = host_->limits.header_bytes;
  const std::size_t kept = head_.size();
  if (kept != 0) {
    head_.append(text.substr(0, bytes_max + 1 - kept));
    text = head_.view();
  }
  const framing::HttpHeadRead read = read_http_response_head(text, bytes_max, head);
  if (read.status != 0) {
    fail(CloseReason::unreadable, std::string{"the server sent what is no HTTP response: "}.append(read.cause));
    return input.size();
  }
  if (read.size == 0) {
    if (kept == 0) {
      head_ = host_->loop.take_buffer();
      head_.append(text);
    }
    return input.size();
  }
  // Its spans may lie in what is kept.
  begin_response(head);
  if (kept != 0) give_back(head_);
  return read.size - kept;
}

void ClientHttp::begin_response(const HttpResponseHead& head) {
  if (head.status == 101)
    return fail(CloseReason::unreadable, "the server speaks something else from here on (HTTP status 101)");
  if (head.status < 200) return;  // the response is still to come
  status_ = head.status;
  closes_ = head.closes || head.endless();
  encoded_ =
      head.has(HttpField::content_encoding) && !framing::same_word(head[HttpField::content_encoding], "identity");
  location_ = head[HttpField::location].substr(0, kLocationBytesMax);
  if (status_ == 204 || status_ == 304) {
    closes_ = head.closes;
    return finish_response({});
  }
  if (!head.chunked && head.content_length > host_->limits.max_message_size) return end(CloseReason::too_large);
  body_.begin(head, head.endless());
  if (!body_.reading()) finish_response({});
}

std::size_t ClientHttp::read_body(std::span<char> input) {
  using Step = BodyReader::Step;
  const BodyReader::Found found = body_.read(input, host_->limits.max_message_size, host_->loop);
  if (found.step == Step::malformed) {
    fail(CloseReason::unreadable, "the server sent what is no HTTP response: a chunk that is malformed");
  } else if (found.step == Step::too_large) {
    end(CloseReason::too_large);
  } else if (found.step == Step::complete && found.in_place.data() == nullptr) {
    finish_kept();
  } else if (found.step == Step::complete) {
    // Should something stand behind it, it is not a part of it; the scanner wants a zero there.
    char& behind = *(input.data() + found.used);
    const char saved = std::exchange(behind, '\0');
    finish_response({found.in_place.data(), found.in_place.size()});
    behind = saved;
  }
  return found.used;
}

void ClientHttp::finish_kept() {
  finish_response(body_.kept().padded());
  give_back(body_.kept());
}

// What is no message of its encoding stays as it is.
std::string_view ClientHttp::transcode_response(std::string_view body, Buffer& json) {
  if (!encoded_) body.remove_prefix(framing::byte_order_mark_bytes(body));
  if (body.empty() || encoded_) return body;
  const Encoding encoding = message::encoding_of(body[0]);
  if (encoding == Encoding::json) return body;
  const auto status = host_->loop_context.codecs.transcoder(encoding).to_json(body, host_->limits, json);
  return status == message::Transcoder::Status::done ? json.padded() : body;
}

// The answers to calls that were not sent, with those to the others.
std::string_view ClientHttp::with_refusals(std::string_view body, Buffer& all) {
  if (refusals_.empty()) return body;
  const std::string_view own = body.substr(std::min(body.find_first_not_of(" \t\r\n"), body.size()));
  if (own.starts_with('[')) {
    all.append(own.substr(0, own.find_last_of(']')));
  } else {
    all.push_back('[');
    all.append(own);
  }
  for (const std::string& refusal : std::exchange(refusals_, {})) {
    if (all.size() != 1) all.push_back(',');
    all.append(refusal);
  }
  all.push_back(']');
  return all.padded();
}

void ClientHttp::finish_response(std::string_view body) {
  ++host_->loop_context.stats.messages_in;
  body_.stop();
  waiting_ = false;
  // The server may have answered without having heard us out: what is left of the request cannot be taken back.
  const bool last = closes_ || has_output();
  Buffer json;
  Buffer all;
  body = transcode_response(body, json);
  if (status_ < 300) body = with_refusals(body, all);
  const std::optional<HttpProtocolError> protocol_error =
      user_->answered({.status = status_, .encoded = encoded_, .location = location_, .body = body});
  if (protocol_error) return fail(protocol_error->end, protocol_error->cause);
  if (last) end(CloseReason::finished);
}

// No bytes follow.
void ClientHttp::input_complete() {
  if (body_.ends_with_connection()) return finish_kept();
  if (!waiting_) return;
  const bool within = body_.reading() || !head_.empty();
  fail(CloseReason::finished, within ? "the server closed it within a response" : "the server closed it");
}

void ClientHttp::fail(CloseReason why, std::string_view cause) {
  failure_ = cause;
  end(why);
}

}  // namespace wirecall::net
