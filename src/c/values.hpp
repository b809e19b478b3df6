// Values: what reads the parameters of a call, or the result of a reply, for C. It adds to a Reader what a program that
// reads in any order needs: every value can be reached again by its mark, and a value that does not fit is remembered
// with the path to it. Reading allocates nothing but in the reader's arena. Owned by the call or reply; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "codec/json_reader.hpp"
#include "wirecall.h"
#include "wirecall/codec.hpp"

namespace wirecall::c {

enum class Reading { i64, u64, f64, boolean, text, bytes, json, array, object };

/// Where a value that has been read goes; which member that is, the Reading says.
union Target {
  std::int64_t* i64;
  std::uint64_t* u64;
  double* f64;
  bool* boolean;
  struct {
    const char** data;
    std::size_t* size;
  } text;
  struct {
    const void** data;
    std::size_t* size;
  } bytes;
  wc_cursor* cursor;

  /// Whether all of its pointers are there.
  [[gnu::always_inline]] [[nodiscard]] bool is_whole(Reading reading) const noexcept {
    switch (reading) {
      case Reading::i64: return i64 != nullptr;
      case Reading::u64: return u64 != nullptr;
      case Reading::f64: return f64 != nullptr;
      case Reading::boolean: return boolean != nullptr;
      case Reading::text:
      case Reading::json: return text.data != nullptr && text.size != nullptr;
      case Reading::bytes: return bytes.data != nullptr && bytes.size != nullptr;
      case Reading::array:
      case Reading::object: break;
    }
    return cursor != nullptr;
  }
  bool set_text(std::string_view value) const noexcept {
    *text.data = value.data();
    *text.size = value.size();
    return true;
  }
  bool set_bytes(std::span<const std::byte> value) const noexcept {
    *bytes.data = value.data();
    *bytes.size = value.size();
    return true;
  }
};

/// What was expected where a value is missing, in the words of docs/errors.md.
[[nodiscard]] std::string_view words_of(Reading reading) noexcept;

/// Calls `action` with the reader, as what it is where that is the JsonReader, whose functions need no virtual call.
template <class F>
[[gnu::always_inline]] inline decltype(auto) with_reader(Reader& reader, F&& action) {
  if (reader.is_json()) [[likely]]
    return action(static_cast<json::JsonReader&>(reader));
  return action(reader);
}

struct Values {
  Reader* reader = nullptr;      ///< null until it is needed
  const void* active = nullptr;  ///< the last to have moved the reader: a cursor, this, or `passed`
  const char* top = nullptr;     ///< the value that `this` stands at: a parameter, or the result
  const char* passed = nullptr;  ///< where `passed` is active, the reader is behind the value that begins here
  bool failed = false;           ///< the reader has the failure, if there was memory for it
  unsigned paths_left = 16;      ///< of a reply: failures of which the path is looked for, from its root on
  bool of_reply = false;         ///< a value that does not fit is told at once, and others can still be read

  /// Reads the value that the reader stands at. False where it is another: then fail_at is to be called.
  [[gnu::always_inline]] [[nodiscard]] bool read(Reading reading, const Target& target, const char* name,
                                                 const char* root) {
    if (reader->is_json()) [[likely]]
      return read_by(static_cast<json::JsonReader&>(*reader), reading, target, name, root);
    return read_virtually(reading, target, name, root);
  }
  /// The same by a reader whose type is known. Mostly `reading` is as well, and one case remains.
  template <class R>
  [[gnu::always_inline]] [[nodiscard]] bool read_by(R& known, Reading reading, const Target& target, const char* name,
                                                    const char* root) {
    constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    std::string_view text;
    switch (reading) {
      case Reading::i64: return known.read_int(kMin, kMax, *target.i64);
      case Reading::u64: return known.read_uint(std::numeric_limits<std::uint64_t>::max(), *target.u64);
      case Reading::f64: return known.read_double(*target.f64);
      case Reading::boolean: return known.read_bool(*target.boolean);
      case Reading::text: return known.read_string(text) && target.set_text(text);
      case Reading::json: return known.read_json(text) && target.set_text(text);
      case Reading::bytes: {
        std::span<const std::byte> bytes;
        return known.read_bytes(bytes) && target.set_bytes(bytes);
      }
      case Reading::array:
      case Reading::object: break;
    }
    return open(reading, target.cursor, name, root);
  }
  /// Whether a cursor has walked through the value that begins at `value`, and the reader is behind it: nobody has to
  /// skip that once more.
  [[nodiscard]] bool has_passed(const char* value) const noexcept { return active == &passed && passed == value; }
  /// Keeps the failure that the reader has at `mark`, with the path from `root`, which is called `name`; null for what
  /// has no name. Of a reply it is told, and forgotten. Always false.
  [[gnu::noinline]] bool fail_at(const char* mark, const char* root, const char* name);
  /// A read that could not be tried: there was no memory, or an argument was NULL. Always false.
  bool fail_unread() noexcept;

 private:
  [[gnu::noinline]] bool read_virtually(Reading reading, const Target& target, const char* name, const char* root) {
    return read_by(*reader, reading, target, name, root);
  }
  bool open(Reading reading, wc_cursor* cursor, const char* name, const char* root);
};

}  // namespace wirecall::c
