// See logging.hpp.
#include "c/logging.hpp"

#include <string>

namespace wirecall::c {

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
  if (record == nullptr) return;
  sink(static_cast<wirecall::LogLevel>(record->level), record->message, {{"record", record->json}});
}
