// See inventory.hpp.
#include "broker/inventory.hpp"

#include <charconv>

#include "rpc/listed_methods.hpp"
#include "wirecall/detail/batch_counts.hpp"

namespace wirecall::broker {

using std::chrono::duration;
using std::chrono::nanoseconds;

namespace {

// Of another's methods it is looked up whether the caller may call them.
constexpr std::size_t kMethodsInStep = 16;

const rpc::MethodCounts kNoCalls{};

// One of the process's own, or provided by connections: then `own` is null.
struct CountedMethod {
  std::string_view name;
  const Method* own = nullptr;
  const Route* route = nullptr;
  bool hidden = false;        // from who asks: what follows is not filled in
  std::size_t providers = 0;  // connections; 1 for a method of the process's own
  std::size_t in_flight = 0;  // at a provider; of the process's own, that are being waited for
  std::size_t waiting = 0;    // for a provider
  const rpc::MethodCounts* counts = &kNoCalls;
};

struct BatchRow {
  std::uint64_t count;
  double calls_mean;
  std::uint64_t calls_p50;
  std::uint64_t calls_max;
  double wait_p50_us;
  double wait_p99_us;
  double wait_max_us;
};

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
  std::optional<BatchRow> batches;  // of a method of the process that is called once for many calls
};

struct ClientRow {
  std::string_view name;
  std::size_t methods;
  std::size_t subscriptions;
  std::size_t in_flight;
  std::int64_t connected_ms;
  std::int64_t silent_ms;
  std::uint64_t bytes_in;
  std::uint64_t bytes_out;
  std::string_view protocol;
  std::optional<std::string_view> tls;  // its version, where the connection is encrypted
  std::optional<std::string> source;    // where it comes from, for those who may know
};

std::int64_t milliseconds_of(nanoseconds time) { return std::chrono::floor<std::chrono::milliseconds>(time).count(); }

double microseconds(std::uint64_t time) { return duration<double, std::micro>(nanoseconds{time}).count(); }

BatchRow batch_row(const detail::BatchSpreads& batches) {
  const auto count = static_cast<double>(std::max<std::uint64_t>(batches.calls.count, 1));
  return {.count = batches.calls.count,
          .calls_mean = static_cast<double>(batches.calls.sum) / count,
          .calls_p50 = batches.calls.p50,
          .calls_max = batches.calls.max,
          .wait_p50_us = microseconds(batches.waits.p50),
          .wait_p99_us = microseconds(batches.waits.p99),
          .wait_max_us = microseconds(batches.waits.max)};
}

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

std::optional<detail::BatchSpreads> batches_of(const CountedMethod& method) {
  if (method.own == nullptr || method.own->batches() == nullptr) return std::nullopt;
  return method.own->batches()->spreads();
}

// A summary has no number.
struct Family {
  std::string_view name;
  std::string_view type;
  std::string_view doc;
  std::uint64_t (*number)(const CountedMethod&);
  std::optional<detail::Spread> (*summary)(const CountedMethod&) = nullptr;  // nothing for a method that has none
  bool of_times = true;                                                      // which are in nanoseconds
};

constexpr std::array<Family, 8> kFamilies{{
    {"calls_total", "counter", "Calls taken.", [](const CountedMethod& method) { return method.counts->calls; }},
    {"errors_total", "counter", "Of these, answered with an error or given up.",
     [](const CountedMethod& method) { return method.counts->errors; }},
    {"providers", "gauge", "Connections that provide the method now.",
     [](const CountedMethod& method) { return std::uint64_t{method.providers}; }},
    {"in_flight", "gauge", "Calls at a provider now.",
     [](const CountedMethod& method) { return std::uint64_t{method.in_flight}; }},
    {"waiting", "gauge", "Calls that wait for a provider now.",
     [](const CountedMethod& method) { return std::uint64_t{method.waiting}; }},
    {"duration_seconds", "summary",
     "From a call's arrival to its response; of the process's own methods of one call a turn.", nullptr,
     [](const CountedMethod& method) { return std::optional{detail::spread_of(method.counts->latency)}; }},
    {"batch_calls", "summary", "Calls in a batch, of the process's own methods that are called for many.", nullptr,
     [](const CountedMethod& method) {
       return batches_of(method).transform([](const detail::BatchSpreads& batches) { return batches.calls; });
     },
     false},
    {"batch_wait_seconds", "summary", "For how long the first call of such a batch waited.", nullptr,
     [](const CountedMethod& method) {
       return batches_of(method).transform([](const detail::BatchSpreads& batches) { return batches.waits; });
     }},
}};

}  // namespace

// What all of them have: the inventory, who asks, and how far they have come.
class Inventory::Listing : public rpc::Rendering {
 public:
  Listing(const Inventory& inventory, rpc::Asker asker) : inventory_(&inventory), asker_(std::move(asker)) {}

 protected:
  // The first method by name that is behind `after_`; nothing for none.
  [[nodiscard]] std::optional<CountedMethod> next_method();

  const Inventory* inventory_;
  const rpc::Asker asker_;
  std::string after_;
};

std::optional<CountedMethod> Inventory::Listing::next_method() {
  const BrokerContext& context = *inventory_->context_;
  const Method* const own = rpc::next_own(context.loop, context.own, after_);
  const Route* const route = context.methods.next(after_);
  if (own == nullptr && route == nullptr) return std::nullopt;
  const bool is_own = route == nullptr || (own != nullptr && own->name() < route->name());
  CountedMethod method{.name = is_own ? own->name() : route->name(), .own = is_own ? own : nullptr, .route = route};
  after_ = method.name;
  method.hidden = !rpc::may_call(asker_.principal, after_) || !(is_own || route->is_provided());
  if (method.hidden) return method;
  if (is_own) {
    method.providers = 1;
    if (const rpc::OwnCountsRow* const row = inventory_->own_counts_.find(*own)) {
      method.in_flight = row->waiting;
      method.counts = row;
    }
    return method;
  }
  for (const auto& provider : route->providers()) {
    if (!provider->ended) method.providers += provider->options.providers;
    method.in_flight += provider->at_work;
    method.waiting += provider->waiting;
  }
  if (route->counted() != nullptr) method.counts = route->counted();
  more_steps_ = route->providers().size() / kProvidersInStep;
  return method;
}

class Inventory::MethodList final : public Listing {
  using Listing::Listing;

  bool write_piece() override {
    const std::optional<CountedMethod> method = next_method();
    if (!method) {
      text_.append(text_.empty() ? "[]" : "]");
      return false;
    }
    if (method->hidden) return true;
    rpc::append_listed(text_, method->own != nullptr ? rpc::list_own(*method->own)
                                                     : rpc::ListedMethod{.name = method->name,
                                                                         .summary = method->route->description.summary,
                                                                         .policy = policy_text(*method->route),
                                                                         .providers = method->providers,
                                                                         .in_flight = method->in_flight,
                                                                         .waiting = method->waiting});
    return true;
  }
};

// An address is for admins, and for those of the same principal.
static std::optional<std::string> source_of(const Peer& peer, const Principal* asker) {
  if (peer.has_left()) return std::nullopt;
  if (!rpc::is_admin(asker) && !rpc::same_principal(peer.principal, asker)) return std::nullopt;
  std::string source = peer.sink().peer_source();
  return source.empty() ? std::nullopt : std::optional{std::move(source)};
}

static std::optional<std::string_view> tls_of(const Peer& peer) {
  if (peer.has_left() || peer.sink().tls_version().empty()) return std::nullopt;
  return peer.sink().tls_version();
}

// A client a piece.
class Inventory::ClientList final : public Listing {
  using Listing::Listing;

  bool write_piece() override {
    const Peer* const peer = inventory_->context_->peers.next(after_number_);
    if (peer == nullptr) {
      text_.append(text_.empty() ? "[]" : "]");
      return false;
    }
    after_number_ = peer->number;
    more_steps_ = peer->provides.size() / kMethodsInStep;
    if (peer->name.empty() && peer->provides.empty() && peer->topics.count() == 0) return true;
    if (peer->of_node) return true;  // which rpc.cluster tells of
    // Who asks may know of its own, and of who provides what it may call.
    const Principal* const principal = asker_.principal;
    const auto methods = static_cast<std::size_t>(std::ranges::count_if(
        peer->provides, [&](const Provider* one) { return rpc::may_call(principal, one->route->name()); }));
    if (methods == 0 && !rpc::is_admin(principal) && !rpc::same_principal(peer->principal, principal)) return true;
    const nanoseconds now = inventory_->context_->now();
    const nanoseconds connected = now - peer->connected_at;
    text_.push_back(text_.empty() ? '[' : ',');
    text_.append(to_json(
        ClientRow{.name = peer->name,
                  .methods = methods,
                  .subscriptions = peer->topics.count(),
                  .in_flight = peer->calls_made,
                  .connected_ms = milliseconds_of(connected),
                  .silent_ms = milliseconds_of(std::clamp(now - peer->counts.heard_at, nanoseconds{0}, connected)),
                  .bytes_in = peer->counts.bytes_in,
                  .bytes_out = peer->counts.bytes_out,
                  .protocol = peer->has_left() ? std::string_view{} : peer->sink().protocol(),
                  .tls = tls_of(*peer),
                  .source = source_of(*peer, principal)}));
    return true;
  }

  std::uint64_t after_number_ = 0;
};

class Inventory::StatsText final : public Listing {
 public:
  StatsText(const Inventory& inventory, rpc::Asker asker, const Stats& counters)
      : Listing(inventory, std::move(asker)) {
    text_.append(R"({"uptime_ms":)" + std::to_string(milliseconds_of(inventory.uptime())));
    text_.append(R"(,"counters":)" + format_stats(StatsFormat::json, counters) + R"(,"methods":[)");
  }

 private:
  bool write_piece() override {
    const std::optional<CountedMethod> method = next_method();
    if (!method) {
      text_.append("]}");
      return false;
    }
    if (method->hidden) return true;
    const rpc::MethodCounts::Latency& latency = method->counts->latency;
    if (std::exchange(any_, true)) text_.push_back(',');
    text_.append(to_json(MethodRow{.name = method->name,
                                   .calls = method->counts->calls,
                                   .errors = method->counts->errors,
                                   .providers = method->providers,
                                   .in_flight = method->in_flight,
                                   .waiting = method->waiting,
                                   .p50_us = microseconds(latency.at(0.5)),
                                   .p90_us = microseconds(latency.at(0.9)),
                                   .p99_us = microseconds(latency.at(0.99)),
                                   .max_us = microseconds(latency.max()),
                                   .batches = batches_of(*method).transform(batch_row)}));
    return true;
  }

  bool any_ = false;
};

class Inventory::MetricsText final : public Listing {
 public:
  MetricsText(const Inventory& inventory, rpc::Asker asker, const Stats& counters)
      : Listing(inventory, std::move(asker)) {
    text_.append(format_stats(StatsFormat::prometheus, counters));
    text_.append("# HELP wirecall_uptime_seconds Since the server began.\n# TYPE wirecall_uptime_seconds gauge\n");
    text_.append("wirecall_uptime_seconds " + seconds(inventory.uptime()) + "\n");
  }

 private:
  bool write_piece() override {
    const std::optional<CountedMethod> method = next_method();
    if (!method) {
      after_.clear();
      begun_ = false;
      return ++family_ != kFamilies.size();
    }
    if (method->hidden) return true;
    const Family& family = kFamilies[family_];
    std::optional<detail::Spread> summary;
    if (family.summary != nullptr) {
      summary = family.summary(*method);
      if (!summary) return true;
    }
    if (!std::exchange(begun_, true)) {
      const std::string name = "wirecall_method_" + std::string{family.name} + " ";
      text_.append("# HELP " + name + std::string{family.doc} + "\n# TYPE " + name + std::string{family.type} + "\n");
    }
    if (family.number != nullptr) {
      append_sample("", *method, {}, std::to_string(family.number(*method)));
    } else {
      append_summary(*method, *summary, family.of_times);
    }
    return true;
  }
  void append_summary(const CountedMethod& method, const detail::Spread& spread, bool of_times) {
    const auto number = [of_times](std::uint64_t value) {
      return of_times ? seconds(nanoseconds{value}) : std::to_string(value);
    };
    for (const auto& [text, value] : {std::pair{"0.5", spread.p50}, {"0.9", spread.p90}, {"0.99", spread.p99}}) {
      append_sample("", method, std::string{",quantile=\""} + text + "\"", spread.count == 0 ? "NaN" : number(value));
    }
    append_sample("_sum", method, {}, number(spread.sum));
    append_sample("_count", method, {}, std::to_string(spread.count));
  }
  void append_sample(std::string_view suffix, const CountedMethod& method, std::string_view label,
                     std::string_view value) {
    std::string line = "wirecall_method_";
    line.append(kFamilies[family_].name).append(suffix).append("{method=\"").append(escaped(method.name)).append("\"");
    text_.append(line.append(label).append("} ").append(value).append("\n"));
  }

  std::size_t family_ = 0;
  bool begun_ = false;  // the family, by its first method
};

std::unique_ptr<rpc::Rendering> Inventory::list_methods(rpc::Asker asker) const {
  return std::make_unique<MethodList>(*this, std::move(asker));
}

std::unique_ptr<rpc::Rendering> Inventory::list_clients(rpc::Asker asker) const {
  return std::make_unique<ClientList>(*this, std::move(asker));
}

std::unique_ptr<rpc::Rendering> Inventory::tell_stats(rpc::Asker asker) const {
  return std::make_unique<StatsText>(*this, std::move(asker), counters_ ? counters_() : context_->loop.stats);
}

std::unique_ptr<rpc::Rendering> Inventory::tell_metrics(rpc::Asker asker) const {
  return std::make_unique<MetricsText>(*this, std::move(asker), counters_ ? counters_() : context_->loop.stats);
}

bool Inventory::next_method(std::string_view after, const Principal* asker, rpc::DescribedMethod& method) const {
  const Route* const route = context_->methods.next(after);
  if (route == nullptr) return false;
  method.name = route->name();
  method.hidden = !route->is_provided() || !rpc::may_call(asker, route->name());
  if (method.hidden) return true;
  method.summary = route->description.summary;
  method.params = route->description.params_schema;
  method.result = route->description.result_schema;
  method.input = route->description.input_schema;
  if (const std::optional<SubscriptionNames>& names = route->description.subscription) {
    method.subscription =
        R"({"unsubscribe":)" + to_json(names->unsubscribe) + R"(,"notification":)" + to_json(names->notification) + "}";
  }
  return true;
}

}  // namespace wirecall::broker
