// Of DurableConsumer: what becomes of the events that its members are sent (durable_consumer.hpp).
#include "broker/durable_answers.hpp"
#include "broker/durable_consumer.hpp"
#include "broker/durable_topics.hpp"
#include "broker/outgoing.hpp"
#include "message/cancel_request.hpp"

namespace wirecall::broker {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Events that one member has not answered in time, of which it is remembered that it was sent them.
constexpr std::size_t kLateMax = 1024;
// Before one is given up again that the disk has not taken.
constexpr milliseconds kBuryPause{1000};
// Events whose time has run out, in one turn of the loop.
constexpr std::size_t kDueATurn = 256;

constexpr std::string_view kTimedOut = R"({"code":-32002,"message":"Timeout"})";

void DurableConsumer::expired() {
  wakes_at_ = kNoDeadline;
  const nanoseconds now = context_->now();
  for (std::size_t i = 0; i != kDueATurn && !due_.empty() && due_.begin()->first <= now; ++i) {
    const auto event = pending_.find(due_.begin()->second);
    due_.erase(due_.begin());
    PendingEvent& one = event->second;
    if (one.state == PendingEvent::State::resting) {
      if (!one.error.empty()) {
        bury(event, one.error);
        continue;
      }
      one.state = PendingEvent::State::ready;
      ready_.insert(event->first);
    } else {
      if_memory_allows([&] {
        if (one.peer == nullptr) return;
        remember_late(*one.peer, event->first);
        rpc::send_message(one.peer->sink(),
                          message::cancel_request('"' + settings_.name + ':' + std::to_string(event->first) + ':' +
                                                  std::to_string(one.deliveries) + '"'));
      });
      fail(event, kTimedOut, nanoseconds{0});
    }
  }
  if (!due_.empty()) wake_at(due_.begin()->first);
  go_on();
}

// ---- what becomes of it ----

void DurableConsumer::remember_late(const Peer& peer, std::uint64_t seq) {
  Joined* const member = member_of(peer);
  if (member == nullptr) return;
  member->late.insert(seq);
  if (member->late.size() > kLateMax) member->late.erase(member->late.begin());
}

// A late result is one all the same; a late error is not that of the present delivery. Whoever was not sent the event
// by this connection has answered another delivery than those that there are: it may be at somebody else meanwhile.
void DurableConsumer::answered(const Peer& peer, std::uint64_t seq, std::uint64_t delivery, const Received& message) {
  const auto event = pending_.find(seq);
  Joined* const member = member_of(peer);
  if (member == nullptr) return;
  const bool is_at_peer = event != pending_.end() && event->second.peer == &peer;
  if (!is_at_peer && !member->late.contains(seq)) return;
  const bool failed = message.fault != Fault::none || !message.has(Member::result);
  if (!failed) member->late.erase(seq);
  if (event == pending_.end()) {
    if (is_shared() && !failed && delivery != 0) {
      topics_->store_->progress(
          {.consumer = settings_.name,
           .floor = 0,
           .tried =
               durable::Tried{.seq = seq, .deliveries = static_cast<std::uint32_t>(delivery), .acknowledged = true}},
          {});
    }
    return;
  }
  PendingEvent& one = event->second;
  if (delivery == 0 || delivery > one.deliveries) return;
  if (!failed) {
    acknowledge(event);
  } else {
    if (one.state != PendingEvent::State::sent || one.peer != &peer || delivery != one.deliveries) return;
    const std::string error{message.fault == Fault::none && message.has(Member::error) ? message[Member::error]
                                                                                       : std::string_view{}};
    const milliseconds pause = pause_after(one.deliveries, kFirstEventPause, milliseconds{settings_.ack_wait_ms});
    fail(event, error.empty() ? R"({"code":-32603,"message":"Internal error"})" : std::string_view{error}, pause);
  }
  go_on();
}

void DurableConsumer::leave_member(PendingEvent& event) noexcept {
  Peer* const peer = std::exchange(event.peer, nullptr);
  if (peer == nullptr) return;
  Joined* const member = member_of(*peer);
  if (member == nullptr) return;
  const bool was_blocked = peer->consumed_bytes >= kPeerBytesMax;
  peer->consumed_bytes -= bytes_of(event);
  if (was_blocked && peer->consumed_bytes < kPeerBytesMax) topics_->unblock(*peer);
  --member->in_flight;
  if (member->parted && member->in_flight == 0) remove_member(*member);
}

void DurableConsumer::remove(Pending::iterator event) {
  leave_member(event->second);
  wait_no_more(event);
  const std::size_t bytes = bytes_of(event->second);
  pending_bytes_ -= bytes;
  topics_->reads_.release(*event->second.share, bytes);
  ready_.erase(event->first);
  pending_.erase(event);
  forget_acknowledged();
  topics_->reads_.let();
}

void DurableConsumer::forget_acknowledged() noexcept {
  acknowledged_.erase(acknowledged_.begin(), acknowledged_.upper_bound(floor()));
}

// Nobody waits for it to be safe: what a loss of power takes of it is delivered once more.
void DurableConsumer::acknowledge(Pending::iterator event) {
  const durable::Tried tried{.seq = event->first, .deliveries = event->second.deliveries, .acknowledged = true};
  remove(event);
  kept_floor_ = floor();
  if (tried.seq > kept_floor_) acknowledged_.insert(tried.seq);
  topics_->store_->progress({.consumer = settings_.name, .floor = kept_floor_, .tried = tried}, {});
}

void DurableConsumer::fail(Pending::iterator event, std::string_view error_json, nanoseconds pause) {
  PendingEvent& one = event->second;
  if (settings_.max_deliver != 0 && one.deliveries >= settings_.max_deliver)
    return bury(event, std::string{error_json});
  if (is_shared()) {
    give_back(event->first, one.deliveries, pause);
    return remove(event);
  }
  leave_member(one);
  wait_no_more(event);
  one.state = pause.count() == 0 ? PendingEvent::State::ready : PendingEvent::State::resting;
  if (one.state == PendingEvent::State::ready)
    ready_.insert(event->first);
  else
    wait_until(event, context_->now() + pause);
  // How often it has been sent need not be known after a crash where the disk is behind.
  if (topics_->store_->waiting() > DurableTopics::kWaitingMax) return;
  topics_->store_->progress({.consumer = settings_.name,
                             .floor = floor(),
                             .tried = durable::Tried{.seq = event->first, .deliveries = one.deliveries}},
                            {});
}

// What is given up is kept together with the progress behind it, and goes once that is safe. An event that has been
// given up before is not kept once more: a consumer of dead letters would never end. It is on the account of whoever
// had it last: so nobody fills that of somebody else.
void DurableConsumer::bury(Pending::iterator event, std::string error) {
  auto& [seq, one] = *event;
  std::string error_json = kept_error(std::move(error), "The consumer's");
  if (one.error.empty()) one.account = one.peer != nullptr ? account_of(*one.peer) : principal_;
  const auto next = std::next(event);
  const std::uint64_t behind = next == pending_.end() ? scanned() : next->first - 1;
  durable::Progress progress{.consumer = settings_.name,
                             .floor = event == pending_.begin() ? behind : floor(),
                             .tried = durable::Tried{seq, one.deliveries, true}};
  if (!one.topic.starts_with("dead.")) {
    std::string params = R"({"topic":)" + to_json(one.topic) + R"(,"seq":)" + std::to_string(seq) +
                         R"(,"deliveries":)" + std::to_string(one.deliveries);
    const std::string topic = "dead." + settings_.name;
    if (!one.params.empty() && topics_->fits_message(topic, params + error_json + one.params))
      params.append(R"(,"params":)").append(one.params);
    params.append(R"(,"error":)").append(error_json).append("}");
    progress.dead =
        durable::NewEvent{.topic = topic, .params = std::move(params), .msg_id = {}, .principal = one.account};
  }
  if (one.error.empty()) {
    context_->loop.write_log(LogLevel::warning, "consumer " + settings_.name + " gives up event " +
                                                    std::to_string(seq) + " of " + one.topic + " after " +
                                                    std::to_string(one.deliveries) + " deliveries");
  }
  leave_member(one);
  wait_no_more(event);
  one.state = PendingEvent::State::buried;
  one.error = std::move(error_json);
  auto then = [this, topics = topics_, alive = std::weak_ptr{alive_}, number = seq,
               dead = progress.dead](const durable::Outcome<durable::Appended>& outcome) {
    if_memory_allows([&] {
      if (!alive.expired()) buried(number, outcome.has_value());
      if (outcome && outcome->seq != 0) topics->kept(dead->topic, dead->params, outcome->seq);
    });
  };
  topics_->store_->progress(std::move(progress), std::move(then));
}

void DurableConsumer::buried(std::uint64_t seq, bool safe) {
  const auto event = pending_.find(seq);
  if (event == pending_.end() || event->second.state != PendingEvent::State::buried) return;
  if (safe || is_shared()) {  // which gives it again
    remove(event);
  } else {
    event->second.state = PendingEvent::State::resting;
    wait_until(event, context_->now() + kBuryPause);
  }
  go_on();
}

}  // namespace wirecall::broker
