// See client.hpp and request.hpp: what users hold, over a ClientCore.
#include "wirecall/client.hpp"

#include <algorithm>

#include "client/core.hpp"
#include "client/input.hpp"
#include "client/stream.hpp"
#include "codec/json_compact.hpp"
#include "message/own_error.hpp"
#include "message/transcoder.hpp"

namespace wirecall {

using net::ClientCall;
using net::ClientCore;
using std::chrono::milliseconds;

// Longer ones are as good as none, and could not be added to the time.
constexpr milliseconds kTimeoutMax = std::chrono::hours{24 * 365 * 100};

static Error connection_error(std::string message, ConnectionError::Delivered delivered) {
  std::string data = message::make({.code = ErrorCode::provider_lost,
                                    .reason = message,
                                    .delivered = delivered == ConnectionError::Delivered::no ? "no" : "maybe"})
                         .data();
  return Error{ErrorCode::provider_lost, std::move(message), std::move(data)};
}

ConnectionError::ConnectionError(std::string message, Delivered delivered)
    : Error(connection_error(std::move(message), delivered)) {}

bool ConnectionError::safe_to_retry() const noexcept { return data().find(R"("delivered":"no")") != std::string::npos; }

// ---- Client ----

Client::Client(std::string_view uri) : Client(uri, ClientOptions{}) {}
Client::Client(std::string_view uri, ClientOptions options) : Client(std::vector{Endpoint{uri}}, std::move(options)) {}
Client::Client(std::vector<Endpoint> endpoints) : Client(std::move(endpoints), ClientOptions{}) {}
Client::Client(std::vector<Endpoint> endpoints, ClientOptions options)
    : core_(std::make_shared<ClientCore>(std::move(endpoints), std::move(options))) {}
Client::Client(std::shared_ptr<ClientCore> core) noexcept : core_(std::move(core)) {}
Client::~Client() {
  if (core_ != nullptr) core_->close();
}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&& other) noexcept {
  std::swap(core_, other.core_);
  return *this;
}

Batch<> Client::batch() { return Batch<>{detail::OutgoingBatch{core_}}; }
Registry& Client::registry() noexcept { return core_->shared().registry; }
Scheduler& Client::scheduler() noexcept { return core_->shared().loop; }
void Client::close() noexcept { core_->close(); }
void Client::connect() { core_->connect(); }
void Client::on_wait(std::function<bool()> interrupted) { core_->driver().on_wait(std::move(interrupted)); }
std::uint64_t Client::responses_dropped() const { return core_->responses_dropped(); }

std::expected<std::string, Error> Client::call_raw(std::string_view method, std::string_view params_json) {
  detail::OutgoingCall call{core_, method};
  if (!params_json.empty()) call.set_params(params_json);
  call.want_json();
  detail::Answer answer = call.wait();
  if (!answer.ok()) return std::unexpected{std::move(answer.error())};
  return std::string{answer.result()};
}

std::expected<Response, Error> Client::call_for_response(std::string_view method, std::string_view params_json,
                                                         std::optional<milliseconds> timeout) {
  detail::OutgoingCall call{core_, method};
  if (timeout) call.set_timeout(*timeout);
  if (!params_json.empty()) call.set_params(params_json);
  call.keep_response();
  detail::Answer answer = call.wait();
  if (!answer.ok() && call.response().empty()) return std::unexpected{std::move(answer.error())};
  Response response{.json = std::string{call.response()}, .result = {}};
  if (answer.ok()) {
    response.result = std::string{answer.result()};
  } else {
    response.result = std::unexpected{std::move(answer.error())};
  }
  return response;
}

std::expected<void, Error> Client::notify_raw(std::string_view method, std::string_view params_json,
                                              std::optional<milliseconds> timeout) {
  detail::OutgoingCall call{core_, method};
  if (timeout) call.set_timeout(*timeout);
  if (!params_json.empty()) call.set_params(params_json);
  detail::Answer answer = call.notify();
  if (!answer.ok()) return std::unexpected{std::move(answer.error())};
  return {};
}

std::shared_ptr<detail::Executor> Client::executor() const { return core_->executor(); }

void Client::run(std::stop_token stop, const std::function<void(std::stop_token)>& begin, const bool& finished) {
  // Whoever waits in a task is resumed by the request to stop: so that is passed on by the thread that runs the task.
  std::stop_source inner;
  std::atomic<bool> asked{false};
  const auto ask = [&] {
    asked.store(true);
    core_->driver().wake();
  };
  const std::stop_callback on_stop{stop, ask};
  core_->driver().run([&] { begin(inner.get_token()); }, finished,
                      [&] {
                        if (asked.exchange(false)) inner.request_stop();
                      });
}

// ---- one call ----

bool CallHandle::cancel() const {
  const std::shared_ptr<ClientCore> core = core_.lock();
  return core != nullptr && core->calls().cancel(*call_, generation_);
}

namespace detail {

void Answer::refuse(std::string_view type) noexcept {
  try {
    const Error why = decode_error(*reader_);
    error_.emplace(ErrorCode::internal_error, "the result is not what was asked for: " + std::string{type}, why.data());
  } catch (const std::bad_alloc&) {
    return refuse();
  }
  reader_->clear_failure();
  error_class_ = ErrorClass::local_error;
}

void Answer::refuse() noexcept {
  reader_->clear_failure();
  error_.emplace(ErrorCode::internal_error);
}

void Answer::throw_error() {
  switch (error_class_) {
    case ErrorClass::error: break;
    case ErrorClass::connection_error: throw ConnectionError{std::move(*error_)};
    case ErrorClass::local_error: throw LocalError{std::move(*error_)};
  }
  throw std::move(*error_);
}

// What is wrong with a call before it is made is its maker's doing.
static void refuse(ClientCall& call, ErrorCode code, std::string message) {
  call.error.emplace(code, std::move(message));
  call.error_class = ErrorClass::local_error;
}

OutgoingCall::OutgoingCall(std::shared_ptr<ClientCore> core) : core_(std::move(core)), call_(&core_->take()) {}

OutgoingCall::OutgoingCall(std::shared_ptr<ClientCore> core, std::string_view method) : OutgoingCall(std::move(core)) {
  call_->timeout = milliseconds{core_->options().call_timeout_ms};
  call_->wait = milliseconds{core_->options().wait_ms};
  call_->notification = call_->own_timeout = call_->idempotent = false;
  call_->request.clear();
  call_->request.append(core_->shared().written().request_head);
  call_->writer->reset(call_->request);
  call_->writer->string(method);
  if (call_->writer->failed()) refuse(*call_, ErrorCode::invalid_request, "the method's name is not UTF-8");
}

void OutgoingCall::drop() noexcept { core_->give_back(*call_); }

Writer& OutgoingCall::params() {
  begin_params();
  call_->writer->reset(call_->request);
  return *call_->writer;
}

void OutgoingCall::begin_params() {
  call_->has_params = true;
  call_->request.append(core_->shared().written().params_head);
}

void OutgoingCall::set_params(std::string_view json) {
  Buffer padded{json};
  const Scan scan = json_codec().scan(padded.padded(), core_->options().limits.depth);
  const auto only_space_from = [json](std::size_t at) {
    return json.find_first_not_of(" \t\r\n", at) == std::string_view::npos;
  };
  if (scan.status != ScanStatus::complete || !only_space_from(scan.offset)) {
    refuse(*call_, ErrorCode::invalid_params, "the params are not JSON");
  } else if (const char first = json[json.find_first_not_of(" \t\r\n")]; first != '[' && first != '{') {
    refuse(*call_, ErrorCode::invalid_params, "the params are neither an array nor an object");
  }
  begin_params();
  if (!core_->shared().writes_natively()) {
    // A request is one line, as are those that writers write.
    char* const to = call_->request.reserve(json.size());
    return call_->request.set_end(json::compact(to, json));
  }
  if (call_->error) return;
  const std::unique_ptr<message::Transcoder> transcoder = core_->shared().written().make_transcoder();
  const std::string_view why = transcoder->native()->append_params(call_->request, padded.view());
  if (!why.empty()) refuse(*call_, ErrorCode::invalid_params, std::string{why});
}

void OutgoingCall::set_timeout(milliseconds timeout) noexcept {
  call_->timeout = std::clamp(timeout, milliseconds{0}, kTimeoutMax);
  call_->own_timeout = true;
}
void OutgoingCall::set_idempotent(bool idempotent) noexcept { call_->idempotent = idempotent; }
void OutgoingCall::set_wait(milliseconds wait) noexcept {
  call_->wait = std::clamp(wait, milliseconds{0}, kTimeoutMax);
}
void OutgoingCall::set_input(std::unique_ptr<InputSource> source) {
  call_->input = std::make_shared<net::ClientInput>(*core_, std::move(source));
}
void OutgoingCall::set_credit(std::uint32_t credit) noexcept { call_->credit = std::max<std::uint32_t>(credit, 1); }

std::unique_ptr<net::ClientStream> OutgoingCall::release() {
  auto stream = std::make_unique<net::ClientStream>(core_, prepare());
  call_ = nullptr;
  return stream;
}
void OutgoingCall::set_stop(std::stop_token stop) { call_->stop = std::move(stop); }
void OutgoingCall::set_context(const Context& context) {
  call_->hops = context.hops() + 1;
  set_stop(context.stop_token());
  if (context.remaining() == kNoDeadline) return;
  const auto left = std::chrono::ceil<milliseconds>(context.remaining());
  // Else a stream has no time for all of it.
  if (left < call_->timeout || ((call_->credit != 0 || call_->input) && !call_->own_timeout)) set_timeout(left);
}
void OutgoingCall::set_to(std::string_view provider) {
  call_->to = provider.empty() ? std::string{} : to_json(std::string{provider});
}
void OutgoingCall::set_layout(std::string_view own) noexcept { call_->layout = own; }
void OutgoingCall::keep_response() noexcept { call_->keep_response = call_->wants_json = true; }
void OutgoingCall::want_json() noexcept { call_->wants_json = true; }

// What could not be encoded is an error already; what is to be stopped can be from here on.
ClientCall& OutgoingCall::prepare() {
  if (!call_->error && call_->writer->failed()) {
    refuse(*call_, ErrorCode::invalid_params, call_->writer->failure());
  }
  if (!call_->error && call_->request.size() >= core_->options().limits.max_message_size) {
    call_->error = message::too_large("the request is larger than allowed");
  }
  if (call_->stop.stop_possible()) {
    call_->on_stop.emplace(call_->stop, net::StopCall{&core_->calls(), call_, call_->generation + 1});
  }
  return *call_;
}

Answer OutgoingCall::wait() {
  ClientCall* const call = &prepare();
  core_->call_and_wait({&call, 1});
  if (call->input) call->input->close();
  return answer();
}

Answer OutgoingCall::answer() {
  if (call_->error) return Answer{*call_->error, call_->error_class};
  const Codec& codec = message::codec_of(call_->response_encoding).values();
  if (call_->reader == nullptr || &call_->reader->codec() != &codec) call_->reader = codec.reader();
  return {*call_->reader, call_->response.padded().substr(call_->result_at, call_->result_size)};
}

void OutgoingCall::make_notification() noexcept { call_->notification = true; }
void OutgoingCall::leave_unsent() noexcept { call_->error.emplace(ErrorCode::invalid_request); }

Answer OutgoingCall::notify() {
  make_notification();
  if (!core_->driver().on_driver()) return wait();
  if (const ClientCall& call = prepare(); call.error) return Answer{*call.error, call.error_class};
  start(nullptr);
  return {};
}

ClientCall& OutgoingCall::hand_in(AnswerFunction done) {
  ClientCall& call = prepare();
  call.done = std::move(done);
  generation_ = call.generation + 1;
  return call;
}

void OutgoingCall::take_back() noexcept {
  generation_ = 0;
  call_->done = nullptr;
}

void OutgoingCall::start(AnswerFunction done) {
  ClientCall* const call = &hand_in(std::move(done));
  try {
    core_->start({&call, 1});
  } catch (...) {
    take_back();
    throw;
  }
}

CallHandle OutgoingCall::handle() const {
  CallHandle handle;
  handle.core_ = core_;
  handle.call_ = call_;
  handle.generation_ = generation_;
  return handle;
}

const Executor* OutgoingCall::driver() const noexcept { return core_->executor().get(); }

void OutgoingCall::forget() noexcept { core_->calls().forget(*call_, generation_); }

std::string_view OutgoingCall::response() const noexcept {
  return call_->state == net::CallState::idle && call_->keep_response ? call_->response.view() : std::string_view{};
}

}  // namespace detail
}  // namespace wirecall
