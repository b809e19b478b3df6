// See report.hpp.
#include "broker/report.hpp"

#include <array>
#include <charconv>

#include "broker/inventory.hpp"
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

// Of a counter or gauge; the last family, the summary, has none.
using Number = std::string (*)(const MethodReport&);

template <auto member>
std::string number(const MethodReport& method) {
  return std::to_string(method.*member);
}

struct Family {
  std::string_view name;
  std::string_view type;
  std::string_view doc;
  Number value;
};

constexpr std::array<Family, 6> kFamilies{{
    {"calls_total", "counter", "Calls taken.", &number<&MethodReport::calls>},
    {"errors_total", "counter", "Of these, answered with an error or given up.", &number<&MethodReport::errors>},
    {"providers", "gauge", "Connections that provide the method now.", &number<&MethodReport::providers>},
    {"in_flight", "gauge", "Calls at a provider now.", &number<&MethodReport::in_flight>},
    {"waiting", "gauge", "Calls that wait for a provider now.", &number<&MethodReport::waiting>},
    {"duration_seconds", "summary",
     "From a call's arrival to its response; of the process's own methods of one call a turn.", nullptr},
}};

void append_sample(Buffer& text, std::string_view name, const MethodReport& method, std::string_view label,
                   std::string_view value) {
  for (const std::string_view part : {std::string_view{"wirecall_method_"}, name, std::string_view{"{method=\""}})
    text.append(part);
  text.append(escaped(method.name));
  for (const std::string_view part : {std::string_view{"\""}, label, std::string_view{"} "}, value}) text.append(part);
  text.push_back('\n');
}

}  // namespace

StatsText::StatsText(const Inventory& inventory, rpc::Asker asker) : inventory_(&inventory), asker_(std::move(asker)) {
  const Report report = inventory.report();
  text_.append(R"({"uptime_ms":)" + std::to_string(std::chrono::floor<milliseconds>(report.uptime).count()));
  text_.append(R"(,"counters":)" + format_stats(StatsFormat::json, report.counters) + R"(,"methods":[)");
}

bool StatsText::write_piece() {
  MethodReport method;
  if (!inventory_->next_report(after_, asker_.principal, method)) {
    text_.append("]}");
    return false;
  }
  after_ = method.name;
  more_steps_ = method.providers / kProvidersInStep;
  if (method.hidden) return true;
  if (std::exchange(any_, true)) text_.push_back(',');
  text_.append(wirecall::to_json(MethodRow{.name = method.name,
                                           .calls = method.calls,
                                           .errors = method.errors,
                                           .providers = method.providers,
                                           .in_flight = method.in_flight,
                                           .waiting = method.waiting,
                                           .p50_us = microseconds(method.p50),
                                           .p90_us = microseconds(method.p90),
                                           .p99_us = microseconds(method.p99),
                                           .max_us = microseconds(method.max)}));
  return true;
}

MetricsText::MetricsText(const Inventory& inventory, rpc::Asker asker)
    : inventory_(&inventory), asker_(std::move(asker)) {
  const Report report = inventory.report();
  text_.append(format_stats(StatsFormat::prometheus, report.counters));
  text_.append("# HELP wirecall_uptime_seconds Since the server began.\n# TYPE wirecall_uptime_seconds gauge\n");
  text_.append("wirecall_uptime_seconds " + seconds(report.uptime) + "\n");
}

bool MetricsText::write_piece() {
  MethodReport method;
  if (!inventory_->next_report(after_, asker_.principal, method)) {
    after_.clear();
    begun_ = false;
    return ++family_ != kFamilies.size();
  }
  after_ = method.name;
  more_steps_ = method.providers / kProvidersInStep;
  if (method.hidden) return true;
  if (!std::exchange(begun_, true)) write_family();
  write_samples(method);
  return true;
}

void MetricsText::write_family() {
  const Family& family = kFamilies[family_];
  const std::string name = "wirecall_method_" + std::string{family.name} + " ";
  text_.append("# HELP " + name + std::string{family.doc} + "\n# TYPE " + name + std::string{family.type} + "\n");
}

void MetricsText::write_samples(const MethodReport& method) {
  const Family& family = kFamilies[family_];
  if (family.value != nullptr) return append_sample(text_, family.name, method, {}, family.value(method));
  for (const auto& [quantile, value] : {std::pair{"0.5", method.p50}, {"0.9", method.p90}, {"0.99", method.p99}}) {
    const std::string label = std::string{",quantile=\""} + quantile + "\"";
    append_sample(text_, family.name, method, label, method.timed == 0 ? "NaN" : seconds(value));
  }
  append_sample(text_, "duration_seconds_sum", method, {}, seconds(method.sum));
  append_sample(text_, "duration_seconds_count", method, {}, std::to_string(method.timed));
}

}  // namespace wirecall::broker
