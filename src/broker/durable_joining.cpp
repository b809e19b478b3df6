// Of DurableTopics: who joins consumers and leaves them, and goes on (durable_topics.hpp).
#include <charconv>

#include "base/reserve_extra.hpp"
#include "broker/durable_consumer.hpp"
#include "broker/durable_params.hpp"
#include "broker/durable_topics.hpp"
#include "broker/outgoing.hpp"
#include "message/own_error.hpp"

namespace wirecall::broker {

using rpc::ReservedParams;

constexpr std::size_t kConsumersMax = 4096;

struct JoinedRow {
  std::string_view consumer;
  std::uint64_t position;
};

DurableConsumer& DurableTopics::consumer_of(const durable::ConsumerState& state) {
  const auto found = consumers_.find(state.settings.name);
  if (found != consumers_.end() && !found->second->is_unloaded()) {
    found->second->set(state.settings);
    return *found->second;
  }
  auto& consumer = consumers_[state.settings.name];
  consumer = std::make_unique<DurableConsumer>(*this, state);
  return *consumer;
}

void DurableTopics::subscribe(Call& call) {
  Peer& caller = require_connection(call, true);
  const ReservedParams<9> params{call.reader(), call.params(), kSubscribeNames};
  durable::ConsumerSettings settings{.name = consumer_name(params, "durable", 4), .pattern = pattern_of(params)};
  if (params.value(1) != nullptr || params.value(2) != nullptr || params.value(3) != nullptr)
    params.refuse("durable", params.find(4), "no consumer together with last, group or echo");
  settings.principal = account_of(caller);
  settings.after = store_->is_shared() ? durable::kOnlyNew : last_seq_;
  if (params.value(5) != nullptr) {
    const auto word = params.as_or_nothing<std::string>(5);
    const auto seq = params.as_or_nothing<std::uint64_t>(5);
    if (word == "first") {
      settings.after = 0;
    } else if (seq && *seq > 0) {
      settings.after = *seq - 1;
    } else if (word != "new") {
      params.refuse("start", params.find(5), R"("first", "new" or the seq of the first event)");
    }
  }
  constexpr std::uint32_t kDayMs = 86'400'000;
  settings.ack_wait_ms = number_of(params, "ack_wait_ms", 6, settings.ack_wait_ms, 1, kDayMs);
  settings.max_deliver = number_of(params, "max_deliver", 7, settings.max_deliver, 0, 1'000'000);
  settings.max_in_flight = number_of(params, "max_in_flight", 8, settings.max_in_flight, 1, 65'536);
  if (!rpc::may_subscribe(caller.principal, settings.pattern)) throw forbidden();
  static_cast<void>(require_store());
  const std::string& name = settings.name;
  const auto known = consumers_.find(name);
  require_followable(known != consumers_.end() ? known->second.get() : nullptr, settings.pattern);
  if (consumers_.size() + opening_.size() >= kConsumersMax && !consumers_.contains(name))
    throw limit_exceeded("there are too many consumers: forget some", "consumers");
  if (caller.consumers >= context_->limits.subscriptions) throw too_many_subscriptions();
  if (forgetting_.contains(name)) throw conflict("the consumer is being forgotten: join it again");
  // Once is enough for a consumer that is known here, or about to be.
  settings.with_tried = !opening_.contains(name) && (known == consumers_.end() || known->second->is_unloaded());
  caller.sink().charge(kStepsOfRead);
  open(std::move(settings), caller.number, call.detach());
  ++caller.consumers;  // it counts as one that has joined until the store answers
}

void DurableTopics::open(durable::ConsumerSettings settings, std::uint64_t joins, ReplySink sink) {
  const std::string name = settings.name;
  const bool with_tried = settings.with_tried;
  opening_.insert(name);
  store_->open_consumer(std::move(settings), [this, name, with_tried, joins, sink = std::move(sink)](
                                                 const durable::Outcome<durable::ConsumerState>& outcome) mutable {
    if (const auto found = opening_.find(name); found != opening_.end()) opening_.erase(found);
    const auto known = consumers_.find(name);
    const bool is_unknown = known == consumers_.end() || known->second->is_unloaded();
    if (outcome && !with_tried && is_unknown) {  // who was to know it before has failed
      durable::ConsumerSettings again = outcome->settings;
      again.with_tried = true;
      return if_memory_allows([&] { open(std::move(again), joins, std::move(sink)); });
    }
    if (Peer* const peer = context_->peers.find(joins)) --peer->consumers;
    if_memory_allows([&] {
      if (outcome) return opened(*outcome, joins, sink);
      if (known != consumers_.end()) unload_if_alone(*known->second);
      sink.error(error_of(outcome.error()));
    });
  });
}

void DurableTopics::opened(const durable::ConsumerState& state, std::uint64_t joins, ReplySink& sink) {
  DurableConsumer& consumer = consumer_of(state);
  try {
    require_followable(&consumer, state.settings.pattern);
  } catch (const Error& error) {
    unload_if_alone(consumer);
    return sink.error(error);
  }
  answer(sink, JoinedRow{.consumer = state.settings.name, .position = state.floor});
  Peer* const peer = context_->peers.find(joins);
  if (peer == nullptr || peer->has_ended()) return unload_if_alone(consumer);
  peer->took_part = true;
  consumer.join(*peer);
}

void DurableTopics::go_on() {
  draining_ = false;
  pump();
}

bool DurableTopics::at_work() const noexcept { return std::ranges::any_of(active_, &DurableConsumer::at_work); }

void DurableTopics::unsubscribe(Call& call) {
  Peer& caller = require_connection(call, true);
  const ReservedParams<2> params{call.reader(), call.params(), kUnsubscribeNames};
  const auto found = consumers_.find(consumer_name(params, "durable", 1));
  if (found == consumers_.end() || !found->second->part(caller))
    throw message::make(ErrorCode::no_subscription, "this connection has not joined that consumer", "no");
  ReplySink sink = call.detach();
  answer(sink, true);
}

void DurableTopics::leave(Peer& peer) noexcept {
  for (std::size_t i = active_.size(); peer.consumers != 0 && i != 0; --i) active_[i - 1]->lose(peer);
  std::erase(unblocked_, &peer);
}

void DurableTopics::resume(Peer& peer) {
  if (peer.consumers == 0) return;
  pump_line(peer);
  pump_unblocked();
}

static std::optional<std::uint64_t> take_number(std::string_view& text) noexcept {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [read_to, error] = std::from_chars(text.data() + colon + 1, end, number);
  if (error != std::errc{} || read_to != end) return std::nullopt;
  text = text.substr(0, colon);
  return number;
}

bool DurableTopics::response(const Peer& peer, const Received& message) {
  if (peer.consumers == 0) return false;
  std::string_view id = message.id();
  if (id.size() < 2 || id.front() != '"' || id.back() != '"') return false;
  id = id.substr(1, id.size() - 2);
  const auto delivery = take_number(id);
  const auto seq = delivery ? take_number(id) : std::nullopt;
  if (!seq) return false;
  const auto found = consumers_.find(id);
  if (found == consumers_.end()) return false;
  found->second->answered(peer, *seq, *delivery, message);
  return true;
}

// ---- who goes on ----

void DurableTopics::require_followable(const DurableConsumer* consumer, std::string_view pattern) const {
  if (store_->is_shared() || (consumer != nullptr && consumer->members() != 0)) return;
  if (topics_.admits(Subscriber{nullptr}, pattern)) return;
  throw limit_exceeded("too many patterns of more than 6 words have their wildcards in places of their own",
                       "subscription_steps");
}

void DurableTopics::activate(DurableConsumer& consumer) {
  reserve_extra(active_, 1);
  if (!store_->is_shared()) topics_.subscribe(consumer.subscriber, consumer.settings().pattern, {});
  active_.push_back(&consumer);
}

void DurableTopics::deactivate(DurableConsumer& consumer) noexcept {
  topics_.remove_all(consumer.subscriber);
  const auto found = std::ranges::find(active_, &consumer);
  if (found == active_.end()) return;
  *found = active_.back();
  active_.pop_back();
}

// What it is told to by the store would be behind what it does meanwhile.
void DurableTopics::unload_if_alone(DurableConsumer& consumer) {
  if (consumer.members() != 0 || opening_.contains(consumer.settings().name)) return;
  consumer.keep_floor();
  consumer.unload();
  reads_.let();
}

void DurableTopics::pump() {
  for (std::size_t i = 0; i < active_.size(); ++i) active_[i]->pump();
}

void DurableTopics::unblock(Peer& peer) noexcept {
  if (std::ranges::find(unblocked_, &peer) != unblocked_.end()) return;
  if_memory_allows([&] { unblocked_.push_back(&peer); });
}

void DurableTopics::pump_unblocked() {
  while (!unblocked_.empty()) {
    Peer& peer = *unblocked_.back();
    unblocked_.pop_back();
    pump_line(peer);
  }
}

void DurableTopics::pump_line(Peer& peer) {
  for (auto line = lines_.find(&peer); line != lines_.end(); line = lines_.find(&peer)) {
    if (!line->second.empty() && !DurableConsumer::is_free(peer)) return;
    DurableConsumer* const next = line->second.empty() ? nullptr : line->second.front();
    if (next != nullptr) line->second.pop_front();
    if (line->second.empty()) lines_.erase(line);
    if (next != nullptr) next->unblocked(peer);
  }
}

void DurableTopics::leave_line(Peer& peer, const DurableConsumer& consumer) noexcept {
  const auto line = lines_.find(&peer);
  if (line == lines_.end()) return;
  std::erase(line->second, &consumer);
  if (line->second.empty()) lines_.erase(line);
}

}  // namespace wirecall::broker
