// Records and their two formats. See log.hpp.
#include "wirecall/log.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/printable.hpp"

namespace wirecall {

using std::chrono::system_clock;

static std::string time_text(system_clock::time_point time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{std::chrono::floor<std::chrono::milliseconds>(time - day)};
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return text.data();
}

// A JSON string. What is no valid UTF-8 is told as text, since JSON cannot hold it.
static std::string quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const char c = text[0];
    const std::size_t bytes = std::max<std::size_t>(printable_bytes(text), 1);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (printable_bytes(text) != 0) {
      result += text.substr(0, bytes);
    } else {
      result += '\\' + printable(text.substr(0, 1));
    }
    text.remove_prefix(bytes);
  }
  return result + '"';
}

// A value of the human format: quoted only where it could be taken for something else.
static std::string plain(std::string_view text) {
  const bool simple = !text.empty() && text.find_first_of(" =\"\\") == std::string_view::npos;
  return simple ? printable(text) : quoted(text);
}

static std::string text_of(const LogField& field, std::string (*text_as)(std::string_view)) {
  if (const auto* number = std::get_if<std::int64_t>(&field.value)) return std::to_string(*number);
  return text_as(std::get<std::string_view>(field.value));
}

static std::string human(const LogRecord& record) {
  std::string line = time_text(record.time) + ' ' + std::string{name_of(record.level)} + ' ';
  line += printable(record.message);
  for (const LogField& field : record.fields) {
    line += ' ' + printable(field.name) + '=' + text_of(field, plain);
  }
  return line;
}

static std::string json_text(const LogRecord& record) {
  std::string line = R"({"time":")" + time_text(record.time) + R"(","level":")";
  line += name_of(record.level);
  line += R"(","message":)" + quoted(record.message);
  for (const LogField& field : record.fields) {
    line += ',' + quoted(field.name) + ':' + text_of(field, quoted);
  }
  return line + '}';
}

std::string_view name_of(LogLevel level) noexcept {
  constexpr std::array<std::string_view, 4> kNames{"debug", "info", "warning", "error"};
  return kNames[static_cast<std::size_t>(level)];
}

void LogSink::operator()(LogLevel level, std::string_view message,
                         std::initializer_list<LogField> fields) const noexcept {
  if (!takes(level)) return;
  try {
    write_(LogRecord{.level = level, .time = system_clock::now(), .message = message, .fields = fields});
  } catch (...) {
    // A log that fails must not take with it what it was to tell of.
  }
}

std::string format_log(LogFormat format, const LogRecord& record) {
  return format == LogFormat::json ? json_text(record) : human(record);
}

}  // namespace wirecall
