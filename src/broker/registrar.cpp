// The part of Router (router.hpp) that is about who provides what: names, registrations, and what becomes of the
// calls of a provider that goes.
#include <algorithm>
#include <chrono>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/dotted_name.hpp"
#include "base/reserve_extra.hpp"
#include "base/seeded_hash.hpp"
#include "broker/router.hpp"
#include "message/own_error.hpp"
#include "rpc/access.hpp"

namespace wirecall::broker {

using std::chrono::nanoseconds;

namespace {

constexpr std::size_t kDescribedBytesMax = std::size_t{1} << 20;

std::string_view name_of(const Principal* principal) noexcept {
  return principal == nullptr ? std::string_view{} : std::string_view{principal->name};
}

Error conflict(std::string_view reason) {
  return message::make({.code = ErrorCode::conflict, .reason = reason, .delivered = "no"});
}

}  // namespace

Error Router::forbidden() {
  return message::make(
      {.code = ErrorCode::forbidden, .reason = "the principal has no grant for that", .delivered = "no"});
}

rpc::JoinedPeer Router::attach_peer(rpc::MessageSink& sink, std::shared_ptr<rpc::PeerLoad> load) {
  rpc::JoinedPeer joined{new Peer{*this, sink, std::move(load)}};
  auto* const peer = static_cast<Peer*>(joined.get());
  peer->number = session_keys_.begin(now());
  peers_.emplace_hint(peers_.end(), peer->number, peer);
  return joined;
}

void Router::forget(Peer& peer) noexcept {
  peer.keep_last();
  if (peer.session != 0 || peer.took_part) log_.left(peer);
  peer.left = true;
  end_peer(peer);
  if (const auto& account = peer.load().calls.account(); account && account->heaviest == &peer)
    account->heaviest = nullptr;
  forget_retained(peer);
  if (!peer.name.empty()) {
    names_.erase(peer.name);
    announce(peer, "rpc.client.left");
  }
  peers_.erase(peer.number);
  end_left(peer);
}

rpc::HelloResult Router::hello(Peer& peer, std::string_view name, std::string_view resume) {
  if (name.size() > kNameBytesMax) {
    throw Error{ErrorCode::invalid_params, std::string{message_of(ErrorCode::invalid_params)},
                R"({"loc":["name"],"expected":"string of 1 to 255 bytes"})"};
  }
  refuse_kicked(peer, name, resume);
  if (!resume.empty()) take_over(peer, name, resume);
  if (!name.empty()) give_name(peer, name);
  if (peer.session == 0) {
    peer.session = peer.number;
    log_.greeted(peer);
  }
  return {.name = peer.name, .session = session_keys_.secret_of(peer.session, name_of(peer.principal))};
}

// Whoever was kicked is answered when it may come again, and its connection closed.
void Router::refuse_kicked(Peer& peer, std::string_view name, std::string_view resume) {
  const std::string_view principal = name_of(peer.principal);
  const std::uint64_t session = resume.empty() ? 0 : session_keys_.find(resume, principal).value_or(0);
  const nanoseconds left = kicked_.left({.name = name, .principal = principal, .session = session}, now());
  if (left == nanoseconds{0}) return;
  peer.sink().close();
  throw message::make(
      {.code = ErrorCode::forbidden,
       .reason = "an administrator has ended this client, which is not let in again for a time",
       .delivered = "no",
       .retry_after_ms = static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count())});
}

// The connection of that session, if it is still there, is replaced by this peer's: its calls end, and its name goes on
// without anybody being told that it went.
void Router::take_over(Peer& peer, std::string_view name, std::string_view resume) {
  const auto session = session_keys_.find(resume, name_of(peer.principal));
  const auto known = !session ? peers_.end() : peers_.find(*session);
  const auto found = known != peers_.end() && known->second->session == *session ? known : peers_.end();
  const bool expired = session && found == peers_.end() && now() - SessionKeys::began(*session) > kSessionLifetime;
  if (!session || expired) {
    throw message::make({.code = ErrorCode::unauthenticated, .reason = "there is no such session", .delivered = "no"});
  }
  if (found == peers_.end() || found->second == &peer) return;
  Peer& old = *found->second;
  end_calls(old, nullptr);
  end_peer(old);
  old.session = 0;
  old.took_part = false;  // it goes on as the other one
  if (!old.name.empty() && peer.name.empty() && (name.empty() || name == old.name)) {
    auto entry = names_.extract(old.name);
    peer.name = std::exchange(old.name, {});
    entry.key() = peer.name;
    entry.mapped() = &peer;
    names_.insert(std::move(entry));
  } else if (!old.name.empty()) {
    names_.erase(old.name);
    announce(old, "rpc.client.left");
    old.name.clear();
  }
  log_.resumed(peer);
  old.sink().close();
}

namespace {

constexpr char kCounted = '~';
constexpr std::uint64_t kNumbersTriedMax = 8;

std::string numbered(std::string_view name, std::uint64_t number) {
  return std::string{name} + kCounted + std::to_string(number);
}

// Whether `given` is what one is named who wants to be `name`, where others have that.
bool is_like(std::string_view given, std::string_view name) noexcept {
  constexpr std::string_view kDigits = "0123456789";
  if (!given.starts_with(name) || given.size() < name.size() + 2 || given[name.size()] != kCounted) return false;
  return given.find_first_not_of(kDigits, name.size() + 1) == given.npos;
}

}  // namespace

// `name`, or else the same with a number behind it: where many are taken not the smallest, but one that is found by
// looking at few of them, or the one that the peer has.
std::string Router::free_name(const Peer& peer, std::string_view name) const {
  if (!names_.contains(name)) return std::string{name};
  std::uint64_t taken = 1;
  std::uint64_t free = 2;
  const auto is_taken = [&](std::uint64_t number) {
    const auto known = names_.find(numbered(name, number));
    return known != names_.end() && known->second != &peer;
  };
  for (; free <= kNumbersTriedMax && is_taken(free); ++free) taken = free;
  if (free <= kNumbersTriedMax) return numbered(name, free);
  if (is_like(peer.name, name)) return peer.name;
  for (; is_taken(free); free *= 2) taken = free;
  // Between one that is taken and one that is free, there is one that is free behind one that is taken.
  while (free - taken > 1) {
    const std::uint64_t middle = taken + (free - taken) / 2;
    (is_taken(middle) ? taken : free) = middle;
  }
  return numbered(name, free);
}

void Router::give_name(Peer& peer, std::string_view name) {
  if (const auto known = names_.find(name); known != names_.end()) {
    if (known->second == &peer) return;
    if (!rpc::same_principal(known->second->principal, peer.principal))
      throw conflict("a client of another principal has that name");
  }
  std::string given = free_name(peer, name);
  if (given == peer.name) return;
  if (!peer.name.empty()) {
    auto entry = names_.extract(peer.name);
    peer.name = std::move(given);
    entry.key() = peer.name;
    names_.insert(std::move(entry));
    return;
  }
  peer.name = std::move(given);
  try {
    names_.emplace(peer.name, &peer);
  } catch (...) {
    peer.name.clear();
    throw;
  }
  announce(peer, "rpc.client.joined");
}

namespace {

// Who provides a method to subscribe by provides the one that ends it, which the broker answers.
void add_unsubscribing(std::vector<Registration>& registrations) {
  const bool any =
      std::ranges::any_of(registrations, [](const auto& one) { return one.description.subscription.has_value(); });
  if (!any) [[likely]]
    return;
  const std::size_t count = registrations.size();
  std::unordered_map<std::string, std::size_t, SeededHash> index_of;
  for (std::size_t i = 0; i < count; ++i) index_of.emplace(registrations[i].name, i);
  for (std::size_t i = 0; i < count; ++i) {
    if (!registrations[i].description.subscription) continue;
    const std::string& name = registrations[i].description.subscription->unsubscribe;
    const auto [found, added] = index_of.emplace(name, registrations.size());
    if (added) {
      Registration one;
      one.name = name;
      registrations.push_back(std::move(one));
    }
    registrations[found->second].description.unsubscribes = true;
  }
}

// The names of notifications are kept as long as the connection.
void require_notifications(const Peer& peer, const std::vector<Registration>& registrations, std::size_t most) {
  std::set<std::string_view> added;
  for (const Registration& one : registrations) {
    if (!one.description.subscription) continue;
    const std::string& name = one.description.subscription->notification;
    if (!peer.source || !peer.source->notifications.contains(name)) added.insert(name);
  }
  if (added.size() + (peer.source ? peer.source->notifications.size() : 0) <= most) return;
  throw message::make({.code = ErrorCode::limit_exceeded,
                       .reason = "this connection has declared too many notifications of subscriptions",
                       .delivered = "no",
                       .limit = "methods"});
}

}  // namespace

Error Router::too_many_methods() {
  return message::make({.code = ErrorCode::limit_exceeded,
                        .reason = "too many methods of this connection",
                        .delivered = "no",
                        .limit = "methods"});
}

void Router::register_methods(Peer& peer, std::vector<Registration> registrations) {
  add_unsubscribing(registrations);
  if (peer.ended) throw conflict("the connection has ended its side");
  if (peer.provides.size() + registrations.size() > limits_->methods) throw too_many_methods();
  // All are told of all of them together (rpc.methods, rpc.discover): nobody's may fill that alone.
  std::size_t described = peer.described_bytes;
  for (const Registration& one : registrations) {
    if (!rpc::may_provide(peer.principal, one.name)) throw forbidden();
    // Callers are sent it as if it were published, under a name that may be another's topic or method.
    if (one.description.subscription && !rpc::may_publish(peer.principal, one.description.subscription->notification))
      throw forbidden();
    if (own_->find(one.name) != nullptr) throw conflict("the server has a method of that name itself");
    const Route* const route = methods_.find_registered(one.name);
    if (route != nullptr && !route->is_provided() && !route->description.is_of_kind(one.description))
      throw conflict("calls are at work of the method as it was provided before");
    if (route == nullptr || !route->is_provided()) {
      described += one.description.bytes();
      continue;
    }
    if (!route->description.is_of_kind(one.description))
      throw conflict("the method is provided otherwise: as one to subscribe by, or not");
    const bool same_policy =
        !one.policy_given || (one.policy == route->policy() && one.hash_param == route->hash_param());
    if (!same_policy) throw conflict("the method is provided under another policy");
    if (route->policy() == Policy::exclusive && route->find(peer) == nullptr)
      throw conflict("the method is provided by another connection, which wants to be the only one");
  }
  require_notifications(peer, registrations, limits_->methods);
  if (described > kDescribedBytesMax) {
    throw message::make({.code = ErrorCode::limit_exceeded,
                         .reason = "what is said of this connection's methods is more than 1 MiB together",
                         .delivered = "no",
                         .limit = "descriptions"});
  }
  for (Registration& one : registrations) {
    Route* route = methods_.find_registered(one.name);
    if (route != nullptr && !route->is_provided()) {
      // What its last providers still have to answer ends with them; what they had agreed on does not hold.
      route->renew(one.policy, std::move(one.hash_param), std::move(one.description));
    } else if (route == nullptr) {
      route = &methods_.add(std::make_unique<Route>(*this, std::move(one.name), one.policy, std::move(one.hash_param),
                                                    std::move(one.description)));
    }
    reserve_extra(peer.provides, 1);
    const Provider* const known = route->find(peer);
    const auto& names = route->description.subscription;
    if (names && (known == nullptr || known->ended)) {
      if (!peer.source) peer.source = std::make_unique<SubscriptionSource>();
      peer.source->notifications.insert(names->notification);
      ++peer.source->unsubscribes[names->unsubscribe];
    }
    Provider& provider = route->add(peer, one.options);
    if (known == nullptr) {
      provider.index = static_cast<std::uint32_t>(peer.provides.size());
      peer.provides.push_back(&provider);
    }
    peer.took_part = true;
    announce(peer, "rpc.method.registered", route->name());
    free_again(provider);
  }
}

bool Router::unregister(Peer& peer, std::string_view name) {
  Route* const route = methods_.find_registered(name);
  Provider* const provider = route == nullptr ? nullptr : route->find(peer);
  if (provider == nullptr || provider->ended) return false;
  provider->ended = true;
  announce(peer, "rpc.method.unregistered", name);
  if (const std::optional<SubscriptionNames> names = route->description.subscription) {
    end_method(*provider);
    const auto left = peer.source->unsubscribes.find(names->unsubscribe);
    if (--left->second == 0) {
      peer.source->unsubscribes.erase(left);
      static_cast<void>(unregister(peer, names->unsubscribe));
    }
  }
  end_waiting(*provider);
  return true;
}

void Router::remove_provider(Provider& provider) noexcept {
  if (provider.ending) *provider.ending = nullptr;
  Route& route = *provider.route;
  std::vector<Provider*>& own = provider.peer->provides;
  own.back()->index = provider.index;
  own[provider.index] = own.back();
  own.pop_back();
  route.remove(provider);
  if (route.providers().empty()) methods_.remove(route);
}

}  // namespace wirecall::broker
