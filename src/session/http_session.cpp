// See http_session.hpp. The path that matters: read_head, begin_request and dispatch of a POST whose body has come with
// its head, answered at once; it copies nothing and allocates nothing. Everything else is for the rare and the hostile.
#include "session/http_session.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <utility>

#include "framing/token.hpp"
#include "rpc/dispatcher.hpp"
#include "session/http_query.hpp"

namespace wirecall::session {
namespace {

using framing::Find;
using framing::Found;
using framing::HttpField;
using framing::HttpHead;
using framing::HttpHeadRead;
using framing::HttpMethod;
using std::chrono::milliseconds;

// Requests of one connection that are looked at in one turn; the others have theirs then.
constexpr int kRequestsPerTurn = 1024;
// Exchanges of one connection that wait: beyond them it is not read, since their responses have an order anyway.
constexpr std::size_t kWaitingMax = 256;
// A body that brings less than this within Limits::header_timeout_ms is given up.
constexpr std::size_t kBodyBytesMin = 4096;
// What is read of a body that nobody wants, so that the connection can be kept.
constexpr std::size_t kDiscardedBytesMax = 1024 * 1024;

constexpr std::string_view kFrontAllow = "Allow: GET, HEAD, POST, OPTIONS\r\n";
constexpr std::string_view kPostAllow = "Allow: POST, OPTIONS\r\n";
constexpr std::string_view kGetAllow = "Allow: GET, HEAD, OPTIONS\r\n";
constexpr std::string_view kPreflight =
    "Access-Control-Allow-Methods: GET, HEAD, POST, OPTIONS\r\n"
    "Access-Control-Allow-Headers: Accept, Authorization, Content-Type, Traceparent, Tracestate, "
    "Wirecall-Timeout-Ms\r\n"
    "Access-Control-Max-Age: 600\r\n";

// Which methods a path has; empty for a path that is not served.
std::string_view allow_of(std::string_view path) noexcept {
  if (path == "/rpc") return kPostAllow;
  if (path == "/" || path == "*") return kFrontAllow;
  if (path == "/healthz" || path == "/readyz" || path == "/metrics" || path.starts_with("/rpc/")) return kGetAllow;
  return {};
}

// Whether a message will be answered once the calls that it makes are done.
bool asks(const Received& message) {
  if (message.kind != MessageKind::batch) {
    return message.kind == MessageKind::request || message.kind == MessageKind::invalid;
  }
  BatchElements elements{message.text};
  Received element;
  while (elements.next(element)) {
    if (asks(element)) return true;
  }
  return false;
}

}  // namespace

// One request's answer. Its dispatcher serves the body of a POST, as a session of its own; so it is told apart, by its
// address, whose the answer is that comes late.
class HttpSession::Exchange final : public rpc::Outlet {
 public:
  explicit Exchange(HttpSession& owner)
      : session(&owner), dispatcher(owner.host_->registry, *this, owner.host_->limits, owner.host_->workspace) {}

  Buffer& open_message() override {
    out_ = session->is_next(*this) ? &session->output() : &held;
    if (held.empty() && out_ == &held) held = session->host_->loop.take_buffer();
    response_ = begin_response(*out_, {.status = status, .fields = fields, .closes = closes}, session->digits_);
    return *out_;
  }
  void close_message() override {
    ++session->host_->workspace.stats.messages_out;
    session->digits_ = static_cast<std::uint8_t>(end_response(*out_, response_, head_only));
    written(response_.begin);
    answered = true;
    if (!dispatching) session->settle_later();
  }
  void discard_message() noexcept override { out_->truncate(response_.begin); }

  // A response that is made at once, by `write` into the buffer it is given.
  template <class Write>
  void answer(Write write) {
    out_ = session->is_next(*this) ? &session->output() : &held;
    const std::size_t begin = out_->size();
    write(*out_);
    written(begin);
    answered = true;
  }

  HttpSession* session;
  rpc::Dispatcher dispatcher;
  Buffer held;         // the response, while others are due before it
  std::string fields;  // of the response
  std::uint16_t status = 200;
  bool closes = false;
  bool head_only = false;
  bool dispatching = false;
  bool answered = false;

 private:
  void written(std::size_t begin) {
    if (out_ != &held) return session->output_grew(begin);
    session->held_bytes_ += held.size();
    session->output_grew(session->out_.size() + session->held_bytes_);
  }

  Buffer* out_ = nullptr;
  OpenResponse response_;
};

HttpSession::HttpSession(Host& host, const HttpSettings& settings, std::unique_ptr<transport::Stream> stream)
    : Channel(host, std::move(stream)), settings_(&settings) {}

HttpSession::~HttpSession() {
  host_->loop.stop(*this);
  give_back(head_);
  give_back(body_);
}

void HttpSession::drain() noexcept {
  draining_ = true;
  Channel::drain();
}

void HttpSession::stop_calls() noexcept {
  for (const auto* exchanges : {&waiting_, &silent_}) {
    for (const auto& exchange : *exchanges) exchange->dispatcher.stop_calls();
  }
}

bool HttpSession::working() const noexcept {
  return !waiting_.empty() ||
         std::ranges::any_of(silent_, [](const auto& exchange) { return exchange->dispatcher.in_flight() != 0; });
}

void HttpSession::abandon() noexcept {
  host_->loop.stop(*this);
  for (const auto* exchanges : {&waiting_, &silent_}) {
    for (const auto& exchange : *exchanges) exchange->dispatcher.abandon();
  }
}

// ---- reading ----

std::size_t HttpSession::read(std::span<char> input) {
  std::size_t at = 0;
  int left = kRequestsPerTurn;
  while (at < input.size() && !input_ended() && !choked()) {
    const std::span<char> rest = input.subspan(at);
    at_ = at;
    if (reading_ == Body::none) {
      if (left-- == 0) break;
      at += read_head(rest);
    } else if (reading_ == Body::length) {
      at += read_length(rest);
    } else {
      at += read_chunks(rest);
    }
    if (passed_on()) [[unlikely]]
      return at;
  }
  if (pacing_ || reading_ != Body::none || !head_.empty()) [[unlikely]]
    watch_pace();
  return at;
}

std::size_t HttpSession::read_head(std::span<char> input) {
  HttpHead head;
  std::string_view text{input.data(), input.size()};
  const std::size_t bytes_max = host_->limits.header_bytes;
  const std::size_t kept = head_.size();
  if (kept != 0) [[unlikely]] {
    head_.append(text.substr(0, bytes_max + 1 - kept));
    text = head_.view();
  }
  const HttpHeadRead read = read_http_head(text, bytes_max, head);
  if (read.status != 0) [[unlikely]] {
    refuse_and_close(read.status, read.cause);
    return input.size();
  }
  if (read.size == 0) [[unlikely]] {
    if (kept == 0) {
      head_ = host_->loop.take_buffer();
      head_.append(text);
    }
    return input.size();
  }
  const std::size_t used = read.size - kept;
  looking_at(at_ + used);
  begin_request(head, used < input.size());
  if (kept != 0) give_back(head_);
  return used;
}

std::size_t HttpSession::read_length(std::span<char> input) {
  const std::size_t here = std::min(left_, input.size());
  const bool complete = here == left_;
  left_ -= here;
  came_ += here;
  if (complete) reading_ = Body::none;
  if (discards_) [[unlikely]] {
    discards_ = !complete;
    return here;
  }
  if (complete && body_.empty()) [[likely]] {
    // What stands behind the body belongs to the next request; the scanner wants a zero there.
    char& behind = *(input.data() + here);
    looking_at(at_ + here);
    ended_by_zero_ = &behind;
    behind_zero_ = std::exchange(behind, '\0');
    dispatch(input.first(here));
    if (ended_by_zero_ != nullptr) *std::exchange(ended_by_zero_, nullptr) = behind_zero_;
    return here;
  }
  if (body_.capacity() == 0) body_ = host_->loop.take_buffer();
  body_.append({input.data(), here});
  looking_at(at_ + here);
  if (complete) dispatch_kept();
  return here;
}

std::size_t HttpSession::read_chunks(std::span<char> input) {
  const Found found = chunks_.next({input.data(), input.size()});
  const std::size_t used = found.skip + found.size;
  came_ += found.size;
  looking_at(at_ + used);
  switch (found.find) {
    case Find::part:
      if (discards_) {
        left_ += found.size;
        if (left_ > kDiscardedBytesMax) stop_reading(End::finished);
      } else if (body_.size() + found.size > host_->limits.max_message_size) {
        body_too_large();
      } else {
        if (body_.capacity() == 0) body_ = host_->loop.take_buffer();
        body_.append({input.data() + found.skip, found.size});
      }
      break;
    case Find::message:
      reading_ = Body::none;
      if (!std::exchange(discards_, false)) dispatch_kept();
      break;
    case Find::malformed:
      if (discards_) {
        stop_reading(End::unreadable);
      } else {
        refuse_and_close(400, "a chunk that is malformed");
      }
      return input.size();
    default:
      break;
  }
  return used;
}

// Its response is due before all others: so nothing that follows is read until it has come.
void HttpSession::leave_message(std::vector<Buffer>& kept) {
  if (ended_by_zero_ != nullptr) *std::exchange(ended_by_zero_, nullptr) = behind_zero_;
  kept.push_back(std::exchange(body_, Buffer{}));
  block();
}

// Nothing follows: what has not ended now is none.
void HttpSession::input_complete() {
  const bool unfinished = !head_.empty() || (reading_ != Body::none && !discards_);
  if (unfinished) refuse_and_close(400, "the connection ended within the request");
}

// A request that has begun has to come in time: its head as a whole, its body bit by bit.
void HttpSession::watch_pace() {
  const bool needed = !input_ended() && (reading_ != Body::none || !head_.empty());
  if (needed == pacing_) return;
  pacing_ = needed;
  came_ = 0;
  if (!needed) return host_->loop.stop(*this);
  host_->loop.start(*this, milliseconds{host_->limits.header_timeout_ms});
}

void HttpSession::expired() {
  pacing_ = false;
  if (over() || input_ended() || away() != 0) return;
  const bool comes = reading_ != Body::none && (came_ >= kBodyBytesMin || choked());
  if (comes) return watch_pace();
  if (discards_) return stop_reading(End::silent);
  ++host_->workspace.stats.connections_timed_out;
  refuse_and_close(408, "the request did not come in time");
}

// ---- deciding ----

void HttpSession::begin_request(const HttpHead& head, bool more) {
  if (pacing_) [[unlikely]] {
    pacing_ = false;
    host_->loop.stop(*this);
  }
  Exchange& exchange = current();
  exchange.closes = head.closes || draining_;
  exchange.head_only = head.method == HttpMethod::head;
  if (head.has_body()) {
    // Unless somebody wants it, it has to be got out of the way; where it is long, or may not come at all, by closing.
    reading_ = head.chunked ? Body::chunks : Body::length;
    left_ = head.content_length;
    chunks_ = {};
    discards_ = true;
    exchange.closes = exchange.closes || left_ > kDiscardedBytesMax || head.has(HttpField::expect);
  }
  if (!let_in(head)) return;
  const std::string_view target = head.target;
  const std::size_t question = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, question);
  if (head.method == HttpMethod::post && (path == "/rpc" || path == "/")) [[likely]]
    return begin_post(head, more);

  if (head.method == HttpMethod::unknown) return refuse(501, "this method is not one of HTTP");
  const std::string_view allow = allow_of(path);
  if (allow.empty() && !path.empty()) return refuse(404, "there is nothing here");
  if (head.upgrades && framing::same_word(head[HttpField::upgrade], "websocket")) {
    exchange.fields += "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
    return refuse(426, "a WebSocket is not offered here");
  }
  if (head.method == HttpMethod::options) {
    exchange.fields += allow;
    if (head.has(HttpField::origin)) exchange.fields += kPreflight;
    return respond_empty(204);
  }
  if (head.method == HttpMethod::post || head.method == HttpMethod::other || path == "/rpc" || path == "*") {
    exchange.fields += allow.empty() ? kFrontAllow : allow;
    return refuse(405, "this method is not one of this place");
  }
  get(head, path, target.substr(std::min(question + 1, target.size())));
}

// Whether the page that has sent this, if any, may.
bool HttpSession::let_in(const HttpHead& head) {
  switch (access_of(head, *settings_)) {
    case Access::own:
      return true;
    case Access::allowed_origin:
      current().fields.append("Access-Control-Allow-Origin: ").append(head[HttpField::origin]);
      current().fields.append("\r\nVary: Origin\r\n");
      return true;
    case Access::malformed_host:
      refuse_and_close(400, "a Host that is none");
      return false;
    case Access::foreign_host:
      refuse(403, "this Host is not one of ours; name it in allow_hosts if it is");
      return false;
    case Access::foreign_origin:
      refuse(403, "pages of this Origin may not call; name it in allow_origins if they may");
      return false;
    case Access::cross_site:
      refuse(403, "pages of other sites may not ask for this");
      return false;
  }
  return false;
}

// Whether what the head says of the calls' time, if anything, can be understood; else it has been refused.
bool HttpSession::take_timeout(const HttpHead& head) {
  if (!head.has(HttpField::wirecall_timeout_ms)) [[likely]]
    return true;
  const std::string_view text = head[HttpField::wirecall_timeout_ms];
  std::uint32_t milliseconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) {
    refuse(400, "a Wirecall-Timeout-Ms that is no whole number");
    return false;
  }
  // More than can be counted is no limit.
  if (error == std::errc{}) current().dispatcher.limit_timeout(milliseconds);
  return true;
}

void HttpSession::begin_post(const HttpHead& head, bool more) {
  if (!take_timeout(head)) return;
  if (head.has(HttpField::content_encoding)) [[unlikely]]
    return refuse(415, "a Content-Encoding is not understood: send the body as it is");
  if (head.content_length > host_->limits.max_message_size) [[unlikely]]
    return body_too_large();
  if (head.has(HttpField::expect)) [[unlikely]] {
    if (!framing::same_word(head[HttpField::expect], "100-continue")) {
      return refuse_and_close(417, "only 100-continue can be expected");
    }
    if (head.has_body() && !head.version_1_0) continue_body(more);
  }
  current().closes = head.closes || draining_;
  discards_ = false;
  if (!head.has_body()) dispatch_kept();
}

// The peer waits for a word before it sends the body, unless it has sent some of it.
void HttpSession::continue_body(bool more) {
  if (more) return;
  continue_due_ = !waiting_.empty();
  if (continue_due_) return;
  const std::size_t waiting = output().size();
  out_.append("HTTP/1.1 100 Continue\r\n\r\n");
  output_grew(waiting);
}

void HttpSession::get(const HttpHead& head, std::string_view path, std::string_view query) {
  if (path == "/healthz") return respond(200, "ok\n");
  if (path == "/readyz") return draining_ ? respond(503, "draining\n") : respond(200, "ready\n");
  if (path == "/metrics") {
    return respond(200, settings_->metrics ? settings_->metrics() : std::string{},
                   "text/plain; version=0.0.4; charset=utf-8");
  }
  if (path.starts_with("/rpc/")) return take_timeout(head) ? get_method(path.substr(5), query) : void();
  const std::string_view host = head.has(HttpField::host) ? head[HttpField::host] : "localhost";
  respond(200, front_page(host));
}

void HttpSession::get_method(std::string_view name, std::string_view query) {
  const std::expected<std::string, std::string_view> method = decode_percent(name);
  if (!method) return refuse(400, method.error());
  const Method* const found = host_->registry.find(*method);
  if (found == nullptr || !found->is_safe()) {
    return refuse(404, "no method of this name may be called by GET; any can be by POST /rpc");
  }
  const std::expected<std::string, std::string_view> request = request_of_query(*method, query);
  if (!request) return refuse(400, request.error());
  body_ = host_->loop.take_buffer();
  body_.append(*request);
  dispatch_kept();
}

void HttpSession::dispatch_kept() {
  // A peer that has sent no body gets what no message is answered.
  static_cast<void>(body_.padded());
  dispatch({body_.data(), body_.size()});
  give_back(body_);
}

void HttpSession::dispatch(std::span<char> text) {
  if (silent_.size() >= host_->limits.in_flight) [[unlikely]] {
    std::erase_if(silent_, [](const auto& exchange) { return exchange->dispatcher.in_flight() == 0; });
    if (silent_.size() >= host_->limits.in_flight) return refuse_and_close(503, "too many calls are in flight");
  }
  Exchange& exchange = current();
  if (draining_) [[unlikely]] {
    exchange.dispatcher.drain();
    exchange.status = 503;
    exchange.fields += "Retry-After: 1\r\n";
  }
  Received message;
  const Scan scan = read_message({text.data(), text.size()}, host_->limits, true, message, *host_->workspace.elements);
  exchange.dispatching = true;
  bool asked = true;
  host_->workspace.stats.messages_in += scan.status == ScanStatus::complete;
  if (scan.status != ScanStatus::complete) [[unlikely]] {
    exchange.dispatcher.refuse_syntax(scan.status);
  } else if (message.kind == MessageKind::response) [[unlikely]] {
    ++host_->workspace.stats.responses_dropped;
  } else {
    exchange.dispatcher.handle(message, *host_->workspace.elements);
  }
  exchange.dispatching = false;
  if (over()) [[unlikely]]
    return;
  if (!exchange.answered) [[unlikely]] {
    asked = exchange.dispatcher.in_flight() != 0 && asks(message);
    if (!asked) respond_empty(draining_ ? 503 : settings_->notification_status);
    if (!asked) return;
  }
  finish_exchange();
}

// Answered as a message that is too large, and nothing more is read.
void HttpSession::body_too_large() {
  Exchange& exchange = current();
  exchange.status = 413;
  exchange.closes = exchange.dispatching = true;
  exchange.dispatcher.refuse_size();
  exchange.dispatching = false;
  finish_exchange();
}

// ---- answering ----

HttpSession::Exchange& HttpSession::current() {
  if (current_ == nullptr) [[unlikely]]
    current_ = std::make_unique<Exchange>(*this);
  return *current_;
}

void HttpSession::respond(std::uint16_t status, std::string_view body, std::string_view content_type) {
  Exchange& exchange = current();
  exchange.answer([&](Buffer& out) {
    write_response(
        out, {.status = status, .content_type = content_type, .fields = exchange.fields, .closes = exchange.closes},
        body, exchange.head_only);
  });
  finish_exchange();
}

void HttpSession::respond_empty(std::uint16_t status) {
  Exchange& exchange = current();
  exchange.answer([&](Buffer& out) {
    write_empty_response(out, {.status = status, .fields = exchange.fields, .closes = exchange.closes});
  });
  finish_exchange();
}

void HttpSession::refuse(std::uint16_t status, std::string_view cause) {
  std::string text{reason_of(status)};
  text.append(": ").append(cause).append("\n");
  respond(status, text);
}

void HttpSession::refuse_and_close(std::uint16_t status, std::string_view cause) {
  current().closes = true;
  refuse(status, cause);
}

// The current request has been dispatched: its exchange waits, or is free for the next.
void HttpSession::finish_exchange() {
  Exchange& exchange = *current_;
  const bool closes = exchange.closes;
  if (exchange.answered && waiting_.empty() && exchange.held.empty()) [[likely]] {
    if (exchange.dispatcher.in_flight() != 0) [[unlikely]] {
      silent_.push_back(std::move(current_));
    } else {
      exchange.answered = exchange.closes = exchange.head_only = false;
      exchange.status = 200;
      exchange.fields.clear();
      exchange.dispatcher.limit_timeout(rpc::Dispatcher::kNoTimeout);
    }
  } else {
    if (exchange.answered) settle_later();
    waiting_.push_back(std::move(current_));
    if (waiting_.size() >= kWaitingMax || held_bytes_ > host_->limits.soft_output) block();
  }
  if (closes) [[unlikely]]
    stop_reading(End::finished);
}

// At the end of a turn in which a response has come that was waited for.
void HttpSession::settle() {
  release_answered();
  std::erase_if(silent_, [](const auto& exchange) { return exchange->dispatcher.in_flight() == 0; });
  if (waiting_.empty() && std::exchange(continue_due_, false) && reading_ != Body::none) continue_body(false);
  if (waiting_.size() <= kWaitingMax / 2 && held_bytes_ <= host_->limits.soft_output && away() == 0) unblock();
}

void HttpSession::release_answered() {
  std::size_t gone = 0;
  for (; gone != waiting_.size() && waiting_[gone]->answered; ++gone) {
    Exchange& exchange = *waiting_[gone];
    const std::size_t waiting = output().size();
    held_bytes_ -= exchange.held.size();
    if (waiting == 0) {
      std::swap(out_, exchange.held);
    } else {
      out_.append(exchange.held.view());
    }
    give_back(exchange.held);
    output_grew(waiting);
    if (exchange.dispatcher.in_flight() != 0) silent_.push_back(std::move(waiting_[gone]));
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(gone));
}

}  // namespace wirecall::session
