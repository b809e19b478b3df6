// Log: records for whoever runs the program, and the sink that receives them. The library never prints: without a sink
// nothing is written. Records of level info and above are made for rare events only, not for a message or call that
// succeeds; Options::log_calls is the exception. Formatters and a sink for stderr are here for programs that have no
// log of their own.
//
// Thread: a sink is called on the thread on which the event happened, and for slow handlers on a watching thread, so by
// several threads at once. An exception that it throws is dropped, with the record. A sink that blocks holds up the
// connections of its thread; one that might block (a disk, a network) passes its records to its own thread. The sink
// for stderr never blocks.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace wirecall {

enum class LogLevel : std::uint8_t {
  debug,    ///< for debugging: connections that begin and end, a sample of the calls
  info,     ///< normal but notable: another engine is used, connections are accepted again
  warning,  ///< something is wrong, and the server continues to work
  error,    ///< a handler, or the program, has failed at something
};
[[nodiscard]] std::string_view name_of(LogLevel level) noexcept;

/// A name and a value that belong to a record.
struct LogField {
  std::string_view name;
  std::variant<std::string_view, std::int64_t> value;
};

/// One event. Its texts are valid until the sink returns; they may contain any bytes that a peer has sent.
struct LogRecord {
  LogLevel level;
  std::chrono::system_clock::time_point time;
  std::string_view message;
  std::initializer_list<LogField> fields;
};

/// A function that receives records; an empty one drops them. Made from anything callable with a LogRecord.
class LogSink {
 public:
  LogSink() = default;
  template <std::invocable<const LogRecord&> F>
    requires(!std::same_as<std::remove_cvref_t<F>, LogSink>)
  LogSink(F&& write) : write_(std::forward<F>(write)) {}

  /// The same sink for records of `level` and above.
  [[nodiscard]] LogSink at_least(LogLevel level) const {
    LogSink sink = *this;
    sink.level_ = level;
    return sink;
  }
  /// The same sink, with a level that may change: `level` is read for each record.
  [[nodiscard]] LogSink at_least(std::shared_ptr<const std::atomic<LogLevel>> level) const {
    LogSink sink = *this;
    sink.moving_level_ = std::move(level);
    return sink;
  }
  explicit operator bool() const noexcept { return write_ != nullptr; }
  [[nodiscard]] bool takes(LogLevel level) const noexcept {
    if (moving_level_ != nullptr && level < moving_level_->load(std::memory_order_relaxed)) return false;
    return level >= level_ && write_ != nullptr;
  }

  /// Calls the sink with a record of the present time.
  void operator()(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {}) const noexcept;

 private:
  std::function<void(const LogRecord&)> write_;
  LogLevel level_ = LogLevel::debug;
  std::shared_ptr<const std::atomic<LogLevel>> moving_level_;  // null for none
};

enum class LogFormat : std::uint8_t { human, json };

/// One line without its newline: "2024-05-06T07:08:09.123Z warning <message> name=value", or a JSON object with the
/// members time, level, message and the fields. Whatever the texts hold, it stays one line of valid UTF-8 without a
/// control character, so that no peer can forge a line or steer a terminal.
[[nodiscard]] std::string format_log(LogFormat format, const LogRecord& record);

/// A sink that writes such lines to stderr. It never waits: while whoever reads stderr does not keep up, records are
/// dropped, and the next one written is preceded by their number. Lines are cut at 4 KiB, and those of several
/// threads do not mix.
[[nodiscard]] LogSink stderr_log(LogFormat format);

}  // namespace wirecall
