#include "rpc/dispatcher.hpp"

#include <utility>

#include "message/own_error.hpp"
#include "rpc/pending.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall {

void Next::operator()(Call& call) const {
  if (count_ == 0) return call.method().invoke(call);
  (*rest_)(call, Next{rest_ + 1, count_ - 1});
}

namespace rpc {
namespace {

// The three errors of the specification about a message that reaches no handler.
void reply_error(CallState& state, ErrorCode code, std::string_view data_json, std::string_view id_json) {
  if (data_json.empty()) return state.reply.plain_error(code, id_json);
  state.reply.error(static_cast<int>(code), message_of(code), data_json, id_json);
}

}  // namespace

Workspace::Workspace(const Codec& codec, Scheduler* timers, const LogSink* log)
    : codec(&codec), reader(codec.reader()), writer(codec.writer()), scheduler(timers), log(log) {}

Workspace::~Workspace() = default;

void Workspace::write_log(LogLevel level, std::string_view line) const {
  if (log != nullptr) (*log)(level, line);
}

[[gnu::always_inline]] inline void Dispatcher::run(Call& call, CallState& state) {
  // The one place in which a handler's exceptions are caught; those of tasks come here by way of error_in_flight.
  try {
    if (middleware_->empty()) [[likely]] {
      call.method().invoke(call);
    } else {
      Next{middleware_->data(), middleware_->size()}(call);
    }
  } catch (...) {
    if (state.answered) {
      static_cast<void>(error_of_exception(*workspace_, call.method()));  // too late for the peer, but not for the log
    } else {
      call.error_in_flight();
    }
  }
  if (!state.answered) [[unlikely]] {
    workspace_->write_log(LogLevel::error, "method " + call.method().name() + ": nobody answered the call");
    call.error(Error{ErrorCode::internal_error});
  }
}

[[gnu::always_inline]] inline void Dispatcher::handle_single(const Received& message, CallState& state) {
  if (message.kind == MessageKind::invalid) [[unlikely]]
    return refuse(message, state);
  std::string_view name = message.method();
  if (message.method_escaped) [[unlikely]] {
    workspace_->reader->reset(message[Member::method]);
    static_cast<void>(workspace_->reader->read_string(name));
  }
  const Method* method = registry_->find(name);
  if (method == nullptr) [[unlikely]]
    return unknown_method(message, name, state);
  Call call{state, message, *method};
  if (draining_) [[unlikely]] {
    return call.error(
        message::make({.code = ErrorCode::draining, .reason = "the server is shutting down", .delivered = "no"}));
  }
  if (pending_ && pending_->active >= limits_->in_flight) [[unlikely]] {
    return call.error(message::make({.code = ErrorCode::limit_exceeded,
                                     .reason = "too many calls of this connection are in flight",
                                     .delivered = "no",
                                     .limit = "in_flight"}));
  }
  run(call, state);
}

void Dispatcher::handle(const Received& message, std::span<const Received> elements) {
  if (message.kind == MessageKind::batch) [[unlikely]]
    return handle_batch(message, elements);
  CallState state{*this, nullptr};
  handle_single(message, state);
}

void Dispatcher::handle_batch(const Received& message, std::span<const Received> elements) {
  BatchScope scope;
  // The scratch memory goes with the batch, in case a handler brings in another one.
  scope.local.text = std::move(workspace_->batch_text);
  scope.local.text.clear();
  scope.local.text.push_back('[');
  scope.local.bytes = 1;
  const auto serve = [&](const Received& element) {
    if (element.kind == MessageKind::response) return;
    CallState state{*this, &scope};
    handle_single(element, state);
  };
  if (message.batch_size <= elements.size()) {
    for (const Received& element : elements.first(message.batch_size)) serve(element);
  } else {
    BatchElements walk{message.text};
    Received element;
    while (walk.next(element)) serve(element);
  }
  BatchReply& batch = scope.current();
  batch.dispatched = true;
  if (batch.unanswered != 0) return;
  send_batch(*outlet_, batch);
  workspace_->batch_text = std::move(batch.text);
}

void Dispatcher::refuse(const Received& message, CallState& state) {
  std::string_view data;
  if (message.fault == Fault::id_limit) data = R"({"limit":"id"})";
  if (message.fault == Fault::batch_limit) data = R"({"limit":"batch"})";
  reply_error(state, ErrorCode::invalid_request, data, message.id());
}

void Dispatcher::unknown_method(const Received& message, std::string_view name, CallState& state) {
  if (message.kind == MessageKind::notification) return;
  const std::string_view near = registry_->nearest(name);
  std::string data;
  if (!near.empty()) data.append(R"({"did_you_mean":)").append(to_json(near)).append("}");
  reply_error(state, ErrorCode::method_not_found, data, message.id());
}

void Dispatcher::refuse_syntax(ScanStatus status) {
  CallState state{*this, nullptr};
  reply_error(state, ErrorCode::parse_error, status == ScanStatus::too_deep ? R"({"limit":"depth"})" : "", "null");
}

void Dispatcher::refuse_size() {
  CallState{*this, nullptr}.reply.error(message::make({.code = ErrorCode::too_large,
                                                       .reason = "the message is larger than allowed",
                                                       .delivered = "no",
                                                       .limit = "max_message_size"}),
                                        "null");
}

std::size_t Dispatcher::waiting_calls() const noexcept { return pending_->active; }

void Dispatcher::stop_calls() noexcept {
  if (pending_) pending_->stop_all();
}

void Dispatcher::end_calls() {
  const std::shared_ptr<PendingCalls> calls = pending_;
  if (!calls) return;
  for (std::uint32_t slot = 0; slot < calls->slots.size(); ++slot) {
    // A sink that is dropped answers.
    static_cast<void>(ReplySink{calls, slot, calls->slots[slot].generation});
  }
}

void Dispatcher::abandon() noexcept {
  if (!pending_) return;
  const std::shared_ptr<PendingCalls> calls = std::move(pending_);
  calls->abandon(*workspace_);
}

}  // namespace rpc
}  // namespace wirecall
