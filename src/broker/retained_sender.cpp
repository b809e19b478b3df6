// See retained_sender.hpp.
#include "broker/retained_sender.hpp"

#include "broker/outgoing.hpp"

namespace wirecall::broker {

void RetainedSender::request(Peer& peer, std::string pattern) {
  if (!peer.retained) peer.retained = std::make_unique<RetainedRequests>();
  peer.retained->asked = std::move(pattern);
}

// A pattern whose topics are still being sent is not begun anew. A reader begins itself, once it has asked for all.
void RetainedSender::begin(Peer& peer) {
  RetainedRequests& requests = *peer.retained;
  requests.due.try_emplace(std::exchange(requests.asked, {}));
  if (!requests.queued && peer.retained_reader == nullptr) send_more(peer);
}

void RetainedSender::send_more(Peer& peer) {
  WIRECALL_ASSERT(peer.retained != nullptr && !peer.retained->queued);
  const std::size_t given = budget_.share(kStepsAtOnce);
  std::size_t steps = given;
  const bool waits = walk(peer, steps);
  budget_.spend(given - steps);
  if (waits) {
    queue_.push_back(&peer);
    peer.retained->queued = true;
  } else {
    if (peer.takes_events()) tell_lag(peer);
    if (peer.retained_reader != nullptr && !peer.is_sent_retained()) peer.retained_reader->retained_sent();
  }
  budget_.resume_later(!queue_.empty());
}

// Each in its turn, so that one who has asked for much does not keep the others waiting.
void RetainedSender::send_queued() noexcept {
  if_memory_allows([&] {
    while (!queue_.empty() && !budget_.is_spent()) {
      Peer& peer = *queue_.front();
      queue_.pop_front();
      peer.retained->queued = false;
      send_more(peer);
    }
  });
  budget_.resume_later(!queue_.empty());
}

// Takes what it needs off `steps`. True when it could go on with more of them.
bool RetainedSender::walk(Peer& peer, std::size_t& steps) {
  RetainedRequests& requests = *peer.retained;
  const std::size_t before = steps;
  // A reader keeps its subscriptions: what is left to another pattern comes by that one.
  const bool is_reader = peer.retained_reader != nullptr;
  const std::uint64_t seen = is_reader ? peer.retained_reader->retained_seen() : 0;
  requests.backpressured = false;
  bool out_of_steps = false;
  while (!requests.due.empty() && !out_of_steps) {
    auto& [pattern, next] = *requests.due.begin();
    const Retained::Wanted wanted{.pattern = pattern, .after = seen};
    bool full = false;
    const bool all = retained_->walk(wanted, next, steps, [&](std::string_view topic, std::string_view text) {
      if (is_reader && requests.is_due_again(topic)) return true;
      rpc::MessageSink& sink = peer.sink();
      full = sink.is_overfull() || (sink.waiting_bytes() != 0 && !sink.has_budget_for(text.size()));
      if (!full) send_retained_event(*context_, peer, topic, text);
      return !full;
    });
    requests.backpressured = full;
    if (full) break;
    out_of_steps = !all;
    if (all) requests.due.erase(requests.due.begin());
  }
  steps_ += before - steps;
  if (out_of_steps) return true;
  if (!requests.due.empty()) return false;
  // Live events follow.
  const std::unique_ptr<const RetainedRequests> done = std::move(peer.retained);
  for (const HeldEvent& event : done->held) send_held_event(*context_, peer, event);
  return false;
}

void RetainedSender::forget(Peer& peer) noexcept {
  if (peer.retained && peer.retained->queued) std::erase(queue_, &peer);
  peer.retained.reset();
}

}  // namespace wirecall::broker
