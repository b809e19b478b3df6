// Of a Database: events, and how long they are kept (database.hpp).
#include <algorithm>
#include <sqlite3.h>

#include "base/dotted_name.hpp"
#include "local_store/statements.hpp"

namespace wirecall::local_store {

using durable::Failure;

// The limit that is none of an account: an event beyond it never fits.
constexpr const char* kMaxBytes = "max_bytes";
// What an event holds beside its topic and params.
constexpr std::uint64_t kEventBytes = 64;
// So many rows go in one turn of `expire`, and by one append: a large event in place of many small ones would have all
// other changes wait.
constexpr int kExpiredATurn = 2000;
// So far a topic may be beyond its bytes until these have gone.
constexpr std::uint64_t kBeyondBytesMax = std::uint64_t{64} << 20U;
// The time is kept with each change, and where there is none after so long.
constexpr std::int64_t kTimeKeptMs = 60'000;

Database::Stream& Database::stream_of(const std::string& topic) {
  for (std::size_t i = 0; i != others_; ++i) {
    if (matches(streams_[i].rule.pattern, topic)) return streams_[i];
  }
  return streams_[others_];
}

std::optional<std::uint64_t> Database::seen(const std::string& scope, const std::string& msg_id) {
  if (msg_id.empty()) return std::nullopt;
  Statement& find = statements_->find_seen.with(scope, msg_id);
  std::optional<std::uint64_t> number;
  if (find.step()) number = find.number(0);
  while (number && find.step()) continue;
  return number;
}

void Database::remember(const std::string& scope, const std::string& msg_id, std::uint64_t number,
                        std::int64_t now_ms) {
  if (!msg_id.empty()) statements_->add_seen.run(scope, msg_id, number, now_ms);
}

void Database::touch(Stream& stream) {
  if (stream.changed) return;
  on_rollback([&stream, before = stream] { stream = before; });
  stream.changed = true;
}

std::uint64_t Database::size_of(const durable::NewEvent& event) noexcept {
  return event.topic.size() + event.params.size() + kEventBytes;
}

durable::Appended Database::append(const durable::NewEvent& event, std::int64_t now_ms) {
  const std::string scope = "topic:" + event.topic;  // that of a job begins otherwise
  if (const auto before = seen(scope, event.msg_id)) return {.seq = *before, .duplicate = true};
  Stream& stream = stream_of(event.topic);
  const std::uint64_t size = size_of(event);
  if (!stream.takes(size))
    throw Failed{{.kind = Failure::Kind::full, .why = "the event is larger than its topic may be", .limit = kMaxBytes}};
  if (stream.rule.max_bytes != 0 && stream.bytes > stream.rule.max_bytes + kBeyondBytesMax) {
    trim(stream, kExpiredATurn);
    throw Failed{{.kind = Failure::Kind::full,
                  .why = "older events of the topic are being deleted, which takes a while: try again",
                  .limit = kMaxBytes}};
  }
  require_room_for(event.principal, size);
  const std::uint64_t seq = last_seq_ + 1;
  statements_->add_event.run(seq, stream.id, now_ms, size, event.topic, event.params, event.principal);
  last_seq_ = seq;
  if (!event.principal.empty()) {
    touch_events_of(event.principal);
    Usage& usage = usages_[event.principal];
    ++usage.events;
    usage.event_bytes += size;
  }
  touch(stream);
  stream.last_seq = seq;
  ++stream.count;
  stream.bytes += size;
  trim(stream, kExpiredATurn);
  remember(scope, event.msg_id, seq, now_ms);
  return {.seq = seq};
}

bool Database::remove_oldest(Stream& stream, std::int64_t older_than_ms) {
  Statement& oldest = statements_->oldest_event.with(stream.id);
  if (!oldest.step()) return false;
  const std::int64_t seq = oldest.integer(0);
  const std::int64_t at = oldest.integer(1);
  const std::uint64_t size = oldest.number(2);
  const std::string principal = oldest.text(3);
  while (oldest.step()) continue;
  if (at >= older_than_ms) return false;
  statements_->remove_event.run(seq);
  if (const auto usage = usages_.find(principal); usage != usages_.end()) {
    touch_events_of(principal);
    usage->second.events -= std::min<std::uint64_t>(usage->second.events, 1);
    usage->second.event_bytes -= std::min(usage->second.event_bytes, size);
    if (usage->second.is_none()) usages_.erase(usage);
  }
  touch(stream);
  stream.count -= std::min<std::uint64_t>(stream.count, 1);
  stream.bytes -= std::min(stream.bytes, size);
  return true;
}

// Deletes what is beyond its limits, `left` events at most. Returns how many more it might.
int Database::trim(Stream& stream, int left) {
  constexpr std::int64_t kAny = INT64_MAX;
  const durable::TopicRule& rule = stream.rule;
  const auto is_beyond = [&] {
    return (rule.max_count != 0 && stream.count > rule.max_count) ||
           (rule.max_bytes != 0 && stream.bytes > rule.max_bytes);
  };
  while (left != 0 && is_beyond() && remove_oldest(stream, kAny)) --left;
  return left;
}

bool Database::expire(std::int64_t now_ms) {
  bool all = true;
  begin();
  const int changes = sqlite3_total_changes(database_.get());
  int left = kExpiredATurn;
  for (Stream& stream : streams_) {
    const auto age = static_cast<std::int64_t>(stream.rule.max_age_ms);
    while (age != 0 && left != 0 && remove_oldest(stream, now_ms - age)) --left;
    left = trim(stream, left);
    all = all && left != 0;
  }
  const auto dedup = static_cast<std::int64_t>(options_.dedup_ms);
  all = statements_->expire_seen.run(now_ms - dedup, kExpiredATurn) < kExpiredATurn && all;
  std::vector<std::uint64_t> old;
  Statement& done = statements_->old_done.with(now_ms - static_cast<std::int64_t>(options_.result_ms), kExpiredATurn);
  while (done.step()) old.push_back(done.number(0));
  for (const std::uint64_t id : old) remove_job(id, job_row(id));
  all = all && old.size() < static_cast<std::size_t>(kExpiredATurn);
  // A store that rests writes nothing, but for the time.
  if (sqlite3_total_changes(database_.get()) == changes && now_ms - kept_ms_ < kTimeKeptMs)
    statements_->commit.run();
  else
    commit(now_ms);
  return all;
}

durable::Fetched Database::fetch(const durable::Fetch& fetch) {
  // Of events that are not of the pattern so many are passed over at once: everybody waits for that.
  constexpr std::size_t kScannedMax = 2000;
  durable::Fetched fetched{.events = {}, .scanned = fetch.after};
  Statement& row = statements_->read_events.with(fetch.after);
  std::size_t bytes = 0;
  bool more = false;
  for (std::size_t scanned = 0; (more = row.step()); ++scanned) {
    if (scanned == kScannedMax || fetched.events.size() == fetch.count) break;
    durable::Event event{.seq = row.number(0), .at_ms = row.integer(1), .topic = row.text(2), .params = {}};
    const std::uint64_t seq = event.seq;
    if (matches(fetch.pattern, event.topic)) {
      event.params = row.text(3);
      if (!fetched.events.empty() && bytes + event.params.size() > fetch.bytes) break;
      bytes += event.params.size();
      fetched.events.push_back(std::move(event));
    }
    fetched.scanned = seq;
  }
  row.reset();
  if (!more) fetched.scanned = std::max(fetched.scanned, last_seq_);
  return fetched;
}

std::vector<durable::TopicCounts> Database::list_topics() const {
  std::vector<durable::TopicCounts> counts;
  for (const Stream& stream : streams_) {
    counts.push_back(
        {.pattern = stream.rule.pattern, .count = stream.count, .bytes = stream.bytes, .last_seq = stream.last_seq});
  }
  return counts;
}

}  // namespace wirecall::local_store
