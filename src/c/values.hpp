// Values: what reads the parameters of a call, or the result of a reply, for C. It adds to a Reader what a program that
// reads in any order needs: every value can be reached again by its mark, and a value that does not fit is remembered
// with the path to it. Reading allocates nothing but in the reader's arena. Owned by the call or reply; one thread.
#pragma once

#include <cstdint>
#include <string_view>

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
};

/// What was expected where a value is missing, in the words of docs/errors.md.
[[nodiscard]] std::string_view words_of(Reading reading) noexcept;

struct Values {
  Reader* reader = nullptr;  ///< null until it is needed
  const void* active = nullptr;  ///< the last to have moved the reader: a cursor, or this
  bool failed = false;           ///< the reader has the failure

  /// Reads the value that the reader stands at. False, and the reader has the failure, where it is another.
  [[nodiscard]] bool read(Reading reading, const Target& target, std::string_view name, const char* root);
  /// Keeps the failure that the reader has at `mark`, with the path from `root`, which is called `name`; empty for what
  /// has no name.
  void fail_at(const char* mark, const char* root, std::string_view name);
};

/// Reads the cursor's current value.
[[nodiscard]] bool read_at(wc_cursor* cursor, Reading reading, const Target& target) noexcept;

}  // namespace wirecall::c
