// See durable_consumer.hpp.
#include "broker/durable_consumer.hpp"

#include "base/reserve_extra.hpp"
#include "broker/durable_answers.hpp"
#include "broker/durable_topics.hpp"
#include "broker/outgoing.hpp"
#include "message/call_text.hpp"

namespace wirecall::broker {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Of events that are read and not acknowledged; one more is read all the same.
constexpr std::size_t kPendingBytesMax = std::size_t{4} << 20U;
constexpr std::size_t kPendingBytesMin = std::size_t{64} << 10U;
// What an event takes beside its topic and params.
constexpr std::size_t kEventBytes = 256;
constexpr std::size_t kFetchedBytes = std::size_t{1} << 20U;
// Events acknowledged behind one that is not, beyond which none is read: the store has a row of each.
constexpr std::size_t kAcknowledgedMax = 10'000;
// After so many events that are none of its pattern, or acknowledged, how far it has come is kept.
constexpr std::uint64_t kPassedMax = 10'000;
// Before a shared store is asked again that did not answer.
constexpr milliseconds kFetchPause{500};

DurableConsumer::DurableConsumer(DurableTopics& topics, const durable::ConsumerState& state)
    : topics_(&topics),
      context_(topics.context_),
      principal_(state.settings.principal),
      settings_(state.settings),
      scanned_(state.floor),
      kept_floor_(state.floor) {
  for (const durable::Tried& one : state.tried) tried_.emplace(one.seq, one);
}

DurableConsumer::~DurableConsumer() {
  context_->loop.stop(*this);
  for (auto& [seq, event] : pending_) topics_->reads_.release(*event.share, bytes_of(event));
  topics_->reads_.forget(*this);
  if (!members_.empty()) topics_->deactivate(*this);
}

std::uint64_t DurableConsumer::scanned() const noexcept { return follows_ ? topics_->last_seq_ : scanned_; }

std::uint64_t DurableConsumer::floor() const noexcept {
  return pending_.empty() ? scanned() : pending_.begin()->first - 1;
}

void DurableConsumer::stop_following() noexcept {
  if (std::exchange(follows_, false)) scanned_ = topics_->last_seq_;
}

// A shared store knows what is to be tried again, by whichever node: here is only what is at work.
bool DurableConsumer::is_shared() const noexcept { return topics_->store_->is_shared(); }

// ---- who has joined ----

DurableConsumer::Joined* DurableConsumer::member_of(const Peer& peer) noexcept {
  const auto found = std::ranges::find(members_, &peer, &Joined::peer);
  return found == members_.end() ? nullptr : &*found;
}

void DurableConsumer::join(Peer& peer) {
  if (Joined* const known = member_of(peer)) {
    known->parted = false;
  } else {
    std::string account = account_of(peer);
    reserve_extra(members_, 1);
    if (members_.empty()) topics_->activate(*this);
    members_.push_back({.peer = &peer, .account = std::move(account)});
    ++peer.consumers;
  }
  pump();
}

bool DurableConsumer::part(Peer& peer) noexcept {
  Joined* const member = member_of(peer);
  if (member == nullptr || member->parted) return false;
  member->parted = true;
  if (member->in_flight == 0) lose(peer);
  return true;
}

void DurableConsumer::lose(Peer& peer) noexcept {
  Joined* const member = member_of(peer);
  if (member == nullptr) return;
  member->parted = true;
  ++member->in_flight;  // it is removed below
  if_memory_allows([&] {
    for (auto at = pending_.begin(); at != pending_.end();) {
      const auto event = at++;
      if (event->second.peer == &peer) fail(event, kLost, nanoseconds{0});
    }
  });
  for (auto& [seq, event] : pending_) {  // those for which there was no memory
    if (event.peer == &peer) leave_member(event);
  }
  remove_member(*member_of(peer));
  std::erase(topics_->unblocked_, &peer);  // which is sent nothing more of this one
  if_memory_allows([&] { go_on(); });
}

void DurableConsumer::remove_member(Joined& member) noexcept {
  --member.peer->consumers;
  if (member.in_line) topics_->leave_line(*member.peer, *this);
  members_.erase(members_.begin() + (&member - members_.data()));
  if (!members_.empty()) return;
  stop_following();
  topics_->deactivate(*this);
}

// After members or events have gone.
void DurableConsumer::go_on() {
  topics_->unload_if_alone(*this);
  pump();
  topics_->pump_unblocked();
}

void DurableConsumer::keep_floor() {
  if (floor() <= kept_floor_ || topics_->store_->waiting() > DurableTopics::kWaitingMax) return;
  kept_floor_ = floor();
  topics_->store_->progress({.consumer = settings_.name, .floor = kept_floor_}, {});
}

void DurableConsumer::keep_floor_if_far() {
  if (floor() - kept_floor_ >= kPassedMax) keep_floor();
}

void DurableConsumer::unload() noexcept {
  // Others get at once what this one still holds; what a shared store is still asked for comes to this one.
  if (is_shared()) {
    if_memory_allows([&] {
      for (const auto& [seq, event] : pending_) {
        if (event.state != PendingEvent::State::buried) give_back(seq, event.deliveries, nanoseconds{0});
      }
    });
  }
  scanned_ = floor();
  for (auto& [seq, event] : pending_) topics_->reads_.release(*event.share, bytes_of(event));
  topics_->reads_.forget(*this);
  pending_bytes_ = 0;
  pending_.clear();
  ready_.clear();
  due_.clear();
  tried_.clear();
  acknowledged_.clear();
  context_->loop.stop(*this);
  wakes_at_ = kNoDeadline;
  unloaded_ = !is_shared();
}

bool DurableConsumer::is_free(Peer& peer) { return !peer.is_congested() && peer.consumed_bytes < kPeerBytesMax; }

bool DurableConsumer::is_free(const Joined& member) { return !member.parted && is_free(*member.peer); }

// The next one in turn that has the fewest at work; null where none may be sent anything.
DurableConsumer::Joined* DurableConsumer::free_member() {
  Joined* best = nullptr;
  for (std::size_t i = 0; i != members_.size(); ++i) {
    Joined& one = members_[(next_ + i) % members_.size()];
    if (!is_free(one)) continue;
    if (best == nullptr || one.in_flight < best->in_flight) best = &one;
  }
  if (best != nullptr) next_ = static_cast<std::size_t>(best - members_.data()) + 1;
  return best;
}

// One that may be sent what is read now, and on whose account there is room for it.
const DurableConsumer::Joined* DurableConsumer::reader() const {
  const auto found = std::ranges::find_if(
      members_, [this](const Joined& one) { return is_free(one) && topics_->reads_.may_hold(one.account); });
  return found == members_.end() ? nullptr : &*found;
}

// None may be sent anything: it goes on once one may.
void DurableConsumer::wait_for_members() {
  for (Joined& one : members_) {
    if (one.parted || one.in_line) continue;
    topics_->lines_[one.peer].push_back(this);
    one.in_line = true;
  }
}

void DurableConsumer::unblocked(const Peer& peer) {
  if (Joined* const member = member_of(peer)) member->in_line = false;
  pump();
}

// ---- what is read ----

// All consumers share what may be in memory.
bool DurableConsumer::has_room() const noexcept {
  const std::size_t share =
      std::clamp(ConsumerReads::kHeldBytesMax / topics_->active_.size(), kPendingBytesMin, kPendingBytesMax);
  return pending_.size() < settings_.max_in_flight && pending_bytes_ < share && acknowledged_.size() < kAcknowledgedMax;
}

std::size_t DurableConsumer::bytes_of(const PendingEvent& event) noexcept {
  return event.topic.size() + event.params.size() + kEventBytes;
}

void DurableConsumer::take(std::string topic, std::string params, std::uint64_t seq, const std::string& account) {
  if (pending_.contains(seq)) return;  // there was no memory for those behind it
  PendingEvent event{.topic = std::move(topic), .params = std::move(params)};
  if (const auto before = tried_.find(seq); before != tried_.end()) {
    const durable::Tried tried = before->second;
    tried_.erase(before);
    if (tried.acknowledged) {
      acknowledged_.insert(seq);
      return;
    }
    event.deliveries = tried.deliveries;
  }
  const std::size_t bytes = bytes_of(event);
  const auto at = pending_.emplace(seq, std::move(event)).first;
  try {
    ready_.insert(seq);
    topics_->reads_.hold(at->second.share, account, bytes);
  } catch (...) {
    ready_.erase(seq);
    pending_.erase(at);
    throw;
  }
  pending_bytes_ += bytes;
}

void DurableConsumer::take_given(const durable::Event& event, const std::string& account) {
  auto taken = pending_.find(event.seq);
  if (taken != pending_.end() && taken->second.state != PendingEvent::State::ready) return;  // it has come once more
  if (members_.empty() || topics_->draining_) return give_back(event.seq, event.deliveries, nanoseconds{0});
  if (taken == pending_.end()) {
    take(event.topic, event.params, event.seq, account);
    taken = pending_.find(event.seq);
  }
  taken->second.deliveries = event.deliveries - std::min(event.deliveries, 1U);
  taken->second.due = context_->now() + milliseconds{settings_.ack_wait_ms};
  // Whoever has had it last has not said anything of it.
  if (settings_.max_deliver != 0 && event.deliveries > settings_.max_deliver) bury(taken, std::string{kLost});
}

void DurableConsumer::give_back(std::uint64_t seq, std::uint32_t deliveries, nanoseconds pause) {
  topics_->store_->progress(
      {.consumer = settings_.name,
       .floor = 0,
       .tried = durable::Tried{.seq = seq, .deliveries = deliveries},
       .pause_ms = static_cast<std::uint64_t>(std::chrono::duration_cast<milliseconds>(pause).count())},
      {});
}

// Who has read all that there is takes it as it comes, and reads nothing from the disk.
void DurableConsumer::offer(const std::string& topic, const std::string& params, std::uint64_t seq) {
  if (std::exchange(follows_, false)) {
    scanned_ = seq - 1;
    const Joined* const member = has_room() ? reader() : nullptr;
    if (member != nullptr) {
      take(topic, params, seq, member->account);
      follows_ = true;
    }
  }
  pump();
}

// Not for each event that is acknowledged, but for half of them.
void DurableConsumer::fetch() {
  const bool shared = is_shared();
  if (fetching_ || follows_ || topics_->draining_ || members_.empty()) return;
  if (!shared && scanned_ >= topics_->last_seq_) {
    follows_ = scanned_ == topics_->last_seq_;
    return;
  }
  if (!has_room() || pending_.size() > settings_.max_in_flight / 2) return;
  if (std::ranges::none_of(members_, [](const Joined& one) { return is_free(one); })) return wait_for_members();
  const Joined* const member = reader();
  if (member == nullptr || !topics_->reads_.may_begin()) {
    for (const Joined& one : members_) {
      if (is_free(one)) topics_->reads_.wait(*this, one.account);
    }
    return;
  }
  topics_->reads_.begin();
  fetching_ = true;
  topics_->store_->fetch({.pattern = settings_.pattern,
                          .after = scanned_,
                          .count = settings_.max_in_flight - pending_.size(),
                          .bytes = kFetchedBytes,
                          .consumer = shared ? settings_.name : std::string{}},
                         [this, topics = topics_, alive = std::weak_ptr{alive_},
                          account = member->account](const durable::Outcome<durable::Fetched>& outcome) {
                           if_memory_allows([&] {
                             if (!alive.expired()) fetched(outcome, account);
                           });
                           topics->reads_.end();
                           if_memory_allows([&] { topics->reads_.let(); });
                         });
}

void DurableConsumer::fetched(const durable::Outcome<durable::Fetched>& outcome, const std::string& account) {
  fetching_ = false;
  if (unloaded_) return;
  if (!outcome) return wake_at(context_->now() + (is_shared() ? kFetchPause : kFirstEventPause));  // and tries again
  for (const durable::Event& event : outcome->events) {
    if (is_shared())
      take_given(event, account);
    else
      take(event.topic, event.params, event.seq, account);
  }
  scanned_ = std::max(scanned_, outcome->scanned);
  forget_acknowledged();
  keep_floor_if_far();
  pump();
}

// ---- sending ----

void DurableConsumer::pump() {
  if (topics_->draining_) return;
  while (!ready_.empty()) {
    const auto first = pending_.find(*ready_.begin());
    if (is_shared() && first->second.due < context_->now()) {
      remove(first);  // the store gives it again
      continue;
    }
    Joined* const member = free_member();
    if (member == nullptr) {
      wait_for_members();
      break;
    }
    send(first, *member);
  }
  fetch();
  topics_->reads_.let();
}

void DurableConsumer::send(Pending::iterator event, Joined& member) {
  auto& [seq, sent] = *event;
  topics_->reads_.move(sent.share, member.account, bytes_of(sent));
  const std::string id = settings_.name + ':' + std::to_string(seq) + ':' + std::to_string(sent.deliveries + 1);
  append_message(member.peer->sink(), [&](Buffer& out) {
    message::begin_call(out, to_json(sent.topic), sent.params);
    out.append(R"(,"id":")");
    out.append(id);
    out.append("\"}");
  });
  ready_.erase(seq);
  ++sent.deliveries;
  sent.state = PendingEvent::State::sent;
  sent.peer = member.peer;
  ++member.in_flight;
  member.peer->consumed_bytes += bytes_of(sent);
  ++context_->loop.stats.events_delivered;
  wait_until(event, context_->now() + milliseconds{settings_.ack_wait_ms});
}

void DurableConsumer::wait_until(Pending::iterator event, nanoseconds due) {
  event->second.due = due;
  due_.emplace(due, event->first);
  wake_at(due);
}

void DurableConsumer::wait_no_more(Pending::iterator event) noexcept { due_.erase({event->second.due, event->first}); }

void DurableConsumer::wake_at(nanoseconds time) {
  if (time >= wakes_at_ || context_->loop.scheduler == nullptr) return;
  context_->loop.stop(*this);
  context_->loop.scheduler->start(*this, std::max(time - context_->now(), nanoseconds{0}));
  wakes_at_ = time;
}

}  // namespace wirecall::broker
