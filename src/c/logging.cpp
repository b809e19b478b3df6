// See logging.hpp.
#include "c/logging.hpp"

#include <algorithm>
#include <string>

#include "c/entry.hpp"
#include "c/json_text.hpp"

namespace wirecall::c {
namespace {

// The message, and behind it what belongs to it, as name=value.
std::string line_of(const wc_log_record& record) {
  std::string line{view_of(record.message)};
  const JsonText json{view_of(record.json)};
  const auto reader = json_codec().reader();
  if (!json.is_valid() || !json.view().starts_with('{')) return line;
  reader->reset(json.view());
  reader->begin_object();
  for (std::string_view name; reader->next_member(name);) {
    const std::string key{name};
    const std::string_view value = reader->skip();
    if (key != "time" && key != "level" && key != "message") (line += ' ').append(key).append("=").append(value);
  }
  return line;
}

}  // namespace

LogSink Logging::sink() const {
  return LogSink{[target = target_](const LogRecord& record) {
    if (target->function == nullptr) return;
    const std::string message{record.message};
    const std::string json = format_log(LogFormat::json, record);
    const wc_log_record told{.size = sizeof(wc_log_record),
                             .level = static_cast<int>(record.level),
                             .message = message.c_str(),
                             .json = json.c_str()};
    target->function(&told, target->user);
  }};
}

}  // namespace wirecall::c

void wc_log_stderr(const wc_log_record* record, void*) {
  static const wirecall::LogSink sink = wirecall::stderr_log(wirecall::LogFormat::human);
  if (record == nullptr || record->size < sizeof(wc_log_record)) {
    wirecall::c::fail_null();
    return;
  }
  wirecall::c::guarded([record] {
    const int level = std::clamp<int>(record->level, WC_LOG_DEBUG, WC_LOG_ERROR);
    sink(static_cast<wirecall::LogLevel>(level), wirecall::c::line_of(*record));
  });
}
