// See database.hpp.
#include "local_store/database.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sqlite3.h>
#include <stdexcept>
#include <unistd.h>
#include <utility>

#include "local_store/folder.hpp"
#include "local_store/statements.hpp"

namespace wirecall::local_store {

using durable::Failure;

constexpr std::string_view kFileName = "wirecall.db";
constexpr std::int64_t kApplication = 0x77636462;  // "wcdb": which files are ours
// Of the tables: those of `make_tables` are version 1, and whoever changes them gives them another number.
constexpr std::int64_t kVersion = 1;
constexpr std::string_view kToWrite = "; this user has to be able to write to the folder and its files";
// A larger file is not read as a whole at start.
constexpr std::uintmax_t kCheckedBytes = std::uintmax_t{256} << 20;

static std::runtime_error cannot_open(const std::string& path, const std::string& why) {
  return std::runtime_error{"cannot open the durable store " + path + ": " + why};
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

}  // namespace wirecall::local_store
