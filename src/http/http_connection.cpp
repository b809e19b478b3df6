// See http_connection.hpp. The path that matters: read_head, begin_request and read_body of a POST whose body has come
// with its head, answered at once; it copies nothing and allocates nothing. Everything else is for the rare and the
// hostile.
#include "http/http_connection.hpp"

#include "connection/tls_service.hpp"
#include "framing/token.hpp"
#include "http/browser_access.hpp"
#include "http/event_stream.hpp"
#include "http/streamed_call.hpp"

namespace wirecall::net {

using framing::HttpField;
using framing::HttpHead;
using framing::HttpMethod;

// What is read of a body that nobody wants, so that the connection can be kept.
constexpr std::size_t kDiscardedBytesMax = 1024 * 1024;
// What lists all there is has no other bound.
constexpr std::size_t kRenderedBytesMax = ~std::size_t{0};
// A step of the share pays for more bytes of a response that is there already.
constexpr std::size_t kBytesCopiedInStep = 1024;
constexpr std::string_view kPreflight =
    "\r\nAccess-Control-Allow-Headers: Accept, Authorization, Content-Type, Last-Event-ID, Traceparent, Tracestate, "
    "Wirecall-Timeout-Ms\r\n"
    "Access-Control-Max-Age: 600\r\n";
// Of the server as a whole.
constexpr HttpMethods kAnyMethods{HttpMethod::get, HttpMethod::post};

// Whether the page that has sent this, if any, may; else the request has been refused.
static bool let_in(HttpConnection& connection, const HttpHead& head, const HttpRoute* route) {
  Asked asked{.over_tls = connection.tls() != nullptr};
  Access access = access_of(head, connection.settings(), asked);
  if (access == Access::own) [[likely]]
    return true;
  const bool by_host = access == Access::no_host || access == Access::malformed_host || access == Access::foreign_host;
  // At a unix socket, where no page gets to, or of no use to one.
  asked.of_any_host =
      connection.peer_credentials() || (access != Access::malformed_host && route != nullptr && route->any_host);
  if (by_host && asked.of_any_host) access = access_of(head, connection.settings(), asked);
  if (access == Access::allowed_origin) {
    connection.current().fields.append("Access-Control-Allow-Origin: ").append(head[HttpField::origin]);
    connection.current().fields.append("\r\nVary: Origin\r\n");
  }
  const HttpRefusal refusal = refusal_of(access);
  if (refusal.status == 0) return true;
  if (refusal.closes) connection.current().closes = true;
  connection.current().refuse(refusal.status, refusal.cause);
  return false;
}

// Whether the head says who asks, which it has to; else the request has been refused.
static bool authenticate(HttpConnection& connection, const RoutedRequest& request, const HttpRoute* upgrade,
                         const Principal*& principal) {
  const HttpHead& head = request.head;
  HttpTransaction& transaction = connection.current();
  const std::string_view given = head[HttpField::authorization];
  rpc::Credential shown = connection.credential_of(head);
  principal = connection.find(shown);
  transaction.dispatcher.identify(principal, std::move(shown));
  if (principal != nullptr) return true;
  // Browsers ask for the options before they send an Authorization. What is open is so to what is served there alone:
  // that an upgrade is says nothing of other requests at its path.
  const bool open = upgrade != nullptr
                        ? upgrade->open
                        : head.method == HttpMethod::options || connection.settings().routes.is_open(request.path);
  if (open && given.empty()) return true;
  connection.refuse_unknown(request, !given.empty());
  return false;
}

// Whether what the head expects, if anything, can be met; else the request has been refused.
static bool can_meet(HttpTransaction& transaction, const HttpHead& head) {
  if (!head.has(HttpField::expect) || framing::same_word(head[HttpField::expect], "100-continue")) [[likely]]
    return true;
  transaction.refuse_and_close(417, "only 100-continue can be expected");
  return false;
}

// The route of the protocol that the request asks for instead of a response, if there is one.
static const HttpRoute* find_upgrade(const HttpRoutes& routes, const HttpHead& head, std::string_view path) {
  std::string_view asked = head[HttpField::upgrade];
  while (!asked.empty()) {
    if (const HttpRoute* const found = routes.find_upgrade(path, framing::take_element(asked))) return found;
  }
  return nullptr;
}

// Has the route `found` for its path and method serve the request.
static void serve_by_route(HttpConnection& connection, const RoutedRequest& request, const HttpRoute* found) {
  const HttpHead& head = request.head;
  const HttpRoutes& routes = connection.settings().routes;
  if (found != nullptr && head.method == HttpMethod::post) [[likely]]
    return found->handle(connection, request);

  HttpTransaction& transaction = connection.current();
  if (head.method == HttpMethod::unknown) return transaction.refuse(501, "this method is not one of HTTP");
  if (found != nullptr) return found->handle(connection, request);
  const bool any_path = request.path.empty() || request.path == "*";
  const HttpMethods methods = any_path ? kAnyMethods : routes.methods_at(request.path);
  if (methods.empty()) return transaction.refuse(404, "there is nothing here");
  transaction.fields.append("Allow: ").append(methods.text()).append("\r\n");
  if (head.method != HttpMethod::options) return transaction.refuse(405, "this method is not one of this place");
  if (head.has(HttpField::origin)) {
    transaction.fields.append("Access-Control-Allow-Methods: ").append((methods | kAnyMethods).text());
    transaction.fields += kPreflight;
  }
  transaction.respond_empty(204);
}

HttpConnection::HttpConnection(Host& host, const HttpSettings& settings, std::unique_ptr<transport::ByteStream> stream)
    : HttpChannel(host, std::move(stream)), settings_(&settings) {}

HttpConnection::~HttpConnection() = default;

rpc::Credential HttpConnection::credential_of(const HttpHead& head) const {
  const std::string_view token = bearer_token(head);
  return token.empty() ? certificate_of(*stream_) : rpc::Credential{token};
}

const Principal* HttpConnection::find(const rpc::Credential& shown) const {
  const rpc::Authority* const authority = host_->loop_context.services.authority.get();
  if (authority == nullptr || shown.empty()) return nullptr;
  const Principal* const known = shown.find_in(*authority);
  if (tls() == nullptr || known == nullptr) return known;
  const rpc::Credential certificate = certificate_of(*stream_);
  const Principal* const certified = certificate.empty() ? nullptr : certificate.find_in(*authority);
  return certified == nullptr || rpc::same_principal(certified, known) ? known : nullptr;
}

HttpConnection::Rare& HttpConnection::rare() {
  if (!rare_) rare_ = std::make_unique<Rare>();
  return *rare_;
}

void HttpConnection::drain() noexcept {
  draining_ = true;
  if (phase_ == Phase::events) rare_->events->dispatcher.peer_ended();
  Channel::drain();
}

bool HttpConnection::working() const noexcept {
  return transactions_.working() || (phase_ == Phase::events && rare_->events->working());
}

void HttpConnection::stop_calls() noexcept {
  if (phase_ == Phase::events) rare_->events->dispatcher.stop_calls();
  transactions_.each([](HttpTransaction& transaction) { transaction.dispatcher.stop_calls(); });
}

void HttpConnection::authority_changed(bool was_open) {
  if (phase_ == Phase::events && !rare_->events->dispatcher.is_still_known(was_open)) {
    rare_->events->dispatcher.end_if_revoked();
    stop_reading(CloseReason::refused);
  }
  transactions_.each([](HttpTransaction& transaction) { transaction.dispatcher.end_if_revoked(); });
}

std::size_t HttpConnection::kept_bytes() const noexcept {
  const std::size_t rendered = rare_ && rare_->rendering ? rare_->rendering->text().size() : 0;
  const rpc::PeerLoad* const load = this->load().get();
  return reader_.kept_bytes() + transactions_.held_bytes() + rendered + (load != nullptr ? load->bytes() : 0);
}

std::shared_ptr<rpc::Account> HttpConnection::account() {
  return load() && load()->calls.account() ? load()->calls.account() : current().dispatcher.account();
}

void HttpConnection::abandon() noexcept {
  reader_.stop_pace();
  if (phase_ == Phase::events) rare_->events->abandon();
  transactions_.each([](HttpTransaction& transaction) { transaction.dispatcher.abandon(); });
}

// ---- reading ----

std::size_t HttpConnection::read(std::span<char> input) {
  std::size_t at = 0;
  if (phase_ == Phase::events) [[unlikely]]
    return input.size();
  while (at < input.size() && !input_ended() && !backpressured()) {
    const std::span<char> rest = input.subspan(at);
    at_ = at;
    if (reader_.body().reading()) {
      at += read_body(rest);
    } else {
      if (!may_dispatch(at)) break;
      at += read_head(rest);
    }
    if (lost_loop()) [[unlikely]]
      return at;
    if (phase_ == Phase::events) [[unlikely]]
      return input.size();
  }
  if (reader_.has_begun()) [[unlikely]]
    reader_.watch_pace();
  return at;
}

std::size_t HttpConnection::read_head(std::span<char> input) {
  HttpHead head;
  const framing::HttpHeadRead read = reader_.read_head({input.data(), input.size()}, head);
  if (read.size == 0) [[unlikely]] {
    if (read.status != 0) {
      current().refuse_and_close(read.status, read.cause);
      finish_transaction();
    } else if (host_->loop_context.services.authority != nullptr && principal_ == nullptr) {
      reader_.hold_unidentified();
    }
    return input.size();
  }
  mark_consumed(at_ + read.size);
  begin_request(head, read.size < input.size());
  reader_.release_head();
  return read.size;
}

std::size_t HttpConnection::read_body(std::span<char> input) {
  using Step = BodyReader::Step;
  BodyReader& body = reader_.body();
  const bool discards = body.discards();
  const BodyReader::Found found =
      body.read(input, discards ? kDiscardedBytesMax : host_->limits.max_message_size, host_->loop);
  mark_consumed(at_ + found.used);
  if (found.step == Step::complete) [[likely]] {
    if (found.in_place.data() != nullptr && !rare_) [[likely]] {
      message_.serve(found.in_place);
    } else {
      body_complete(found.in_place);
    }
    return found.used;
  }
  if (held_by(body.kept()) > kWeighedBytes) weigh();
  if (found.step == Step::too_large) {
    if (discards) {
      stop_reading(CloseReason::finished);
    } else {
      refuse_body_size();
    }
  } else if (found.step == Step::malformed) {
    if (discards) {
      stop_reading(CloseReason::unreadable);
    } else {
      current().refuse_and_close(400, "a chunk that is malformed");
      finish_transaction();
    }
    return input.size();
  }
  return found.used;
}

void HttpConnection::body_complete(std::span<char> in_place) {
  const bool comes_whole = in_place.data() != nullptr;
  Buffer& kept = reader_.body().kept();
  if (!comes_whole && held_by(kept) > kWeighedBytes) weigh();
  if (rare_ && rare_->body_user) [[unlikely]] {
    const std::string_view body = comes_whole ? std::string_view{in_place.data(), in_place.size()} : kept.view();
    std::exchange(rare_->body_user, nullptr)(*this, body);
    give_back(kept);
    return finish_if_answered();
  }
  if (comes_whole) [[likely]]
    return message_.serve(in_place);
  message_.serve_kept();
}

// Its response is due before all others: so nothing that follows is read until it has come.
void HttpConnection::leave_message(std::vector<Buffer>& kept) {
  message_.leave(kept);
  kept.push_back(reader_.take_head());
  block();
}

// Nothing follows: what has not ended now is none.
void HttpConnection::input_complete() {
  if (phase_ == Phase::events) return rare_->events->dispatcher.peer_ended();
  transactions_.each_dispatched([](HttpTransaction& transaction) { transaction.dispatcher.peer_ended(); });
  if (!reader_.is_within_request()) return;
  current().refuse_and_close(400, "the connection ended within the request");
  finish_transaction();
}

void HttpConnection::request_is_late() {
  if (reader_.body().discards()) return stop_reading(CloseReason::silent);
  ++host_->loop_context.stats.connections_timed_out;
  within_memory([&] {
    current().refuse_and_close(408, "the request did not come in time");
    finish_transaction();
  });
}

void HttpConnection::resume_message() {
  if (!rare_ || !rare_->rendering) return message_.resume();
  HttpTransaction& transaction = current();
  if (!rare_->rendering->advance(transaction, kRenderedBytesMax)) {
    if (rare_->rendering->text().size() > kWeighedBytes) weigh();
    return interrupt();
  }
  const std::unique_ptr<rpc::Rendering> done = std::move(rare_->rendering);
  transaction.charge(done->text().size() / kBytesCopiedInStep);
  transaction.respond(200, done->text(), rare_->rendering_type);
  finish_transaction();
}

// ---- a request ----

void HttpConnection::begin_request(const HttpHead& head, bool more) {
  reader_.stop_pace();
  HttpTransaction& transaction = current();
  transaction.begin(head, draining_ || leaving_);
  if (head.has_body()) {
    // Unless somebody wants it, it has to be got out of the way; where it is long, or may not come at all, by closing.
    reader_.body().begin(head);
    reader_.body().discard(true);
    transaction.closes = transaction.closes || head.content_length > kDiscardedBytesMax || head.has(HttpField::expect);
  }
  const std::string_view target = head.target;
  const std::size_t question = std::min(target.find('?'), target.size());
  const RoutedRequest request{.head = head,
                              .path = target.substr(0, question),
                              .query = target.substr(std::min(question + 1, target.size())),
                              .more = more};
  const HttpRoute* route = settings_->routes.find(request.path, head.method);
  const HttpRoute* upgrade = nullptr;
  const bool calls = route != nullptr && head.method == HttpMethod::post;
  if (head.upgrades && !calls && head.method != HttpMethod::unknown) [[unlikely]]
    upgrade = find_upgrade(settings_->routes, head, request.path);
  if (upgrade != nullptr) route = upgrade;
  const bool anonymous = host_->loop_context.services.authority == nullptr;
  if (anonymous && principal_ != nullptr) [[unlikely]] {
    // There were principals at the request before.
    principal_ = nullptr;
    transaction.dispatcher.identify(nullptr, {});
  }
  if (let_in(*this, head, route) && (anonymous || authenticate(*this, request, upgrade, principal_)) &&
      can_meet(transaction, head)) [[likely]]
    serve_by_route(*this, request, route);
  finish_if_answered();
}

void HttpConnection::refuse_unknown(const RoutedRequest& request, bool shown) {
  using rpc::Refusals;
  const std::string_view method = name_of(request.head.method);
  const std::string_view token = bearer_token(request.head);
  const rpc::Authority* const authority = host_->loop_context.services.authority.get();
  std::string reason{shown ? Refusals::kUnknownToken : Refusals::kNoToken};
  // One that is known is refused for the sake of the certificate beside it.
  if (!token.empty() && authority != nullptr && authority->find(token) != nullptr) reason = Refusals::kOtherPrincipal;
  const std::optional<std::vector<std::string>> names = shown ? std::nullopt : certificate_names();
  if (names && authority != nullptr) reason = authority->fault_of_certificate(*names);
  host_->loop_context.refusals.log_unauthenticated(
      {.what = std::string{method}.append(method.empty() ? "" : " ").append(request.path),
       .about = {},
       .source = peer_source(),
       .reason = reason});
  current().fields += "WWW-Authenticate: Bearer\r\n";
  std::string cause{"say who you are, by Authorization: Bearer and a token that is known"};
  if (names) cause.append("; the connection has shown ").append(reason);
  current().refuse_and_close(401, cause);
}

// ---- its body ----

void HttpConnection::begin_message(const RoutedRequest& request) {
  const HttpHead& head = request.head;
  HttpTransaction& transaction = current();
  if (!transaction.take_timeout(head)) return;
  transaction.choose_encoding(head);
  if (transaction.wants_events()) [[unlikely]]
    return begin_streamed_call(*this, request);
  if (host_name != head[HttpField::host]) [[unlikely]]
    host_name = peer_credentials() ? std::string_view{} : head[HttpField::host];
  if (wants_body(request) && !head.has_body()) message_.serve_kept();
}

void HttpConnection::begin_body(const RoutedRequest& request, BodyUser user) {
  rare().body_user = std::move(user);
  if (!wants_body(request)) {
    rare_->body_user = nullptr;
  } else if (!request.head.has_body()) {
    body_complete({});
  }
}

// Whether the body, if any, is going to be read; else the request has been refused.
bool HttpConnection::wants_body(const RoutedRequest& request) {
  const HttpHead& head = request.head;
  HttpTransaction& transaction = current();
  if (head.has(HttpField::content_encoding)) [[unlikely]] {
    transaction.refuse(415, "a Content-Encoding is not understood: send the body as it is");
    return false;
  }
  if (head.content_length > host_->limits.max_message_size) [[unlikely]] {
    refuse_body_size();
    return false;
  }
  // The peer waits for a word before it sends the body, unless it has sent some of it.
  if (head.has(HttpField::expect) && head.has_body() && !head.version_1_0 && !request.more) [[unlikely]]
    continue_body();
  transaction.closes = head.closes || draining_ || leaving_;
  reader_.body().discard(false);
  return true;
}

void HttpConnection::continue_body() {
  continue_due_ = others_wait();
  if (continue_due_) return;
  const std::size_t waiting = output().size();
  out_.append("HTTP/1.1 100 Continue\r\n\r\n");
  output_grew(waiting);
}

// Answered as a message that is too large, and nothing more is read.
void HttpConnection::refuse_body_size() {
  if (!rare_ || !rare_->body_user) return message_.refuse_size();
  current().refuse_and_close(413, "the body has more bytes than limits.max_message_size");
  finish_transaction();
}

void HttpConnection::serve_message(std::string_view text) {
  Buffer& body = reader_.body().kept();
  body = host_->loop.take_buffer();
  body.append(text);
  message_.serve_kept();
}

// ---- its response ----

void HttpConnection::respond(std::unique_ptr<rpc::Rendering> text, std::string_view content_type) {
  rare().rendering = std::move(text);
  rare_->rendering_type = content_type;
  resume_message();  // in this turn or a later one
}

void HttpConnection::begin_events(std::unique_ptr<EventStream> stream) {
  transactions_.drop_current();
  reader_.body().stop();
  rare().events = std::move(stream);
  phase_ = Phase::events;
}

bool HttpConnection::may_upgrade() {
  HttpTransaction& transaction = current();
  if (draining_) {
    transaction.refuse(503, "the server is shutting down");
  } else if (others_wait()) {
    transaction.refuse_and_close(400, "earlier requests of this connection are still to be answered");
  } else if (reader_.body().reading()) {
    transaction.refuse_and_close(400, "a request for an upgrade has no body");
  }
  return !transaction.is_answered();
}

void HttpConnection::upgrade(std::string_view protocol, Successor make) {
  HttpTransaction& transaction = current();
  if (!may_upgrade()) return;
  const std::size_t waiting = output().size();
  write_upgrade_response(out_, protocol, transaction.fields);
  output_grew(waiting);
  transactions_.drop_current();
  rare().successor = std::move(make);
  phase_ = Phase::upgrading;
  block();
  await_writable();
}

// The current request has been dispatched, or refused: its transaction waits, or is free for the next.
void HttpConnection::finish_transaction() {
  const bool closes = current().closes;
  transactions_.finish();
  if (closes) [[unlikely]]
    stop_reading(CloseReason::finished);
}

// At the end of a turn in which a response has come that was waited for.
void HttpConnection::on_turn_end() {
  transactions_.release();
  if (!others_wait() && std::exchange(continue_due_, false) && reader_.body().reading()) continue_body();
  if (phase_ != Phase::upgrading && transactions_.has_few() && off_loop() == 0) unblock();
}

void HttpConnection::output_drained() {
  if (phase_ == Phase::events) rare_->events->dispatcher.on_writable();
  if (phase_ != Phase::upgrading || input_ended()) return;
  if (has_output()) return await_writable();
  replace_by([this](Host& host, std::unique_ptr<transport::ByteStream> stream) {
    std::unique_ptr<Channel> made = rare_->successor(host, std::move(stream));
    if (draining_) made->drain();
    return made;
  });
}

}  // namespace wirecall::net
