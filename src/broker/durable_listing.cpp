// Of DurableTopics: what there is of events and consumers, which are read, listed and forgotten (durable_topics.hpp).
#include "broker/durable_consumer.hpp"
#include "broker/durable_params.hpp"
#include "broker/durable_topics.hpp"
#include "broker/outgoing.hpp"

namespace wirecall::broker {

using rpc::ReservedParams;

constexpr std::uint32_t kReadDefault = 100;
constexpr std::uint32_t kReadMax = 1000;

struct TopicRow {
  std::string_view pattern;
  std::uint64_t events;
  std::uint64_t bytes;
  std::uint64_t last_seq;
};
struct ConsumerRow {
  std::string_view name;
  std::string_view topic;
  std::uint64_t position;
  std::size_t pending;
  std::size_t members;
  std::uint32_t ack_wait_ms;
  std::uint32_t max_deliver;
  std::uint32_t max_in_flight;
};
struct Listing {
  std::uint64_t last_seq;
  std::vector<TopicRow> topics;
  std::vector<ConsumerRow> consumers;
};
struct EventRow {
  std::uint64_t seq;
  std::int64_t at_ms;
  std::string_view topic;
  std::optional<Raw> params;
};
struct EventRows {
  std::vector<EventRow> events;
  std::uint64_t last;
};

void DurableTopics::list(Call& call) {
  const ReservedParams<0> params{call.reader(), call.params(), std::array<std::string_view, 0>{}};
  const Peer& caller = require_connection(call, false);
  caller.sink().charge(kStepsOfRead);
  require_store().list_topics(
      reader_of(caller), [this, number = caller.number,
                          sink = call.detach()](durable::Outcome<std::vector<durable::TopicCounts>> outcome) mutable {
        if_memory_allows([&] {
          if (!outcome) return sink.error(error_of(outcome.error()));
          if (store_->is_shared()) return list_shared(number, *std::move(outcome), std::move(sink));
          const Peer* const asker = context_->peers.find(number);
          if (asker == nullptr) return;
          const Principal* const principal = asker->principal;
          Listing listing{.last_seq = last_seq_, .topics = {}, .consumers = {}};
          for (const durable::TopicCounts& topic : *outcome) {
            if (!topic.pattern.empty() && !rpc::may_subscribe(principal, topic.pattern)) continue;
            listing.topics.push_back({topic.pattern, topic.count, topic.bytes, topic.last_seq});
          }
          for (const auto& [name, consumer] : consumers_) {
            const durable::ConsumerSettings& settings = consumer->settings();
            if (!rpc::may_subscribe(principal, settings.pattern)) continue;
            listing.consumers.push_back({name, settings.pattern, consumer->floor(), consumer->pending(),
                                         consumer->members(), settings.ack_wait_ms, settings.max_deliver,
                                         settings.max_in_flight});
          }
          charge_rows(asker, consumers_.size());
          answer(sink, listing);
        });
      });
}

// Those of all nodes; members are this node's.
void DurableTopics::list_shared(std::uint64_t asker_number, std::vector<durable::TopicCounts> topics, ReplySink sink) {
  store_->list_consumers([this, asker_number, topics = std::move(topics), sink = std::move(sink)](
                             const durable::Outcome<std::vector<durable::ConsumerState>>& outcome) mutable {
    if_memory_allows([&] {
      if (!outcome) return sink.error(error_of(outcome.error()));
      const Peer* const asker = context_->peers.find(asker_number);
      if (asker == nullptr) return;
      const Principal* const principal = asker->principal;
      Listing listing{.last_seq = 0, .topics = {}, .consumers = {}};
      for (const durable::TopicCounts& topic : topics) {
        listing.last_seq = std::max(listing.last_seq, topic.last_seq);
        if (!topic.pattern.empty() && !rpc::may_subscribe(principal, topic.pattern)) continue;
        listing.topics.push_back({topic.pattern, topic.count, topic.bytes, topic.last_seq});
      }
      for (const durable::ConsumerState& state : *outcome) {
        const durable::ConsumerSettings& settings = state.settings;
        if (!rpc::may_subscribe(principal, settings.pattern)) continue;
        const auto known = consumers_.find(settings.name);
        listing.consumers.push_back({settings.name, settings.pattern, state.floor, state.in_flight,
                                     known == consumers_.end() ? 0 : known->second->members(), settings.ack_wait_ms,
                                     settings.max_deliver, settings.max_in_flight});
      }
      charge_rows(asker, outcome->size());
      answer(sink, listing);
    });
  });
}

void DurableTopics::read(Call& call) {
  constexpr std::array<std::string_view, 3> kNames{"topic", "after", "count"};
  const ReservedParams<3> params{call.reader(), call.params(), kNames};
  const Peer& caller = require_connection(call, false);
  durable::Fetch fetch{.pattern = pattern_of(params),
                       .after = params.as<std::uint64_t>(1).value_or(0),
                       .count = number_of(params, "count", 2, kReadDefault, 1, kReadMax),
                       .bytes = context_->limits.max_message_size / 4,
                       .asker = reader_of(caller)};
  if (!rpc::may_subscribe(caller.principal, fetch.pattern)) throw forbidden();
  caller.sink().charge(kStepsOfRead);
  require_store().fetch(std::move(fetch), [this, number = caller.number, sink = call.detach()](
                                              const durable::Outcome<durable::Fetched>& outcome) mutable {
    if_memory_allows([&] {
      if (!outcome) return sink.error(error_of(outcome.error()));
      EventRows rows{.events = {}, .last = outcome->scanned};
      std::size_t bytes = 0;
      for (const durable::Event& event : outcome->events) {
        bytes += event.params.size();
        rows.events.push_back({event.seq, event.at_ms, event.topic, std::nullopt});
        if (!event.params.empty()) rows.events.back().params.emplace(event.params);
      }
      charge_rows(context_->peers.find(number), rows.events.size(), bytes);
      answer(sink, rows);
    });
  });
}

void DurableTopics::forget(Call& call) {
  constexpr std::array<std::string_view, 1> kNames{"consumer"};
  const ReservedParams<1> params{call.reader(), call.params(), kNames};
  const Peer& caller = require_connection(call, false);
  std::string name = consumer_name(params, "consumer", 0);
  durable::Store& store = require_store();
  const auto found = consumers_.find(name);
  if (!store.is_shared() && found != consumers_.end() &&
      !rpc::may_subscribe(caller.principal, found->second->settings().pattern))
    throw forbidden();
  if (opening_.contains(name) || (found != consumers_.end() && found->second->members() != 0))
    throw conflict("clients have joined the consumer: it can be forgotten once they have left");
  if (!store.is_shared()) return forget(std::move(name), call.detach());
  // Its topics may be others than this node knows; and nobody joins meanwhile.
  if (!forgetting_.insert(name).second) throw conflict("the consumer is being forgotten");
  store.list_consumers([this, name = std::move(name), number = caller.number, sink = call.detach()](
                           const durable::Outcome<std::vector<durable::ConsumerState>>& outcome) mutable {
    forgetting_.erase(name);
    if_memory_allows([&] {
      if (!outcome) return sink.error(error_of(outcome.error()));
      const Peer* const asker = context_->peers.find(number);
      if (asker == nullptr) return;
      const auto is_named = [&](const durable::ConsumerState& one) { return one.settings.name == name; };
      const auto known = std::ranges::find_if(*outcome, is_named);
      if (known != outcome->end() && !rpc::may_subscribe(asker->principal, known->settings.pattern))
        return sink.error(forbidden());
      forgetting_.insert(name);
      forget(std::move(name), std::move(sink));
    });
  });
}

void DurableTopics::forget(std::string name, ReplySink sink) {
  store_->forget_consumer(name,
                          [this, name, sink = std::move(sink)](const durable::Outcome<durable::Done>& outcome) mutable {
                            forgetting_.erase(name);
                            if_memory_allows([&] {
                              if (!outcome) return sink.error(error_of(outcome.error()));
                              consumers_.erase(name);
                              answer(sink, true);
                            });
                          });
}

}  // namespace wirecall::broker
