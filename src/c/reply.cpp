// See reply.hpp.
#include "c/reply.hpp"

#include "c/entry.hpp"
#include "wirecall/bytes.hpp"

wc_reply::wc_reply(std::string_view result) : json_size(result.size()), reader(wirecall::json_codec().reader()) {
  json.reserve(result.size() + wirecall::kPaddingBytes);
  json.append(result).append(wirecall::kPaddingBytes, '\0');
  values.reader = reader.get();
  reader->reset({json.data(), json_size});
  values.top = reader->mark();
  values.of_reply = true;
}

using wirecall::c::Reading;
using wirecall::c::Target;

// A value of another type can be read as that afterwards.
static bool read(const wc_reply* reply, Reading reading, const Target& target) noexcept {
  if (reply == nullptr || !target.is_whole(reading)) {
    wirecall::c::fail_null();
    return false;
  }
  if (!reply->has_result()) {
    wirecall::c::fail(reply->error);
    return false;
  }
  wirecall::c::Values& values = reply->values;
  try {
    // Not by a reset: texts that have been read are the program's for as long as the reply lasts.
    values.reader->rewind(values.top);
    values.active = &values;
    const char* const root = values.top;
    return values.read(reading, target, nullptr, root) || values.fail_at(root, root, nullptr);
  } catch (...) {
    wirecall::c::fail_in_flight();
    return values.fail_unread();
  }
}

int wc_reply_error(const wc_reply* reply) {
  if (reply == nullptr) return wirecall::c::fail_null();
  if (reply->has_result()) return 0;
  return reply->error.code() != 0 ? reply->error.code() : static_cast<int>(WC_ERROR_INTERNAL);
}
const char* wc_reply_message(const wc_reply* reply) {
  if (reply != nullptr) return reply->error.what();
  wirecall::c::fail_null();
  return "";
}
const char* wc_reply_data(const wc_reply* reply) {
  if (reply == nullptr) wirecall::c::fail_null();
  return reply != nullptr && !reply->error.data().empty() ? reply->error.data().c_str() : nullptr;
}
const char* wc_reply_json(const wc_reply* reply, size_t* size) {
  if (reply == nullptr) wirecall::c::fail_null();
  const bool has_result = reply != nullptr && reply->has_result();
  if (size != nullptr) *size = has_result ? reply->json_size : 0;
  return has_result ? reply->json.c_str() : nullptr;
}

bool wc_reply_i64(const wc_reply* reply, int64_t* out) { return read(reply, Reading::i64, {.i64 = out}); }
bool wc_reply_u64(const wc_reply* reply, uint64_t* out) { return read(reply, Reading::u64, {.u64 = out}); }
bool wc_reply_f64(const wc_reply* reply, double* out) { return read(reply, Reading::f64, {.f64 = out}); }
bool wc_reply_bool(const wc_reply* reply, bool* out) { return read(reply, Reading::boolean, {.boolean = out}); }
bool wc_reply_text(const wc_reply* reply, const char** text, size_t* size) {
  return read(reply, Reading::text, {.text = {text, size}});
}
bool wc_reply_bytes(const wc_reply* reply, const void** bytes, size_t* size) {
  return read(reply, Reading::bytes, {.bytes = {bytes, size}});
}
bool wc_reply_array(const wc_reply* reply, wc_cursor* cursor) {
  return read(reply, Reading::array, {.cursor = cursor});
}
bool wc_reply_object(const wc_reply* reply, wc_cursor* cursor) {
  return read(reply, Reading::object, {.cursor = cursor});
}
void wc_reply_free(wc_reply* reply) { delete reply; }
