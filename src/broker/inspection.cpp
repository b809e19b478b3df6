// See inspection.hpp.
#include "broker/inspection.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "broker/report.hpp"
#include "broker/router.hpp"
#include "rpc/access.hpp"
#include "rpc/listed_methods.hpp"
#include "rpc/reserved_params.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {

using rpc::ReservedCall;
using rpc::ReservedParams;
using std::chrono::nanoseconds;

namespace {

// Of another's methods it is looked up whether the caller may call them.
constexpr std::size_t kMethodsInStep = 16;

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

// As rpc::MethodList, with those that connections provide.
class MethodList final : public rpc::Rendering {
 public:
  MethodList(const Inventory& inventory, rpc::Asker asker) : inventory_(&inventory), asker_(std::move(asker)) {}

 private:
  bool write_piece() override {
    const Method* const own = rpc::next_own(inventory_->context().loop, inventory_->context().own, after_);
    const Route* const route = inventory_->methods().next(after_);
    if (own == nullptr && route == nullptr) {
      text_.append(text_.empty() ? "[]" : "]");
      return false;
    }
    const bool is_own = route == nullptr || (own != nullptr && own->name() < route->name());
    after_ = is_own ? own->name() : route->name();
    if (!rpc::may_call(asker_.principal, after_) || !(is_own || route->is_provided())) return true;
    rpc::append_listed(text_, is_own ? rpc::list_own(*own) : list(*route));
    if (!is_own) more_steps_ = route->providers().size() / kProvidersInStep;
    return true;
  }
  static rpc::ListedMethod list(const Route& route) {
    rpc::ListedMethod listed{.name = route.name(),
                             .summary = route.description.summary,
                             .policy = policy_text(route),
                             .providers = 0,
                             .in_flight = 0,
                             .waiting = 0};
    for (const auto& provider : route.providers()) {
      if (!provider->ended) ++listed.providers;
      listed.in_flight += provider->at_work;
      listed.waiting += provider->waiting;
    }
    return listed;
  }

  const Inventory* inventory_;
  const rpc::Asker asker_;
  std::string after_;
};

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

// A client a piece.
class ClientList final : public rpc::Rendering {
 public:
  ClientList(const Inventory& inventory, rpc::Asker asker) : inventory_(&inventory), asker_(std::move(asker)) {}

 private:
  bool write_piece() override {
    const Peer* const peer = inventory_->peers().next(after_);
    if (peer == nullptr) {
      text_.append(text_.empty() ? "[]" : "]");
      return false;
    }
    after_ = peer->number;
    more_steps_ = peer->provides.size() / kMethodsInStep;
    if (peer->name.empty() && peer->provides.empty() && peer->subscription_count() == 0) return true;
    if (!may_see(asker_.principal, *peer)) return true;
    text_.push_back(text_.empty() ? '[' : ',');
    text_.append(to_json(list(*peer)));
    return true;
  }
  [[nodiscard]] ListedClient list(const Peer& peer) const {
    const nanoseconds connected = inventory_->now() - peer.connected_at;
    return {
        .name = peer.name,
        .methods = methods_of(asker_.principal, peer),
        .subscriptions = peer.subscription_count(),
        .in_flight = peer.calls_made,
        .connected_ms = milliseconds_of(connected),
        .silent_ms = milliseconds_of(std::clamp(inventory_->now() - peer.counts.heard_at, nanoseconds{0}, connected)),
        .bytes_in = peer.counts.bytes_in,
        .bytes_out = peer.counts.bytes_out};
  }

  const Inventory* inventory_;
  const rpc::Asker asker_;
  std::uint64_t after_ = 0;
};

struct Health {
  std::string_view status;
  std::int64_t uptime_ms;
};

}  // namespace

std::shared_ptr<rpc::Rendering> list_methods(const ReservedCall& call) {
  require_no_params(call);
  return std::make_shared<MethodList>(peer_of(call).router().inventory(), call.asker());
}

std::shared_ptr<rpc::Rendering> list_clients(const ReservedCall& call) {
  require_no_params(call);
  return std::make_shared<ClientList>(peer_of(call).router().inventory(), call.asker());
}

std::shared_ptr<rpc::Rendering> tell_stats(const ReservedCall& call) {
  require_no_params(call);
  return std::make_shared<StatsText>(peer_of(call).router().inventory(), call.asker());
}

std::string tell_health(const ReservedCall& call) {
  require_no_params(call);
  const Router& router = peer_of(call).router();
  return wirecall::to_json(Health{.status = router.is_draining() ? "draining" : "ok",
                                  .uptime_ms = milliseconds_of(router.inventory().uptime())});
}

std::string kick(const ReservedCall& call) {
  static constexpr std::array<std::string_view, 1> kNames{"client"};
  if (!rpc::is_admin(peer_of(call).principal)) throw forbidden();
  const ReservedParams params{call, kNames};
  const auto name = params.as<std::string>(0);
  if (!name) params.refuse("client", params.find(0), "string");
  return peer_of(call).router().sessions().kick(peer_of(call), *name) ? "true" : "false";
}

}  // namespace wirecall::broker
