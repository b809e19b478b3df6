// MethodTable: which names are provided by whom. A Route is one name, or all names under a prefix ("gpu.>"), with what
// its first registration has fixed; a Provider is one peer that serves it, with the calls that are at work there and
// those that wait. Which provider is asked is the route's policy.
// One thread. Pure. Implements docs/broker.md "Registering".
#pragma once

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/dotted_name.hpp"
#include "base/edit_distance.hpp"
#include "base/seeded_hash.hpp"
#include "broker/relayed_calls.hpp"
#include "broker/waiting_calls.hpp"
#include "rpc/method_counts.hpp"
#include "wirecall/codec.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::broker {

class Peer;
class Relay;
class Route;
struct SubscriptionMethod;
class SubscriptionRelay;

/// A method without a typed edge: `answer(object, call)` sees to the answer, or throws it as an Error, whose
/// `delivered` is its own: the broker has refused, and no handler has run. `object` outlives it. `asynchronous`: its
/// calls know the way to their caller.
template <auto answer, class Object>
[[nodiscard]] Method untyped_method(std::string name, Object& object, bool asynchronous = false) {
  static constexpr wirecall::detail::Signature kPlain{};
  static constexpr wirecall::detail::Signature kAsynchronous{.arguments = {}, .result = nullptr, .asynchronous = true};
  return {std::move(name),
          {},
          {.callable = {&object, [](void*) {}},
           .invoke =
               [](void* callable, Call& call) {
                 try {
                   answer(*static_cast<Object*>(callable), call);
                 } catch (const LocalError&) {
                   throw;
                 } catch (const Error& error) {
                   call.error(error);
                 }
               },
           .signature = asynchronous ? &kAsynchronous : &kPlain}};
}

/// Of a connection's share: so many providers are looked at in a step.
inline constexpr std::size_t kProvidersInStep = 32;

/// How one of several providers is chosen.
enum class Policy : std::uint8_t {
  least_inflight,  ///< who has the fewest calls; of these, in turn
  round_robin,     ///< in turn
  hash,            ///< always the same one for the same value of a param
  exclusive,       ///< there is only one: a second may not register
  random,
  first,  ///< who registered first
  last,   ///< who registered last
};

/// Policies by their names; "hash:<param>" has more behind it.
struct PolicyName {
  std::string_view name;
  Policy policy;
};
inline constexpr PolicyName kPolicyNames[] = {{"least_inflight", Policy::least_inflight},
                                              {"round_robin", Policy::round_robin},
                                              {"exclusive", Policy::exclusive},
                                              {"random", Policy::random},
                                              {"first", Policy::first},
                                              {"last", Policy::last}};

/// What a registration says of its method, but for what is the route's.
struct ProviderOptions {
  static constexpr std::uint32_t kUnlimited = ~std::uint32_t{0};
  static constexpr std::uint32_t kQueueDefault = 1000;

  std::uint32_t concurrency = kUnlimited;  ///< calls at the provider at most
  std::uint32_t queue = kQueueDefault;     ///< further calls that wait for it at most
  bool idempotent = false;                 ///< a call may be made again where the provider has been lost
  bool linked = false;                     ///< it is a LinkedBroker's peer
  bool of_process = false;                 ///< of a node: its own process provides it, and no client
  std::uint32_t providers = 1;             ///< that it stands for: of a node, as many as that has
};

/// A peer that provides a route's methods.
struct Provider {
  Route* route;
  Peer* peer;
  ProviderOptions options;
  std::uint32_t at_work = 0;            ///< calls sent and not answered, those that were given up among them
  std::uint32_t waiting = 0;            ///< calls that wait for it
  RelayedCalls::List sent{};            ///< those at work
  WaitingCalls queue{};                 ///< those that wait, and may as well go to another one
  WaitingCalls addressed_queue{};       ///< those that are for nobody else
  bool addressed_next = false;          ///< which of the two has its turn
  bool ended = false;                   ///< unregistered: it is asked nothing new, and goes with its last call
  bool at_node = false;                 ///< the peer speaks for another broker
  std::uint32_t index = 0;              ///< in Peer::provides
  std::shared_ptr<Provider*> ending{};  ///< while its waiting calls end in shares (Departures); null again when it goes
  std::shared_ptr<SubscriptionMethod> subscribing{};  ///< null before it has a subscription

  [[nodiscard]] bool is_free() const;
  /// Where the call waits, if it does.
  [[nodiscard]] WaitingCalls& queue_of(const RelayedCall& call) noexcept {
    return call.addressed ? addressed_queue : queue;
  }
  [[nodiscard]] std::size_t load() const noexcept;
};

/// What `rpc.describe` and `rpc.methods` tell of a route: as its first provider has registered it.
struct Description {
  std::string summary;
  std::string params_schema;  ///< JSON text; empty for none
  std::string result_schema;
  std::string input_schema;  ///< of an item of the stream that it takes
  bool safe = false;
  std::optional<SubscriptionNames> subscription;  ///< of a method that subscribes
  bool unsubscribes = false;                      ///< ends those of others

  [[nodiscard]] std::size_t bytes() const noexcept {
    const std::size_t names = subscription ? subscription->unsubscribe.size() + subscription->notification.size() : 0;
    return summary.size() + params_schema.size() + result_schema.size() + input_schema.size() + names;
  }
  /// Whether both subscribe, alike, or neither does; and the same of unsubscribing.
  [[nodiscard]] bool is_of_kind(const Description& other) const noexcept {
    return unsubscribes == other.unsubscribes && subscription.has_value() == other.subscription.has_value() &&
           (!subscription || (subscription->unsubscribe == other.subscription->unsubscribe &&
                              subscription->notification == other.subscription->notification));
  }
};

/// What bounds a choice among the providers of several nodes.
struct RealmChoice {
  std::string_view own;           ///< this node
  bool here = false;              ///< others are not asked
  const Provider* but = nullptr;  ///< not chosen
};

/// Who answers calls of a route; outlives it.
struct RouteHandlers {
  Relay& relay;
  SubscriptionRelay& subscriptions;
};

class Route {
 public:
  Route(const RouteHandlers& handlers, std::string name, Policy policy, std::string hash_param,
        Description description);

  [[nodiscard]] const std::string& name() const noexcept { return method_.name(); }
  /// The method that dispatchers invoke: it relays.
  [[nodiscard]] const Method& method() const noexcept { return method_; }
  [[nodiscard]] Policy policy() const noexcept { return policy_; }
  [[nodiscard]] const std::string& hash_param() const noexcept { return hash_param_; }
  [[nodiscard]] const RouteHandlers& handlers() const noexcept { return *handlers_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Provider>>& providers() const noexcept { return providers_; }

  /// What the first registration fixes, anew; where nobody provides it any more.
  void renew(Policy policy, std::string hash_param, Description description);
  /// Adds a provider, or gives the one that this peer is already new options. The first has the description on its
  /// account (Peer::described_bytes).
  Provider& add(Peer& peer, const ProviderOptions& options);
  void remove(const Provider& provider) noexcept;
  [[nodiscard]] Provider* find(const Peer& peer) const noexcept;
  /// Another node that provides it and to which a client of that name is connected; null for none.
  [[nodiscard]] Provider* find_at_node(std::string_view client) const noexcept;
  /// The broker of the process that this one has taken over from, or that has taken over, as a provider; null for none.
  [[nodiscard]] Provider* linked() const noexcept {
    Provider* const first = providers_.empty() ? nullptr : providers_.front().get();  // it was there before all others
    return first != nullptr && first->options.linked && !first->ended ? first : nullptr;
  }
  /// Whether there is a provider that may be asked.
  [[nodiscard]] bool is_provided() const noexcept {
    return std::ranges::any_of(providers_, [](const auto& provider) { return !provider->ended; });
  }
  /// The same of a client of this process.
  [[nodiscard]] bool is_provided_here() const noexcept {
    return std::ranges::any_of(providers_, [](const auto& provider) {
      return !provider->ended && !provider->options.linked && !provider->at_node;
    });
  }
  /// The same of a client of any node: what it has registered holds for all.
  [[nodiscard]] bool is_held() const noexcept { return is_provided_here() || is_provided_at_node(); }
  /// Whether a call of another node's is served here: by a client, of this process or of the one that it takes over
  /// from.
  [[nodiscard]] bool is_for_nodes() const noexcept {
    return std::ranges::any_of(providers_, [](const auto& provider) { return !provider->ended && !provider->at_node; });
  }
  /// The same of another node.
  [[nodiscard]] bool is_provided_at_node() const noexcept {
    return std::ranges::any_of(providers_, [](const auto& provider) { return !provider->ended && provider->at_node; });
  }
  /// Whether other nodes provide it, too.
  [[nodiscard]] bool is_at_nodes() const noexcept { return at_nodes_ != 0; }
  /// As `choose`, where other nodes provide the route: a free provider of this broker goes before one of another, and
  /// these go by load and latency; `here` leaves them out. By hash all nodes choose the same one, once they know the
  /// same. `own` is this node's name.
  [[nodiscard]] Provider* choose_in_realm(std::string_view params, Reader& reader, const RealmChoice& choice) noexcept;
  /// The provider for a call with these params, empty for none; null when there is none. One that is free goes before
  /// one that is not, where the policy leaves a choice. `but` is not chosen where there is another.
  [[nodiscard]] Provider* choose(std::string_view params, Reader& reader, const Provider* but = nullptr) noexcept;
  /// Calls that wait for one provider may go to another.
  [[nodiscard]] bool shares_queues() const noexcept {
    return policy_ == Policy::least_inflight || policy_ == Policy::round_robin || policy_ == Policy::random;
  }

  /// Made with the first call. Throws std::bad_alloc.
  [[nodiscard]] rpc::MethodCounts& counts() {
    if (!counts_) counts_ = std::make_unique<rpc::MethodCounts>();
    return *counts_;
  }
  /// Null before the first call.
  [[nodiscard]] rpc::MethodCounts* counted() const noexcept { return counts_.get(); }

  Description description;
  SpelledName spelled;  ///< its name, unless it is a prefix

 private:
  [[nodiscard]] Provider* in_turn(const Provider* but, bool here = false) noexcept;
  [[nodiscard]] Provider* by_hash(std::uint64_t value, const Provider* but, bool here) noexcept;
  [[nodiscard]] Provider* nearest_node(const Provider* but) noexcept;
  [[nodiscard]] Provider* by_hash_in_realm(std::uint64_t value, const RealmChoice& choice) noexcept;
  void account() const noexcept;
  void discount() const noexcept;

  const RouteHandlers* handlers_;
  Method method_;
  Policy policy_;
  std::string hash_param_;
  std::vector<std::unique_ptr<Provider>> providers_;
  std::unique_ptr<rpc::MethodCounts> counts_;
  std::size_t next_ = 0;
  std::uint32_t at_nodes_ = 0;  // of the providers
  std::uint32_t random_ = 0x9E3779B9;
};

/// Whether `found(prefix)` is true of any name under which a prefix of `name`, a valid one, may be registered, the
/// longest first: "a.b.>", "a.>", ">" of "a.b.c".
template <class Found>
[[nodiscard]] bool any_prefix(std::string_view name, const Found& found) {
  char prefix[kNameBytesMax + 2];
  std::copy(name.begin(), name.end(), prefix);
  for (std::size_t size = name.size(); size != 0; --size) {
    if (prefix[size - 1] != '.') continue;
    prefix[size] = '>';
    if (found(std::string_view{prefix, size + 1})) return true;
  }
  return found(std::string_view{">"});
}

/// As a registration says it: "hash:name".
[[nodiscard]] std::string policy_text(const Route& route);

class MethodTable {
 public:
  /// The route for calls of `name`: of that very name, else the longest prefix; null for none.
  [[nodiscard]] Route* find(std::string_view name) const noexcept;
  /// The route registered as `name`, which may be a prefix.
  [[nodiscard]] Route* find_registered(std::string_view name) const noexcept;
  /// Of the names that the principal may call, the nearest one.
  [[nodiscard]] std::string_view nearest(std::string_view name, const Principal* principal) const noexcept;
  Route& add(std::unique_ptr<Route> route);
  /// The provider goes, which has no calls any more, and its route with the last one.
  void remove(Provider& provider) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return routes_.size(); }
  /// The first by name that is behind `after`; null for none.
  [[nodiscard]] const Route* next(std::string_view after) const noexcept;

 private:
  void remove(const Route& route) noexcept;

  // Keyed by the route's own name, which peers choose.
  std::unordered_map<std::string_view, std::unique_ptr<Route>, SeededHash> routes_;
  std::map<std::string_view, const Route*> by_name_;
  SpelledNames spelled_;
  std::size_t prefixes_ = 0;
};

}  // namespace wirecall::broker
