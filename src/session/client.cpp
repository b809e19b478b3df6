// See client.hpp. One session and one loop, and one mutex around everything that threads share. The thread that leads
// has the loop and the session to itself, and gives the mutex up while it is in a turn; the others put their calls into
// `unsent`, wake the loop, and sleep until they are answered or it is theirs to lead.
#include "wirecall/client.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "framing/json_text.hpp"
#include "message/own_error.hpp"
#include "session/session.hpp"
#include "transport/socket.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/loop.hpp"

namespace wirecall {
namespace {

using detail::OutgoingCall;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// Larger buffers are given back after the call that needed them.
constexpr std::size_t kKeptBytesMax = 1024 * 1024;
// How often a notification that the system does not take at once looks whether it has been taken.
constexpr milliseconds kSendLook{1};

Error malformed_response() {
  return message::make(
      {.code = ErrorCode::invalid_request, .reason = "the response is malformed", .delivered = "maybe"});
}

std::string connection_data(ConnectionError::Delivered delivered) {
  return message::make({.code = ErrorCode::provider_lost,
                        .reason = "the connection is lost",
                        .delivered = delivered == ConnectionError::Delivered::no ? "no" : "maybe"})
      .data();
}

// The error object of a response; what does not have the shape of one is an error of its own.
Error read_error(Reader& reader, std::string_view text) {
  std::int64_t code = 0;
  std::string message;
  std::string data;
  bool coded = false;
  bool well_formed = true;
  reader.reset(text);
  well_formed = reader.begin_object();
  std::string_view name;
  std::string_view words;
  while (well_formed && reader.next_member(name)) {
    if (name == "code") {
      coded = well_formed = reader.read_int(std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), code);
    } else if (name == "message") {
      well_formed = reader.read_string(words);
      message = words;
    } else if (name == "data") {
      data = reader.skip();
    } else {
      reader.skip();
    }
  }
  reader.clear_failure();
  if (!well_formed || !coded) return malformed_response();
  return {static_cast<int>(code), std::move(message), std::move(data)};
}

}  // namespace

ConnectionError::ConnectionError(std::string message, Delivered delivered)
    : Error(ErrorCode::provider_lost, std::move(message), connection_data(delivered)) {}

bool ConnectionError::safe_to_retry() const noexcept { return data().find(R"("delivered":"no")") != std::string::npos; }

// What one call needs, used again by later ones.
struct OutgoingCall::State {
  State() : writer(json_codec().writer()), reader(json_codec().reader()) {}

  std::unique_ptr<Writer> writer;
  std::unique_ptr<Reader> reader;
  Buffer request;
  Buffer response;  // the result, or the error object
  Buffer whole;     // the response that has it, if that is wanted
  bool keep_whole = false;

  // Guarded by the client's mutex from here on.
  std::condition_variable ready;  // answered, gone, or free to lead
  std::uint64_t id = 0;           // 0 for a notification
  bool sent = false;
  bool answered = false;
  bool refused = false;    // answered with an error
  bool malformed = false;  // answered with what is no response

  [[nodiscard]] bool done() const noexcept { return id != 0 ? answered : sent; }
};

struct Client::State final : session::Owner, session::Caller {
  using Exchange = OutgoingCall::State;

  State(std::string_view uri, ClientOptions given)
      : options(std::move(given)),
        endpoint(uri),
        workspace(json_codec(), &loop, &options.log),
        text(options.limits, options.delimiter),
        host{.loop = loop, .registry = registry, .limits = options.limits, .workspace = workspace, .owner = *this} {}

  void connect();
  Exchange* take();
  void give_back(Exchange* exchange) noexcept;
  enum class Outcome { done, timed_out, gone, too_large };
  Outcome exchange(Exchange& own, bool answer);
  struct Leaving;
  void wait(std::unique_lock<std::mutex>& lock, Exchange& own, steady_clock::time_point deadline);
  void lead(std::unique_lock<std::mutex>& lock, Exchange& own, steady_clock::time_point deadline);
  void hand_over();
  Exchange* find(std::string_view id) noexcept;
  [[nodiscard]] ConnectionError gone_error(bool sent) const;

  bool response(const Received& message) override;
  [[nodiscard]] bool waiting() const override;
  void connection_ended(session::Connection& ended, session::End end, int error) override;

  // The leader's.
  const ClientOptions options;
  const Endpoint endpoint;
  Registry registry;  // of methods that the server may call: none yet
  Loop loop;
  rpc::Workspace workspace;
  framing::JsonTextSettings text;
  session::Host host;
  std::unique_ptr<session::Session> session;

  // Everybody's.
  mutable std::mutex mutex;
  bool led = false;
  std::string gone;  // why there is no connection any more; empty while there is one
  std::uint64_t last_id = 0;
  std::uint64_t dropped = 0;
  bool others_sent = false;  // what may be refused as well, and has nobody who waits: notifications, calls given up
  std::vector<Exchange*> calling;  // in the order in which they came
  std::vector<Exchange*> unsent;
  std::vector<std::unique_ptr<Exchange>> idle;
};

Client::Client(std::string_view uri, ClientOptions options) {
  require_valid(options.limits);
  state_ = std::make_unique<State>(uri, std::move(options));
  state_->connect();
}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

std::uint64_t Client::responses_dropped() const {
  const std::scoped_lock lock{state_->mutex};
  return state_->dropped;
}

std::expected<std::string, Error> Client::call_raw(std::string_view method, std::string_view params_json) {
  OutgoingCall call{*this, method};
  if (!params_json.empty()) call.set_params(params_json);
  if (!call.call()) return std::unexpected{std::move(call.error())};
  return std::string{call.result_json()};
}

std::expected<Response, Error> Client::call_for_response(std::string_view method, std::string_view params_json) {
  OutgoingCall call{*this, method};
  if (!params_json.empty()) call.set_params(params_json);
  return call.call_for_response();
}

std::expected<void, Error> Client::notify_raw(std::string_view method, std::string_view params_json) {
  OutgoingCall call{*this, method};
  if (!params_json.empty()) call.set_params(params_json);
  if (!call.notify()) return std::unexpected{std::move(call.error())};
  return {};
}

// ---- one call ----

namespace detail {

OutgoingCall::OutgoingCall(Client& client) : client_(&client), state_(client.state_->take()) {}

// What throws from here on finds a whole object, whose destructor gives the state back.
OutgoingCall::OutgoingCall(Client& client, std::string_view method) : OutgoingCall(client) {
  state_->keep_whole = false;
  state_->request.clear();
  state_->request.append(R"({"jsonrpc":"2.0","method":)");
  state_->writer->reset(state_->request);
  state_->writer->string(method);
  if (state_->writer->failed()) error_.emplace(ErrorCode::invalid_request, "the method's name is not UTF-8");
}

OutgoingCall::~OutgoingCall() { client_->state_->give_back(state_); }

Writer& OutgoingCall::params() {
  state_->request.append(R"(,"params":)");
  state_->writer->reset(state_->request);
  return *state_->writer;
}

void OutgoingCall::set_params(std::string_view json) {
  Buffer padded{json};
  const Scan scan = json_codec().scan(padded.padded(), client_->state_->options.limits.depth);
  const auto only_space_from = [json](std::size_t at) {
    return json.find_first_not_of(" \t\r\n", at) == std::string_view::npos;
  };
  if (scan.status != ScanStatus::complete || !only_space_from(scan.offset)) {
    error_.emplace(ErrorCode::invalid_params, "the params are not JSON");
  } else if (const char first = json[json.find_first_not_of(" \t\r\n")]; first != '[' && first != '{') {
    error_.emplace(ErrorCode::invalid_params, "the params are neither an array nor an object");
  }
  state_->request.append(R"(,"params":)");
  state_->request.append(json);
}

// True when it was answered, or, a notification, sent.
bool OutgoingCall::exchange(bool answer) {
  Client::State& client = *client_->state_;
  if (!error_ && state_->writer->failed()) error_.emplace(ErrorCode::invalid_params, state_->writer->failure());
  if (error_) return false;
  switch (client.exchange(*state_, answer)) {
    case Client::State::Outcome::done:
      return true;
    case Client::State::Outcome::timed_out:
      error_ = message::make(
          {.code = ErrorCode::timeout, .reason = "no answer came in time", .delivered = state_->sent ? "maybe" : "no"});
      return false;
    case Client::State::Outcome::gone:
      error_ = client.gone_error(state_->sent);
      lost_ = true;
      return false;
    case Client::State::Outcome::too_large:
      error_ = message::make({.code = ErrorCode::too_large,
                              .reason = "the request is larger than allowed",
                              .delivered = "no",
                              .limit = "max_message_size"});
      return false;
  }
  return false;
}

bool OutgoingCall::notify() { return exchange(false); }

bool OutgoingCall::call() {
  if (!exchange(true)) return false;
  if (!state_->malformed && !state_->refused) [[likely]]
    return true;
  error_ = state_->malformed ? malformed_response() : read_error(*state_->reader, state_->response.padded());
  return false;
}

std::expected<Response, Error> OutgoingCall::call_for_response() {
  state_->keep_whole = true;
  if (!exchange(true)) return std::unexpected{std::move(*error_)};
  if (state_->malformed) return std::unexpected{malformed_response()};
  Response response{.json = std::string{state_->whole.view()}, .result = {}};
  if (state_->refused) {
    response.result = std::unexpected{read_error(*state_->reader, state_->response.padded())};
  } else {
    response.result = std::string{state_->response.view()};
  }
  return response;
}

Reader& OutgoingCall::result() {
  state_->reader->reset(state_->response.padded());
  return *state_->reader;
}

std::string_view OutgoingCall::result_json() const noexcept { return state_->response.view(); }

void OutgoingCall::refuse_result(std::string_view type) {
  const Error why = decode_error(*state_->reader);
  state_->reader->clear_failure();
  error_.emplace(ErrorCode::internal_error, "the result is not what was asked for: " + std::string{type}, why.data());
}

void OutgoingCall::throw_error() {
  if (lost_) throw ConnectionError{std::move(*error_)};
  throw std::move(*error_);
}

}  // namespace detail

// ---- all calls ----

void Client::State::connect() {
  int descriptor = -1;
  try {
    descriptor = transport::connect_to(endpoint, milliseconds{options.connect_timeout_ms});
  } catch (const std::runtime_error& error) {
    throw ConnectionError{error.what(), ConnectionError::Delivered::no};
  }
  session = std::make_unique<session::Session>(host, std::make_unique<transport::SocketStream>(loop, descriptor),
                                               std::make_unique<framing::JsonText>(text), this);
}

Client::State::Exchange* Client::State::take() {
  {
    const std::scoped_lock lock{mutex};
    if (!idle.empty()) {
      Exchange* exchange = idle.back().release();
      idle.pop_back();
      return exchange;
    }
    idle.reserve(idle.capacity() + 1);  // for when it comes back
  }
  return new Exchange;
}

void Client::State::give_back(Exchange* exchange) noexcept {
  for (Buffer* buffer : {&exchange->request, &exchange->response, &exchange->whole}) {
    if (buffer->capacity() > kKeptBytesMax) buffer->release();
  }
  const std::scoped_lock lock{mutex};
  idle.emplace_back(exchange);
}

ConnectionError Client::State::gone_error(bool sent) const {
  const std::scoped_lock lock{mutex};
  return {gone, sent ? ConnectionError::Delivered::maybe : ConnectionError::Delivered::no};
}

// The end of a call, come what may: it is in no list any more, and another one leads if nobody does.
struct Client::State::Leaving {
  ~Leaving() {
    if (own.sent && (own.id == 0 || !own.answered)) state.others_sent = true;
    std::erase(state.calling, &own);
    std::erase(state.unsent, &own);
    if (!state.led && !state.calling.empty()) state.calling.front()->ready.notify_one();
  }
  State& state;
  Exchange& own;
};

Client::State::Outcome Client::State::exchange(Exchange& own, bool answer) {
  const steady_clock::time_point deadline = steady_clock::now() + milliseconds{options.call_timeout_ms};
  std::unique_lock lock{mutex};
  own.sent = own.answered = own.refused = own.malformed = false;
  own.id = answer ? ++last_id : 0;
  if (!gone.empty()) return Outcome::gone;
  if (answer) {
    char id[24];
    const auto end = std::to_chars(id, id + sizeof id, own.id).ptr;
    own.request.append(R"(,"id":)");
    own.request.append({id, static_cast<std::size_t>(end - id)});
  }
  own.request.push_back('}');
  if (own.request.size() > options.limits.max_message_size) return Outcome::too_large;
  calling.push_back(&own);
  unsent.push_back(&own);
  {
    const Leaving leaving{*this, own};
    wait(lock, own, deadline);
  }
  if (own.done()) return Outcome::done;
  return gone.empty() ? Outcome::timed_out : Outcome::gone;
}

void Client::State::wait(std::unique_lock<std::mutex>& lock, Exchange& own, steady_clock::time_point deadline) {
  if (led) loop.wake();  // the leader has not seen what we want to send
  while (!own.done() && gone.empty()) {
    if (!led) return lead(lock, own, deadline);
    if (own.ready.wait_until(lock, deadline) == std::cv_status::timeout) return;
  }
}

void Client::State::lead(std::unique_lock<std::mutex>& lock, Exchange& own, steady_clock::time_point deadline) {
  led = true;
  try {
    // The first wait saves a look at the clock: no time has passed to speak of. A notification is done when it has been
    // sent, which nothing wakes us for: so that is looked for.
    nanoseconds left = milliseconds{options.call_timeout_ms};
    nanoseconds wait_max = own.id == 0 ? nanoseconds{0} : left;
    for (;;) {
      hand_over();
      lock.unlock();
      session->flush();
      loop.turn(wait_max);
      lock.lock();
      if (!gone.empty() || (own.id == 0 ? own.sent && !session->has_output() : own.answered)) break;
      left = deadline - steady_clock::now();
      if (left <= nanoseconds{0}) break;
      wait_max = own.id == 0 ? std::min<nanoseconds>(left, kSendLook) : left;
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    led = false;
    throw;
  }
  if (!gone.empty() && session != nullptr) {
    session.reset();
    loop.turn(nanoseconds{0});  // closes
  }
  led = false;
}

void Client::State::hand_over() {
  for (Exchange* call : unsent) {
    Buffer& out = session->open_message();
    out.append(call->request.view());
    session->close_message();
    call->sent = true;
    if (call->id == 0) call->ready.notify_one();
  }
  unsent.clear();
}

// ---- what the session tells the leader ----

Client::State::Exchange* Client::State::find(std::string_view id) noexcept {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
  if (error != std::errc{} || end != id.data() + id.size()) return nullptr;
  const auto found = std::ranges::find_if(
      calling, [number](const Exchange* call) { return call->id == number && call->sent && !call->answered; });
  return found == calling.end() || number == 0 ? nullptr : *found;
}

bool Client::State::response(const Received& message) {
  const std::scoped_lock lock{mutex};
  Exchange* call = find(message.id());
  const auto awaited = [](const Exchange* other) { return other->id != 0 && other->sent && !other->answered; };
  if (call == nullptr && message.has(Member::error) && message.id() == "null" && !others_sent &&
      std::ranges::count_if(calling, [](const Exchange* other) { return other->sent && !other->answered; }) == 1) {
    // The server could not make out the id of what it refuses, but there is only one thing that it can be. Where there
    // may be others, nobody is blamed: whose call it was, has its answer or its timeout.
    const auto only = std::ranges::find_if(calling, awaited);
    if (only != calling.end()) call = *only;
  }
  if (call == nullptr) {
    ++dropped;
    // What has no id and no sense may have been meant for anybody.
    return message.fault == Fault::none || message.has(Member::id) || std::ranges::none_of(calling, awaited);
  }
  call->refused = message.has(Member::error);
  call->malformed = message.fault != Fault::none;
  call->response.clear();
  if (!call->malformed) call->response.append(message[call->refused ? Member::error : Member::result]);
  if (call->keep_whole) {
    call->whole.clear();
    call->whole.append(message.text);
  }
  call->answered = true;
  call->ready.notify_one();
  return true;
}

bool Client::State::waiting() const {
  const std::scoped_lock lock{mutex};
  return std::ranges::any_of(calling,
                             [](const Exchange* call) { return call->id != 0 && call->sent && !call->answered; });
}

void Client::State::connection_ended(session::Connection&, session::End end, int error) {
  const std::scoped_lock lock{mutex};
  gone = "the connection to " + endpoint.uri() + " is gone: ";
  switch (end) {
    case session::End::finished:
      gone += "the server closed it";
      break;
    case session::End::lost:
      gone += std::strerror(error);
      break;
    case session::End::slow:
      gone += "the server does not read what it is sent";
      break;
    case session::End::unreadable:
      gone += "the server sent what is no JSON-RPC; check that one listens there";
      break;
    case session::End::too_large:
      gone += "the server sent a message of more than " + std::to_string(options.limits.max_message_size) +
              " bytes; raise ClientOptions.limits.max_message_size";
      break;
    case session::End::too_deep:
      gone += "the server sent a message that nests deeper than " + std::to_string(options.limits.depth) +
              " levels; raise ClientOptions.limits.depth";
      break;
    case session::End::silent:
      gone += "the server did not answer in time";
      break;
  }
  for (Exchange* call : calling) call->ready.notify_one();
}

}  // namespace wirecall
