// See top_view.hpp.
#include "cli/view/top_view.hpp"

#include <algorithm>
#include <fmt/core.h>
#include <tuple>

#include "base/printable.hpp"
#include "cli/view/table.hpp"

namespace wirecall::cli {
namespace {

// A broker that was started anew, or a method that is provided anew, counts from 0.
double grown(double now, double before) { return now >= before ? now - before : now; }

/// What has been counted in a second.
class Rates {
 public:
  explicit Rates(const BrokerSamples& observed)
      : now_(observed.now),
        before_(observed.before),
        seconds_(std::chrono::duration<double>(observed.now.uptime - observed.before.uptime).count()) {}

  /// Whether there is a time between the two.
  [[nodiscard]] bool known() const { return seconds_ > 0; }
  [[nodiscard]] double of(double now, double before) const { return known() ? grown(now, before) / seconds_ : 0; }
  [[nodiscard]] std::string text(double now, double before) const { return known() ? rate_text(of(now, before)) : "-"; }
  [[nodiscard]] std::string counter(std::string_view name) const {
    return text(now_.counter(name), before_.counter(name));
  }
  [[nodiscard]] std::string bytes(std::string_view name) const {
    return known() ? bytes_text(of(now_.counter(name), before_.counter(name))) : "-";
  }

 private:
  const BrokerStats& now_;
  const BrokerStats& before_;
  double seconds_;
};

/// One method, now and before.
struct Row {
  const MethodStats* now;
  MethodStats before;
  double rate;  ///< calls a second
};

std::vector<Row> rows_of(const BrokerSamples& observed, const Rates& rates) {
  std::vector<Row> rows;
  for (const MethodStats& method : observed.now.methods) {
    const auto known = std::ranges::find(observed.before.methods, method.name, &MethodStats::name);
    const MethodStats before = known == observed.before.methods.end() ? MethodStats{} : *known;
    rows.push_back({.now = &method, .before = before, .rate = rates.of(method.calls, before.calls)});
  }
  // By name where they are equally busy: or they would change their places for nothing.
  std::ranges::sort(rows, [](const Row& a, const Row& b) {
    return std::tie(b.rate, b.now->in_flight, a.now->name) < std::tie(a.rate, a.now->in_flight, b.now->name);
  });
  return rows;
}

Table table_of(const std::vector<Row>& rows, const Rates& rates, bool any_batched) {
  std::vector<std::string> columns{"METHOD", ">CALLS/s", ">ERRORS/s",  ">IN FLIGHT", ">WAITING", ">P50",
                                   ">P99",   ">MAX",     ">PROVIDERS", ">CALLS",     ">ERRORS"};
  if (any_batched) columns.emplace_back(">CALLS/BATCH");
  Table table{std::move(columns)};
  for (const auto& [now, before, rate] : rows) {
    std::vector<std::string> row{now->name,
                                 rates.text(now->calls, before.calls),
                                 rates.text(now->errors, before.errors),
                                 count_text(now->in_flight),
                                 count_text(now->waiting),
                                 latency_text(now->p50_us, *now),
                                 latency_text(now->p99_us, *now),
                                 latency_text(now->max_us, *now),
                                 count_text(now->providers),
                                 count_text(now->calls),
                                 count_text(now->errors)};
    if (any_batched) row.push_back(calls_in_batch_text(*now));
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

std::vector<ScreenLine> top_lines(const BrokerSamples& observed, WindowSize size) {
  const Rates rates{observed};
  const BrokerStats& now = observed.now;
  std::vector<ScreenLine> lines;
  lines.push_back({fmt::format("{}   up {}   q ends", printable(observed.url), duration_text(now.uptime))});
  lines.push_back({fmt::format("connections {}   calls/s {}   errors/s {}   in flight {}   events/s {}",
                               count_text(now.counter("connections_open")), rates.counter("calls"),
                               rates.text(now.errors(), observed.before.errors()),
                               count_text(now.counter("calls_in_flight")), rates.counter("events"))});
  lines.push_back({fmt::format("received/s {}   sent/s {}   events dropped {}", rates.bytes("bytes_in"),
                               rates.bytes("bytes_out"), count_text(now.counter("events_dropped")))});
  lines.push_back({printable(observed.trouble)});
  const std::vector<Row> rows = rows_of(observed, rates);
  std::vector<std::string> table = table_of(rows, rates, any_is_batched(now.methods)).lines();
  lines.push_back({std::move(table.front()), true});
  if (rows.empty()) lines.push_back({"no client provides a method"});
  const std::size_t lines_left = size.lines - std::min(size.lines, lines.size());
  std::size_t shown = std::min(rows.size(), lines_left);
  if (shown < rows.size() && shown > 0) --shown;  // its line says how many are left
  for (std::size_t i = 0; i < shown; ++i) lines.push_back({std::move(table[i + 1])});
  if (shown < rows.size()) lines.push_back({fmt::format("and {} more", rows.size() - shown)});
  lines.resize(std::min(lines.size(), size.lines));
  for (ScreenLine& line : lines) line.text = cut(line.text, size.columns);
  return lines;
}

}  // namespace wirecall::cli
