// See database.hpp.
#include "local_store/database.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sqlite3.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/dotted_name.hpp"

namespace wirecall::local_store {

using durable::Failure;
using durable::Job;

constexpr std::string_view kFileName = "wirecall.db";
constexpr std::int64_t kApplication = 0x77636462;  // "wcdb": which files are ours
// Of the tables: those of `make_tables` are version 1, and whoever changes them gives them another number.
constexpr std::int64_t kVersion = 1;
// The limit that is none of an account: an event beyond it never fits.
constexpr const char* kMaxBytes = "max_bytes";
// What an event holds beside its topic and params.
constexpr std::uint64_t kEventBytes = 64;
constexpr std::string_view kToWrite = "; this user has to be able to write to the folder and its files";
// A larger file is not read as a whole at start.
constexpr std::uintmax_t kCheckedBytes = std::uintmax_t{256} << 20;
// So many rows go in one turn of `expire`, and by one append: a large event in place of many small ones would have all
// other changes wait.
constexpr int kExpiredATurn = 2000;
// So far a topic may be beyond its bytes until these have gone.
constexpr std::uint64_t kBeyondBytesMax = std::uint64_t{64} << 20U;
// Methods that have jobs, or results, at most.
constexpr std::size_t kQueuesMax = 16'384;
// Of these, those in which one principal has jobs or results.
constexpr std::size_t kPrincipalQueuesMax = 4096;
// Consumers that one principal has made, at most.
constexpr std::uint64_t kPrincipalConsumersMax = 1024;
// The time is kept with each change, and where there is none after so long.
constexpr std::int64_t kTimeKeptMs = 60'000;

struct Database::Statements {
  explicit Statements(sqlite3* database) : database(database) {}

  sqlite3* const database;
  Statement begin{database, "BEGIN IMMEDIATE"};
  Statement commit{database, "COMMIT"};
  Statement rollback{database, "ROLLBACK"};
  Statement save_time{database, "UPDATE clock SET ms=?1"};
  Statement save_stream{database, "UPDATE stream SET count=?2, bytes=?3, last_seq=?4 WHERE id=?1"};

  Statement save_usage{database, "INSERT OR REPLACE INTO usage(principal,events,bytes) VALUES(?1,?2,?3)"};
  Statement remove_usage{database, "DELETE FROM usage WHERE principal=?1"};

  Statement add_event{database,
                      "INSERT INTO event(seq,stream,at,size,topic,params,principal) VALUES(?1,?2,?3,?4,?5,?6,?7)"};
  Statement read_events{database, "SELECT seq,at,topic,params FROM event WHERE seq>?1 ORDER BY seq"};
  Statement oldest_event{database, "SELECT seq,at,size,principal FROM event WHERE stream=?1 ORDER BY seq LIMIT 1"};
  Statement remove_event{database, "DELETE FROM event WHERE seq=?1"};
  Statement find_seen{database, "SELECT number FROM seen WHERE scope=?1 AND msg_id=?2"};
  Statement add_seen{database, "INSERT OR REPLACE INTO seen(scope,msg_id,number,at) VALUES(?1,?2,?3,?4)"};
  Statement expire_seen{
      database,
      "DELETE FROM seen WHERE (scope,msg_id) IN (SELECT scope,msg_id FROM seen WHERE at<?1 ORDER BY at LIMIT ?2)"};

  Statement find_consumer{database,
                          "SELECT pattern,floor,ack_wait,max_deliver,max_in_flight,principal FROM consumer "
                          "WHERE name=?1"};
  Statement count_consumers{database, "SELECT count(*) FROM consumer WHERE principal=?1"};
  Statement list_consumers{database,
                           "SELECT name,pattern,floor,ack_wait,max_deliver,max_in_flight,principal FROM consumer "
                           "ORDER BY name"};
  Statement save_consumer{database,
                          "INSERT OR REPLACE INTO consumer(name,pattern,floor,ack_wait,max_deliver,max_in_flight,"
                          "principal) VALUES(?1,?2,?3,?4,?5,?6,?7)"};
  Statement move_floor{database, "UPDATE consumer SET floor=max(floor,?2) WHERE name=?1"};
  Statement remove_consumer{database, "DELETE FROM consumer WHERE name=?1"};
  Statement read_tried{database, "SELECT seq,deliveries,acknowledged FROM tried WHERE consumer=?1 ORDER BY seq"};
  Statement save_tried{database,
                       "INSERT OR REPLACE INTO tried(consumer,seq,deliveries,acknowledged) VALUES(?1,?2,?3,?4)"};
  Statement forget_tried{database, "DELETE FROM tried WHERE consumer=?1 AND seq<=?2"};

  Statement add_job{database,
                    "INSERT INTO job(method,state,due,at,principal,deliveries,max_deliver,params,result,timeout) "
                    "VALUES(?1,0,?2,?3,?4,0,?5,?6,x'',?7)"};
  Statement due_jobs{database,
                     "SELECT id,method,params,state,deliveries,max_deliver,at,result,timeout,principal FROM job "
                     "WHERE method=?1 AND state=0 AND due<=?2 ORDER BY due,id LIMIT ?3"};
  Statement next_due{database, "SELECT due FROM job WHERE method=?1 AND state=0 ORDER BY due LIMIT 1"};
  Statement start_job{database, "UPDATE job SET state=1, deliveries=deliveries+1 WHERE id=?1"};
  Statement end_job{database, "UPDATE job SET state=?2, due=?3, deliveries=deliveries-?4, result=?5 WHERE id=?1"};
  Statement read_job{database,
                     "SELECT id,method,x'',state,deliveries,max_deliver,at,result,timeout,principal FROM job "
                     "WHERE id=?1"};
  Statement size_job{database, "SELECT method,principal,state,length(params),length(result) FROM job WHERE id=?1"};
  Statement peek_jobs{database,
                      "SELECT id,method,params,state,deliveries,max_deliver,at,result,timeout,principal FROM job "
                      "WHERE method=?1 AND state=?2 AND id>?3 ORDER BY id LIMIT ?4"};
  Statement peek_own_jobs{database,
                          "SELECT id,method,params,state,deliveries,max_deliver,at,result,timeout,principal FROM job "
                          "WHERE method=?1 AND state=?2 AND id>?3 AND principal=?5 ORDER BY id LIMIT ?4"};
  Statement renew_job{database, "UPDATE job SET state=0, due=?2, deliveries=0 WHERE id=?1"};
  Statement remove_job{database, "DELETE FROM job WHERE id=?1"};
  Statement oldest_done{database, "SELECT id FROM job WHERE method=?1 AND state=2 ORDER BY due,id LIMIT 1"};
  Statement old_done{database, "SELECT id FROM job WHERE state=2 AND due<?1 ORDER BY due LIMIT ?2"};
};

static std::runtime_error cannot_open(const std::string& path, const std::string& why) {
  return std::runtime_error{"cannot open the durable store " + path + ": " + why};
}

static void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

// Its name, and those of the folders above it that are made with it, outlive a loss of power. What is kept there is
// nobody's but its owner's.
static std::error_code make_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::absolute(path, error).lexically_normal();
  fs::path parent = folder;
  while (parent.has_relative_path() && !fs::exists(parent, error)) parent = parent.parent_path();
  if (!fs::create_directories(folder, error) || error) return error;
  fs::permissions(folder, fs::perms::owner_all, error);
  fs::path above;
  for (const fs::path& name : folder) {
    if (above.native().size() >= parent.native().size()) sync_folder(above);
    above /= name;
  }
  return error;
}

// Likewise: SQLite gives the log beside it the same permissions. One that is there is not touched: closing it again
// would end what this process has locked.
static void make_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor >= 0) ::close(descriptor);
}

void Database::Close::operator()(sqlite3* database) const noexcept { sqlite3_close(database); }

// ---- opening ----

Database::Database(LocalStoreOptions options, std::int64_t now_ms, Opening opening) : options_(std::move(options)) {
  const std::error_code error = make_folder(options_.folder);
  std::error_code ignored;
  if (error || !std::filesystem::is_directory(options_.folder, ignored)) {
    throw cannot_open(options_.folder, "there is no such folder, and it cannot be made" +
                                           (error ? " (" + error.message() + ")" : std::string{}) +
                                           "; name a folder that this user may write to");
  }
  if (::access(options_.folder.c_str(), W_OK) != 0)
    throw cannot_open(options_.folder, std::string{std::strerror(errno)}.append(kToWrite));
  const std::string path = (std::filesystem::path{options_.folder} / kFileName).string();
  try {
    open(path, opening == Opening::first);
    load();
  } catch (const Failed& failed) {
    const int code = sqlite3_errcode(database_.get()) & 0xFF;
    std::string why = failed.failure.why;
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
      why = "another process has it open; stop that, or name another folder";
    if (code == SQLITE_NOTADB) why = "the file is no store of wirecall; name another folder";
    if (code == SQLITE_CORRUPT) why += "; restore a copy of the folder, or name another one";
    if (code == SQLITE_ERROR) why += "; its tables are not those of this version: name another folder";
    if (code == SQLITE_READONLY || code == SQLITE_CANTOPEN || code == SQLITE_PERM) why += kToWrite;
    if (code == SQLITE_FULL) why += "; make room on the disk";
    throw cannot_open(path, why);
  }
  last_ms_ = std::max(last_ms_, now_ms);
}

Database::~Database() = default;

void Database::execute(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    throw Failed{{.kind = Failure::Kind::broken, .why = sqlite3_errmsg(database_.get())}};
}

void Database::open(const std::string& path, bool is_to_be_checked) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  bool is_new = error || size == 0;
  if (is_new) make_file(path);
  sqlite3* made = nullptr;
  const int result =
      sqlite3_open_v2(path.c_str(), &made, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(made);
  if (result != SQLITE_OK)
    throw Failed{{.kind = Failure::Kind::broken, .why = made != nullptr ? sqlite3_errmsg(made) : "no memory"}};
  sqlite3_extended_result_codes(made, 1);
  // No other process reads beside this one: so there is no shared memory, and a second one is refused.
  execute("PRAGMA locking_mode=EXCLUSIVE");
  is_new = is_new || !check_file(path);
  execute("PRAGMA journal_mode=WAL");
  execute("PRAGMA synchronous=FULL");
  execute("PRAGMA journal_size_limit=67108864");
  if (is_new) make_tables();
  if (options_.fsync == Fsync::everysec) execute("PRAGMA synchronous=NORMAL");
  if (!is_new && is_to_be_checked && size <= kCheckedBytes) {
    Statement check{made, "PRAGMA quick_check(1)"};
    if (!check.step() || check.text(0) != "ok")
      throw cannot_open(
          path, "the file is damaged (" + check.text(0) + "); restore a copy of the folder, or name another one");
  }
  if (is_to_be_checked) make_indexes();
  statements_ = std::make_unique<Statements>(made);
}

// A file that is a database, but not ours, is left as it is. False where it has nothing in it: whoever was making it
// has been killed.
bool Database::check_file(const std::string& path) {
  Statement application{database_.get(), "PRAGMA application_id"};
  if (!application.step() || application.integer(0) != kApplication) {
    Statement tables{database_.get(), "SELECT count(*) FROM sqlite_schema"};
    if (application.integer(0) == 0 && tables.step() && tables.integer(0) == 0) return false;
    throw cannot_open(path, "the file is no store of wirecall; name another folder");
  }
  Statement version{database_.get(), "PRAGMA user_version"};
  if (!version.step() || version.integer(0) != kVersion)
    throw cannot_open(path, "the file is of another version of wirecall (" + std::to_string(version.integer(0)) +
                                ", this one reads " + std::to_string(kVersion) + "); use that version");
  return true;
}

void Database::make_tables() {
  execute("BEGIN IMMEDIATE");
  execute(
      "CREATE TABLE clock(ms INTEGER NOT NULL);"
      "INSERT INTO clock VALUES(0);"
      "CREATE TABLE stream(id INTEGER PRIMARY KEY, pattern BLOB NOT NULL UNIQUE, count INTEGER NOT NULL,"
      " bytes INTEGER NOT NULL, last_seq INTEGER NOT NULL);"
      "CREATE TABLE event(seq INTEGER PRIMARY KEY, stream INTEGER NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL,"
      " topic BLOB NOT NULL, params BLOB NOT NULL, principal BLOB NOT NULL);"
      "CREATE TABLE usage(principal BLOB NOT NULL PRIMARY KEY, events INTEGER NOT NULL, bytes INTEGER NOT NULL)"
      " WITHOUT ROWID;"
      "CREATE INDEX event_of_stream ON event(stream);"
      "CREATE TABLE seen(scope BLOB NOT NULL, msg_id BLOB NOT NULL, number INTEGER NOT NULL, at INTEGER NOT NULL,"
      " PRIMARY KEY(scope,msg_id)) WITHOUT ROWID;"
      "CREATE INDEX seen_at ON seen(at);"
      "CREATE TABLE consumer(name BLOB NOT NULL PRIMARY KEY, pattern BLOB NOT NULL, floor INTEGER NOT NULL,"
      " ack_wait INTEGER NOT NULL, max_deliver INTEGER NOT NULL, max_in_flight INTEGER NOT NULL,"
      " principal BLOB NOT NULL) WITHOUT ROWID;"
      "CREATE TABLE tried(consumer BLOB NOT NULL, seq INTEGER NOT NULL, deliveries INTEGER NOT NULL,"
      " acknowledged INTEGER NOT NULL, PRIMARY KEY(consumer,seq)) WITHOUT ROWID;"
      "CREATE TABLE job(id INTEGER PRIMARY KEY AUTOINCREMENT, method BLOB NOT NULL, state INTEGER NOT NULL,"
      " due INTEGER NOT NULL, at INTEGER NOT NULL, principal BLOB NOT NULL, deliveries INTEGER NOT NULL,"
      " max_deliver INTEGER NOT NULL, params BLOB NOT NULL, result BLOB NOT NULL, timeout INTEGER NOT NULL);"
      "CREATE INDEX job_due ON job(method,state,due);"
      "CREATE INDEX job_done ON job(due) WHERE state=2;");
  make_indexes();
  execute(("PRAGMA application_id=" + std::to_string(kApplication)).c_str());
  execute(("PRAGMA user_version=" + std::to_string(kVersion)).c_str());
  execute("COMMIT");
  execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

// Without these it does the same, only slower: a file of an earlier build gets them too.
void Database::make_indexes() {
  execute("CREATE INDEX IF NOT EXISTS job_running ON job(id) WHERE state=1");
  execute("CREATE INDEX IF NOT EXISTS job_peeked ON job(method,state,id)");
  execute("CREATE INDEX IF NOT EXISTS job_own ON job(method,state,principal,id)");
}

// One that nobody has written is that of a job which nobody runs.
static Job::State state_of(std::int64_t number) noexcept {
  return number >= 0 && number <= static_cast<int>(Job::State::dead) ? static_cast<Job::State>(number)
                                                                     : Job::State::dead;
}

// What is kept in memory, from what is in the tables.
void Database::load() {
  sqlite3* const database = database_.get();
  streams_.clear();
  for (const durable::TopicRule& rule : options_.rules) {
    // One that comes twice decides nothing the second time.
    const auto pattern = [](const Stream& one) { return one.rule.pattern; };
    if (std::ranges::find(streams_, rule.pattern, pattern) == streams_.end()) streams_.push_back({.rule = rule});
  }
  others_ = streams_.size();
  streams_.push_back({.rule = default_rule()});
  std::uint64_t last = 0;
  Statement known{database, "SELECT id,pattern,count,bytes,last_seq FROM stream"};
  while (known.step()) {
    const std::string pattern = known.text(1);
    auto found = std::ranges::find(streams_, pattern, [](const Stream& one) { return one.rule.pattern; });
    if (found == streams_.end()) {  // of a rule that there is no more
      streams_.push_back({.rule = default_rule()});
      streams_.back().rule.pattern = pattern;
      found = streams_.end() - 1;
    }
    found->id = known.integer(0);
    found->count = known.number(2);
    found->bytes = known.number(3);
    found->last_seq = known.number(4);
    last = std::max(last, found->last_seq);
  }
  Statement add{database, "INSERT INTO stream(pattern,count,bytes,last_seq) VALUES(?1,0,0,0)"};
  for (Stream& stream : streams_) {
    if (stream.id != 0) continue;
    add.run(stream.rule.pattern);
    stream.id = sqlite3_last_insert_rowid(database);
  }
  last_seq_ = last;
  Statement clock{database, "SELECT ms FROM clock"};
  if (clock.step()) last_ms_ = std::max(last_ms_, clock.integer(0));
  queues_.clear();
  done_bytes_.clear();
  usages_.clear();
  changed_usages_.clear();
  Statement usage{database, "SELECT principal,events,bytes FROM usage"};
  while (usage.step()) usages_[usage.text(0)] = {.events = usage.number(1), .event_bytes = usage.number(2)};
  Statement jobs{database,
                 "SELECT method,principal,state,count(*),sum(length(params)),sum(length(result)) FROM job "
                 "GROUP BY method,principal,state"};
  while (jobs.step()) {
    change_count({.method = jobs.text(0),
                  .principal = jobs.text(1),
                  .state = state_of(jobs.integer(2)),
                  .bytes = jobs.number(4),
                  .result_bytes = jobs.number(5)},
                 jobs.integer(3));
  }
}

// ---- transactions ----

void Database::refresh() {
  if (is_stale_) take_back();
}

void Database::begin() {
  refresh();
  undo_.clear();
  on_rollback([this, last_seq = last_seq_] { last_seq_ = last_seq; });
  statements_->begin.run();
}

// Before what it takes back is done. Without memory for that all is read anew.
template <class Undo>
void Database::on_rollback(Undo undo) {
  try {
    undo_.emplace_back(std::move(undo));
  } catch (const std::bad_alloc&) {
    is_stale_ = true;
    throw;
  }
}

void Database::commit(std::int64_t now_ms) {
  last_ms_ = std::max(last_ms_, now_ms);
  for (Stream& stream : streams_) {
    if (!stream.changed) continue;
    statements_->save_stream.run(stream.id, stream.count, stream.bytes, stream.last_seq);
    stream.changed = false;
  }
  for (const std::string& principal : changed_usages_) {
    const auto usage = usages_.find(principal);
    if (usage == usages_.end() || usage->second.events == 0)
      statements_->remove_usage.run(principal);
    else
      statements_->save_usage.run(principal, usage->second.events, usage->second.event_bytes);
  }
  changed_usages_.clear();
  statements_->save_time.run(last_ms_);
  statements_->commit.run();
  undo_.clear();
  kept_ms_ = last_ms_;
}

void Database::rollback() noexcept {
  try {
    if (is_stale_) return take_back();
    is_stale_ = true;
    end_transaction();
    for (; !undo_.empty(); undo_.pop_back()) undo_.back()();
    changed_usages_.clear();
    is_stale_ = false;
  } catch (const Failed&) {          // the next change tries again, or fails as well
  } catch (const std::bad_alloc&) {  // likewise
  }
}

void Database::end_transaction() {
  if (sqlite3_get_autocommit(database_.get()) == 0) statements_->rollback.run();
}

void Database::take_back() {
  end_transaction();
  undo_.clear();
  load();
  is_stale_ = false;
}

void Database::sync() { execute("PRAGMA wal_checkpoint(PASSIVE)"); }

// ---- events ----

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

void Database::touch_events_of(const std::string& principal) {
  if (!changed_usages_.insert(principal).second) return;
  const Usage& before = usage_of(principal);
  on_rollback([this, principal, events = before.events, bytes = before.event_bytes] {
    Usage& usage = usages_[principal];
    usage.events = events;
    usage.event_bytes = bytes;
    if (usage.is_none()) usages_.erase(principal);
  });
}

static std::uint64_t size_of(const durable::NewEvent& event) noexcept {
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

const Database::Usage& Database::usage_of(const std::string& principal) const noexcept {
  static const Usage kNone;
  const auto found = usages_.find(principal);
  return found != usages_.end() ? found->second : kNone;
}

// Of one more event. What the broker itself has published is on no account.
void Database::require_room_for(const std::string& principal, std::uint64_t size) const {
  if (principal.empty()) return;
  const Usage& usage = usage_of(principal);
  if (options_.principal_events != 0 && usage.events >= options_.principal_events) {
    throw Failed{{.kind = Failure::Kind::full,
                  .why = "as many events of this principal are kept as may be",
                  .limit = "durable.principal_events"}};
  }
  if (options_.principal_event_bytes != 0 && usage.event_bytes + size > options_.principal_event_bytes) {
    throw Failed{{.kind = Failure::Kind::full,
                  .why = "the events of this principal hold too many bytes",
                  .limit = "durable.principal_event_bytes"}};
  }
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

// ---- consumers ----

durable::ConsumerState Database::open_consumer(const durable::ConsumerSettings& settings) {
  durable::ConsumerState state{.settings = settings, .floor = std::min(settings.after, last_seq_)};
  std::string& principal = state.settings.principal;
  Statement& find = statements_->find_consumer.with(settings.name);
  if (find.step()) {
    const std::string pattern = find.text(0);
    state.floor = find.number(1);
    principal = find.text(5);
    while (find.step()) continue;
    if (pattern != settings.pattern) {
      throw Failed{{.kind = Failure::Kind::conflict,
                    .why = "the consumer of that name has another topic: forget it first, or use another name"}};
    }
  } else {
    Statement& count = statements_->count_consumers.with(principal);
    const std::uint64_t made = count.step() ? count.number(0) : 0;
    while (count.step()) continue;
    if (made >= kPrincipalConsumersMax) {
      throw Failed{{.kind = Failure::Kind::full,
                    .why = "this principal has made as many consumers as may be: forget some",
                    .limit = "consumers"}};
    }
  }
  statements_->save_consumer.run(settings.name, settings.pattern, state.floor, settings.ack_wait_ms,
                                 settings.max_deliver, settings.max_in_flight, principal);
  state.tried = tried_of(settings.name);
  return state;
}

std::vector<durable::Tried> Database::tried_of(const std::string& consumer) {
  std::vector<durable::Tried> all;
  Statement& row = statements_->read_tried.with(consumer);
  while (row.step()) {
    all.push_back({.seq = row.number(0),
                   .deliveries = static_cast<std::uint32_t>(row.integer(1)),
                   .acknowledged = row.integer(2) != 0});
  }
  return all;
}

std::vector<durable::ConsumerState> Database::consumers() {
  std::vector<durable::ConsumerState> all;
  Statement& row = statements_->list_consumers.with();
  while (row.step()) {
    const durable::ConsumerSettings settings{.name = row.text(0),
                                             .pattern = row.text(1),
                                             .after = row.number(2),
                                             .ack_wait_ms = static_cast<std::uint32_t>(row.integer(3)),
                                             .max_deliver = static_cast<std::uint32_t>(row.integer(4)),
                                             .max_in_flight = static_cast<std::uint32_t>(row.integer(5)),
                                             .principal = row.text(6)};
    all.push_back({.settings = settings, .floor = settings.after, .tried = tried_of(settings.name)});
  }
  return all;
}

durable::Appended Database::progress(const durable::Progress& progress, std::int64_t now_ms) {
  durable::Appended dead;
  // One that is larger than its topic may be is given up without a trace; else it would come for ever.
  const bool is_kept = progress.dead && stream_of(progress.dead->topic).takes(size_of(*progress.dead));
  if (is_kept) dead = append(*progress.dead, now_ms);
  // One that has been forgotten meanwhile is not made anew.
  if (statements_->move_floor.run(progress.consumer, progress.floor) == 0) return dead;
  statements_->forget_tried.run(progress.consumer, progress.floor);
  if (progress.tried && progress.tried->seq > progress.floor) {
    statements_->save_tried.run(progress.consumer, progress.tried->seq, progress.tried->deliveries,
                                progress.tried->acknowledged ? 1 : 0);
  }
  return dead;
}

void Database::forget_consumer(const std::string& name) {
  if (statements_->remove_consumer.run(name) == 0)
    throw Failed{{.kind = Failure::Kind::unknown, .why = "there is no consumer of that name"}};
  statements_->forget_tried.run(name, INT64_MAX);
}

// ---- jobs ----

// So many jobs more, or less, that hold `jobs.bytes` together.
void Database::count_job(const JobRow& jobs, std::int64_t by) {
  on_rollback([this, jobs, by] {
    change_count(jobs, -by);
    forget_if_empty(jobs.method);
  });
  try {
    change_count(jobs, by);
  } catch (const std::bad_alloc&) {  // in the middle of it
    is_stale_ = true;
    throw;
  }
}

void Database::change_count(const JobRow& jobs, std::int64_t by) {
  durable::QueueCounts& queue = queues_[jobs.method];
  queue.method = jobs.method;
  std::uint64_t& count = [&]() -> std::uint64_t& {
    switch (jobs.state) {
      case Job::State::waiting: return queue.waiting;
      case Job::State::running: return queue.running;
      case Job::State::done: return queue.done;
      case Job::State::dead: break;
    }
    return queue.dead;
  }();
  count += static_cast<std::uint64_t>(by);
  const auto found = usages_.try_emplace(jobs.principal).first;
  Usage& usage = found->second;
  const auto of_method = usage.queues.try_emplace(jobs.method).first;
  of_method->second += static_cast<std::uint64_t>(by);
  if (of_method->second == 0) usage.queues.erase(of_method);
  if (jobs.state == Job::State::done) {
    const auto done = done_bytes_.try_emplace(jobs.method).first;
    const std::uint64_t bytes = jobs.bytes + jobs.result_bytes;
    done->second += by < 0 ? 0 - bytes : bytes;
    if (count == 0) done_bytes_.erase(done);
  } else {
    const std::uint64_t change = by < 0 ? 0 - jobs.bytes : jobs.bytes;
    queue.bytes += change;
    usage.jobs += static_cast<std::uint64_t>(by);
    usage.job_bytes += change;
  }
  if (usage.is_none()) usages_.erase(found);
}

durable::Pushed Database::push(const durable::NewJob& job, std::int64_t now_ms) {
  const std::string scope = "queue:" + job.method;
  if (const auto before = seen(scope, job.msg_id)) return {.id = *before, .duplicate = true};
  const auto queue = queues_.find(job.method);
  if (queue == queues_.end() && queues_.size() >= kQueuesMax)
    throw Failed{{.kind = Failure::Kind::full, .why = "too many methods have jobs", .limit = "queues"}};
  if (queue != queues_.end()) {
    const durable::QueueCounts& counts = queue->second;
    if (counts.waiting + counts.running + counts.dead >= options_.queue_count)
      throw Failed{
          {.kind = Failure::Kind::full, .why = "the queue of this method is full", .limit = "durable.queue_count"}};
    if (counts.bytes + job.params.size() > options_.queue_bytes)
      throw Failed{
          {.kind = Failure::Kind::full, .why = "the queue of this method is full", .limit = "durable.queue_bytes"}};
  }
  const Usage& usage = usage_of(job.principal);
  if (!usage.queues.contains(job.method) && usage.queues.size() >= kPrincipalQueuesMax) {
    throw Failed{{.kind = Failure::Kind::full,
                  .why = "this principal has jobs or results of as many methods as may be",
                  .limit = "queues"}};
  }
  if (usage.jobs >= options_.principal_jobs) {
    throw Failed{{.kind = Failure::Kind::full,
                  .why = "as many jobs of this principal wait, run or are dead as may be",
                  .limit = "durable.principal_jobs"}};
  }
  if (usage.job_bytes + job.params.size() > options_.principal_bytes) {
    throw Failed{{.kind = Failure::Kind::full,
                  .why = "the jobs of this principal hold too many bytes",
                  .limit = "durable.principal_bytes"}};
  }
  statements_->add_job.run(job.method, now_ms + static_cast<std::int64_t>(job.delay_ms), now_ms, job.principal,
                           job.max_deliver, job.params, job.timeout_ms);
  const auto id = static_cast<std::uint64_t>(sqlite3_last_insert_rowid(database_.get()));
  count_job(
      {.method = job.method, .principal = job.principal, .state = Job::State::waiting, .bytes = job.params.size()}, 1);
  remember(scope, job.msg_id, id, now_ms);
  return {.id = id};
}

Job Database::read_job(const Statement& row) {
  return {.id = row.number(0),
          .method = row.text(1),
          .params = row.text(2),
          .state = state_of(row.integer(3)),
          .deliveries = static_cast<std::uint32_t>(row.integer(4)),
          .max_deliver = static_cast<std::uint32_t>(row.integer(5)),
          .at_ms = row.integer(6),
          .result = row.text(7),
          .timeout_ms = static_cast<std::uint32_t>(row.integer(8)),
          .principal = row.text(9)};
}

Database::JobRow Database::job_row(std::uint64_t id) {
  Statement& row = statements_->size_job.with(id);
  if (!row.step()) throw Failed{{.kind = Failure::Kind::unknown, .why = "there is no job of that id"}};
  JobRow read{.method = row.text(0),
              .principal = row.text(1),
              .state = state_of(row.integer(2)),
              .bytes = row.number(3),
              .result_bytes = row.number(4)};
  while (row.step()) continue;
  return read;
}

durable::Taken Database::take(const durable::Take& take, std::int64_t now_ms) {
  durable::Taken taken;
  Statement& due = statements_->due_jobs.with(take.method, now_ms, static_cast<std::uint64_t>(take.count));
  std::size_t bytes = 0;
  while (due.step()) {
    Job job = read_job(due);
    bytes += job.params.size();
    if (!taken.jobs.empty() && bytes > take.bytes) break;
    taken.jobs.push_back(std::move(job));
  }
  due.reset();
  for (Job& job : taken.jobs) {
    statements_->start_job.run(job.id);
    job.state = Job::State::running;
    ++job.deliveries;
    change_state(
        {.method = job.method, .principal = job.principal, .state = Job::State::waiting, .bytes = job.params.size()},
        Job::State::running);
  }
  Statement& next = statements_->next_due.with(take.method);
  if (next.step()) {
    taken.next_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(next.integer(0) - now_ms, 0));
    while (next.step()) continue;
  }
  return taken;
}

void Database::reset_jobs() {
  execute("UPDATE job SET state=0 WHERE state=1");
  for (auto& [method, queue] : queues_) {
    if (queue.running == 0) continue;
    on_rollback([this, method, running = queue.running] {
      durable::QueueCounts& before = queues_[method];
      before.running += running;
      before.waiting -= running;
    });
    queue.waiting += std::exchange(queue.running, 0);
  }
}

void Database::change_state(JobRow row, Job::State to, std::uint64_t result_bytes) {
  count_job(row, -1);
  row.state = to;
  row.result_bytes = result_bytes;
  count_job(row, 1);
}

void Database::remove_job(std::uint64_t id, const JobRow& row) {
  statements_->remove_job.run(id);
  count_job(row, -1);
  forget_if_empty(row.method);
}

void Database::forget_if_empty(const std::string& method) noexcept {
  const auto found = queues_.find(method);
  const durable::QueueCounts& left = found->second;
  if (left.waiting + left.running + left.done + left.dead == 0) queues_.erase(found);
}

void Database::finish(const durable::JobOutcome& outcome, std::int64_t now_ms) {
  const JobRow row = job_row(outcome.id);
  if (row.state != Job::State::running)
    throw Failed{{.kind = Failure::Kind::conflict, .why = "the job is not running any more"}};
  const std::int64_t due = now_ms + static_cast<std::int64_t>(outcome.delay_ms);
  statements_->end_job.run(outcome.id, static_cast<int>(outcome.state), due, outcome.untried ? 1 : 0, outcome.result);
  change_state(row, outcome.state, outcome.result.size());
  if (outcome.state != Job::State::done) return;
  const auto is_beyond = [&] {
    const auto queue = queues_.find(row.method);
    const auto bytes = done_bytes_.find(row.method);
    return (queue != queues_.end() && queue->second.done > options_.queue_count) ||
           (bytes != done_bytes_.end() && bytes->second > options_.queue_bytes);
  };
  while (is_beyond()) {
    Statement& oldest = statements_->oldest_done.with(row.method);
    if (!oldest.step()) return;
    const std::uint64_t id = oldest.number(0);
    while (oldest.step()) continue;
    remove_job(id, job_row(id));
  }
}

Job Database::find_job(std::uint64_t id) {
  Statement& row = statements_->read_job.with(id);
  if (!row.step()) throw Failed{{.kind = Failure::Kind::unknown, .why = "there is no job of that id"}};
  Job job = read_job(row);
  while (row.step()) continue;
  return job;
}

std::vector<durable::QueueCounts> Database::list_queues() const {
  std::vector<durable::QueueCounts> all;
  for (const auto& [method, counts] : queues_) all.push_back(counts);
  return all;
}

std::vector<Job> Database::peek(const durable::Peek& peek) {
  std::vector<Job> jobs;
  const int state = static_cast<int>(peek.state);
  const auto count = static_cast<std::uint64_t>(peek.count);
  Statement& row = peek.principal
                       ? statements_->peek_own_jobs.with(peek.method, state, peek.after, count, *peek.principal)
                       : statements_->peek_jobs.with(peek.method, state, peek.after, count);
  std::size_t bytes = 0;
  while (row.step()) {
    Job job = read_job(row);
    bytes += job.params.size() + job.result.size();
    if (!jobs.empty() && bytes > peek.bytes) break;
    jobs.push_back(std::move(job));
  }
  row.reset();
  return jobs;
}

void Database::retry_job(std::uint64_t id, std::int64_t now_ms) {
  const JobRow row = job_row(id);
  if (row.state != Job::State::dead)
    throw Failed{{.kind = Failure::Kind::conflict, .why = "the job is not among the dead letters"}};
  statements_->renew_job.run(id, now_ms);
  change_state(row, Job::State::waiting);
}

void Database::drop_job(std::uint64_t id) {
  const JobRow row = job_row(id);
  if (row.state == Job::State::running)
    throw Failed{{.kind = Failure::Kind::conflict, .why = "the job is running: drop it once it is done"}};
  remove_job(id, row);
}

}  // namespace wirecall::local_store
