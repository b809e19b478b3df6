// See batch_queue.hpp.
#include "batching/batch_queue.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace wirecall::batching {

/// The calls that may leave together. It lives while there are some.
struct BatchGroup {
  explicit BatchGroup(const std::string& of) noexcept : key(of) {}

  const std::string& key;  // BatchQueue::groups_ has it
  BatchQueue::ByPriority lists;
  std::size_t calls = 0;
  std::size_t rows = 0;
  std::size_t bytes = 0;
  std::size_t ripe = 0;
};

void CallList::push_back(WaitingCall& call) noexcept {
  call.*links_ = {.before = last_, .after = nullptr};
  (last_ != nullptr ? (last_->*links_).after : first_) = &call;
  last_ = &call;
}

void CallList::remove(WaitingCall& call) noexcept {
  const WaitingCall::Links links = call.*links_;
  (links.before != nullptr ? (links.before->*links_).after : first_) = links.after;
  (links.after != nullptr ? (links.after->*links_).before : last_) = links.before;
  call.*links_ = {};
}

BatchQueue::BatchQueue(const Bounds& bounds) noexcept : bounds_(bounds) {}

BatchQueue::~BatchQueue() { WIRECALL_ASSERT(size_ == 0); }

// ---- who waits ----

WaitingCall* BatchQueue::add(WaitingCall& call, const std::string& group, std::chrono::nanoseconds hopeless_before) {
  WaitingCall* leaver = nullptr;
  if (!has_room(call, 0, 0)) {
    leaver = leaver_for(call, hopeless_before);
    if (leaver == nullptr) return &call;
  }
  const auto [entry, is_new] = groups_.try_emplace(group);
  try {
    if (is_new) entry->second = std::make_unique<BatchGroup>(entry->first);
    link(call, *entry->second);
  } catch (...) {
    if (is_new) groups_.erase(entry);
    throw;
  }
  if (leaver != nullptr) remove(*leaver);
  return leaver;
}

bool BatchQueue::has_room(const WaitingCall& call, std::size_t calls_less, std::size_t bytes_less) const noexcept {
  if (size_ == calls_less) return true;  // however long it is
  return size_ - calls_less < bounds_.waiting && bytes_ - bytes_less + call.bytes <= bounds_.waiting_bytes;
}

WaitingCall* BatchQueue::leaver_for(const WaitingCall& call, std::chrono::nanoseconds hopeless_before) noexcept {
  WaitingCall* leaver = earliest_ < hopeless_before ? earliest() : nullptr;
  if (leaver != nullptr && leaver->deadline >= hopeless_before) leaver = nullptr;
  if (leaver == nullptr && size_ != 0 && calls_.rbegin()->first < call.priority)
    leaver = calls_.rbegin()->second.last();
  return leaver != nullptr && has_room(call, 1, leaver->bytes) ? leaver : nullptr;
}

WaitingCall* BatchQueue::earliest() noexcept {
  WaitingCall* found = nullptr;
  for (const auto& [priority, list] : calls_) {
    for (WaitingCall* call = list.first(); call != nullptr; call = list.after(*call)) {
      if (found == nullptr || call->deadline < found->deadline) found = call;
    }
  }
  earliest_ = found != nullptr ? found->deadline : std::chrono::nanoseconds::max();
  return found;
}

void BatchQueue::link(WaitingCall& call, BatchGroup& group) {
  CallList& all = calls_.try_emplace(call.priority, &WaitingCall::in_queue).first->second;
  try {
    group.lists.try_emplace(call.priority, &WaitingCall::in_group).first->second.push_back(call);
  } catch (...) {
    drop_if_empty(calls_, call.priority);
    throw;
  }
  all.push_back(call);
  call.group = &group;
  call.ripe = false;
  const bool was_due = is_due(group);
  ++size_;
  bytes_ += call.bytes;
  ++group.calls;
  group.rows += call.rows;
  group.bytes += call.bytes;
  due_groups_ += std::size_t{is_due(group)} - std::size_t{was_due};
  earliest_ = std::min(earliest_, call.deadline);
}

void BatchQueue::remove(WaitingCall& call) noexcept {
  if (call.group == nullptr) return;
  BatchGroup& group = *call.group;
  const bool was_due = is_due(group);
  calls_.find(call.priority)->second.remove(call);
  drop_if_empty(calls_, call.priority);
  group.lists.find(call.priority)->second.remove(call);
  drop_if_empty(group.lists, call.priority);
  --size_;
  bytes_ -= call.bytes;
  --group.calls;
  group.rows -= call.rows;
  group.bytes -= call.bytes;
  group.ripe -= std::size_t{call.ripe};
  ripe_ -= std::size_t{call.ripe};
  due_groups_ -= std::size_t{was_due} - std::size_t{is_due(group)};
  call.group = nullptr;
  if (group.calls == 0) groups_.erase(groups_.find(group.key));
}

void BatchQueue::drop_if_empty(ByPriority& lists, int priority) noexcept {
  const auto found = lists.find(priority);
  if (found->second.first() == nullptr) lists.erase(found);
}

// ---- who leaves ----

bool BatchQueue::is_full(const BatchGroup& group) const noexcept {
  return group.calls >= bounds_.calls || group.rows >= bounds_.rows || group.bytes >= bounds_.bytes;
}

bool BatchQueue::is_due(const BatchGroup& group) const noexcept { return group.ripe != 0 || is_full(group); }

bool BatchQueue::fills_batch(const WaitingCall& call) const noexcept {
  return call.group != nullptr && is_full(*call.group);
}

void BatchQueue::ripen(WaitingCall& call) noexcept {
  if (call.group == nullptr || call.ripe) return;
  BatchGroup& group = *call.group;
  const bool was_due = is_due(group);
  call.ripe = true;
  ++ripe_;
  ++group.ripe;
  due_groups_ += std::size_t{!was_due};
}

void BatchQueue::ripen_all() noexcept {
  if (ripe_ == size_) return;
  for (const auto& [priority, list] : calls_) {
    for (WaitingCall* call = list.first(); call != nullptr; call = list.after(*call)) ripen(*call);
  }
}

WaitingCall* BatchQueue::first_due() const noexcept {
  if (due_groups_ == 0) return nullptr;
  for (const auto& [priority, list] : calls_) {
    for (WaitingCall* call = list.first(); call != nullptr; call = list.after(*call)) {
      if (is_due(*call->group)) return call;
    }
  }
  return nullptr;
}

void BatchQueue::take(std::vector<WaitingCall*>& batch) {
  batch.clear();
  const WaitingCall* const first = first_due();
  if (first == nullptr) return;
  const BatchGroup* const group = first->group;
  batch.reserve(std::min(group->calls, bounds_.calls));
  std::size_t rows = 0;
  std::size_t bytes = 0;
  const auto fits = [&](const WaitingCall& call) {
    return batch.empty() ||
           (batch.size() < bounds_.calls && rows + call.rows <= bounds_.rows && bytes + call.bytes <= bounds_.bytes);
  };
  bool full = false;
  for (const auto& [priority, list] : group->lists) {
    for (WaitingCall* call = list.first(); call != nullptr && !full; call = list.after(*call)) {
      full = !fits(*call);
      if (full) break;
      batch.push_back(call);
      rows += call->rows;
      bytes += call->bytes;
    }
    if (full) break;
  }
  for (WaitingCall* const call : batch) remove(*call);
}

}  // namespace wirecall::batching
