// See retained_replica.hpp.
#include "cluster/retained_replica.hpp"

#include "base/dotted_name.hpp"
#include "cluster/hexadecimal.hpp"
#include "cluster/subjects.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::cluster {

using std::chrono::nanoseconds;

namespace {

constexpr std::size_t kHeadBytesMax = 4096;

std::uint64_t mixed(std::uint64_t value) noexcept {
  value ^= value >> 31;
  value *= 0x9E3779B97F4A7C15;
  return value ^ value >> 29;
}

// The same on each machine.
std::uint64_t hash_of(std::string_view topic, const RetainedVersion& version) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
    hash = mixed(hash);
  };
  add(topic);
  add(version.node);
  return mixed(mixed(hash ^ version.counter) ^ version.epoch);
}

}  // namespace

// ---- what is there ----

void RetainedReplica::set(std::string_view topic, RetainedVersion version, bool gone, nanoseconds now) {
  auto found = topics_.find(topic);
  const bool known = found != topics_.end();
  if (!known) found = topics_.emplace(std::string{topic}, Entry{}).first;
  try {
    // What needs memory comes first.
    if (gone) gone_.push_back({.topic = found->first, .counter = version.counter, .at = now});
    std::set<const Topics::value_type*, Earlier> made;
    if (!gone) made.insert(&*found);
    Entry& entry = found->second;
    if (!entry.gone) {
      live_.erase(&*found);
      digest_ ^= hash_of(topic, entry.version);
    }
    entry.version = std::move(version);
    entry.gone = gone;
    if (!gone) {
      live_.insert(made.extract(made.begin()));
      digest_ ^= hash_of(topic, entry.version);
    }
  } catch (...) {
    if (!known) topics_.erase(found);
    throw;
  }
  changed_at_ = now;
  while (gone_.size() > kGoneMax) remove_oldest();
}

// Of what is gone.
void RetainedReplica::remove_oldest() noexcept {
  const auto found = topics_.find(gone_.front().topic);
  if (found != topics_.end() && found->second.gone && found->second.version.counter == gone_.front().counter)
    topics_.erase(found);
  gone_.pop_front();
}

void RetainedReplica::expire(nanoseconds now) noexcept {
  while (!gone_.empty() && now - gone_.front().at > kGoneKept) remove_oldest();
}

void RetainedReplica::wrote(std::string_view topic, bool gone, nanoseconds now) {
  const auto found = topics_.find(topic);
  if (gone && (found == topics_.end() || found->second.gone)) return;
  set(topic, {.counter = ++counter_, .node = settings_.own, .epoch = settings_.epoch}, gone, now);
}

RetainedReplica::Taken RetainedReplica::take(const RetainedHead& head, std::string_view event, nanoseconds now) {
  const std::optional<std::uint64_t> epoch = read_hexadecimal(head.epoch);
  if (!head.topic || !is_name(*head.topic) || !is_word(head.node) || !epoch || head.counter == 0 ||
      head.counter > kCounterMax || head.gone != event.empty())
    return Taken::malformed;
  const std::string_view topic = *head.topic;
  RetainedVersion version{.counter = head.counter, .node = head.node, .epoch = *epoch};
  counter_ = std::max(counter_, version.counter);
  const auto found = topics_.find(topic);
  if (found != topics_.end()) {
    const RetainedVersion& own = found->second.version;
    const bool is_former = version.node == settings_.own && version.epoch != settings_.epoch;
    if (is_former && own.node == settings_.own && own.epoch == settings_.epoch) {
      if (version < own) return Taken::known;
      set(topic, {.counter = ++counter_, .node = settings_.own, .epoch = settings_.epoch}, found->second.gone, now);
      return Taken::outdone;
    }
    if (version <= own) return Taken::known;
  }
  broker::EventBus& events = router_->events();
  if (head.gone) {
    set(topic, std::move(version), true, now);
    events.drop_elsewhere(topic);
    return Taken::newer;
  }
  events.keep_elsewhere(topic, event, {.owner = head.owner, .client = head.client});
  set(topic, std::move(version), false, now);
  // The oldest give way, which every node finds by itself.
  while (events.retained().bytes() > settings_.bytes_max && !live_.empty()) {
    const auto oldest = topics_.find((*live_.begin())->first);
    events.drop_elsewhere(oldest->first);
    digest_ ^= hash_of(oldest->first, oldest->second.version);
    live_.erase(live_.begin());
    topics_.erase(oldest);
  }
  return Taken::newer;
}

const std::string* RetainedReplica::next(std::string_view after) const noexcept {
  const auto found = topics_.upper_bound(after);
  return found == topics_.end() ? nullptr : &found->first;
}

// ---- its text ----

void RetainedReplica::write(std::string_view topic, bool told, Buffer& out) const {
  const auto found = topics_.find(topic);
  if (found == topics_.end()) return;
  const Entry& entry = found->second;
  RetainedHead head{.topic = found->first,
                    .counter = entry.version.counter,
                    .node = entry.version.node,
                    .epoch = hexadecimal(entry.version.epoch),
                    .owner = {},
                    .client = {},
                    .gone = true,
                    .told = told,
                    .ask = false,
                    .digest = std::nullopt};
  const auto event = router_->events().retained().find_event(topic);
  if (!entry.gone && event) {
    head.gone = false;
    head.owner = event->by.owner;
    head.client = event->by.client;
  }
  out.append(to_json(head));
  if (!entry.gone && event) {
    out.push_back('\n');
    out.append(event->message);
  }
}

std::optional<RetainedText> read_retained(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  if (end > kHeadBytesMax) return std::nullopt;
  auto head = from_json<RetainedHead>(text.substr(0, end));
  if (!head) return std::nullopt;
  return RetainedText{.head = std::move(*head), .event = text.substr(std::min(end + 1, text.size()))};
}

std::string ask_for_retained() {
  RetainedHead head;
  head.ask = true;
  return to_json(head);
}

std::string tell_digest(std::uint64_t digest) {
  RetainedHead head;
  head.digest = hexadecimal(digest);
  return to_json(head);
}

}  // namespace wirecall::cluster
