// See report.hpp.
#include "broker/report.hpp"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "wirecall/reflect.hpp"

namespace wirecall::broker {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

struct MethodRow {
  std::string_view name;
  std::uint64_t calls;
  std::uint64_t errors;
  std::size_t providers;
  std::size_t in_flight;
  std::size_t waiting;
  double p50_us;
  double p90_us;
  double p99_us;
  double max_us;
};

double microseconds(nanoseconds time) { return duration<double, std::micro>(time).count(); }

std::string seconds(nanoseconds time) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), duration<double>(time).count()).ptr;
  return {text.data(), end};
}

// A label's value: names of methods hold no control bytes.
std::string escaped(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

class Metrics {
 public:
  explicit Metrics(std::string& text, const std::vector<MethodReport>& methods) : text_(&text), methods_(&methods) {}

  template <class Value>
  void family(std::string_view name, std::string_view type, std::string_view doc, const Value& value) {
    text_->append("# HELP wirecall_method_").append(name).append(" ").append(doc).append("\n# TYPE wirecall_method_");
    text_->append(name).append(" ").append(type).append("\n");
    for (const MethodReport& method : *methods_) sample(name, method, {}, value(method));
  }
  void sample(std::string_view name, const MethodReport& method, std::string_view label, std::string_view value) {
    text_->append("wirecall_method_").append(name).append("{method=\"").append(escaped(method.name)).append("\"");
    text_->append(label).append("} ").append(value).append("\n");
  }

 private:
  std::string* text_;
  const std::vector<MethodReport>* methods_;
};

}  // namespace

std::string report_json(const Report& report) {
  std::vector<MethodRow> rows;
  for (const MethodReport& method : report.methods) {
    rows.push_back({.name = method.name,
                    .calls = method.calls,
                    .errors = method.errors,
                    .providers = method.providers,
                    .in_flight = method.in_flight,
                    .waiting = method.waiting,
                    .p50_us = microseconds(method.p50),
                    .p90_us = microseconds(method.p90),
                    .p99_us = microseconds(method.p99),
                    .max_us = microseconds(method.max)});
  }
  std::string text = R"({"uptime_ms":)" + std::to_string(std::chrono::floor<milliseconds>(report.uptime).count());
  text.append(R"(,"counters":)").append(format_stats(StatsFormat::json, report.counters));
  text.append(R"(,"methods":)").append(wirecall::to_json(rows)).append("}");
  return text;
}

std::string report_metrics(const Report& report) {
  std::string text = format_stats(StatsFormat::prometheus, report.counters);
  text += "# HELP wirecall_uptime_seconds Since the server began.\n# TYPE wirecall_uptime_seconds gauge\n";
  text += "wirecall_uptime_seconds " + seconds(report.uptime) + "\n";
  if (report.methods.empty()) return text;
  Metrics metrics{text, report.methods};
  const auto number = [](auto MethodReport::* member) {
    return [member](const MethodReport& method) { return std::to_string(method.*member); };
  };
  metrics.family("calls_total", "counter", "Calls taken.", number(&MethodReport::calls));
  metrics.family("errors_total", "counter", "Of these, answered with an error or given up.",
                 number(&MethodReport::errors));
  metrics.family("providers", "gauge", "Connections that provide the method now.", number(&MethodReport::providers));
  metrics.family("in_flight", "gauge", "Calls at a provider now.", number(&MethodReport::in_flight));
  metrics.family("waiting", "gauge", "Calls that wait for a provider now.", number(&MethodReport::waiting));
  text +=
      "# HELP wirecall_method_duration_seconds From a call's arrival to its response; of the process's own methods of "
      "one call a turn.\n";
  text += "# TYPE wirecall_method_duration_seconds summary\n";
  for (const MethodReport& method : report.methods) {
    for (const auto& [quantile, value] : {std::pair{"0.5", method.p50}, {"0.9", method.p90}, {"0.99", method.p99}}) {
      const std::string label = std::string{",quantile=\""} + quantile + "\"";
      metrics.sample("duration_seconds", method, label, method.timed == 0 ? "NaN" : seconds(value));
    }
    metrics.sample("duration_seconds_sum", method, {}, seconds(method.sum));
    metrics.sample("duration_seconds_count", method, {}, std::to_string(method.timed));
  }
  return text;
}

}  // namespace wirecall::broker
