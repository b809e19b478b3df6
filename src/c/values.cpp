// See values.hpp, and the cursors of wirecall.h.
#include "c/values.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>

#include "c/entry.hpp"

namespace wirecall::c {
namespace {

// Where a cursor stands.
enum CursorState : int { kClosed, kAtBegin, kAtValue, kAtEnd };

bool is_usable(const wc_cursor* cursor) noexcept {
  return cursor != nullptr && cursor->size >= sizeof(wc_cursor) && cursor->source != nullptr;
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

void open(wc_cursor& cursor, Values& values, std::string_view name, const char* root) noexcept {
  cursor.source = &values;
  cursor.name = name.data();
  cursor.root = root;
  cursor.begin = values.reader->mark();
  cursor.value = nullptr;
  cursor.count = 0;
  cursor.key = nullptr;
  cursor.key_size = 0;
  cursor.state = kAtBegin;
}

bool give_text(const Target& target, std::string_view text) noexcept {
  *target.text.data = text.data();
  *target.text.size = text.size();
  return true;
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

bool Values::read(Reading reading, const Target& target, std::string_view name, const char* root) {
  const char* const mark = reader->mark();
  bool fits = false;
  std::string_view text;
  switch (reading) {
    case Reading::i64:
      fits = reader->read_int(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
                              *target.i64);
      break;
    case Reading::u64: fits = reader->read_uint(std::numeric_limits<std::uint64_t>::max(), *target.u64); break;
    case Reading::f64: fits = reader->read_double(*target.f64); break;
    case Reading::boolean: fits = reader->read_bool(*target.boolean); break;
    case Reading::text: fits = reader->read_string(text) && give_text(target, text); break;
    case Reading::json: fits = reader->read_json(text) && give_text(target, text); break;
    case Reading::bytes: {
      std::span<const std::byte> bytes;
      if ((fits = reader->read_bytes(bytes))) {
        *target.bytes.data = bytes.data();
        *target.bytes.size = bytes.size();
      }
      break;
    }
    case Reading::array:
    case Reading::object: {
      const ValueKind wanted = reading == Reading::array ? ValueKind::array : ValueKind::object;
      if (target.cursor == nullptr || target.cursor->size < sizeof(wc_cursor)) {
        throw std::invalid_argument("the cursor was not made by WC_CURSOR_INIT");
      } else if (reader->kind() != wanted) {
        fits = reader->fail(words_of(reading));
      } else {
        open(*target.cursor, *this, name, root);
        active = target.cursor;
        fits = true;
      }
      break;
    }
  }
  if (!fits) [[unlikely]]
    fail_at(mark, root, name);
  return fits;
}

void Values::fail_at(const char* mark, const char* root, std::string_view name) {
  failed = true;
  DecodeFailure failure = reader->take_failure();
  std::vector<DecodeFailure::Step> path;
  if (root != mark) {
    reader->rewind(root);
    find_path(*reader, root, mark, path);
  }
  failure.path.assign(path.rbegin(), path.rend());
  if (name.data() != nullptr) failure.path.emplace_back(std::string{name});
  static_cast<void>(reader->fail(std::move(failure)));
}

bool read_at(wc_cursor* cursor, Reading reading, const Target& target) noexcept {
  if (!is_usable(cursor) || cursor->state != kAtValue) return false;
  Values& values = values_of(*cursor);
  if (values.failed) return false;
  try {
    if (values.active != cursor || values.reader->mark() != cursor->value) values.reader->rewind(cursor->value);
    values.active = cursor;
    return values.read(reading, target, cursor->name == nullptr ? std::string_view{} : std::string_view{cursor->name},
                       cursor->root);
  } catch (...) {
    values.failed = true;
    fail_in_flight();
    return false;
  }
}

// Moves the cursor's reader behind its current value, whatever has been read of it.
static void leave_value(wc_cursor& cursor, Values& values) {
  Reader& reader = *values.reader;
  if (cursor.state == kAtBegin) {
    if (values.active != &cursor || reader.mark() != cursor.begin) reader.rewind(cursor.begin);
    cursor.key_size = 0;
    static_cast<void>(reader.kind() == ValueKind::object ? reader.begin_object() : reader.begin_array());
    return;
  }
  if (values.active == &cursor && reader.mark() != cursor.value) return;
  reader.rewind(cursor.value);
  static_cast<void>(reader.skip());
}

static bool next(wc_cursor& cursor) {
  Values& values = values_of(cursor);
  const bool first = cursor.state == kAtBegin;
  const bool object = first ? (values.reader->rewind(cursor.begin), values.active = &cursor,
                               values.reader->kind() == ValueKind::object)
                            : cursor.key != nullptr;
  leave_value(cursor, values);
  values.active = &cursor;
  std::string_view key{"", 0};
  if (!(object ? values.reader->next_member(key) : values.reader->next_element())) {
    cursor.state = kAtEnd;
    return false;
  }
  cursor.value = values.reader->mark();
  cursor.count += first ? 0 : 1;
  cursor.key = object ? key.data() : nullptr;
  cursor.key_size = key.size();
  cursor.state = kAtValue;
  return true;
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
    wirecall::c::values_of(*cursor).failed = true;
    wirecall::c::fail_in_flight();
    return false;
  }
}

bool wc_cursor_key(wc_cursor* cursor, const char** key, size_t* size) {
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
bool wc_cursor_array(wc_cursor* cursor, wc_cursor* inner) {
  return read_at(cursor, Reading::array, {.cursor = inner});
}
bool wc_cursor_object(wc_cursor* cursor, wc_cursor* inner) {
  return read_at(cursor, Reading::object, {.cursor = inner});
}
