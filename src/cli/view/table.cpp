// See table.hpp.
#include "cli/view/table.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <span>
#include <utility>

#include "base/printable.hpp"

namespace wirecall::cli {

using namespace std::string_view_literals;

constexpr std::string_view kGap = "  ";

static bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable(cell);
  cells.resize(titles_.size());
  rows_.push_back(std::move(cells));
}

std::vector<std::string> Table::lines(std::size_t width) const {
  std::vector<std::vector<std::string>> rows{titles_};
  std::vector<bool> numbers;
  for (std::string& title : rows.front()) {
    numbers.push_back(title.starts_with('>'));
    title.erase(0, numbers.back() ? 1 : 0);
  }
  rows.insert(rows.end(), rows_.begin(), rows_.end());
  std::vector<std::size_t> widths(titles_.size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string fill(widths[i] - width_of(row[i]), ' ');
      if (i != 0) line += kGap;
      line += numbers[i] ? fill + row[i] : row[i] + fill;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.emplace_back(cut(line, width));
  }
  return lines;
}

std::string Table::text() const {
  std::string text;
  for (const std::string& line : lines()) text += line + '\n';
  return text;
}

std::string_view cut(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  while (end < text.size() && (width != 0 || !begins_character(text[end]))) {
    if (begins_character(text[end++])) --width;
  }
  return text.substr(0, end);
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, &begins_character));
}

std::string duration_text(std::chrono::milliseconds time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time).count();
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} m {} s", seconds / 60, seconds % 60);
  if (seconds < 86'400) return fmt::format("{} h {} m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{} d {} h", seconds / 86'400, seconds / 3600 % 24);
}

std::string count_text(double number) { return fmt::format("{:.0f}", number); }

std::string rate_text(double rate) {
  const int decimals = rate == 0 || rate >= 99.95 ? 0 : rate >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}", rate, decimals);
}

// In the smallest of the units, each `step` of the one before, in which it has three digits.
static std::string scaled(double number, double step, std::span<const std::string_view> units) {
  std::size_t unit = 0;
  for (; number >= 999.5 && unit + 1 < units.size(); ++unit) number /= step;
  return (unit == 0 ? count_text(number) : rate_text(number)).append(" ").append(units[unit]);
}

std::string time_text(double ns) { return scaled(ns, 1000, std::array{"ns"sv, "us"sv, "ms"sv, "s"sv}); }

std::string bytes_text(double bytes) {
  return scaled(bytes, 1024, std::array{"B"sv, "KiB"sv, "MiB"sv, "GiB"sv, "TiB"sv});
}

}  // namespace wirecall::cli
