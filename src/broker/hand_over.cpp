// What a broker tells the one of another process that takes over from it, and what that makes of it (Router::hand_over
// and take_over), as a line of JSON and the retained messages behind it: the secrets of sessions, so that clients
// resume there; who was kicked; what is retained; and which methods the clients provide, for which the old broker
// answers until they have come; and what they subscribe to (linked_broker.hpp).
#include "broker/linked_broker.hpp"
#include "broker/outgoing.hpp"
#include "broker/router.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::broker {
namespace {

struct HandedClient {
  std::string name;
  std::string principal;
  std::uint64_t session = 0;
  std::int64_t left_ms = 0;
};

struct HandedEvent {
  std::string topic;
  std::size_t bytes = 0;  // of its message
  std::string owner;
  std::string client;
};

struct HandedBroker {
  std::vector<std::uint64_t> session_key;
  std::uint64_t session_last = 0;
  std::vector<HandedClient> kicked;
  std::vector<HandedEvent> retained;
  std::vector<LinkedMethod> methods;
  std::vector<LinkedTopic> topics;
  std::optional<std::vector<std::string>> remote;  // methods that other nodes provide
};

}  // namespace

bool Router::settle() noexcept {
  if (store_ == nullptr) return true;
  durable_topics_.drain();
  work_queues_.drain();
  return !durable_topics_.at_work() && !work_queues_.at_work();
}

void Router::replaced() noexcept {
  replaced_ = true;
  if (context_.realm) context_.realm->replaced();
  if (store_ != nullptr) if_memory_allows([&] { store_->leave(); });
}

void Router::stay() noexcept {
  if (store_ == nullptr || draining_) return;
  if_memory_allows([&] {
    store_->resume();
    durable_topics_.go_on();
    work_queues_.go_on();
  });
}

void Router::open_store() {
  if (!open_) return;
  store_ = std::exchange(open_, {})();
  durable_topics_.open(*store_);
  work_queues_.open(*store_);
  leases_.open(*store_);
}

std::string Router::hand_over() {
  if (store_ != nullptr) store_->pause();
  handed_methods_.clear();
  HandedBroker state;
  const SessionKeys::Handed keys = sessions_.keys().hand_over(context_.now());
  state.session_key.assign(keys.key.begin(), keys.key.end());
  state.session_last = keys.last;
  sessions_.kicked().each([&](const KickedClients::Client& client, std::chrono::nanoseconds until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - context_.now());
    if (left.count() <= 0) return;
    state.kicked.push_back({.name = std::string{client.name},
                            .principal = std::string{client.principal},
                            .session = client.session,
                            .left_ms = left.count()});
  });
  std::string messages;
  messages.reserve(events_.retained().bytes());
  events_.retained().each([&](const std::string& topic, const std::string& message, const Retained::By& by) {
    state.retained.push_back(
        {.topic = topic, .bytes = message.size(), .owner = std::string{by.owner}, .client = std::string{by.client}});
    messages += message;
  });
  // Subscriptions are not relayed from one broker to the other, and what other nodes provide they say themselves.
  std::string after;
  std::vector<std::string> remote;
  while (const Route* const route = context_.methods.next(after)) {
    after = route->name();
    const Description& description = route->description;
    if (route->is_provided_at_node()) remote.push_back(after);
    if (!route->is_for_nodes() || description.subscription || description.unsubscribes) continue;
    state.methods.push_back(LinkedMethod::of(*route));
    handed_methods_.insert(after);
  }
  if (context_.realm) state.remote = std::move(remote);
  state.topics = LinkedBroker::topics(context_, nullptr);
  handed_topics_ = state.topics;
  return to_json(state) + '\n' + messages;
}

void Router::link_to_successor(rpc::BrokerPeer& link) {
  this->link(static_cast<Peer&>(link), false)
      .told(std::exchange(handed_topics_, {}), std::exchange(handed_methods_, {}));
}

LinkedBroker& Router::link(Peer& peer, bool predecessor) {
  return *links_.emplace_back(std::make_unique<LinkedBroker>(context_, events_, registrar_, peer, predecessor));
}

void Router::nobody_left() noexcept {
  for (const auto& link : links_) {
    if (!link->is_predecessor()) link->tell_alone();
  }
}

void Router::take_over(std::string_view text, rpc::BrokerPeer& link) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  auto state = from_json<HandedBroker>(text.substr(0, end));
  std::string_view messages = text.substr(std::min(end + 1, text.size()));
  SessionKeys::Handed keys{};
  if (!state || state->session_key.size() != keys.key.size())
    throw std::invalid_argument{"the server that is to be replaced says what is not understood"};
  std::ranges::copy(state->session_key, keys.key.begin());
  keys.last = state->session_last;
  KickedClients kicked;
  for (const HandedClient& one : state->kicked) {
    kicked.add({.name = one.name, .principal = one.principal, .session = one.session},
               context_.now() + std::chrono::milliseconds{one.left_ms});
  }
  sessions_.take_over(SessionKeys{keys}, std::move(kicked));
  for (const HandedEvent& one : state->retained) {
    const std::string_view message = messages.substr(0, one.bytes);
    messages.remove_prefix(message.size());
    events_.keep_handed(one.topic, message, {.owner = one.owner, .client = one.client});
  }
  if (context_.realm && state->remote) context_.realm->expect_methods(*std::move(state->remote));
  std::vector<Registration> registrations;
  for (LinkedMethod& one : state->methods) registrations.push_back(std::move(one).registration());
  auto& peer = static_cast<Peer&>(link);
  LinkedBroker& linked = this->link(peer, true);
  for (LinkedTopic& one : state->topics) linked.take(std::move(one));
  registrar_.register_linked(peer, std::move(registrations));
}

bool Router::release(Peer& peer) noexcept {
  const auto waits = [](const Provider* one) { return one->waiting != 0; };
  if (std::ranges::any_of(peer.provides, waits)) return false;
  bool done = false;
  if_memory_allows([&] {
    std::vector<std::string> names;
    for (const Provider* one : peer.provides) names.push_back(one->route->name());
    for (const std::string& name : names) {
      for (const auto& link : links_) link->expect(name);
      static_cast<void>(registrar_.unregister(peer, name));
    }
    done = true;
  });
  return done;
}

}  // namespace wirecall::broker
