// See inventory.hpp.
#include "broker/inventory.hpp"

#include <optional>
#include <string>

#include "rpc/access.hpp"
#include "rpc/listed_methods.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {

using std::chrono::nanoseconds;

namespace {

void fill(MethodReport& method, const rpc::MethodCounts& counts) {
  const auto at = [&](double quantile) { return nanoseconds{counts.latency.at(quantile)}; };
  method.calls = counts.calls;
  method.errors = counts.errors;
  method.timed = counts.latency.count();
  method.sum = nanoseconds{counts.latency.sum()};
  method.p50 = at(0.5);
  method.p90 = at(0.9);
  method.p99 = at(0.99);
  method.max = nanoseconds{counts.latency.max()};
}

}  // namespace

bool Inventory::next_method(std::string_view after, const Principal* asker, rpc::DescribedMethod& method) const {
  const Route* const route = methods_->next(after);
  if (route == nullptr) return false;
  method.name = route->name();
  method.hidden = !route->is_provided() || !rpc::may_call(asker, route->name());
  if (method.hidden) return true;
  method.summary = route->description.summary;
  method.params = route->description.params_schema;
  method.result = route->description.result_schema;
  if (const std::optional<SubscriptionNames>& names = route->description.subscription) {
    method.subscription =
        R"({"unsubscribe":)" + to_json(names->unsubscribe) + R"(,"notification":)" + to_json(names->notification) + "}";
  }
  return true;
}

bool Inventory::next_report(std::string_view after, const Principal* asker, MethodReport& method) const {
  const Method* const own = rpc::next_own(context_->loop, context_->own, after);
  const Route* const route = methods_->next(after);
  if (own == nullptr && route == nullptr) return false;
  const bool is_own = route == nullptr || (own != nullptr && own->name() < route->name());
  method = {};
  method.name = is_own ? own->name() : route->name();
  method.hidden = !rpc::may_call(asker, method.name) || !(is_own || route->is_provided());
  if (method.hidden) return true;
  if (is_own) {
    method.providers = 1;  // the broker's own process, as rpc.methods has it
    const rpc::OwnCounts::Row* const row = own_counts_.find(*own);
    if (row == nullptr) return true;
    method.in_flight = row->waiting;
    fill(method, *row);
    return true;
  }
  for (const auto& provider : route->providers()) {
    if (!provider->ended) ++method.providers;
    method.in_flight += provider->at_work;
    method.waiting += provider->waiting;
  }
  if (const rpc::MethodCounts* const counts = route->counted()) fill(method, *counts);
  return true;
}

}  // namespace wirecall::broker
