// See table.hpp.
#include "cli/view/table.hpp"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <utility>

#include "base/printable.hpp"

namespace wirecall::cli {
namespace {

constexpr std::string_view kGap = "  ";

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

}  // namespace

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable(cell);
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::vector<std::string> Table::lines(std::size_t width) const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(width_of(column.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  const auto line_of = [&](const auto& cell_of) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      const std::string fill(widths[i] - width_of(cell), ' ');
      if (i != 0) line += kGap;
      line += columns_[i].number ? fill + cell : cell + fill;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return std::string{cut(line, width)};
  };
  std::vector<std::string> lines;
  lines.push_back(line_of([&](std::size_t i) -> const std::string& { return columns_[i].title; }));
  for (const auto& row : rows_) lines.push_back(line_of([&](std::size_t i) -> const std::string& { return row[i]; }));
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

std::string time_text(double ns) {
  constexpr std::array<std::string_view, 4> kUnits{"ns", "us", "ms", "s"};
  std::size_t unit = 0;
  while (ns >= 999.5 && unit + 1 < kUnits.size()) {
    ns /= 1000;
    ++unit;
  }
  const int decimals = unit == 0 || ns >= 99.95 ? 0 : ns >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", ns, decimals, kUnits[unit]);
}

std::string bytes_text(double bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  const int decimals = unit == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", bytes, decimals, kUnits[unit]);
}

std::string rate_text(double rate) {
  const int decimals = rate == 0 || rate >= 99.95 ? 0 : rate >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}", rate, decimals);
}

}  // namespace wirecall::cli
