// See event_delivery.hpp.
#include "broker/event_delivery.hpp"

#include "broker/outgoing.hpp"
#include "broker/peer_encoding.hpp"

namespace wirecall::broker {

// Topics of which a peer learns each by itself what it has lost.
constexpr std::size_t kLagTopics = 64;
// For events that are lost whose topic is not known.
constexpr std::string_view kAllTopics = ">";

// Another node is sent it as it was published.
[[gnu::noinline]] static rpc::EventText::SendResult send_to_node(Peer& peer, rpc::EventText& event) {
  const std::string_view text = event.original();
  const Encoding encoding = message::encoding_of(text.front());
  if (encoding == Encoding::json || !takes_as_it_is(peer, encoding)) return event.send_to(peer.sink());
  append_message_as(peer.sink(), MessageForm::native(encoding), [&](Buffer& out) { out.append(text); });
  return rpc::EventText::SendResult::yes;
}

static inline rpc::EventText::SendResult send(Peer& peer, rpc::EventText& event) {
  return peer.of_node ? send_to_node(peer, event) : event.send_to(peer.sink());
}

// To one who reads the numbers of what is retained.
[[gnu::noinline]] static rpc::EventText::SendResult send_numbered(Peer& peer, rpc::EventText& event,
                                                                  std::uint64_t number) {
  struct Numbered {
    rpc::RetainedReader* reader;
    ~Numbered() { reader->set_retained_number(0); }
  };
  peer.retained_reader->set_retained_number(number);
  const Numbered numbered{peer.retained_reader};
  return send(peer, event);
}

// Behind what is retained, which the peer is being sent.
static bool hold_event(Peer& peer, const rpc::EventText& event, bool retained) noexcept try {
  const bool may = !peer.retained->backpressured && !peer.lag && !peer.sink().is_overfull();
  return may && peer.retained->hold(event.original(), retained);
} catch (const std::bad_alloc&) {
  return false;
}

bool send_event(const BrokerContext& context, Peer& peer, std::string_view topic, rpc::EventText& event,
                std::uint64_t retained) {
  if (!peer.takes_events()) {
    if (peer.is_sent_retained()) {
      if (retained != 0 && peer.retained->is_due(topic)) return true;  // it comes in its turn
      if (hold_event(peer, event, retained != 0)) return true;
    }
    drop_event(context, peer, topic, retained != 0);
    return false;
  }
  try {
    tell_lag(peer);
    const bool numbered = retained != 0 && peer.retained_reader != nullptr;
    const rpc::EventText::SendResult sent = numbered ? send_numbered(peer, event, retained) : send(peer, event);
    if (sent == rpc::EventText::SendResult::no_budget) [[unlikely]]
      drop_for_budget(context, peer, topic, retained != 0);
    return sent == rpc::EventText::SendResult::yes;
  } catch (const std::bad_alloc&) {
    drop_event(context, peer, topic, retained != 0);
    return false;
  }
}

void send_retained_event(const BrokerContext& context, Peer& peer, std::string_view topic, std::string_view kept) {
  rpc::EventText event{kept, context.loop, context.limits};
  if (event.send_to(peer.sink()) == rpc::EventText::SendResult::no_budget) drop_for_budget(context, peer, topic, true);
}

void send_held_event(const BrokerContext& context, Peer& peer, const HeldEvent& held) {
  rpc::EventText event{held.text, context.loop, context.limits};
  if (event.send_to(peer.sink()) == rpc::EventText::SendResult::no_budget)
    drop_for_budget(context, peer, kAllTopics, held.retained);
}

void drop_event(const BrokerContext& context, Peer& peer, std::string_view topic, bool retained) {
  if (retained && peer.retained_reader != nullptr) peer.retained_reader->retained_lost();
  ++context.loop.stats.events_dropped;
  count_lag(peer, topic, 1);
}

void drop_for_budget(const BrokerContext& context, Peer& peer, std::string_view topic, bool retained) {
  drop_event(context, peer, topic, retained);
  if (!peer.congested) tell_lag(peer);
}

void count_lag(Peer& peer, std::string_view topic, std::uint64_t count) {
  static_cast<void>(peer.is_congested());  // then it is told of them once there is room
  // The first entry is for all topics that have no entry of their own.
  if (!peer.lag) peer.lag = std::make_unique<std::vector<Lag>>(1, Lag{.topic = std::string{kAllTopics}, .dropped = 0});
  std::vector<Lag>& lag = *peer.lag;
  WIRECALL_ASSERT(!lag.empty() && lag.size() <= kLagTopics);
  auto known = std::ranges::find(lag, topic, &Lag::topic);
  if (known == lag.end() && lag.size() >= kLagTopics) known = lag.begin();
  if (known != lag.end()) {
    known->dropped += count;
    return;
  }
  lag.push_back({.topic = std::string{topic}, .dropped = count});
}

void tell_lag(Peer& peer) {
  if (!peer.lag) [[likely]]
    return;
  const std::unique_ptr<const std::vector<Lag>> lag = std::move(peer.lag);
  for (const Lag& one : *lag) {
    if (one.dropped == 0) continue;
    const Buffer text = lagged(one.topic, one.dropped);
    append_message(peer.sink(), [&text](Buffer& out) { out.append(text.view()); });
  }
}

Buffer lagged(std::string_view topic, std::uint64_t count) {
  return rpc::event_of("rpc.lagged", R"({"topic":)" + to_json(topic) + R"(,"dropped":)" + std::to_string(count) + "}");
}

}  // namespace wirecall::broker
