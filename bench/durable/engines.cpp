// What an append of 100 bytes costs that is safe before the next one begins, and 256 that one commit makes safe
// together: in a plain file, SQLite (WAL, synchronous=FULL), LMDB, and by the LocalStore, of which 256 are in flight at
// all times. By turns in one run, since a disk is not as fast at all times.
//
//     bench_durable_engines [FOLDER] [SECONDS]
//
// FOLDER is on the disk that is measured: that of the program itself, where it is not given.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <lmdb.h>
#include <memory>
#include <sqlite3.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "local_store/local_store.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kGroup = 256;
const std::string kEvent(100, 'x');

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s failed\n", what);
  std::exit(1);
}

class Engine {
 public:
  virtual ~Engine() = default;
  virtual void append(int count) = 0;
  virtual void rest() {}
};

// What the disk itself takes.
class PlainFile final : public Engine {
 public:
  explicit PlainFile(const std::string& folder)
      : file_(::open((folder + "/plain").c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0644)) {}
  ~PlainFile() override { ::close(file_); }
  void append(int count) override {
    std::string text;
    for (int i = 0; i < count; ++i) text += kEvent;
    require(::write(file_, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "write");
    require(::fdatasync(file_) == 0, "fdatasync");
  }

 private:
  int file_;
};

class Sqlite final : public Engine {
 public:
  explicit Sqlite(const std::string& folder) {
    require(sqlite3_open((folder + "/sqlite").c_str(), &database_) == SQLITE_OK, "open");
    run("PRAGMA journal_mode=WAL");
    run("PRAGMA synchronous=FULL");
    run("CREATE TABLE event(seq INTEGER PRIMARY KEY, topic INTEGER, at INTEGER, body BLOB)");
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
    insert_ = prepare("INSERT INTO event(topic, at, body) VALUES(1, ?, ?)");
  }
  ~Sqlite() override {
    for (sqlite3_stmt* one : {begin_, commit_, insert_}) sqlite3_finalize(one);
    sqlite3_close(database_);
  }
  void append(int count) override {
    step(begin_);
    for (int i = 0; i < count; ++i) {
      sqlite3_bind_int64(insert_, 1, i);
      sqlite3_bind_blob(insert_, 2, kEvent.data(), static_cast<int>(kEvent.size()), SQLITE_STATIC);
      step(insert_);
    }
    step(commit_);
  }

 private:
  void run(const char* text) { require(sqlite3_exec(database_, text, nullptr, nullptr, nullptr) == SQLITE_OK, text); }
  sqlite3_stmt* prepare(const char* text) {
    sqlite3_stmt* made = nullptr;
    require(sqlite3_prepare_v3(database_, text, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr) == SQLITE_OK, text);
    return made;
  }
  static void step(sqlite3_stmt* statement) {
    require(sqlite3_step(statement) == SQLITE_DONE, "step");
    sqlite3_reset(statement);
  }

  sqlite3* database_ = nullptr;
  sqlite3_stmt* begin_;
  sqlite3_stmt* commit_;
  sqlite3_stmt* insert_;
};

class Lmdb final : public Engine {
 public:
  explicit Lmdb(const std::string& folder) {
    require(mdb_env_create(&environment_) == 0, "create");
    require(mdb_env_set_mapsize(environment_, std::size_t{8} << 30) == 0, "mapsize");
    require(mdb_env_open(environment_, (folder + "/lmdb").c_str(), MDB_NOSUBDIR, 0644) == 0, "open");
    MDB_txn* transaction = nullptr;
    require(mdb_txn_begin(environment_, nullptr, 0, &transaction) == 0, "begin");
    require(mdb_dbi_open(transaction, nullptr, MDB_INTEGERKEY, &table_) == 0, "table");
    require(mdb_txn_commit(transaction) == 0, "commit");
  }
  ~Lmdb() override { mdb_env_close(environment_); }
  void append(int count) override {
    MDB_txn* transaction = nullptr;
    require(mdb_txn_begin(environment_, nullptr, 0, &transaction) == 0, "begin");
    for (int i = 0; i < count; ++i) {
      ++last_;
      MDB_val key{sizeof last_, &last_};
      MDB_val value{kEvent.size(), const_cast<char*>(kEvent.data())};
      require(mdb_put(transaction, table_, &key, &value, MDB_APPEND) == 0, "put");
    }
    require(mdb_txn_commit(transaction) == 0, "commit");
  }

 private:
  MDB_env* environment_ = nullptr;
  MDB_dbi table_ = 0;
  std::size_t last_ = 0;
};

// Runs what follows a change on the store's own thread.
class AtOnce final : public wirecall::detail::Executor {
 public:
  void post(std::shared_ptr<Continuation> continuation) noexcept override { continuation->resume(); }
};

class OfWirecall final : public Engine {
 public:
  explicit OfWirecall(const std::string& folder)
      : store_({.folder = folder + "/store"}, std::make_shared<AtOnce>(), wirecall::LogSink{}) {}
  // One, or so many while as many are in flight at all times.
  void append(int count) override {
    const int window = count > 1 ? count : 1;
    const int end = done_ + count;
    for (int done = done_; done < end; done = done_) {
      while (asked_ < done + window) ask();
      done_.wait(done);
    }
  }
  // None is in flight any more.
  void rest() override {
    for (int done = done_; done < asked_; done = done_) done_.wait(done);
  }

 private:
  void ask() {
    ++asked_;
    store_.append({.topic = "orders.new", .params = kEvent}, [this](const auto& outcome) {
      require(outcome.has_value(), "append");
      ++done_;
      done_.notify_one();
    });
  }

  std::atomic<int> done_{0};
  int asked_ = 0;
  wirecall::local_store::LocalStore store_;
};

struct Row {
  const char* name;
  std::unique_ptr<Engine> engine;
  std::vector<double> one = {};  // microseconds
  std::vector<double> group = {};
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int count, char** words) {
  const std::filesystem::path parent = count > 1 ? words[1] : std::filesystem::absolute(words[0]).parent_path();
  const std::string folder = (parent / "bench-engines").string();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const double seconds = count > 2 ? std::atof(words[2]) : 6;
  std::vector<Row> rows;
  rows.push_back({"plain file", std::make_unique<PlainFile>(folder)});
  rows.push_back({"SQLite", std::make_unique<Sqlite>(folder)});
  rows.push_back({"LMDB", std::make_unique<Lmdb>(folder)});
  rows.push_back({"LocalStore", std::make_unique<OfWirecall>(folder)});
  const auto measure = [](Engine& engine, int appends, std::vector<double>& into) {
    const Clock::time_point before = Clock::now();
    engine.append(appends);
    into.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
  };
  for (const Clock::time_point end =
           Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
       Clock::now() < end;) {
    for (Row& row : rows) {
      for (int i = 0; i < 20; ++i) measure(*row.engine, 1, row.one);
      for (int i = 0; i < 5; ++i) measure(*row.engine, kGroup, row.group);
      row.engine->rest();
    }
  }
  std::printf("%-12s %22s %18s %14s\n", "", "one, us (of the disk)", "256 together, us", "appends a s");
  const double disk = median(rows[0].one);
  for (const Row& row : rows) {
    const double one = median(row.one);
    const double group = median(row.group);
    std::printf("%-12s %14.0f (%4.2f) %18.0f %14.0f\n", row.name, one, one / disk, group, kGroup / group * 1e6);
  }
  rows.clear();
  std::filesystem::remove_all(folder);
}
