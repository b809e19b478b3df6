// LogSink: where the library's log lines go. The library itself never prints; the tool installs a sink.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace wirecall {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

/// Called on the thread on which the event happened, one line without its newline at a time. It must not throw.
using LogSink = std::function<void(LogLevel, std::string_view)>;

}  // namespace wirecall
