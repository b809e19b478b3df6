// The functions of wirecall.h that read parameters (params.hpp).
#include "c/call.hpp"

using wirecall::c::Parameter;
using wirecall::c::Reading;
using wirecall::c::Target;

// A mistake of the handler's: its call is answered -32603. Always false.
[[gnu::noinline]] static bool refuse_null(wc_call* call) noexcept {
  wirecall::c::fail_null();
  return call != nullptr && !call->params.failed && call->params.fail_unread();
}

// A failure that has no memory for its words is -32603.
[[gnu::always_inline]] static inline bool read_param(wc_call* call, const Parameter& parameter, Reading reading,
                                                     const Target& target, bool optional) noexcept {
  if (call == nullptr || !target.is_whole(reading)) [[unlikely]]
    return refuse_null(call);
  try {
    return call->params.get(parameter, reading, target, optional);
  } catch (...) {
    wirecall::c::fail_in_flight();
    return call->params.fail_unread();
  }
}

// Numbers mostly need no reader.
template <class T>
[[gnu::always_inline]] static inline bool read_number(wc_call* call, const Parameter& parameter, Reading reading,
                                                      const Target& target, T* out, bool optional) noexcept {
  if (std::uint32_t value; call != nullptr && out != nullptr && !call->params.failed &&
                           call->params.take_integer(parameter, value)) [[likely]] {
    *out = static_cast<T>(value);
    return true;
  }
  return read_param(call, parameter, reading, target, optional);
}

bool wc_param_i64(wc_call* call, size_t index, const char* name, int64_t* out) {
  return read_number(call, {index, name}, Reading::i64, {.i64 = out}, out, false);
}
bool wc_param_u64(wc_call* call, size_t index, const char* name, uint64_t* out) {
  return read_number(call, {index, name}, Reading::u64, {.u64 = out}, out, false);
}
bool wc_param_f64(wc_call* call, size_t index, const char* name, double* out) {
  return read_number(call, {index, name}, Reading::f64, {.f64 = out}, out, false);
}
bool wc_param_bool(wc_call* call, size_t index, const char* name, bool* out) {
  return read_param(call, {index, name}, Reading::boolean, {.boolean = out}, false);
}
bool wc_param_text(wc_call* call, size_t index, const char* name, const char** text, size_t* size) {
  return read_param(call, {index, name}, Reading::text, {.text = {text, size}}, false);
}
bool wc_param_bytes(wc_call* call, size_t index, const char* name, const void** bytes, size_t* size) {
  return read_param(call, {index, name}, Reading::bytes, {.bytes = {bytes, size}}, false);
}
bool wc_param_json(wc_call* call, size_t index, const char* name, const char** json, size_t* size) {
  return read_param(call, {index, name}, Reading::json, {.text = {json, size}}, false);
}

bool wc_param_opt_i64(wc_call* call, size_t index, const char* name, int64_t* out) {
  return read_number(call, {index, name}, Reading::i64, {.i64 = out}, out, true);
}
bool wc_param_opt_u64(wc_call* call, size_t index, const char* name, uint64_t* out) {
  return read_number(call, {index, name}, Reading::u64, {.u64 = out}, out, true);
}
bool wc_param_opt_f64(wc_call* call, size_t index, const char* name, double* out) {
  return read_number(call, {index, name}, Reading::f64, {.f64 = out}, out, true);
}
bool wc_param_opt_bool(wc_call* call, size_t index, const char* name, bool* out) {
  return read_param(call, {index, name}, Reading::boolean, {.boolean = out}, true);
}
bool wc_param_opt_text(wc_call* call, size_t index, const char* name, const char** text, size_t* size) {
  return read_param(call, {index, name}, Reading::text, {.text = {text, size}}, true);
}
bool wc_param_opt_bytes(wc_call* call, size_t index, const char* name, const void** bytes, size_t* size) {
  return read_param(call, {index, name}, Reading::bytes, {.bytes = {bytes, size}}, true);
}
bool wc_param_opt_json(wc_call* call, size_t index, const char* name, const char** json, size_t* size) {
  return read_param(call, {index, name}, Reading::json, {.text = {json, size}}, true);
}

bool wc_param_array(wc_call* call, size_t index, const char* name, wc_cursor* cursor) {
  return read_param(call, {index, name}, Reading::array, {.cursor = cursor}, false);
}
bool wc_param_object(wc_call* call, size_t index, const char* name, wc_cursor* cursor) {
  return read_param(call, {index, name}, Reading::object, {.cursor = cursor}, false);
}

bool wc_param_given(wc_call* call, size_t index, const char* name) {
  if (call == nullptr) return refuse_null(call);
  try {
    return call->params.given({index, name});
  } catch (...) {
    wirecall::c::fail_in_flight();
    return false;
  }
}

bool wc_params_end(wc_call* call) {
  if (call == nullptr) return refuse_null(call);
  if (call->params.failed) return false;
  try {
    return call->params.all_asked_for();
  } catch (...) {
    wirecall::c::fail_in_flight();
    return call->params.fail_unread();
  }
}

void wc_params_allow_more(wc_call* call) {
  if (call == nullptr) {
    refuse_null(call);
  } else {
    call->params.allow_more();
  }
}
