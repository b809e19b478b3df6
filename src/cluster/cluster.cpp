// See cluster.hpp.
#include "cluster/cluster.hpp"

#include "base/assert.hpp"
#include "broker/outgoing.hpp"
#include "cluster/cluster_listing.hpp"
#include "message/own_error.hpp"
#include "wirecall/call.hpp"

namespace wirecall::cluster {

using std::chrono::nanoseconds;

namespace {

constexpr int kTicksASecond = 4;
// Whoever is there has answered this node's first word after this time.
constexpr std::chrono::milliseconds kHeard{250};
constexpr std::string_view kTooSilent = "it has been silent for too long";
constexpr std::string_view kEnded = "it has ended";

Error moved() {
  const Error error = message::make(ErrorCode::provider_lost, "the method is not provided on this node any more", "no");
  std::string data = error.data();
  data.insert(data.size() - 1, R"(,"moved":true)");
  return Error::with_data(ErrorCode::provider_lost, std::move(data));
}

std::string_view name_of(Bus::State state) noexcept {
  switch (state) {
    case Bus::State::connecting: return "connecting";
    case Bus::State::connected: return "connected";
    case Bus::State::disconnected: return "disconnected";
  }
  return {};
}

struct BusRow {
  std::string url;
  std::string_view state;
  std::optional<std::string> failure;
};

struct ClusterTable {
  std::string_view realm;
  std::string_view node;
  std::string epoch;
  std::string_view state;
  BusRow bus;
  std::vector<int> nodes;  // the listing writes them
};

}  // namespace

Cluster::Cluster(const rpc::BrokerHost& host, broker::Router& router, std::unique_ptr<Bus> bus,
                 ClusterSettings settings)
    : realm_(std::move(settings.realm)),
      bus_(std::move(bus)),
      retained_(router, {.own = settings.node, .epoch = settings.epoch, .bytes_max = host.limits.retained_bytes}),
      context_{.host = host,
               .router = router,
               .bus = *bus_,
               .subjects = Subjects{realm_},
               .own = std::move(settings.node),
               .epoch = settings.epoch,
               .retained = retained_,
               .retained_outdone =
                   [this](std::string_view topic) {
                     retained_changed_.emplace(topic);
                     wants_flush();
                   },
               .flush = [this] { wants_flush(); },
               .may_admit =
                   [this](std::string_view method) { broker::if_memory_allows([&] { admissible_.emplace(method); }); },
               .supersede = [this](std::string_view node, std::string_view method) { supersede(node, method); }},
      moved_(broker::untyped_method<[](Cluster&, Call& call) { call.error(moved()); }>("moved", *this)),
      unreachable_(broker::untyped_method<[](Cluster& own, Call& call) {
        call.error(own.context_.router.context().errors.bus_lost_before);
      }>("unreachable", *this)),
      lost_(broker::untyped_method<[](Cluster& own, Call& call) {
        call.error(own.context_.router.context().errors.node_lost_before);
      }>("lost", *this)),
      plain_(context_, settings.plain, realm_) {
  WIRECALL_ASSERT(is_word(realm_) && is_word(context_.own) && context_.epoch != 0);
  router.topics().watch(this);
  bus_->on_state([this] { bus_changed(); });
  bus_->subscribe(context_.subjects.heartbeat(), [this](const BusMessage& message) { take_heartbeat(message); });
  bus_->subscribe(context_.subjects.call(context_.own),
                  [this](const BusMessage& message) { take_frame(message, false); });
  // Behind that one: what comes there was sent later.
  bus_->subscribe(context_.subjects.process(context_.own, context_.epoch),
                  [this](const BusMessage& message) { take_frame(message, true); });
  bus_->subscribe_to_absence(context_.subjects.gone(context_.own, "*"),
                             [this](const BusMessage& message) { take_gone(message); });
  send_heartbeat();
  connected_at_ = ticked_at_ = context_.now();
  host.loop_context.scheduler->start(*this, kTick);
}

Cluster::~Cluster() {
  each_session([](Node& node) { node.leave(); });
  context_.router.topics().watch(nullptr);
  flush_pending_ = true;  // so that what ends here starts no timer
  nodes_.clear();
  departing_.clear();
  context_.host.loop_context.stop(*this);
  context_.host.loop_context.stop(flush_timer_);
}

// ---- time ----

void Cluster::expired() {
  context_.host.loop_context.scheduler->start(*this, kTick);
  excuse_silence();
  if (++ticks_ % kTicksASecond == 0) send_heartbeat();
  retained_.expire(context_.now());
  plain_.tick(!is_silenced() && !context_.replaced && (plain_.takes_part() || knows_others()));
  if (bus_->state() != Bus::State::connected || is_silenced()) return;
  const nanoseconds now = context_.now();
  const auto is_silent = [&](const Node& node) {
    return now - node.heard_at() > (node.awaits_answers() ? kSilenceOfPinged : kSilence);
  };
  std::vector<std::string> silent;
  for (const auto& [name, node] : nodes_) {
    if (is_silent(*node)) silent.push_back(name);
  }
  for (const std::string& name : silent) forget(name, kTooSilent);
  for (const auto& node : departing_) {
    if (is_silent(*node)) end_last(*node, kTooSilent);
  }
  each_session([](Node& node) { node.tick(); });
  leave_subject_of_node();
  flush();  // what there was no memory for, too
}

// Whether it knows what the nodes provide that were there when the bus was connected; and after a time, whether or not
// one of them cannot be joined.
bool Cluster::knows_others() const noexcept {
  if (bus_->state() != Bus::State::connected) return false;
  if (now() - connected_at_ < kHeard) return false;
  return now() - connected_at_ > kSilence || std::ranges::all_of(nodes_, [](const auto& node) {
           return node.second->state() == Node::State::up || node.second->state() == Node::State::foreign;
         });
}

// Who could not be heard has not been silent: while this process was stopped, or a handler of its own has kept what the
// bus brings, messages of all nodes have waited.
void Cluster::excuse_silence() {
  const nanoseconds now = context_.now();
  const nanoseconds since = now - std::exchange(ticked_at_, now);
  const nanoseconds late = since - kTick;
  const bool was_stopped = late > kTick;
  if (!was_stopped && context_.reading == 0) return;
  const nanoseconds unheard = context_.reading != 0 ? since : late;
  each_session([&](Node& node) { node.excuse(unheard); });
  rival_heard_ = rival_heard_ < nanoseconds{0} ? rival_heard_ : std::min(rival_heard_ + unheard, now);
  if (was_stopped) send_heartbeat();  // the others may have forgotten it
}

// To all, or to one that may not have heard of this node yet: where many begin, each telling all of each would be too
// much.
void Cluster::send_heartbeat(std::string_view to) noexcept try {
  if (bus_->state() != Bus::State::connected) return;
  if (is_silenced() || context_.replaced) return;
  static_cast<void>(
      bus_->publish(to.empty() ? context_.subjects.heartbeat() : context_.subjects.call(to), {},
                    write_heartbeat({.node = context_.own,
                                     .epoch = context_.epoch,
                                     .version = kProtocolVersion,
                                     .load = load(),
                                     .draining = context_.draining,
                                     .retained = is_settled() ? std::optional{retained_.digest()} : std::nullopt})));
} catch (const std::bad_alloc&) {
  // The next one is due in a second.
}

// Where two have one name, one of them keeps silent, until the other has gone.
bool Cluster::is_silenced() const noexcept {
  return rival_ > context_.epoch && context_.now() - rival_heard_ < kSilence;
}

std::uint32_t Cluster::load() const noexcept {
  return static_cast<std::uint32_t>(context_.router.relayed_calls().in_use());
}

void Cluster::wants_flush() noexcept {
  if (flush_pending_) return;
  try {
    context_.host.loop_context.scheduler->start(flush_timer_, nanoseconds{0});
    flush_pending_ = true;
  } catch (const std::bad_alloc&) {
    // With the next tick.
  }
}

void Cluster::flush() {
  flush_pending_ = false;
  // What is not told is kept, until the next tick.
  broker::if_memory_allows([this] {
    tell_changes();
    admit_withheld();
    tell_retained();
  });
  each_session([](Node& node) { node.flush(); });
  bus_->flush();
  each_session([](Node& node) { node.resume(); });
  erase_ended();
}

// ---- methods ----

void Cluster::provided_changed(std::string_view method) noexcept {
  try {
    changed_.emplace(method);
  } catch (const std::bad_alloc&) {
    all_changed_ = true;
  }
  wants_flush();
}

void Cluster::subscription_changed(std::string_view pattern, std::string_view group) noexcept {
  try {
    topics_changed_.emplace(pattern, group);
  } catch (const std::bad_alloc&) {
    all_changed_ = true;
  }
  wants_flush();
}

void Cluster::client_changed(std::string_view name) noexcept {
  try {
    clients_changed_.emplace(name);
  } catch (const std::bad_alloc&) {
    all_changed_ = true;
  }
  wants_flush();
}

void Cluster::retained_changed(std::string_view topic, bool gone) noexcept {
  // Without memory this node alone has it, or the others have it still.
  broker::if_memory_allows([&] {
    retained_.wrote(topic, gone, context_.now());
    if (retained_.knows(topic)) retained_changed_.emplace(topic);
  });
  wants_flush();
}

void Cluster::tell_retained() {
  for (const auto& [name, node] : nodes_) {
    if (context_.replaced) break;  // by the process that has taken over
    for (const std::string& topic : retained_changed_) node->tell_retained(topic);
    node->end_retained();
  }
  retained_changed_.clear();
}

void Cluster::tell_changes() {
  if (context_.replaced) {
    all_changed_ = false;
    changed_.clear();
    topics_changed_.clear();
    clients_changed_.clear();
    return;
  }
  if (std::exchange(all_changed_, false)) {
    changed_.clear();
    topics_changed_.clear();
    clients_changed_.clear();
    for (const auto& [name, node] : nodes_) node->lose(broker::LostBy::node);  // the next session tells all
    return;
  }
  tell_changed_clients();
  tell_changed_topics();
  tell_changed_methods();
}

// What is told is written once, for all nodes.
void Cluster::tell_changed_clients() {
  ClientNews news;
  const auto tell = [&] {
    each_session([&](Node& node) { node.tell_clients(news); });
    news = {};
  };
  for (const std::string& client : clients_changed_) {
    news.add(client, context_.router.context().peers.find(client) != nullptr);
    if (news.size() == kClientsInRecord) tell();
  }
  tell();
  clients_changed_.clear();
}

void Cluster::tell_changed_topics() {
  TopicNews news;
  const auto tell = [&] {
    for (const auto& [name, node] : nodes_) node->tell_topics(news);
    news.clear();
  };
  for (const auto& [pattern, group] : topics_changed_) {
    news.add(pattern, group, context_.router.topics().has_here(pattern, group));
    if (news.bytes() > Node::kNewsBytes) tell();
  }
  tell();
  topics_changed_.clear();
}

void Cluster::tell_changed_methods() {
  MethodNewsWriter news;
  const auto tell = [&] {
    each_session([&](Node& node) { node.tell_methods(news, false); });
    news.clear();
  };
  for (const std::string& method : changed_) {
    const broker::Route* const route = context_.draining ? nullptr : context_.router.methods().find_registered(method);
    if (route == nullptr) {
      news.add_gone(method);
    } else {
      news.add(*route, providers_here(*route));
    }
    if (news.bytes() > Node::kNewsBytes) tell();
  }
  if (!news.empty()) tell();
  if (context_.withheld != 0) admissible_.insert(changed_.begin(), changed_.end());
  changed_.clear();
}

void Cluster::admit_withheld() {
  auto methods = std::exchange(admissible_, {});
  if (context_.withheld == 0) return;
  while (!methods.empty()) {
    auto method = methods.extract(methods.begin());
    bool done = true;
    for (const auto& [name, node] : nodes_) done = node->admit_withheld(method.value()) && done;
    if (!done) admissible_.insert(std::move(method));
  }
}

const Method* Cluster::find_absent(const broker::Peer& caller, std::string_view name) noexcept {
  if (caller.of_node) return &moved_;
  const bool connected = bus_->state() == Bus::State::connected;
  const bool expects = !expected_.empty() && (!connected || context_.now() < expected_until_);
  if (context_.absent == 0 && !expects) return nullptr;  // most names that are looked for here are misspelt
  const Method* absent = nullptr;
  if (expects && is_among(expected_, name)) absent = connected ? &lost_ : &unreachable_;
  caller.sink().charge(static_cast<std::size_t>(context_.absent));
  for (const auto& [node_name, node] : nodes_) {
    const std::optional<broker::LostBy> by = node->lost_by(name, false);
    if (by == broker::LostBy::bus) return &unreachable_;
    if (by) absent = &lost_;  // until it is up again
  }
  return absent;
}

void Cluster::each_absent(std::string_view method, const Absent& told) const {
  if (context_.absent == 0) return;
  for (const auto& [name, node] : nodes_) {
    // The process that was the node before may provide it still.
    const auto provides = [&](const auto& one) { return one->name() == node->name() && one->provides(method); };
    const std::optional<broker::LostBy> by = node->lost_by(method, true);
    if (by && std::ranges::none_of(departing_, provides)) told(name, *by);
  }
}

void Cluster::drain() noexcept {
  if (std::exchange(context_.draining, true)) return;
  plain_.drain();
  // What is not provided here any more the others ask of other nodes.
  broker::if_memory_allows([this] {
    std::string after;
    const broker::MethodTable& methods = context_.router.methods();
    for (const broker::Route* route = methods.next(after); route != nullptr; route = methods.next(after)) {
      after = route->name();
      if (providers_here(*route) != 0) changed_.insert(after);
    }
    for (const auto& own : context_.host.registry.methods()) changed_.insert(own->name());
  });
  send_heartbeat();
  wants_flush();
}

void Cluster::replaced() noexcept {
  if (std::exchange(context_.replaced, true)) return;
  plain_.end();
  replaced_at_ = now();
  if (is_silenced()) return;
  each_session([](Node& node) { node.stay_behind(); });
  erase_ended();
  leave_subject_of_node();
  wants_flush();
  bus_->flush();
}

// Once all others send to this process, or have had time for it: so that they learn where the one has gone that is the
// node now.
void Cluster::leave_subject_of_node() noexcept {
  if (!context_.replaced || !listens_as_node_) return;
  bool all_have = true;
  each_session([&](const Node& node) { all_have = all_have && node.has_followed(); });
  if (!all_have && now() - replaced_at_ < kSilence) return;
  broker::if_memory_allows([this] {
    bus_->unsubscribe(context_.subjects.call(context_.own));
    listens_as_node_ = false;
  });
}

void Cluster::expect_methods(std::vector<std::string> names) noexcept {
  broker::if_memory_allows([&] { expected_ = {names.begin(), names.end()}; });
  expected_until_ = context_.now() + kSilence;
}

bool Cluster::busy() const noexcept {
  bool calls = false;
  each_session([&](const Node& node) { calls = calls || node.calls_here() != 0; });
  return calls || bus_->is_draining() || plain_.busy();
}

// ---- who is there ----

void Cluster::bus_changed() {
  if (bus_->state() == Bus::State::connected) {
    connected_at_ = now();
    expected_until_ = connected_at_ + kSilence;
    context_.log(LogLevel::info, "cluster: the bus is connected: " + bus_->url());
    // Whoever is still there says so within a second.
    each_session([](Node& node) { node.lose(broker::LostBy::bus); });
    send_heartbeat();
    return;
  }
  context_.log(LogLevel::warning, "cluster: the bus is not connected: " + bus_->failure() +
                                      "; calls of other nodes' methods are refused until it is");
  plain_.bus_lost();
  each_session([](Node& node) { node.lose(broker::LostBy::bus); });
}

bool Cluster::is_degraded() const noexcept {
  return bus_->state() != Bus::State::connected || is_silenced() || context_.replaced;
}

const Node* Cluster::find(std::string_view node) const noexcept {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : found->second.get();
}

Node* Cluster::node_of(std::string_view name) {
  const auto found = nodes_.find(name);
  if (found != nodes_.end()) return found->second.get();
  if (nodes_.size() == kNodesMax) return nullptr;
  std::string own{name};
  auto node = std::make_unique<Node>(context_, own);
  return nodes_.emplace(std::move(own), std::move(node)).first->second.get();
}

void Cluster::forget(std::string_view name, std::string_view why) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  if (found->second->is_in_use()) return found->second->lose(broker::LostBy::node);  // and later, by its silence
  context_.log(LogLevel::warning, "cluster: node " + std::string{name} + " has gone: " + std::string{why});
  supersede(name, {});
  nodes_.erase(found);
}

// ---- who is replaced ----

// From now on that object is of a process that has been the node, and another one of the process that is it.
void Cluster::replace(Node& node, std::string_view what) {
  const std::string name{node.name()};
  context_.log(LogLevel::info, "cluster: node " + name + ' ' + std::string{what});
  auto next = context_.replaced ? nullptr : std::make_unique<Node>(context_, name);
  if (next) next->expect_methods_of(node);
  std::string subject = context_.subjects.process(name, node.last_heartbeat().epoch);
  end_oldest_of(name);
  departing_.reserve(departing_.size() + 1);
  auto handle = nodes_.extract(name);
  departing_.push_back(std::exchange(handle.mapped(), std::move(next)));
  if (handle.mapped()) nodes_.insert(std::move(handle));
  node.depart(std::move(subject));
}

void Cluster::end_oldest_of(std::string_view name) {
  const auto is_of_it = [name](const auto& node) { return node->name() == name && !node->has_ended(); };
  if (static_cast<std::size_t>(std::ranges::count_if(departing_, is_of_it)) < kDepartingMax) return;
  end_last(**std::ranges::find_if(departing_, is_of_it), "too many have been replaced since");
}

void Cluster::end_last(Node& node, std::string_view why) {
  if (node.has_ended()) return;
  context_.log(LogLevel::info, "cluster: the session with a process that was node " + std::string{node.name()} +
                                   " has ended: " + std::string{why});
  node.lose(broker::LostBy::node);
}

void Cluster::supersede(std::string_view node, std::string_view method) {
  for (const auto& one : departing_) {
    if (one->name() == node) one->supersede(method);
  }
}

void Cluster::erase_ended() noexcept {
  const auto is_over = [](const Node& node) { return node.has_ended() && !node.is_in_use(); };
  std::erase_if(departing_, [&](const auto& node) { return is_over(*node); });
  if (context_.replaced) std::erase_if(nodes_, [&](const auto& node) { return is_over(*node.second); });
}

Node* Cluster::find_departing(std::string_view node, std::uint64_t epoch) const noexcept {
  const auto found = std::ranges::find_if(departing_, [&](const auto& one) {
    return one->name() == node && one->last_heartbeat().epoch == epoch && !one->has_ended();
  });
  return found == departing_.end() ? nullptr : found->get();
}

// It is one of two with one name: what the others have of this process ends, and no more.
void Cluster::forget_all() noexcept {
  each_session([](Node& node) { node.leave(); });
  std::erase_if(departing_, [](const auto& node) { return !node->is_in_use(); });
  std::erase_if(nodes_, [](const auto& node) { return !node.second->is_in_use(); });
  each_session([](Node& node) { node.fall_silent(); });
}

void Cluster::take_heartbeat(const BusMessage& message) {
  const std::optional<Heartbeat> heartbeat = read_heartbeat(message.payload);
  if (!heartbeat) return;
  if (heartbeat->node == context_.own) {
    if (heartbeat->epoch == context_.epoch || context_.replaced) return;
    const nanoseconds now = context_.now();
    if (rival_heard_ < nanoseconds{0} || now - rival_heard_ > kSilence) {
      context_.log(LogLevel::error,
                   "cluster: another broker of realm " + realm_ + " is called " + context_.own +
                       (heartbeat->epoch > context_.epoch ? " as well: this one takes no part" : " as well") +
                       "; give one of them another --node");
    }
    rival_ = heartbeat->epoch;
    rival_heard_ = now;
    if (is_silenced()) forget_all();
    return;
  }
  if (is_silenced()) return;
  // Of a process that is the node no more it is the last word, or one of two with one name; else it has come back.
  const bool is_there = nodes_.contains(heartbeat->node);
  if (Node* const departing = find_departing(heartbeat->node, heartbeat->epoch)) {
    if (is_there || context_.replaced) return;
    end_last(*departing, "it is the node again");
  }
  Node* node = is_there || !context_.replaced ? node_of(heartbeat->node) : nullptr;
  if (node == nullptr) return;
  if (node->is_of_another_process(*heartbeat)) {
    replace(*node, "has begun anew");
    node = context_.replaced ? nullptr : node_of(heartbeat->node);
    if (node == nullptr) return;
  }
  const bool known = node->last_heartbeat().epoch == heartbeat->epoch;
  // It may not have heard of us, which it has to before it is asked for a session.
  if (!known) send_heartbeat(heartbeat->node);
  node->heard(*heartbeat);
  if (heartbeat->retained && is_settled()) node->compare_retained(*heartbeat->retained);
}

// The one whose session it is of; else one that may begin a session.
Node* Cluster::node_of(const Frame& frame) {
  const std::string_view name = frame.head.node;
  for (const auto& node : departing_) {
    if (node->name() == name && node->is_present(frame)) return node.get();
  }
  const auto found = nodes_.find(name);
  if (found != nodes_.end()) return found->second.get();
  return frame.head.kind == FrameKind::open && !context_.replaced ? node_of(name) : nullptr;
}

// `to_process` is of a message that was sent to this process, and not to the node.
void Cluster::take_frame(const BusMessage& message, bool to_process) {
  if (message.payload.starts_with('{')) return take_heartbeat(message);
  const std::optional<Frame> frame = read_frame(message.payload);
  if (!frame || frame->head.node == context_.own || is_silenced()) return;
  const Reading reading{context_.reading};
  Node* const node = node_of(*frame);
  if (node == nullptr) return;
  if (to_process && node->is_present(*frame)) node->follow();
  if (frame->head.kind == FrameKind::leave) return take_leave(*node, *frame);
  node->take(*frame);
}

void Cluster::take_leave(Node& node, const Frame& frame) {
  constexpr std::string_view kReplaced = "is replaced by another process";
  // What a broker says that has ended may come after the first words of the one that has taken its name.
  if (!node.is_present(frame)) return;
  if (!NodeLink::says_replaced(frame)) {
    node.take_leave(frame);
    if (node.is_departing() || context_.replaced) return end_last(node, kEnded);
    return forget(frame.head.node, kEnded);
  }
  if (node.is_departing() || !node.is_open())
    context_.log(LogLevel::info, "cluster: node " + std::string{node.name()} + ' ' + std::string{kReplaced});
  if (node.is_departing()) return;  // the process that has taken over was heard before
  if (node.is_open()) return replace(node, kReplaced);
  node.lose(broker::LostBy::node);
}

void Cluster::take_gone(const BusMessage& message) {
  if (!message.no_responders) return;
  constexpr std::string_view kWhy = "nobody subscribes to its subject";
  const std::string_view who = message.subject.substr(message.subject.rfind('.') + 1);
  const std::size_t end = who.find(':');
  if (end == who.npos) return forget(who, kWhy);
  const std::uint64_t epoch = read_hexadecimal(who.substr(end + 1)).value_or(0);
  if (Node* const node = find_departing(who.substr(0, end), epoch)) end_last(*node, kWhy);
}

// ---- what it tells ----

std::shared_ptr<rpc::Rendering> Cluster::tell(rpc::Asker asker) const {
  static_cast<void>(asker);
  return std::make_shared<ClusterListing>(*this);
}

std::string Cluster::tell_own() const {
  const std::string failure = bus_->failure();
  return to_json(ClusterTable{.realm = realm_,
                              .node = context_.own,
                              .epoch = epoch_text(context_.epoch),
                              .state = context_.draining ? "draining"
                                       : is_degraded()   ? "degraded"
                                                         : "up",
                              .bus = {.url = bus_->url(),
                                      .state = name_of(bus_->state()),
                                      .failure = failure.empty() ? std::nullopt : std::optional{failure}},
                              .nodes = {}});
}

const Node* Cluster::next(std::string_view after) const noexcept {
  const auto found = nodes_.upper_bound(after);
  return found == nodes_.end() ? nullptr : found->second.get();
}

}  // namespace wirecall::cluster
