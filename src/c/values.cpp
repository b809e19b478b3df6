// See values.hpp, and the cursors of wirecall.h.
#include "c/values.hpp"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "c/entry.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::c {
namespace {

// Where a cursor stands.
enum CursorState : int { kClosed, kAtBegin, kAtValue, kAtEnd };

bool is_usable(const wc_cursor* cursor) noexcept {
  if (cursor == nullptr) {
    fail_null();
  } else if (cursor->size < sizeof(wc_cursor)) {
    fail(WC_ERROR_ARGUMENT, "the cursor was not made by WC_CURSOR_INIT");
  } else if (cursor->source == nullptr) {
    fail(WC_ERROR_STATE, "the cursor has not been opened");
  } else {
    return true;
  }
  return false;
}

Values& values_of(const wc_cursor& cursor) noexcept { return *static_cast<Values*>(cursor.source); }

// The path from the value at `from`, at which the reader stands, to the one at `to`: its steps, outermost first.
void find_path(Reader& reader, const char* from, const char* to, std::vector<DecodeFailure::Step>& path) {
  while (from != to) {
    const bool object = reader.kind() == ValueKind::object;
    if (!object && reader.kind() != ValueKind::array) return;
    static_cast<void>(object ? reader.begin_object() : reader.begin_array());
    std::string_view name;
    bool found = false;
    for (std::size_t position = 0; !found && (object ? reader.next_member(name) : reader.next_element()); ++position) {
      const char* const value = reader.mark();
      const std::string key{name};
      static_cast<void>(reader.skip());
      if (to >= reader.mark()) continue;
      found = true;
      reader.rewind(value);
      from = value;
      path.push_back(object ? DecodeFailure::Step{key} : DecodeFailure::Step{position});
    }
    if (!found) return;
  }
}

}  // namespace

std::string_view words_of(Reading reading) noexcept {
  switch (reading) {
    case Reading::i64:
    case Reading::u64: return "integer";
    case Reading::f64: return "number";
    case Reading::boolean: return "boolean";
    case Reading::text: return "string";
    case Reading::bytes: return R"({"$bytes":"<base64>"})";
    case Reading::json: return "any value";
    case Reading::array: return "array";
    case Reading::object: break;
  }
  return "object";
}

bool Values::open(Reading reading, wc_cursor* cursor, const char* name, const char* root) {
  if (cursor == nullptr || cursor->size < sizeof(wc_cursor))
    throw std::invalid_argument("the cursor was not made by WC_CURSOR_INIT");
  if (reader->kind() != (reading == Reading::array ? ValueKind::array : ValueKind::object))
    return reader->fail(words_of(reading));
  cursor->source = this;
  cursor->name = name;
  cursor->root = root;
  cursor->begin = reader->mark();
  cursor->value = cursor->begin;
  cursor->key = nullptr;
  cursor->key_size = 0;
  cursor->state = kAtBegin;
  active = cursor;
  return true;
}

bool Values::fail_at(const char* mark, const char* root, const char* name) {
  failed = true;
  DecodeFailure failure = reader->take_failure();
  std::vector<DecodeFailure::Step> path;
  if (root != mark && (!of_reply || paths_left != 0)) {
    if (of_reply) --paths_left;
    reader->rewind(root);
    find_path(*reader, root, mark, path);
  }
  failure.path.assign(path.rbegin(), path.rend());
  if (name != nullptr) failure.path.emplace_back(std::string{name});
  reader->fail(std::move(failure));
  if (!of_reply) return false;
  const Error why = decode_error(*reader);
  reader->clear_failure();
  failed = false;
  active = nullptr;
  fail(WC_ERROR_ARGUMENT, "the result is another", why.data());
  return false;
}

bool Values::fail_unread() noexcept {
  if (!of_reply) {
    failed = true;
    if (reader != nullptr) reader->clear_failure();  // of an earlier call
  }
  active = nullptr;
  return false;
}

// ---- cursors ----

// The reader stands at the cursor's value, whatever has been read since.
[[gnu::noinline]] static void return_to(const wc_cursor& cursor, Values& values) noexcept {
  values.reader->rewind(cursor.value);
  values.active = &cursor;
}

template <class R>
[[gnu::always_inline]] static inline bool read_at(wc_cursor& cursor, Values& values, R& reader, Reading reading,
                                                  const Target& target) {
  if (values.active != &cursor || reader.mark() != cursor.value) return_to(cursor, values);
  if (values.read_by(reader, reading, target, cursor.name, cursor.root)) [[likely]]
    return true;
  return values.fail_at(cursor.value, cursor.root, cursor.name);
}

[[gnu::noinline]] static bool read_virtually(wc_cursor& cursor, Values& values, Reading reading, const Target& target) {
  return read_at(cursor, values, *values.reader, reading, target);
}

// Always false.
[[gnu::noinline]] static bool is_at_no_value() noexcept {
  fail(WC_ERROR_STATE, "the cursor is at no value: wc_cursor_next has not returned true");
  return false;
}

// Mostly the cursor was the last to move the reader, to the value that is read now.
[[gnu::always_inline]] static inline bool read_at(wc_cursor* cursor, Reading reading, const Target& target) noexcept {
  if (!is_usable(cursor)) return false;
  Values& values = values_of(*cursor);
  if (!target.is_whole(reading)) [[unlikely]] {
    fail_null();
    return !values.failed && values.fail_unread();
  }
  if (values.failed) return false;
  if (cursor->state != kAtValue) [[unlikely]]
    return is_at_no_value();
  try {
    if (!values.reader->is_json()) return read_virtually(*cursor, values, reading, target);
    return read_at(*cursor, values, static_cast<json::JsonReader&>(*values.reader), reading, target);
  } catch (...) {
    fail_in_flight();
    return values.fail_unread();
  }
}

[[gnu::noinline]] static void enter(wc_cursor& cursor, Values& values) {
  return_to(cursor, values);
  const bool object = values.reader->kind() == ValueKind::object;
  static_cast<void>(object ? values.reader->begin_object() : values.reader->begin_array());
  cursor.key = object ? "" : nullptr;
}

static bool next(wc_cursor& cursor) {
  Values& values = values_of(cursor);
  if (cursor.state == kAtBegin) {
    enter(cursor, values);
  } else if (values.has_passed(cursor.value)) {
    values.active = &cursor;
  } else if (values.active != &cursor || values.reader->mark() == cursor.value) {
    return_to(cursor, values);
    static_cast<void>(values.reader->skip());
  }
  return with_reader(*values.reader, [&](auto& reader) {
    if (cursor.key == nullptr) {
      if (reader.next_element()) [[likely]] {
        cursor.value = reader.mark();
        cursor.state = kAtValue;
        return true;
      }
    } else if (std::string_view key; reader.next_member(key)) {
      cursor.value = reader.mark();
      cursor.state = kAtValue;
      cursor.key = key.data();
      cursor.key_size = key.size();
      return true;
    }
    cursor.state = kAtEnd;
    values.passed = cursor.begin;
    values.active = &values.passed;
    return false;
  });
}

}  // namespace wirecall::c

using wirecall::c::read_at;
using wirecall::c::Reading;

bool wc_cursor_next(wc_cursor* cursor) {
  if (!wirecall::c::is_usable(cursor)) return false;
  if (cursor->state != wirecall::c::kAtBegin && cursor->state != wirecall::c::kAtValue) return false;
  if (wirecall::c::values_of(*cursor).failed) return false;
  try {
    return wirecall::c::next(*cursor);
  } catch (...) {
    wirecall::c::fail_in_flight();
    return wirecall::c::values_of(*cursor).fail_unread();
  }
}

bool wc_cursor_key(wc_cursor* cursor, const char** key, size_t* size) {
  if (key == nullptr || size == nullptr) {
    wirecall::c::fail_null();
    return false;
  }
  if (!wirecall::c::is_usable(cursor) || cursor->state != wirecall::c::kAtValue || cursor->key == nullptr) return false;
  *key = cursor->key;
  *size = cursor->key_size;
  return true;
}

bool wc_cursor_is_null(wc_cursor* cursor) {
  if (!wirecall::c::is_usable(cursor) || cursor->state != wirecall::c::kAtValue) return false;
  wirecall::c::Values& values = wirecall::c::values_of(*cursor);
  if (values.failed) return false;
  try {
    values.reader->rewind(cursor->value);
    values.active = cursor;
    return values.reader->kind() == wirecall::ValueKind::null;
  } catch (...) {
    wirecall::c::fail_in_flight();
    return false;
  }
}

bool wc_cursor_i64(wc_cursor* cursor, int64_t* out) { return read_at(cursor, Reading::i64, {.i64 = out}); }
bool wc_cursor_u64(wc_cursor* cursor, uint64_t* out) { return read_at(cursor, Reading::u64, {.u64 = out}); }
bool wc_cursor_f64(wc_cursor* cursor, double* out) { return read_at(cursor, Reading::f64, {.f64 = out}); }
bool wc_cursor_bool(wc_cursor* cursor, bool* out) { return read_at(cursor, Reading::boolean, {.boolean = out}); }
bool wc_cursor_text(wc_cursor* cursor, const char** text, size_t* size) {
  return read_at(cursor, Reading::text, {.text = {text, size}});
}
bool wc_cursor_bytes(wc_cursor* cursor, const void** bytes, size_t* size) {
  return read_at(cursor, Reading::bytes, {.bytes = {bytes, size}});
}
bool wc_cursor_json(wc_cursor* cursor, const char** json, size_t* size) {
  return read_at(cursor, Reading::json, {.text = {json, size}});
}
bool wc_cursor_array(wc_cursor* cursor, wc_cursor* inner) { return read_at(cursor, Reading::array, {.cursor = inner}); }
bool wc_cursor_object(wc_cursor* cursor, wc_cursor* inner) {
  return read_at(cursor, Reading::object, {.cursor = inner});
}
