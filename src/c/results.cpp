// The functions of wirecall.h by which a call is answered, and what it tells of itself.
#include <span>
#include <string>

#include "c/call.hpp"
#include "c/json_text.hpp"
#include "wirecall/detail/detached_context.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::c {

Error failure_of(const Params& params) {
  if (params.reader == nullptr || !params.reader->failed()) return Error{ErrorCode::internal_error};
  return decode_error(*params.reader);
}

const Context& context_of(wc_call& call) {
  if (call.detached != nullptr) return call.detached->context();
  std::optional<Context>& context = call.params.extras().context;
  if (!context) on_loop(call, [&] { context.emplace(detail::detached_context(call.call->context())); });
  return *context;
}

}  // namespace wirecall::c

using wirecall::Writer;
using wirecall::c::give_result;

// A mistake of the handler's: its call is answered -32603.
static void answer_null(wc_call* call) noexcept {
  wc_error(call, static_cast<int>(wirecall::ErrorCode::internal_error), nullptr, nullptr);
  wirecall::c::fail_null();
}

void wc_result_null(wc_call* call) {
  give_result(call, [](Writer& writer) { writer.null(); });
}
void wc_result_bool(wc_call* call, bool value) {
  give_result(call, [=](Writer& writer) { writer.boolean(value); });
}
void wc_result_u64(wc_call* call, uint64_t value) {
  give_result(call, [=](Writer& writer) { writer.unsigned_integer(value); });
}
void wc_result_f64(wc_call* call, double value) {
  give_result(call, [=](Writer& writer) { writer.number(value); });
}
void wc_result_text(wc_call* call, const char* text, size_t size) {
  if (text == nullptr && size != 0) return answer_null(call);
  give_result(call, [=](Writer& writer) { writer.string({text, size}); });
}
void wc_result_bytes(wc_call* call, const void* bytes, size_t size) {
  if (bytes == nullptr && size != 0) return answer_null(call);
  give_result(call, [=](Writer& writer) { writer.bytes({static_cast<const std::byte*>(bytes), size}); });
}

// The commonest result has a way of its own, as in C++.
void wc_result_i64(wc_call* call, int64_t value) {
  if (call == nullptr) [[unlikely]]
    return static_cast<void>(wirecall::c::fail_null());
  if (call->detached != nullptr) [[unlikely]]
    return give_result(call, [=](Writer& writer) { writer.integer(value); });
  wirecall::c::answer_live(*call, [=](wirecall::Call& served) { served.integer_result(value); });
}

void wc_result_json(wc_call* call, const char* json, size_t size) {
  if (call == nullptr || (json == nullptr && size != 0)) return answer_null(call);
  try {
    // Checked before the loop is waited for: that takes as long as the text is.
    const wirecall::c::JsonText text{{json, size}};
    give_result(call, [&](Writer& writer) {
      if (text.is_valid()) {
        writer.json(text.view());
      } else {
        writer.null();
        writer.fail("it is no JSON text");
      }
    });
  } catch (...) {
    wirecall::c::fail_in_flight();
    wc_error(call, static_cast<int>(wirecall::ErrorCode::internal_error), nullptr, nullptr);
  }
}

void wc_error(wc_call* call, int code, const char* message, const char* data_json) {
  if (call == nullptr) return static_cast<void>(wirecall::c::fail_null());
  const auto error = [&] {
    return wirecall::Error{code,
                           message != nullptr
                               ? std::string{message}
                               : std::string{wirecall::message_of(static_cast<wirecall::ErrorCode>(code))},
                           data_json != nullptr ? std::string{data_json} : std::string{}};
  };
  const auto answer = [&](auto& sink) { sink.error(error()); };
  if (call->detached != nullptr) return call->detached->answer(answer);
  wirecall::c::answer_live(*call, answer);
}

// ---- what a call tells ----

template <class F>
static auto told(wc_call* call, F&& tell) noexcept -> decltype(tell(std::declval<const wirecall::Context&>())) {
  try {
    if (call != nullptr) return tell(wirecall::c::context_of(*call));
    wirecall::c::fail_null();
  } catch (...) {
    wirecall::c::fail_in_flight();
  }
  return {};
}

const char* wc_call_method(wc_call* call) {
  const char* const method = told(call, [](const wirecall::Context& context) { return context.method().c_str(); });
  return method != nullptr ? method : "";
}

const char* wc_call_id(wc_call* call) {
  return told(call,
              [](const wirecall::Context& context) { return context.id().empty() ? nullptr : context.id().c_str(); });
}

const char* wc_call_caller(wc_call* call) {
  const char* const name = told(call, [](const wirecall::Context& context) { return context.caller_name().c_str(); });
  return name != nullptr ? name : "";
}

bool wc_call_cancelled(wc_call* call) {
  return told(call, [](const wirecall::Context& context) { return context.cancelled(); });
}

// The clock of the loops, which any thread may look at.
int64_t wc_call_remaining_ns(wc_call* call) {
  return told(call, [](const wirecall::Context& context) -> int64_t {
    if (context.deadline() == wirecall::kNoDeadline) return INT64_MAX;
    const auto left =
        context.deadline() - std::chrono::nanoseconds{std::chrono::steady_clock::now().time_since_epoch()};
    return left.count() > 0 ? left.count() : 0;
  });
}
