// Statement: one prepared statement of SQLite, for a Database. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace wirecall::local_store {

class Statement {
 public:
  /// `database` outlives it. Throws Failed.
  Statement(sqlite3* database, const char* sql);
  ~Statement();
  Statement(Statement&&) = delete;

  /// Binds the values to its parameters, in their order; texts last until the next call.
  template <class... Values>
  Statement& with(const Values&... values) {
    reset();
    int at = 0;
    (bind(++at, values), ...);
    return *this;
  }
  /// Runs on to the next row; false when there is none. Throws Failed.
  bool step();
  /// Runs it as a whole. Returns how many rows it has changed.
  template <class... Values>
  int run(const Values&... values) {
    with(values...);
    while (step()) continue;
    return changes();
  }

  /// No row is looked at any more.
  void reset() noexcept;

  // Of the present row, from 0.

  [[nodiscard]] std::int64_t integer(int column) const noexcept;
  [[nodiscard]] std::uint64_t number(int column) const noexcept { return static_cast<std::uint64_t>(integer(column)); }
  [[nodiscard]] std::string text(int column) const;

 private:
  void bind(int at, std::int64_t value);
  // SQLite has no larger numbers, and there are none: one that somebody asks for is behind all that there are.
  void bind(int at, std::uint64_t value) {
    bind(at, static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX)));
  }
  void bind(int at, std::uint32_t value) { bind(at, std::int64_t{value}); }
  void bind(int at, int value) { bind(at, std::int64_t{value}); }
  void bind(int at, std::string_view value);
  void bind(int at, const std::string& value) { bind(at, std::string_view{value}); }
  [[nodiscard]] int changes() const noexcept;

  sqlite3_stmt* statement_ = nullptr;
};

}  // namespace wirecall::local_store
