// See method_table.hpp.
#include "broker/method_table.hpp"

#include "broker/peer.hpp"
#include "broker/relay.hpp"
#include "broker/subscription_relay.hpp"

namespace wirecall::broker {

// Where `policy_` is hash: what the same calls have in common. The value's text as sent; of no such param, nothing.
static std::string_view hashed_value(std::string_view params, std::string_view param, Reader& reader) {
  if (params.empty()) return {};
  reader.reset(params);
  if (reader.kind() == ValueKind::object) {
    static_cast<void>(reader.begin_object());
    for (std::string_view name; reader.next_member(name);) {
      const bool found = name == param;
      // As JSON, so that callers of both encodings agree, where it has a form in that.
      std::string_view json;
      if (found && !reader.is_json() && reader.read_json(json)) return json;
      const std::string_view value = reader.skip();
      if (found) return value;
    }
  }
  return {};
}

static Method method_of(Route& route, std::string name) {
  if (route.description.subscription) {
    constexpr auto kSubscribe = [](Route& own, Call& call) {
      if (own.handlers().subscriptions.has_room(own, call)) own.handlers().relay.relay(own, call);
    };
    return untyped_method<kSubscribe>(std::move(name), route, true);
  }
  if (route.description.unsubscribes) {
    constexpr auto kUnsubscribe = [](Route& own, Call& call) { own.handlers().subscriptions.unsubscribe(own, call); };
    return untyped_method<kUnsubscribe>(std::move(name), route);
  }
  return untyped_method<[](Route& own, Call& call) { own.handlers().relay.relay(own, call); }>(std::move(name), route);
}

// ---- Route ----

Route::Route(const RouteHandlers& handlers, std::string name, Policy policy, std::string hash_param,
             Description described)
    : description(std::move(described)),
      handlers_(&handlers),
      method_(method_of(*this, std::move(name))),
      policy_(policy),
      hash_param_(std::move(hash_param)) {
  if (!this->name().ends_with('>')) spelled.name = this->name();
}

void Route::renew(Policy policy, std::string hash_param, Description described) {
  policy_ = policy;
  hash_param_ = std::move(hash_param);
  discount();
  description = std::move(described);
  account();
}

void Route::account() const noexcept {
  if (!providers_.empty()) providers_.front()->peer->described_bytes += description.bytes();
}

void Route::discount() const noexcept {
  if (!providers_.empty()) providers_.front()->peer->described_bytes -= description.bytes();
}

// Looks through the shorter of the two lists it may be in.
Provider* Route::find(const Peer& peer) const noexcept {
  if (peer.provides.size() < providers_.size()) {
    const auto own = std::ranges::find(peer.provides, this, &Provider::route);
    return own == peer.provides.end() ? nullptr : *own;
  }
  const auto found = std::ranges::find(providers_, &peer, [](const auto& provider) { return provider->peer; });
  return found == providers_.end() ? nullptr : found->get();
}

Provider* Route::find_at_node(std::string_view client) const noexcept {
  if (at_nodes_ == 0 || client.empty()) return nullptr;
  const auto found = std::ranges::find_if(providers_, [client](const auto& one) {
    return !one->ended && one->peer->node != nullptr && one->peer->node->has_client(client);
  });
  return found == providers_.end() ? nullptr : found->get();
}

Provider& Route::add(Peer& peer, const ProviderOptions& options) {
  if (Provider* const known = find(peer)) {
    known->options = options;
    known->ended = false;
    return *known;
  }
  providers_.push_back(std::unique_ptr<Provider>{new Provider{.route = this, .peer = &peer, .options = options}});
  if (peer.of_node) {
    providers_.back()->at_node = true;
    ++at_nodes_;
  }
  if (providers_.size() == 1) account();
  return *providers_.back();
}

void Route::remove(const Provider& provider) noexcept {
  const bool accounts = !providers_.empty() && providers_.front().get() == &provider;
  if (accounts) discount();
  if (provider.at_node) --at_nodes_;
  std::erase_if(providers_, [&](const auto& one) { return one.get() == &provider; });
  if (accounts) account();
}

static std::uint64_t mixed(std::uint64_t value) noexcept {
  value *= 0x9E3779B97F4A7C15;
  value ^= value >> 29;
  return value * 0xBF58476D1CE4E5B9;
}

// The same on each machine, which std::hash need not be; and the same whether or not there are other nodes.
static std::uint64_t stable_hash(std::string_view text) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return mixed(hash);
}

// The next one in turn that has the least to do; or, where the policy is round_robin, that is free, if any is.
Provider* Route::in_turn(const Provider* but, bool here) noexcept {
  const bool by_load = policy_ == Policy::least_inflight;
  const std::size_t count = providers_.size();
  Provider* best = nullptr;
  std::size_t best_at = 0;
  std::size_t best_load = 0;
  bool best_is_free = false;
  for (std::size_t i = 0, at = next_; i < count; ++i, ++at) {
    if (at >= count) at = 0;
    Provider* const provider = providers_[at].get();
    if (provider->ended || provider == but || (here && provider->at_node)) continue;
    const bool is_free = provider->is_free();
    const std::size_t load = provider->load();
    const bool better = best == nullptr || (is_free != best_is_free ? is_free : by_load && load < best_load);
    if (!better) continue;
    best = provider;
    best_at = at;
    best_load = load;
    best_is_free = is_free;
    if (is_free && (!by_load || load == 0)) break;
  }
  if (best != nullptr) next_ = (best_at + 1) % count;
  return best;
}

Provider* Route::choose(std::string_view params, Reader& reader, const Provider* but) noexcept {
  if (providers_.size() == 1) [[likely]] {
    Provider* const only = providers_.front().get();
    return only->ended || only == but ? nullptr : only;
  }
  const auto usable = [but](const auto& provider) { return !provider->ended && provider.get() != but; };
  switch (policy_) {
    case Policy::least_inflight:
    case Policy::round_robin: return in_turn(but);
    case Policy::random:
      random_ ^= random_ << 13;
      random_ ^= random_ >> 17;
      random_ ^= random_ << 5;
      if (!providers_.empty()) next_ = random_ % providers_.size();
      return in_turn(but);
    case Policy::exclusive:
    case Policy::first: {
      const auto found = std::ranges::find_if(providers_, usable);
      return found == providers_.end() ? nullptr : found->get();
    }
    case Policy::last: {
      const auto found = std::find_if(providers_.rbegin(), providers_.rend(), usable);
      return found == providers_.rend() ? nullptr : found->get();
    }
    case Policy::hash: {
      // Rendezvous: a provider that comes or goes moves no other's calls.
      return by_hash(stable_hash(hashed_value(params, hash_param_, reader)), but, false);
    }
  }
  return nullptr;
}

Provider* Route::by_hash(std::uint64_t value, const Provider* but, bool here) noexcept {
  Provider* best = nullptr;
  std::uint64_t best_weight = 0;
  for (const auto& provider : providers_) {
    if (provider->ended || provider.get() == but || (here && provider->at_node)) continue;
    const std::uint64_t weight = mixed(value ^ std::hash<const void*>{}(provider.get()));
    if (best != nullptr && weight <= best_weight) continue;
    best = provider.get();
    best_weight = weight;
  }
  return best;
}

// ---- providers at several nodes ----

// Of the other nodes the one with the least to do, as far as that is known here; of these, the nearest.
Provider* Route::nearest_node(const Provider* but) noexcept {
  Provider* best = nullptr;
  for (const auto& provider : providers_) {
    const RemoteNode* const node = provider->peer->node;
    if (provider->ended || provider.get() == but || node == nullptr) continue;
    if (best == nullptr) {
      best = provider.get();
      continue;
    }
    const RemoteNode& other = *best->peer->node;
    const bool is_free = provider->is_free();
    if (is_free != best->is_free()) {
      if (is_free) best = provider.get();
      continue;
    }
    const std::size_t load = provider->load() + node->load();
    const std::size_t best_load = best->load() + other.load();
    if (load < best_load || (load == best_load && node->latency() < other.latency())) best = provider.get();
  }
  return best;
}

// A node of more providers has no larger share.
constexpr std::uint32_t kHashedMax = 256;

// Rendezvous among the providers of all nodes, each of which is known by its node's name and its number there. Which of
// a node's own it is that node decides, alike for all callers.
Provider* Route::by_hash_in_realm(std::uint64_t value, const RealmChoice& choice) noexcept {
  std::uint32_t own_count = 0;
  for (const auto& provider : providers_) own_count += !provider->ended && !provider->at_node ? 1 : 0;
  Provider* best = nullptr;
  bool is_own = false;
  std::uint64_t best_weight = 0;
  const auto offer = [&](std::string_view node, std::uint32_t count, Provider* provider) {
    const std::uint64_t seed = stable_hash(node) ^ value;
    for (std::uint32_t i = 0; i != std::min(count, kHashedMax); ++i) {
      const std::uint64_t weight = mixed(seed + i);
      if ((best != nullptr || is_own) && weight <= best_weight) continue;
      best = provider;
      is_own = provider == nullptr;
      best_weight = weight;
    }
  };
  offer(choice.own, own_count, nullptr);
  for (const auto& provider : providers_) {
    const RemoteNode* const node = provider->peer->node;
    if (provider->ended || provider.get() == choice.but || node == nullptr) continue;
    offer(node->name(), provider->options.providers, provider.get());
  }
  return is_own ? by_hash(value, choice.but, true) : best;
}

Provider* Route::choose_in_realm(std::string_view params, Reader& reader, const RealmChoice& choice) noexcept {
  switch (policy_) {
    case Policy::hash: {
      const std::uint64_t value = stable_hash(hashed_value(params, hash_param_, reader));
      return choice.here ? by_hash(value, choice.but, true) : by_hash_in_realm(value, choice);
    }
    case Policy::least_inflight:
    case Policy::round_robin:
    case Policy::random: {
      Provider* const own = in_turn(choice.but, true);
      if (choice.here || (own != nullptr && own->is_free())) return own;
      Provider* const other = nearest_node(choice.but);
      return other != nullptr && (own == nullptr || other->is_free()) ? other : own;
    }
    case Policy::exclusive:
    case Policy::first:
    case Policy::last: {
      Provider* found = nullptr;
      for (const auto& provider : providers_) {
        if (provider->ended || provider.get() == choice.but || (choice.here && provider->at_node)) continue;
        found = provider.get();
        if (policy_ != Policy::last) break;
      }
      return found;
    }
  }
  return nullptr;
}

std::string policy_text(const Route& route) {
  if (route.policy() == Policy::hash) return "hash:" + route.hash_param();
  return std::string{std::ranges::find(kPolicyNames, route.policy(), &PolicyName::policy)->name};
}

// One that does not answer any more is asked after those that do.
std::size_t Provider::load() const noexcept { return std::size_t{at_work} + waiting + peer->overdue; }

bool Provider::is_free() const { return at_work < options.concurrency && !peer->is_congested(); }

// ---- MethodTable ----

Route* MethodTable::find_registered(std::string_view name) const noexcept {
  const auto found = routes_.find(name);
  return found == routes_.end() ? nullptr : found->second.get();
}

Route* MethodTable::find(std::string_view name) const noexcept {
  if (name.ends_with('>')) return nullptr;  // the name of a prefix is not one that can be called
  if (Route* const route = find_registered(name)) return route;
  if (prefixes_ == 0 || !is_name(name)) return nullptr;
  Route* route = nullptr;
  static_cast<void>(any_prefix(name, [&](std::string_view prefix) {
    route = find_registered(prefix);
    return route != nullptr;
  }));
  return route;
}

std::string_view MethodTable::nearest(std::string_view name, const Principal* principal) const noexcept {
  return spelled_.nearest(name, [&](std::string_view known) {
    return find_registered(known)->is_provided() && rpc::may_call(principal, known);
  });
}

Route& MethodTable::add(std::unique_ptr<Route> route) {
  const std::string_view name = route->name();
  const auto added = routes_.emplace(name, std::move(route)).first;
  try {
    by_name_.emplace(name, added->second.get());
    spelled_.add(added->second->spelled);
  } catch (...) {
    by_name_.erase(name);
    const auto node = routes_.extract(added);
    throw;
  }
  if (name.ends_with('>')) ++prefixes_;
  return *added->second;
}

void MethodTable::remove(Provider& provider) noexcept {
  WIRECALL_ASSERT(provider.at_work == 0 && provider.waiting == 0);
  if (provider.ending) *provider.ending = nullptr;
  Route& route = *provider.route;
  std::vector<Provider*>& own = provider.peer->provides;
  WIRECALL_ASSERT(own[provider.index] == &provider);
  own.back()->index = provider.index;
  own[provider.index] = own.back();
  own.pop_back();
  route.remove(provider);
  if (route.providers().empty()) remove(route);
}

void MethodTable::remove(const Route& route) noexcept {
  if (route.name().ends_with('>')) --prefixes_;
  spelled_.remove(route.spelled);
  by_name_.erase(route.name());
  const auto found = routes_.find(route.name());
  // The key is a view into the route: it goes first.
  const auto node = routes_.extract(found);
}

const Route* MethodTable::next(std::string_view after) const noexcept {
  const auto found = by_name_.upper_bound(after);
  return found == by_name_.end() ? nullptr : found->second;
}

}  // namespace wirecall::broker
