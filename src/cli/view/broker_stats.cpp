// See broker_stats.hpp.
#include "cli/view/broker_stats.hpp"

#include <algorithm>

#include "cli/view/members.hpp"
#include "cli/view/table.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {

BrokerStats BrokerStats::parse(std::string_view json) {
  const Value value = Value::parse(json).value_or(Value{});
  BrokerStats stats;
  stats.uptime = std::chrono::milliseconds{static_cast<std::int64_t>(number_of(value, "uptime_ms"))};
  if (const Value* counters = value.find("counters"); counters != nullptr && counters->is_object()) {
    for (const auto& [name, counter] : counters->as_object()) {
      if (counter.is_number()) stats.counters.emplace_back(name, counter.as_double());
      if (!counter.is_object()) continue;
      for (const auto& [kind, count] : counter.as_object()) {
        if (count.is_number()) stats.counters.emplace_back(name + "." + kind, count.as_double());
      }
    }
  }
  for (const Value& method : elements_of(value.find("methods"))) {
    const Value* const batches = method.find("batches");
    stats.methods.push_back({.name = text_of(method, "name"),
                             .calls = number_of(method, "calls"),
                             .errors = number_of(method, "errors"),
                             .providers = number_of(method, "providers"),
                             .in_flight = number_of(method, "in_flight"),
                             .waiting = number_of(method, "waiting"),
                             .p50_us = number_of(method, "p50_us"),
                             .p90_us = number_of(method, "p90_us"),
                             .p99_us = number_of(method, "p99_us"),
                             .max_us = number_of(method, "max_us"),
                             .batches = batches != nullptr ? number_of(*batches, "count") : 0,
                             .calls_in_batch = batches != nullptr ? number_of(*batches, "calls_mean") : 0});
  }
  return stats;
}

double BrokerStats::counter(std::string_view name) const noexcept {
  const auto found = std::ranges::find(counters, name, &std::pair<std::string, double>::first);
  return found == counters.end() ? 0 : found->second;
}

double BrokerStats::errors() const noexcept {
  double sum = 0;
  for (const auto& [name, count] : counters) sum += is_error_counter(name) ? count : 0;
  return sum;
}

std::string latency_text(double us, const MethodStats& method) {
  return method.calls == 0 || method.max_us == 0 ? "-" : time_text(us * 1000);
}

bool any_is_batched(const std::vector<MethodStats>& methods) noexcept {
  return std::ranges::any_of(methods, [](const MethodStats& method) { return method.batches != 0; });
}

std::string calls_in_batch_text(const MethodStats& method) {
  return method.batches == 0 ? "-" : rate_text(method.calls_in_batch);
}

bool is_error_counter(std::string_view name) noexcept { return name.starts_with("errors."); }

}  // namespace wirecall::cli
