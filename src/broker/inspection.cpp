// See inspection.hpp.
#include "broker/inspection.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/exchange.hpp"
#include "rpc/access.hpp"
#include "rpc/listed_methods.hpp"
#include "rpc/reserved_params.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {

using rpc::ReservedCall;
using rpc::ReservedParams;
using std::chrono::nanoseconds;

namespace {

std::int64_t milliseconds_of(std::chrono::nanoseconds time) {
  return std::chrono::floor<std::chrono::milliseconds>(time).count();
}

void require_no_params(const ReservedCall& call) {
  static_cast<void>(ReservedParams{call, std::array<std::string_view, 0>{}});
}

// Whom a caller may know of: its own, and who provides what it may call.
bool may_see(const Principal* principal, const Peer& peer) {
  return rpc::is_admin(principal) || rpc::same_principal(peer.principal, principal) ||
         std::ranges::any_of(peer.provides,
                             [&](const Provider* one) { return rpc::may_call(principal, one->route->name()); });
}

// How many of its methods a caller may know of.
std::size_t methods_of(const Principal* principal, const Peer& peer) {
  return static_cast<std::size_t>(std::ranges::count_if(
      peer.provides, [&](const Provider* one) { return rpc::may_call(principal, one->route->name()); }));
}

std::string policy_text(const Route& route) {
  if (route.policy() == Policy::hash) return "hash:" + route.hash_param();
  return std::string{std::ranges::find(kPolicyNames, route.policy(), &PolicyName::policy)->name};
}

struct ListedClient {
  std::string_view name;
  std::size_t methods;
  std::size_t subscriptions;
  std::size_t in_flight;
  std::int64_t connected_ms;
  std::int64_t silent_ms;
  std::uint64_t bytes_in;
  std::uint64_t bytes_out;
};

struct Health {
  std::string_view status;
  std::int64_t uptime_ms;
};

}  // namespace

std::string list_methods(const ReservedCall& call) {
  require_no_params(call);
  const Principal* const principal = peer_of(call).principal;
  std::vector<rpc::ListedMethod> listed = rpc::list_own(peer_of(call).exchange().own(), principal);
  for (const Route* route : peer_of(call).exchange().methods().sorted()) {
    if (!route->is_provided() || !rpc::may_call(principal, route->name())) continue;
    rpc::ListedMethod one{.name = route->name(),
                          .summary = route->description.summary,
                          .policy = policy_text(*route),
                          .providers = 0,
                          .in_flight = 0,
                          .waiting = 0};
    for (const auto& provider : route->providers()) {
      if (!provider->ended) ++one.providers;
      one.in_flight += provider->at_work;
      one.waiting += provider->waiting;
    }
    listed.push_back(std::move(one));
  }
  return rpc::json_of(std::move(listed));
}

std::string list_clients(const ReservedCall& call) {
  require_no_params(call);
  std::vector<ListedClient> listed;
  const Exchange& exchange = peer_of(call).exchange();
  const Principal* const principal = peer_of(call).principal;
  const nanoseconds now = exchange.now();
  for (const Peer* peer : exchange.peers()) {
    if (!may_see(principal, *peer)) continue;
    if (peer->name.empty() && peer->provides.empty() && peer->subscription_count() == 0) continue;
    listed.push_back(
        {.name = peer->name,
         .methods = methods_of(principal, *peer),
         .subscriptions = peer->subscription_count(),
         .in_flight = peer->calls_made,
         .connected_ms = milliseconds_of(now - peer->met),
         .silent_ms = milliseconds_of(std::clamp(now - peer->counts.heard_at, nanoseconds{0}, now - peer->met)),
         .bytes_in = peer->counts.bytes_in,
         .bytes_out = peer->counts.bytes_out});
  }
  return to_json(listed);
}

std::string tell_stats(const ReservedCall& call) {
  require_no_params(call);
  return report_json(peer_of(call).exchange().report(peer_of(call).principal));
}

std::string tell_health(const ReservedCall& call) {
  require_no_params(call);
  const Exchange& exchange = peer_of(call).exchange();
  return wirecall::to_json(
      Health{.status = exchange.is_draining() ? "draining" : "ok", .uptime_ms = milliseconds_of(exchange.uptime())});
}

std::string kick(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 1> kNames{"client"};
  if (!rpc::is_admin(peer_of(call).principal)) throw Exchange::forbidden();
  const ReservedParams params{call, kNames};
  const auto name = params.as<std::string>(0);
  if (!name) params.refuse("client", params.find(0), "string");
  return peer_of(call).exchange().kick(peer_of(call), *name) ? "true" : "false";
}

bool Exchange::kick(const Peer& by, std::string_view name) {
  const auto found = names_.find(name);
  if (found == names_.end()) return false;
  log_.kicked(by, name);
  Peer& peer = *found->second;
  if (settings_.kick_time > nanoseconds{0}) {
    const std::string_view principal = peer.principal != nullptr ? std::string_view{peer.principal->name} : "";
    kicked_.add({.name = name, .principal = principal, .session = peer.session}, now() + settings_.kick_time);
  }
  peer.outlet().close();
  return true;
}

void Exchange::describe(std::vector<rpc::DescribedMethod>& methods, const Principal* principal) const {
  for (const Route* route : methods_.sorted()) {
    if (!route->is_provided() || !rpc::may_call(principal, route->name())) continue;
    methods.push_back({.name = route->name(),
                       .summary = route->description.summary,
                       .params = route->description.params_schema,
                       .result = route->description.result_schema});
  }
}

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

Report Exchange::report(const Principal* principal) const {
  Report report{.uptime = uptime(), .counters = counters_ ? counters_() : workspace_->stats, .methods = {}};
  for (const Route* route : methods_.sorted()) {
    if (!route->is_provided() || !rpc::may_call(principal, route->name())) continue;
    MethodReport& method = report.methods.emplace_back();
    method.name = route->name();
    for (const auto& provider : route->providers()) {
      if (!provider->ended) ++method.providers;
      method.in_flight += provider->at_work;
      method.waiting += provider->waiting;
    }
    if (const rpc::MethodCounts* const counts = route->counted()) fill(method, *counts);
  }
  for (const auto& own : own_->methods()) {
    if (!rpc::may_call(principal, own->name())) continue;
    MethodReport& method = report.methods.emplace_back();
    method.name = own->name();
    method.providers = 1;  // the broker's own process, as rpc.methods has it
    const rpc::OwnCounts::Row* const row = own_counts_.find(*own);
    if (row == nullptr) continue;
    method.in_flight = row->waiting;
    fill(method, *row);
  }
  std::ranges::sort(report.methods, {}, &MethodReport::name);
  return report;
}

}  // namespace wirecall::broker
