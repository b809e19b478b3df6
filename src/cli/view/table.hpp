// Table: rows for people, in columns that are as wide as what is in them; and numbers as people read them. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace wirecall::cli {

class Table {
 public:
  /// The titles of its columns; one that begins with > is of numbers, which are aligned to the right.
  explicit Table(std::vector<std::string> titles) : titles_(std::move(titles)) {}

  /// One cell a column, of any text: what would steer a terminal is made visible.
  void add(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }

  /// A line of titles and one a row, none wider than `width` characters.
  [[nodiscard]] std::vector<std::string> lines(std::size_t width = static_cast<std::size_t>(-1)) const;
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::string> titles_;
  std::vector<std::vector<std::string>> rows_;
};

/// The first characters of a text, so many at most; each code point counts as one.
[[nodiscard]] std::string_view cut(std::string_view text, std::size_t width);
/// How many it has.
[[nodiscard]] std::size_t width_of(std::string_view text);

/// "0 s", "59 s", "2 m 5 s", "3 h 0 m", "12 d 3 h".
[[nodiscard]] std::string duration_text(std::chrono::milliseconds time);
/// With three digits: "812 ns", "12.3 us", "4.56 ms", "1.20 s".
[[nodiscard]] std::string time_text(double ns);
/// 1234.4 -> "1234".
[[nodiscard]] std::string count_text(double number);
/// With three digits: "812 B", "1.50 KiB", "23.4 MiB".
[[nodiscard]] std::string bytes_text(double bytes);
/// With three digits where there are decimals: "0", "0.25", "12.5", "1532".
[[nodiscard]] std::string rate_text(double rate);

}  // namespace wirecall::cli
