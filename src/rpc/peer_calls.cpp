#include "rpc/peer_calls.hpp"

#include <charconv>
#include <system_error>

#include "base/decimal.hpp"
#include "message/call_text.hpp"
#include "message/cancel_request.hpp"
#include "message/own_error.hpp"
#include "message/read_error.hpp"
#include "message/transcoder.hpp"
#include "rpc/event_text.hpp"
#include "wirecall/value.hpp"

namespace wirecall {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace rpc {

// What whoever waits is given: that there was no memory, when there is none to say anything else.
template <class Make>
static std::exception_ptr made(const Make& make) noexcept {
  try {
    return std::make_exception_ptr(make());
  } catch (...) {
    return std::current_exception();
  }
}

static Error cannot_be_called() {
  return message::make(ErrorCode::provider_lost,
                       "the caller cannot be called: it has no connection of its own, or the handler is no coroutine",
                       "no");
}
}  // namespace rpc

namespace detail {

static rpc::PeerCalls& calls_of(const Context& context) {
  if (context.caller_link() == nullptr) throw rpc::cannot_be_called();
  return context.caller_link()->calls();
}

CallerRequest::CallerRequest(const Context& context, std::string_view method, std::string_view params_json)
    : calls_(context.caller_link() != nullptr ? context.caller_link()->shared_calls() : nullptr) {
  calls_of(context).begin(*this, context, method, params_json);
}

CallerRequest::~CallerRequest() {
  if (id_ != 0) calls_->give_up(*this);
}

void CallerRequest::expired() { calls_->expired(*this); }

void notify_caller(const Context& context, std::string_view method, std::string_view params_json, bool by_handler) {
  calls_of(context).notify(context, method, params_json, by_handler);
}

bool can_notify_caller(const Context& context) noexcept {
  return context.caller_link() != nullptr && context.caller_link()->can_notify();
}

void throw_wrong_result(const Reader& reader, std::string_view type) {
  throw LocalError{ErrorCode::internal_error, "the result is not what was asked for: " + std::string{type},
                   decode_error(reader).data()};
}

}  // namespace detail

namespace rpc {

constexpr char kIdMark = 'h';  // of a handler's call: "h1"

Error lost(std::string_view delivered) {
  return message::make(ErrorCode::provider_lost, "the caller has gone", delivered);
}

static void append_id(Buffer& out, std::uint64_t id) {
  out.push_back('"');
  out.push_back(kIdMark);
  append_number(out, id);
  out.push_back('"');
}

static void append_hops(Buffer& out, const Context& context) {
  out.append(R"(,"hops":)");
  append_number(out, context.hops() + 1);
}

// What calls and notifications need alike.
void PeerCalls::require_sendable(const Context& context) const {
  if (gone_) throw lost("no");
  if (context.hops() >= limits_->hops) {
    throw message::limit_exceeded("too many calls within calls", "hops");
  }
}

void PeerCalls::begin(detail::CallerRequest& call, const Context& context, std::string_view method,
                      std::string_view params_json) {
  if (ended_) throw lost("no");
  require_sendable(context);
  if (!sink_->capabilities().calls_back) throw cannot_be_called();
  if (calls_.size() >= limits_->in_flight) {
    throw message::limit_exceeded("too many calls of this connection's caller are in flight", "in_flight");
  }
  const nanoseconds left = std::min<nanoseconds>(context.remaining(), milliseconds{limits_->call_timeout_ms});
  if (left <= nanoseconds{0}) {
    throw message::make(
        {.code = ErrorCode::timeout, .reason = "the time was up before the call began", .delivered = "no"});
  }
  Buffer text;
  message::begin_call(text, to_json(method), params_json);
  if (!sink_->strict_peer()) {
    append_hops(text, context);
    text.append(R"(,"timeout_ms":)");
    append_number(text, static_cast<std::uint64_t>(std::chrono::ceil<milliseconds>(left).count()));
  }
  text.append(R"(,"id":)");
  append_id(text, last_id_ + 1);
  text.push_back('}');
  require_fitting(text, "the request is larger than a message may be");
  calls_.emplace(last_id_ + 1, &call);
  call.id_ = ++last_id_;
  try {
    if (loop_context_->scheduler != nullptr) loop_context_->scheduler->start(call, left);
    send(text.view());
  } catch (...) {
    forget(call);
    throw;
  }
}

void PeerCalls::require_fitting(const Buffer& text, std::string_view reason) const {
  if (text.size() <= limits_->max_message_size) return;
  throw message::too_large(reason);
}

void PeerCalls::send(std::string_view text) {
  if (gone_) return;
  if (message::encoding_of(text.front()) != Encoding::json) [[unlikely]] {
    EventText event{text, *loop_context_, *limits_};
    static_cast<void>(event.send_to(*sink_));  // or it has no form there
    return;
  }
  send_message(*sink_, text);
}

void PeerCalls::notify(const Context& context, std::string_view method, std::string_view params_json, bool by_handler) {
  require_sendable(context);
  if (!sink_->capabilities().events) throw cannot_be_called();
  Buffer text;
  message::begin_call(text, to_json(method), params_json);
  if (!sink_->strict_peer()) append_hops(text, context);
  text.push_back('}');
  require_fitting(text, "the notification is larger than a message may be");
  if (by_handler) return send(text.view());
  context.caller_link()->send_behind_answer(text.view());
}

void PeerCalls::forget(detail::CallerRequest& call) noexcept {
  if (!gone_ && loop_context_->scheduler != nullptr) loop_context_->scheduler->stop(call);
  calls_.erase(std::exchange(call.id_, 0));
}

void PeerCalls::give_up(detail::CallerRequest& call) noexcept {
  const std::uint64_t id = call.id_;
  forget(call);
  if (gone_) return;
  try {
    Buffer id_json;
    append_id(id_json, id);
    send(message::cancel_request(id_json.view()));
  } catch (const std::bad_alloc&) {
    // The peer works on for nothing, which it may as well when this comes too late.
  }
}

void PeerCalls::expired(detail::CallerRequest& call) {
  const Completion<Buffer> answer = call.answer_;
  give_up(call);
  answer.fail(made([] {
    return message::make(
        {.code = ErrorCode::timeout, .reason = "the caller did not answer in time", .delivered = "maybe"});
  }));
}

bool PeerCalls::response(const Received& message) {
  const std::string_view id = message.id();
  if (id.size() < 4 || id[0] != '"' || id[1] != kIdMark) return false;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(id.data() + 2, id.data() + id.size() - 1, number);
  if (error != std::errc{} || end != id.data() + id.size() - 1 || id[2] == '0') return false;
  const auto found = calls_.find(number);
  if (found == calls_.end()) return false;
  detail::CallerRequest& call = *found->second;
  const Completion<Buffer> answer = call.answer_;  // whoever waits may end, and the call with it
  forget(call);
  if (message.fault != Fault::none) {
    answer.fail(made([] { return message::malformed_response(); }));
  } else if (message.has(Member::error)) {
    answer.fail(
        made([&] { return message::read_error(*loop_context_->codecs.readers.reader, message[Member::error]); }));
  } else {
    answer.set(Buffer{message[Member::result]});
  }
  return true;
}

void PeerCalls::peer_ended() {
  ended_ = true;
  while (!calls_.empty()) {
    detail::CallerRequest& call = *calls_.begin()->second;
    const Completion<Buffer> answer = call.answer_;
    forget(call);
    answer.fail(made([] { return lost("maybe"); }));
  }
}

void PeerCalls::gone() noexcept {
  for (const auto& [id, call] : calls_) {
    if (loop_context_->scheduler != nullptr) loop_context_->scheduler->stop(*call);
  }
  gone_ = true;
}

void CallerLink::send_behind_answer(std::string_view text) {
  const State state = state_.load(std::memory_order_relaxed);
  if (state == State::answered) return calls_->send(text);
  if (state == State::failed) {
    throw message::make(
        {.code = ErrorCode::provider_lost,
         .reason = "the call has been answered with an error, and its caller is told nothing more of it",
         .delivered = "no"});
  }
  const std::size_t bytes = text.size() + sizeof(Buffer);
  const bool of_load = load_->held_bytes + bytes > load_bytes_max_;
  if (of_load || held_bytes_ + bytes > bytes_max_) {
    throw message::make({.code = ErrorCode::limit_exceeded,
                         .reason = "too many notifications wait for the call to be answered",
                         .delivered = "no",
                         .limit = of_load ? "hard_output" : "soft_output"});
  }
  held_.emplace_back(text);
  held_bytes_ += bytes;
  load_->held_bytes += bytes;
}

Completion<> CallerLink::answered() {
  const State state = state_.load(std::memory_order_relaxed);
  Completion<> completion;
  if (state == State::waiting) {
    waiting_.push_back(completion);
  } else if (state == State::answered) {
    completion.set();
  } else {
    completion.fail(made([] { return Cancelled{}; }));
  }
  return completion;
}

void CallerLink::complete(int code) noexcept {
  if (state_.load(std::memory_order_relaxed) != State::waiting) return;
  state_.store(code == 0 ? State::answered : State::failed, std::memory_order_relaxed);
  load_->held_bytes -= std::exchange(held_bytes_, 0);
  const std::vector<Buffer> held = std::exchange(held_, {});
  const std::vector<Completion<>> waiting = std::exchange(waiting_, {});
  const std::shared_ptr<PeerCalls> calls = calls_;  // whoever goes on may drop the link
  for (const Buffer& text : held) {
    if (code != 0) break;
    try {
      calls->send(text.view());
    } catch (const std::bad_alloc&) {
      break;  // as an event that is lost
    }
  }
  for (const Completion<>& completion : waiting) {
    if (code == 0) {
      completion.set();
    } else {
      completion.fail(made([] { return Cancelled{}; }));
    }
  }
}

}  // namespace rpc
}  // namespace wirecall
